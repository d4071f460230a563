// FlashAttention-3's tiling: tile sizes, whether query heads are packed, which KV blocks a tile visits, and
// the number of splits its host code asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fdbench::rules {

// Tile of a forward kernel on sm_90: block_m query rows by block_n keys.
struct Fa3Sm90Query {
  std::int64_t dim = 0;    // of Q and K
  std::int64_t dim_v = 0;  // of V
  bool causal = false;
  bool local = false;  // a window; never together with causal
  std::int64_t element_bytes = 2;
  bool v_colmajor = false;         // 1-byte elements only
  bool paged_without_tma = false;  // pages gathered with cp.async
  bool softcap = false;
};

struct Fa3Sm90Tile {
  std::int64_t block_m = 0;
  std::int64_t block_n = 0;
  bool p_from_registers = false;      // the second product reads P from registers, not from shared memory
  bool overlap_in_warpgroup = false;  // softmax of one block runs beside the products of the next
  bool operator==(const Fa3Sm90Tile&) const = default;
};

// Source: tile_size_fwd_sm90 in FlashAttention's hopper/tile_size.h. Any dim: each size serves all up to it,
// the last all beyond. Element sizes other than 2 take the 1-byte tiles, as upstream.
Fa3Sm90Tile fa3_sm90_tile(const Fa3Sm90Query& query);

// The same on sm_80 to sm_89.
struct Fa3Sm8xQuery {
  bool sm86_or_89 = false;  // 100 KB of shared memory instead of sm_80's 164 KB
  std::int64_t dim = 0;
  std::int64_t dim_v = 0;
  bool causal = false;
  bool local = false;
  std::int64_t element_bytes = 2;
  bool paged = false;
  bool varlen_and_split = false;
  bool softcap = false;
  bool append_kv = false;  // the kernel first writes new keys into the cache
};

struct Fa3Sm8xTile {
  std::int64_t block_m = 0;
  std::int64_t block_n = 0;
  std::int64_t warps = 0;
  std::int64_t stages = 0;  // of K and V
  bool q_in_registers = false;
  bool operator==(const Fa3Sm8xTile&) const = default;
};

// Source: tile_size_fwd_sm8x in FlashAttention's hopper/tile_size.h.
Fa3Sm8xTile fa3_sm8x_tile(const Fa3Sm8xQuery& query);

// A head dimension as its kernels are built: 64, 96, 128, 192 or 256; nothing above that (V also has 512).
std::optional<std::int64_t> fa3_rounded_dim(std::int64_t dim);
std::optional<std::int64_t> fa3_rounded_dim_v(std::int64_t dim_v);

// Whether packing the `group` query heads of a KV head into one tile's rows fills the tiles enough better:
// rows used of rows computed unpacked, below 0.9 of the same packed. Always with variable query lengths, of
// which only the longest is known. No: seq_q 0. Source: should_pack_gqa in FlashAttention's
// hopper/heuristics.h; seq_q * group in 64 bits.
bool fa3_should_pack_gqa(bool varlen_q, std::int64_t seq_q, std::int64_t group, std::int64_t block_m);

struct Fa3PackQuery {
  int cc = 90;  // compute capability x10
  bool paged_without_tma = false;
  std::int64_t splits = 1;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  bool varlen_q = false;
  std::int64_t seq_q = 1;
  std::int64_t block_m = 128;
};

// What the host code makes of that rule: packed whenever cc < 90, pages come without TMA or there are splits
// (only such kernels are built); else not with ungrouped heads; else by the rule. Source: get_pack_gqa in
// FlashAttention's hopper/flash_api.cpp.
bool fa3_packs_gqa(const Fa3PackQuery& query);

struct Fa3BlockQuery {
  std::int64_t block_m = 0;
  std::int64_t block_n = 0;
  bool causal = false;
  bool local = false;
  bool pack_gqa = false;  // rows are seq_q * group, a query's heads side by side
  bool split = false;
  std::int64_t seq_q = 0;
  std::int64_t seq_k = 0;
  std::int64_t m_block = 0;
  std::int64_t split_idx = 0;  // looked at only with split, like num_splits (at least 1)
  std::int64_t num_splits = 1;
  std::int64_t window_left = -1;  // keys to either side; looked at only with local, and then not negative
  std::int64_t window_right = -1;
  std::int64_t group = 1;
};

// KV blocks min, min + 1, ..., max - 1. Nothing to do where max <= min.
struct BlockRange {
  std::int64_t min = 0;
  std::int64_t max = 0;
  bool empty() const { return max <= min; }
  std::int64_t size() const { return empty() ? 0 : max - min; }
  bool operator==(const BlockRange&) const = default;
};

// The last query row is aligned with the last key. An empty range has upstream's own bounds: max may lie
// below min, or below 0. Source: BlockMN::get_n_block_min_max in FlashAttention's hopper/block.h, without
// attention_chunk.
BlockRange fa3_block_range(const Fa3BlockQuery& query);

// A forward call as the host code sees it when it chooses the number of splits.
struct Fa3Call {
  std::int64_t batch = 1;
  std::int64_t seq_q = 1;
  std::int64_t seq_k = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // divides heads
  std::int64_t dim = 0;
  std::int64_t dim_v = 0;
  std::int64_t element_bytes = 2;  // 1 or 2
  bool causal = false;
  std::int64_t window_left = -1;  // keys to either side, -1 without bound
  std::int64_t window_right = -1;
  bool varlen = false;  // sequences of different lengths, split on the device: the batch counts as 1
  bool paged =
      false;  // with a page table at all: one causal query of dim 65 to 128 stays causal; sm_8x looks too
  bool paged_without_tma = false;
  bool append_kv = false;  // only sm_8x looks
  bool softcap = false;
  std::int64_t num_sms = 0;
  int cc = 90;  // 80 and up; 80 to 89 have their own tiles, all others sm_90's
};

struct Fa3SplitPlan {
  std::int64_t num_splits = 0;
  std::int64_t block_m = 0;
  std::int64_t block_n = 0;
  std::int64_t n_blocks = 0;  // KV blocks loaded: of the whole sequence, or of what a window shows
  bool causal = false;        // as the kernel is told: a single query needs no causal mask
  bool local = false;
  std::string error = {};  // why there is no plan, a sentence without its full stop; empty when there is one

  bool ok() const { return error.empty(); }
};

// M = ceil(seq_q * group / block_m) query blocks, (varlen ? 1 : batch) * kv_heads * M tiles, KV blocks of s =
// seq_k or, with a window, max(0, min(seq_k, left + right + 1 + block_m)) tokens, at most 128 splits; the
// size of a KV head in 64 bits, where upstream's 32 overflow past 4,194,303 tokens at dim 128 (2 bytes).
// Error: extents below 1 (seq_k below 0), a dim above 256, dim_v above 512, cc below 80. Source:
// get_num_splits and mha_fwd in FlashAttention's hopper/flash_api.cpp.
Fa3SplitPlan fa3_split_plan(const Fa3Call& call);

}  // namespace fdbench::rules
