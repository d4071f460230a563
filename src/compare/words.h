// Evidence in words.
#pragma once

#include <cstddef>
#include <string>

#include "core/comparison.h"

namespace fdbench::compare {

// Three significant digits at most: "0.4", "12.3", "1.2e-06".
std::string short_number(double value);
// "+5.2 %"
std::string signed_percent(double value);

// "+5.2 % (95 %: +3.9 ... +6.5), threshold 3 %, p = 1e-05 over 40 rows, 5 + 5 processes that differ by 0.4 %"
std::string evidence_text(const Effect& effect, double threshold_percent, std::size_t rows, bool is_roof);

}  // namespace fdbench::compare
