// From what a search found to the entry of a profile, and what the plan gains over the known ones.
#pragma once

#include <cstddef>

#include "core/tuning_profile.h"
#include "tune/search.h"
#include "tune/search_space.h"

namespace fdbench::tune {

// Gains are paired over so many rounds of their own.
inline constexpr int kGainRounds = 20;

// `entry` has what does not depend on the search (environment, tuning_version, build); the rest is filled in.
// The outcome has a winner.
ProfileEntry entry_of(const SearchSpace& space, const SearchOutcome& outcome, ProfileEntry entry);

// Measures the entry's plan, its variant's own and every rule's once more, together, and fills in the gains.
// Should one of them be shown to be faster (its interval below 1), it becomes the entry's plan, that of the
// search its runner-up, and all are measured again. The point that the entry has in the end.
std::size_t add_gains(const SearchSpace& space, const SearchOutcome& outcome, Measurer& measurer,
                      ProfileEntry& entry);

}  // namespace fdbench::tune
