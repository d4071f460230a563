#include "cpu/detail/read_bytes.h"

namespace fdbench::cpu {

namespace {

std::uint64_t read_bytes(const void* from, std::int64_t bytes) {
  constexpr std::int64_t kWords = 32;
  const auto* at = static_cast<const std::uint64_t*>(from);
  const std::int64_t words = bytes / 8;
  std::uint64_t sums[kWords] = {};
  std::int64_t w = 0;
  for (; w + kWords <= words; w += kWords) {
    for (std::int64_t i = 0; i < kWords; ++i) sums[i] += at[w + i];
  }
  for (; w < words; ++w) sums[0] += at[w];
  std::uint64_t sum = 0;
  for (const std::uint64_t s : sums) sum += s;
  return sum;
}

}  // namespace

ReadBytes read_bytes_plain() {
  return read_bytes;
}

}  // namespace fdbench::cpu
