#include "cli/numbers.h"

#include <fmt/core.h>

#include <charconv>

#include "core/error.h"

namespace fdbench::cli {

namespace {

constexpr double kMostSeconds = 1e9;

template <class Number>
bool parse_all(const std::string& text, Number& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

}  // namespace

std::int64_t parse_whole(std::string_view flag, const std::string& text, std::int64_t least,
                         std::int64_t most) {
  std::int64_t value = 0;
  if (!parse_all(text, value) || value < least || value > most)
    throw usage_error(fmt::format("{} {}: must be a whole number, {} ... {}", flag, text, least, most));
  return value;
}

double parse_positive(std::string_view flag, const std::string& text) {
  double value = 0.0;
  // NaN compares false with everything.
  if (!parse_all(text, value) || !(value > 0.0 && value <= kMostSeconds))
    throw usage_error(fmt::format("{} {}: must be a number above 0 and at most 1e9", flag, text));
  return value;
}

}  // namespace fdbench::cli
