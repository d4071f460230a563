// cpu_read in SIMD.
#if defined(FDBENCH_HAVE_HIGHWAY)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/detail/read_simd.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, as Highway asks.
#include <hwy/highway.h>

#include "cpu/detail/read_bytes.h"

HWY_BEFORE_NAMESPACE();
namespace fdbench::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#ifndef RAHEAD
#define RAHEAD 1024
#endif
#ifndef RHINT
#define RHINT 2
#endif
std::uint64_t read_words(const void* from, std::int64_t bytes) {
  const hn::CappedTag<std::uint64_t, 8> d;
  const std::int64_t n = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* const at = static_cast<const std::uint64_t*>(from);
  const std::int64_t words = bytes / 8;
  auto a = hn::Zero(d), b = a, c = a, e = a;
  std::int64_t w = 0;
  for (; w + 4 * n <= words; w += 4 * n) {
    for (std::int64_t l = 0; l < 4 * n; l += 8) __builtin_prefetch(at + w + l + RAHEAD / 8, 0, RHINT);
    a = hn::Add(a, hn::LoadU(d, at + w));
    b = hn::Add(b, hn::LoadU(d, at + w + n));
    c = hn::Add(c, hn::LoadU(d, at + w + 2 * n));
    e = hn::Add(e, hn::LoadU(d, at + w + 3 * n));
  }
  std::uint64_t sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
  for (; w < words; ++w) sum += at[w];
  return sum;
}

ReadBytes read_table() {
  return read_words;
}

}  // namespace fdbench::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fdbench::cpu {

HWY_EXPORT(read_table);

ReadBytes read_bytes_simd() {
  return HWY_DYNAMIC_DISPATCH(read_table)();
}

}  // namespace fdbench::cpu
#endif  // HWY_ONCE

#endif  // FDBENCH_HAVE_HIGHWAY
