// FlashAttention's two searches for a number of splits: the fewest that fill the waves of a grid nearly as
// well as the best count does.
#pragma once

#include <cstdint>

namespace fdbench::rules {

// Both: `tiles` CTAs without a split (batch x heads x query blocks), `slots` CTAs that run at once, n_blocks
// KV blocks, at most max_splits. With s splits there are w = tiles * s / slots waves, and the efficiency is w
// / ceil(w), in float as upstream has it (so that ties fall the same way); the answer is the first s within
// 85 % of the best. Extents below 1 (no blocks, say) give 1. Exact for tiles * splits below 2^63, where
// upstream's 32-bit integers stop at 2^31.

// FlashAttention-2. 1 where tiles >= 0.8 * slots; counts that leave a split's number of blocks as it was are
// passed over, so that no split is ever empty. Upstream calls it with slots = 2 * multiprocessors. Source:
// num_splits_heuristic in FlashAttention's csrc/flash_attn/flash_api.cpp.
std::int64_t fa2_num_splits(std::int64_t tiles, std::int64_t slots, std::int64_t n_blocks,
                            std::int64_t max_splits);

struct Fa3Waves {
  std::int64_t total_mblocks = 0;  // tiles, above
  std::int64_t num_sms = 0;        // slots, above
  std::int64_t n_blocks = 0;       // KV blocks that are loaded
  std::int64_t m_blocks = 0;       // query blocks of one head
  std::int64_t kv_head_bytes = 0;  // K and V of one head
  bool causal_or_local = false;
  std::int64_t max_splits = 128;
};

// FlashAttention-3. Where total_mblocks >= 0.8 * num_sms: one split for each 50 MiB of a KV head (at most
// max_splits) if the head exceeds 50 MiB, its queries pass over it at least twice (m_blocks >= 2 * num_sms)
// and no mask applies; else 1. With 4 KV blocks or fewer: 1, which leaves a machine idle that has few KV
// heads. Passes over no count: the last splits of its answer may be empty. Source: num_splits_heuristic in
// FlashAttention's hopper/heuristics.h.
std::int64_t fa3_num_splits(const Fa3Waves& waves);

}  // namespace fdbench::rules
