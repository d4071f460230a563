// Whether two sides may be compared at all.
#pragma once

#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compare/evidence.h"

namespace fdbench::compare {

// What must be the same on both sides; each can be let through by name.
//   device   model, and on a CPU the cores that were used
//   power    the power limit
//   mig      whether it is a slice, and how large
//   dtype    of the problems
//   cache, timer
//   inputs   recipe, version and seed
inline constexpr std::array<std::string_view, 7> kComparableKeys = {"device", "power", "mig",   "dtype",
                                                                    "cache",  "timer", "inputs"};

struct Comparability {
  std::vector<std::string> differences;  // a sentence each; keys in `allow` are left out
  std::vector<std::string> warnings;     // what is worth knowing and stops nothing; allowed differences too
};

// Every file of both sides is held to the last file of `now`.
Comparability check_comparable(const Side& base, const Side& now, const std::set<std::string>& allow);

}  // namespace fdbench::compare
