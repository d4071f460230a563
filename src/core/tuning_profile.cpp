#include "core/tuning_profile.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

namespace fdbench {

namespace {

// 2^(n - 1/2) is never whole, so rounding it up is the same as above it.
std::int64_t bucket_begin(int n) {
  return static_cast<std::int64_t>(std::ceil(std::ldexp(std::sqrt(0.5), n)));
}

int major_of(std::string_view version) {
  return std::atoi(std::string(version).c_str());
}

}  // namespace

SeqBucket seq_bucket(std::int64_t seq) {
  int n = 0;
  while (n < 62 && bucket_begin(n + 1) <= seq) ++n;
  return {std::max<std::int64_t>(1, bucket_begin(n)), bucket_begin(n + 1) - 1};
}

const ProfileGain* gain_over(const ProfileEntry& entry, std::string_view over) {
  const auto at = std::find_if(entry.gains.begin(), entry.gains.end(),
                               [&](const ProfileGain& gain) { return gain.over == over; });
  return at == entry.gains.end() ? nullptr : &*at;
}

std::string profile_name(std::string_view device) {
  std::string name;
  for (const char c : device) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) && byte < 128) {
      name += static_cast<char>(std::tolower(byte));
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  if (name.size() > 100) name.resize(100);
  return name.empty() ? "device" : name;
}

ProfileEnvironment profile_environment(const DeviceInfo& device, std::string_view toolkit) {
  ProfileEnvironment environment{device.name, device.sms, device.cc, major_of(device.driver), 0};
  // The toolkit that built the CPU's kernels is not CUDA's.
  if (device.kind == BackendKind::cuda) environment.toolkit_major = major_of(toolkit);
  return environment;
}

std::string environment_text(const ProfileEnvironment& of) {
  std::string text = of.device + ", " + std::to_string(of.sms);
  text += of.cc > 0 ? " multiprocessors, sm_" + std::to_string(of.cc) : " cores";
  if (of.driver_major > 0) text += ", driver " + std::to_string(of.driver_major);
  if (of.toolkit_major > 0) text += ", toolkit " + std::to_string(of.toolkit_major);
  return text;
}

std::vector<std::vector<ProfileEntry>> by_environment(const TuningProfile& profile) {
  std::vector<std::vector<ProfileEntry>> groups;
  for (const ProfileEntry& entry : profile.entries) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& known) {
      return known.front().key.environment == entry.key.environment;
    });
    if (group == groups.end()) {
      groups.push_back({entry});
    } else {
      group->push_back(entry);
    }
  }
  return groups;
}

}  // namespace fdbench
