// From what a search found to the entry of a profile, and what the plan gains over the known ones.
#pragma once

#include <cstddef>

#include "core/tuning_profile.h"
#include "tune/search.h"
#include "tune/search_space.h"

namespace fdbench::tune {

// Known plans are held against the search's for so many rounds, and the gains paired over as many others.
inline constexpr int kGainRounds = 20;
// Known plans that the search saw to be slower than this, over its own, decide nothing.
inline constexpr double kHopelessKnown = 1.05;

// `entry` has what does not depend on the search (environment, tuning_version, build); the rest is filled in.
// The outcome has a winner.
ProfileEntry entry_of(const SearchSpace& space, const SearchOutcome& outcome, ProfileEntry entry);

struct Gains {
  std::size_t plan = 0;  // the point that the entry has in the end
  bool stopped = false;  // by the measurer: the entry is not whole
  std::int64_t samples = 0;
  double cost_s = 0.0;  // device time of the rounds that decide; those of the gains only tell
};

// Measures the entry's plan, its variant's own and the rules' once more, together. A known plan that is shown
// to be faster (its interval below 1) becomes the entry's; else the variant's own does unless it is shown to
// be slower: a tuned plan has to win. Where that is open by more than a tie, both get as many rounds again.
// Then the entry's plan and every known one are measured in further rounds, which chose nothing: gains are of
// those, and where the plan was exchanged all other figures too, with the search's as runner-up.
Gains add_gains(const SearchSpace& space, const SearchOutcome& outcome, Measurer& measurer,
                ProfileEntry& entry);

}  // namespace fdbench::tune
