// Which tuned plan a profile has for a problem: pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tuning_profile.h"
#include "core/variant.h"

namespace fdbench::tune {

enum class ProfileAnswer {
  exact,     // this very sequence length was tuned
  bucket,    // another one of its bucket
  fallback,  // the profile has this variant, but nothing for this shape: the variant's own plan
};
std::string_view to_string(ProfileAnswer answer);

struct ProfileMatch {
  ProfileAnswer answer = ProfileAnswer::fallback;
  TuningPoint tuning;                   // empty for fallback
  std::string path;                     // of the profile; for fallback the first that has the variant
  const ProfileEntry* entry = nullptr;  // null for fallback
  std::vector<std::string> notes;       // mismatches: sentences
};

// Profiles in the order in which they are asked; the first that answers exact or bucket does. Nothing where
// none has this variant on this device. Device, multiprocessors, capability and tuning_version must be the
// same; of entries that differ in driver, toolkit or sources (`source_hash`) the nearest is used, and a note
// says so. The sequence lengths of an entry's bucket are its own; other shapes never share one.
struct Lookup {
  std::optional<ProfileMatch> match;
  std::vector<std::string> notes;  // of entries that may not be used, where no other answers in their place
};
Lookup look_up(std::span<const TuningProfile> profiles, const ProfileEnvironment& environment,
               const Variant& variant, const Problem& problem, std::string_view source_hash);

// That the match was tuned with another instruction set than `planned`, its plan here, uses: a sentence, like
// its notes. Nothing where either does not say.
std::optional<std::string> other_isa(const ProfileMatch& match, const LaunchPlan& planned);

// Why no entry of the profile may be used on this device, a sentence; nothing where some may.
std::optional<std::string> foreign(const TuningProfile& profile, const ProfileEnvironment& environment);

// Puts an entry in the place of the one with its key, or among them; entries of other keys stay as they are.
void put_entry(TuningProfile& profile, ProfileEntry entry);

}  // namespace fdbench::tune
