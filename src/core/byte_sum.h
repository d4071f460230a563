// Sums of byte counts that don't overflow.
#pragma once

#include <cstdint>

namespace fdbench {

// More than any memory has: a sum past it stays there, and is refused like every other that is too large.
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 62;

// Both at least 0.
constexpr std::int64_t add_bytes(std::int64_t a, std::int64_t b) {
  return b > kMostBytes - a ? kMostBytes : a + b;
}

}  // namespace fdbench
