// What `fdbench tune` prints: plans and their gains.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/tuning_profile.h"
#include "tune/search.h"

namespace fdbench::cli {

// A line an entry: shape, plan, median us, gain over the variant's own plan and over the best rule, margin,
// how often it won. A variant of several tuning versions is named with its version.
std::string profile_table(std::span<const ProfileEntry> entries);
std::string profile_markdown(std::span<const ProfileEntry> entries);

// Geometric means of the gains over the variant's own plan and over each rule, on how many shapes.
std::string gain_summary(std::span<const ProfileEntry> entries, bool markdown);

// The rule whose plan was the fastest of all rules'; null where none was measured.
const ProfileGain* best_rule(const ProfileEntry& entry);

}  // namespace fdbench::cli
