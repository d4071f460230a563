// Integer arithmetic that every rule needs. Operands are not negative, divisors positive.
#pragma once

#include <cstdint>

namespace fdbench::rules {

// Does not overflow whatever the dividend.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

constexpr std::int64_t round_up(std::int64_t a, std::int64_t grain) {
  return ceil_div(a, grain) * grain;
}

}  // namespace fdbench::rules
