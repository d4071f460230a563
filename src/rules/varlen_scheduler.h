// FlashAttention-3's scheduler for sequences of different lengths: splits a sequence, the order of sequences
// and of their tiles.
//
// Source: VarlenDynamicPersistentTileScheduler in FlashAttention's hopper/tile_scheduler.hpp, and
// hopper/flash_prepare_scheduler.cu.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rules/tile_schedulers.h"

namespace fdbench::rules {

struct VarlenSequence {
  std::int64_t seq_q = 0;  // 0: no tile at all
  std::int64_t seq_k = 0;
};

// Extents of 1 at least, lengths 0 at least, each length within 2^40 and at most 2^20 sequences.
struct VarlenCall {
  std::vector<VarlenSequence> sequences;
  std::int64_t heads = 0;     // query heads
  std::int64_t kv_heads = 0;  // divides heads
  bool pack_gqa = false;      // rows are seq_q * group, heads are the KV heads
  std::int64_t block_m = 0;
  std::int64_t block_n = 0;
  std::int64_t max_splits = 1;  // what the host asks for: the most a sequence gets
  std::int64_t num_sms = 0;
  bool causal = false;
  bool local = false;
  std::int64_t dim = 0;
  std::int64_t dim_v = 0;
  std::int64_t element_bytes = 2;
};

// What is decided for one sequence.
struct VarlenEntry {
  std::int64_t batch = 0;  // of VarlenCall::sequences
  std::int64_t m_blocks = 0;
  std::int64_t n_blocks = 0;  // of the whole sequence
  std::int64_t splits = 1;
  std::int64_t l2_heads = 1;  // heads in a section that should stay in L2
};

struct VarlenPlan {
  std::vector<VarlenEntry> entries;  // in the order in which they are worked through
  std::int64_t heads = 0;            // scheduled: KV heads where packed
  bool longest_first = false;
  std::string error = {};  // why there is no plan, a sentence without its full stop; empty when there is one

  bool ok() const { return error.empty(); }
};

// Blocks per split: b = ceil(sum of m * n * 1.1 * heads / num_sms), in float; splits = ceil(n / b) within 1
// and max_splits. All 1 above 992 sequences, where max_splits is 1, and where there is nothing to do
// (upstream divides by b = 0). Order, unless local: by KV blocks a split, the most first (causal: by block_n
// * that - block_m * m_blocks), within each 992. A section has 16, 8, 4, 2 or 1 heads (the most whose K and V
// fit 8 MiB), times group where heads are not packed, at most all.
VarlenPlan varlen_plan(const VarlenCall& call);

// The tiles in order: entry after entry; within one head, split, block from slow to fast. longest_first
// (causal or local) takes blocks from the last to the first, and goes through the heads of an unsplit entry
// in sections, head fastest. (Upstream finds a tile's entry by prefix sums over 31 entries a warp; the order
// is this.) Empty for a plan with an error, or of more than 2^24 tiles.
std::vector<Tile> varlen_tile_order(const VarlenPlan& plan);

}  // namespace fdbench::rules
