// Text for HTML and SVG: escaping, and figures as they are shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/measurement.h"

namespace fdbench::report {

// For text and quoted attributes: & < > " ' as entities, control characters and what is not UTF-8 as U+FFFD.
std::string escaped(std::string_view text);
// The first `characters` code points and an ellipsis, where there are more. Not escaped.
std::string clipped(std::string_view text, std::size_t characters);

// Coordinates in SVG: one decimal, none where it is 0.
std::string coord(double value);

std::string microseconds(double ns);              // four significant digits, no exponent
std::string gigabytes_per_s(double bytes_per_s);  // "4342", "93.41"
std::string percent(double share);                // "97.4 %"
std::string signed_percent(double share);         // "+3.1 %"
std::string size_text(std::int64_t bytes);        // "62.9 MB"
// "a ... b" by `show`; empty where there is no interval.
template <class Show>
std::string interval_text(const std::optional<Bounds>& bounds, const Show& show) {
  return bounds ? show(bounds->lo) + " \u2026 " + show(bounds->hi) : std::string();
}

// About `count` round values from 0 to the first one at or over `top`.
std::vector<double> ticks_to(double top, int count);
// "8k" for 8192, "131073" as it is.
std::string length_text(std::int64_t tokens);

}  // namespace fdbench::report
