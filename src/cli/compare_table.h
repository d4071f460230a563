// A comparison for a terminal.
#pragma once

#include <string>

#include "core/comparison.h"

namespace fdbench::cli {

// What was compared, warnings, a line a row with its verdict, times, effect and evidence, and the counts.
std::string comparison_table(const Comparison& comparison, bool color);

}  // namespace fdbench::cli
