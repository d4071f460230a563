#include "compare/comparable.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace fdbench::compare {

namespace {

// Limits are set in whole watts; drivers report a little beside them.
constexpr double kSamePowerW = 1.0;

struct Difference {
  std::string_view key;
  std::string here, there;
};

std::string watts(const std::optional<double>& limit) {
  return limit ? std::to_string(std::lround(*limit)) + " W" : "not known";
}

std::string slice(const DeviceInfo& device) {
  return (device.mig && *device.mig ? "a MIG slice of " : "whole, ") + std::to_string(device.sms) +
         " multiprocessors";
}

std::string dtypes(const ResultFile& file) {
  std::set<std::string> names;
  for (const ResultRecord& record : file.results) names.insert(std::string(to_string(record.problem.dtype)));
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " and ") + name;
  return text;
}

std::string model(const DeviceInfo& device) {
  std::string text = device.name + " (" + std::string(to_string(device.kind));
  if (device.kind == BackendKind::cpu) text += ", " + std::to_string(device.sms) + " cores";
  return text + ")";
}

bool share_a_dtype(const ResultFile& a, const ResultFile& b) {
  return a.results.empty() || b.results.empty() ||
         std::any_of(a.results.begin(), a.results.end(), [&](const ResultRecord& one) {
           return std::any_of(b.results.begin(), b.results.end(), [&](const ResultRecord& other) {
             return one.problem.dtype == other.problem.dtype;
           });
         });
}

std::vector<Difference> differences(const ResultFile& a, const ResultFile& b) {
  const DeviceInfo &x = a.run.device, &y = b.run.device;
  std::vector<Difference> found;
  const auto differ = [&](std::string_view key, const std::string& here, const std::string& there) {
    if (here != there) found.push_back({key, here, there});
  };
  differ("device", model(x), model(y));
  if (x.power_limit_w.has_value() != y.power_limit_w.has_value() ||
      (x.power_limit_w && std::abs(*x.power_limit_w - *y.power_limit_w) > kSamePowerW)) {
    differ("power", watts(x.power_limit_w), watts(y.power_limit_w));
  }
  if (x.kind != BackendKind::cpu && x.name == y.name) differ("mig", slice(x), slice(y));
  if (!share_a_dtype(a, b)) differ("dtype", dtypes(a), dtypes(b));
  differ("cache", std::string(to_string(a.run.cache)), std::string(to_string(b.run.cache)));
  differ("timer", std::string(to_string(a.run.timer)), std::string(to_string(b.run.timer)));
  const auto inputs = [](const RunInfo& run) { return run.inputs + ", seed " + std::to_string(run.seed); };
  differ("inputs", inputs(a.run), inputs(b.run));
  return found;
}

// The code of the same row's two sides, where each says what it was made for.
std::set<std::string> other_instructions(const ResultFile& file, const std::string& name,
                                         const ResultFile& reference, const std::string& reference_name) {
  std::map<std::string_view, const std::string*> isas;
  for (const ResultRecord& there : reference.results) {
    if (there.plan && !there.plan->isa.empty()) isas[there.id] = &there.plan->isa;
  }
  std::set<std::string> found;
  for (const ResultRecord& here : file.results) {
    const auto there = isas.find(here.id);
    if (!here.plan || here.plan->isa.empty() || there == isas.end() || here.plan->isa == *there->second)
      continue;
    found.insert(here.variant + " uses " + here.plan->isa + " in " + name + ", " + *there->second + " in " +
                 reference_name);
  }
  return found;
}

}  // namespace

Comparability check_comparable(const Side& base, const Side& now, const std::set<std::string>& allow) {
  Comparability out;
  const ResultFile& reference = *now.files.back();
  const std::string& reference_name = now.names.back();
  const auto warn = [&](const std::string& text) {
    if (std::find(out.warnings.begin(), out.warnings.end(), text) == out.warnings.end())
      out.warnings.push_back(text);
  };
  const auto hold = [&](const ResultFile& file, const std::string& name) {
    for (const Difference& difference : differences(file, reference)) {
      const std::string text = std::string(difference.key) + ": " + difference.here + " in " + name + ", " +
                               difference.there + " in " + reference_name;
      if (allow.count(std::string(difference.key))) {
        warn(text + " (allowed)");
      } else {
        out.differences.push_back(text + "; --allow " + std::string(difference.key) +
                                  " compares them anyway");
      }
    }
    const DeviceInfo &x = file.run.device, &y = reference.run.device;
    if (x.name == y.name && x.uuid != y.uuid)
      warn("another serial of the same model: " + (x.uuid.empty() ? "unknown" : x.uuid) + " in " + name +
           ", " + (y.uuid.empty() ? "unknown" : y.uuid) + " in " + reference_name);
    if (x.driver != y.driver)
      warn("driver " + x.driver + " in " + name + ", " + y.driver + " in " + reference_name);
    if (file.run.host.cpu != reference.run.host.cpu)
      warn("host CPU " + file.run.host.cpu + " in " + name + ", " + reference.run.host.cpu + " in " +
           reference_name);
    if (isas_differ(x, y))
      warn("instruction sets " + isas_text(x) + " in " + name + ", " + isas_text(y) + " in " +
           reference_name);
    for (const std::string& text : other_instructions(file, name, reference, reference_name)) warn(text);
    if (file.run.interrupted) warn(name + " was interrupted: rows may be missing");
  };
  for (std::size_t f = 0; f < base.files.size(); ++f) hold(*base.files[f], base.names[f]);
  for (std::size_t f = 0; f < now.files.size(); ++f) hold(*now.files[f], now.names[f]);
  return out;
}

}  // namespace fdbench::compare
