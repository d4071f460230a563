// cpu_read in SIMD.
#if defined(FDBENCH_HAVE_HIGHWAY)

#include "cpu/detail/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/detail/read_simd.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, as Highway asks.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fdbench::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Eight streams side by side: with one, the memory idles where a hardware prefetcher starts anew at each
// page.
std::uint64_t read_words(const void* from, std::int64_t bytes) {
  constexpr std::int64_t kStreams = 8;
  const hn::CappedTag<std::uint64_t, 8> d;
  const std::int64_t n = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* const at = static_cast<const std::uint64_t*>(from);
  const std::int64_t words = bytes / 8;
  const std::int64_t stream = words / kStreams / (4 * n) * (4 * n);
  auto a = hn::Zero(d), b = a, c = a, e = a;
  for (std::int64_t w = 0; w < stream; w += 4 * n) {
    for (std::int64_t s = 0; s < kStreams; ++s) {
      const std::uint64_t* const next = at + s * stream + w;
      a = hn::Add(a, hn::LoadU(d, next));
      b = hn::Add(b, hn::LoadU(d, next + n));
      c = hn::Add(c, hn::LoadU(d, next + 2 * n));
      e = hn::Add(e, hn::LoadU(d, next + 3 * n));
    }
  }
  std::uint64_t sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
  for (std::int64_t w = kStreams * stream; w < words; ++w) sum += at[w];
  return sum;
}

}  // namespace fdbench::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace fdbench::cpu {

template <>
ReadBytes read_bytes_of<HWY_TARGET>() {
  return HWY_NAMESPACE::read_words;
}

}  // namespace fdbench::cpu

#if HWY_ONCE
namespace fdbench::cpu {

ReadBytes read_bytes_simd(std::int64_t target) {
  return choose_target<HWY_TARGETS>(target, []<std::int64_t one> { return read_bytes_of<one>(); });
}

}  // namespace fdbench::cpu
#endif  // HWY_ONCE

#endif  // FDBENCH_HAVE_HIGHWAY
