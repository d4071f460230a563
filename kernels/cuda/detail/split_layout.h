// Sizes that the split_kv kernels and their plan agree on. Plain C++.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/host_device.h"

namespace fdbench::split {

// A tile is K or V of a unit, the tokens that a warp takes at a time: 32 of dimension 128, 64 of 64. Measured
// on an H200, dim 128: 4 warps of 32 tokens against 8 of 16, 4 of 16 and 8 of 32, on the 36 shapes of
// docs/kernels.md: best or within 1 % of it on all; 4 of 16 lost up to 12 %. Again with the merge as it is
// now: 8 of 16 up to 6 % slower, 4 of 64 up to 6 %. Dim 64: 64 tokens against 32, 2 to 3 % slower where they
// leave warps without a unit (16/1 at 2048), else up to 7 % faster.
inline constexpr int kTileBytes = 8192;
FDBENCH_HOST_DEVICE constexpr int unit_tokens(std::int64_t dim) {
  return static_cast<int>(kTileBytes / (dim * 2));
}
inline constexpr int kWarps = 4;
inline constexpr int kThreads = kWarps * 32;
inline constexpr int kStageBarriers = 2;  // a warp's, a stage: K and V

inline constexpr int kSlotBytes = 16 + 8;  // in global memory: four sums, and (m, l)

inline constexpr int kMaxRows = 16;  // query heads a CTA takes, at most

// Which kernel takes `rows` query heads a CTA: the one made for 8 or for 16.
constexpr int kernel_rows(std::int64_t rows) {
  return rows <= 8 ? 8 : 16;
}

// Whether units are dealt out in turn over all CTAs of a head. On an H200 that was 0 to 2 % faster with up to
// 4 KV heads, and up to 1.5 % slower with 8 and 32.
constexpr bool deals_in_turn(std::int64_t kv_heads) {
  return kv_heads < 8;
}

// Of a CTA whose kernel is made for `rows` query heads. `inbox_slots`: splits << piece_log2 in a cluster,
// else 0; `inbox_rows`: splits * rows of a piece.
constexpr std::int64_t dynamic_smem(int rows, std::int64_t stages, std::int64_t inbox_slots,
                                    std::int64_t inbox_rows) {
  const std::int64_t ring = kWarps * stages * (2 * kTileBytes + kStageBarriers * 8);
  const std::int64_t inbox = inbox_slots > 0 ? inbox_slots * 16 + inbox_rows * 8 + 8 : 0;
  return ring + kWarps * rows * 8 + inbox;
}

}  // namespace fdbench::split
