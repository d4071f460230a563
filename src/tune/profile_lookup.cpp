#include "tune/profile_lookup.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace fdbench::tune {

namespace {

bool same_machine(const ProfileEnvironment& a, const ProfileEnvironment& b) {
  return a.device == b.device && a.sms == b.sms && a.cc == b.cc;
}

std::string machine_text(const ProfileEnvironment& of) {
  std::string text = of.device + " (" + std::to_string(of.sms);
  return of.cc > 0 ? text + " multiprocessors, sm_" + std::to_string(of.cc) + ")" : text + " cores)";
}

bool same_shape(const ProfileKey& key, const Problem& problem) {
  return key.dtype == problem.dtype && key.dim == problem.dim && key.heads == problem.heads &&
         key.kv_heads == problem.kv_heads;
}

// How many of the things that need not be the same differ.
int differences(const ProfileEntry& entry, const ProfileEnvironment& here, std::string_view hash) {
  const ProfileEnvironment& there = entry.key.environment;
  return (there.driver_major != here.driver_major ? 1 : 0) +
         (there.toolkit_major != here.toolkit_major ? 1 : 0) + (entry.source_hash != hash ? 1 : 0);
}

std::string soft_note(const std::string& path, const char* what, const std::string& there,
                      const std::string& now) {
  return path + ": tuned with " + what + " " + there + ", and here it is " + now + ": used all the same";
}

std::vector<std::string> soft_notes(const TuningProfile& profile, const ProfileEntry& entry,
                                    const ProfileEnvironment& here, std::string_view hash) {
  std::vector<std::string> notes;
  const auto note = [&](const char* what, const std::string& there, const std::string& now) {
    notes.push_back(soft_note(profile.path, what, there, now));
  };
  const ProfileEnvironment& there = entry.key.environment;
  if (there.driver_major != here.driver_major)
    note("driver", std::to_string(there.driver_major), std::to_string(here.driver_major));
  if (there.toolkit_major != here.toolkit_major)
    note("toolkit", std::to_string(there.toolkit_major), std::to_string(here.toolkit_major));
  if (entry.source_hash != hash)
    note("kernel sources", entry.source_hash.empty() ? "unknown" : entry.source_hash, std::string(hash));
  return notes;
}

}  // namespace

std::string_view to_string(ProfileAnswer answer) {
  switch (answer) {
    case ProfileAnswer::exact:
      return "exact";
    case ProfileAnswer::bucket:
      return "bucket";
    case ProfileAnswer::fallback:
      break;
  }
  return "fallback";
}

Lookup look_up(std::span<const TuningProfile> profiles, const ProfileEnvironment& environment,
               const Variant& variant, const Problem& problem, std::string_view source_hash) {
  Lookup found;
  const TuningProfile* knows_variant = nullptr;
  for (const TuningProfile& profile : profiles) {
    const ProfileEntry* best = nullptr;
    std::pair<int, int> least;  // not exact, differences
    int other_version = 0;
    for (const ProfileEntry& entry : profile.entries) {
      if (entry.key.variant != variant.name || !same_machine(entry.key.environment, environment)) continue;
      if (entry.key.tuning_version != variant.tuning_version) {
        other_version = entry.key.tuning_version;
        continue;
      }
      if (!knows_variant) knows_variant = &profile;
      if (!same_shape(entry.key, problem) || !entry.key.bucket.holds(problem.seq)) continue;
      const std::pair<int, int> rank{entry.seq == problem.seq ? 0 : 1,
                                     differences(entry, environment, source_hash)};
      if (!best || rank < least) {
        best = &entry;
        least = rank;
      }
    }
    if (other_version > 0 && !best) {
      found.notes.push_back(profile.path + ": tuned for tuning_version " + std::to_string(other_version) +
                            " of " + std::string(variant.name) + ", and this build has " +
                            std::to_string(variant.tuning_version) + ": not used");
    }
    if (best) {
      found.match =
          ProfileMatch{least.first == 0 ? ProfileAnswer::exact : ProfileAnswer::bucket, best->tuning,
                       profile.path, best, soft_notes(profile, *best, environment, source_hash)};
      return found;
    }
  }
  if (knows_variant)
    found.match = ProfileMatch{ProfileAnswer::fallback, {}, knows_variant->path, nullptr, {}};
  return found;
}

std::optional<std::string> other_isa(const ProfileMatch& match, const LaunchPlan& planned) {
  if (!match.entry || match.entry->isa.empty() || planned.isa.empty() || match.entry->isa == planned.isa)
    return std::nullopt;
  return soft_note(match.path, "instruction set", match.entry->isa, planned.isa);
}

std::optional<std::string> foreign(const TuningProfile& profile, const ProfileEnvironment& environment) {
  if (profile.entries.empty()) return std::nullopt;
  for (const ProfileEntry& entry : profile.entries) {
    if (same_machine(entry.key.environment, environment)) return std::nullopt;
  }
  return profile.path + ": of " + machine_text(profile.entries.front().key.environment) + ", and this is " +
         machine_text(environment) + ": not used";
}

void put_entry(TuningProfile& profile, ProfileEntry entry) {
  const auto rank = [](const ProfileEntry& of) {
    const ProfileKey& k = of.key;
    const ProfileEnvironment& e = k.environment;
    return std::tuple(e.device, e.sms, e.cc, k.variant, k.tuning_version, static_cast<int>(k.dtype), k.dim,
                      k.heads, k.kv_heads, k.bucket.least, e.driver_major, e.toolkit_major);
  };
  for (ProfileEntry& known : profile.entries) {
    if (known.key == entry.key) {
      known = std::move(entry);
      return;
    }
  }
  const auto place =
      std::upper_bound(profile.entries.begin(), profile.entries.end(), entry,
                       [&](const ProfileEntry& a, const ProfileEntry& b) { return rank(a) < rank(b); });
  profile.entries.insert(place, std::move(entry));
}

}  // namespace fdbench::tune
