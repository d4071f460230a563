#include "rules/wave_heuristics.h"

#include <algorithm>
#include <cmath>

#include "rules/int_math.h"

namespace fdbench::rules {
namespace {

// Whether a grid fills the machine well enough unsplit. Float: the rounding of 0.8f * slots decides ties.
bool nearly_full(std::int64_t tiles, std::int64_t slots) {
  return static_cast<float>(tiles) >= 0.8f * static_cast<float>(slots);
}

float wave_efficiency(std::int64_t tiles, std::int64_t slots, std::int64_t splits) {
  const float waves = static_cast<float>(tiles * splits) / static_cast<float>(slots);
  return waves / std::ceil(waves);
}

// The first of 1..most that `admits` and whose efficiency is within 85 % (in double) of the best admitted.
template <class Admits>
std::int64_t first_near_best(std::int64_t tiles, std::int64_t slots, std::int64_t most, Admits admits) {
  float best = 0.0f;
  for (std::int64_t s = 1; s <= most; ++s) {
    if (admits(s)) best = std::max(best, wave_efficiency(tiles, slots, s));
  }
  const double enough = 0.85 * static_cast<double>(best);
  for (std::int64_t s = 1; s <= most; ++s) {
    if (admits(s) && static_cast<double>(wave_efficiency(tiles, slots, s)) >= enough) return s;
  }
  return 1;
}

}  // namespace

std::int64_t fa2_num_splits(std::int64_t tiles, std::int64_t slots, std::int64_t n_blocks,
                            std::int64_t max_splits) {
  if (tiles < 1 || slots < 1 || n_blocks < 1) return 1;
  if (nearly_full(tiles, slots)) return 1;
  const auto changes_the_share = [n_blocks](std::int64_t s) {
    return s == 1 || ceil_div(n_blocks, s) < ceil_div(n_blocks, s - 1);
  };
  return first_near_best(tiles, slots, std::min({max_splits, slots, n_blocks}), changes_the_share);
}

std::int64_t fa3_num_splits(const Fa3Waves& waves) {
  constexpr std::int64_t kL2Bytes = 50 << 20;
  constexpr std::int64_t kTooFewBlocks = 4;
  if (waves.total_mblocks < 1 || waves.num_sms < 1 || waves.n_blocks < 1) return 1;
  if (nearly_full(waves.total_mblocks, waves.num_sms)) {
    const bool exceeds_l2 = waves.kv_head_bytes > kL2Bytes;
    const bool read_twice = waves.m_blocks >= 2 * waves.num_sms;
    if (!exceeds_l2 || !read_twice || waves.causal_or_local) return 1;
    return std::max<std::int64_t>(std::min(ceil_div(waves.kv_head_bytes, kL2Bytes), waves.max_splits), 1);
  }
  if (waves.n_blocks <= kTooFewBlocks) return 1;
  return first_near_best(waves.total_mblocks, waves.num_sms,
                         std::min({waves.max_splits, waves.num_sms, waves.n_blocks}),
                         [](std::int64_t) { return true; });
}

}  // namespace fdbench::rules
