#include "rules/fa3_tiles.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "rules/int_math.h"
#include "rules/wave_heuristics.h"

namespace fdbench::rules {
namespace {

// Upstream's ceil_div: C's division, which rounds a negative quotient towards zero.
constexpr std::int64_t ceil_div_towards_zero(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Kernels are built for these sizes; each serves every dimension up to it.
enum DimClass { k64, k96, k128, k192, k256 };

constexpr std::array<std::int64_t, 4> kClassEnds = {64, 96, 128, 192};

DimClass dim_class(std::int64_t dim) {
  return static_cast<DimClass>(std::lower_bound(kClassEnds.begin(), kClassEnds.end(), dim) -
                               kClassEnds.begin());
}

Fa3Sm90Tile sm90_tile_2_bytes(const Fa3Sm90Query& q) {
  const bool gathers_or_windows = q.paged_without_tma || q.local;
  const bool masked_or_gathers = gathers_or_windows || q.causal;
  switch (dim_class(q.dim)) {
    case k64:
      if (q.dim_v == 512) return {64, 64, false, false};
      if (q.dim_v == 256) return {128, 96, true, false};
      return {192, masked_or_gathers ? 128 : 192, masked_or_gathers, true};
    case k96:
      return {192, gathers_or_windows ? 128 : 144, false, true};
    case k128:
      return {128, masked_or_gathers ? 128 : 176, true, true};
    case k192: {
      const std::int64_t whole = q.dim_v > 128 ? 112 : 128;
      return {128, gathers_or_windows ? 96 : whole, true, true};
    }
    case k256:
      break;
  }
  return {128, q.local ? 64 : 80, true, true};
}

Fa3Sm90Tile sm90_tile_1_byte(const Fa3Sm90Query& q) {
  switch (dim_class(q.dim)) {
    case k64:
      return {192, 160, true, true};
    case k96:
      return {192, 128, true, true};
    case k128: {
      if (q.paged_without_tma) return {128, 160, true, true};
      const bool needs_room = q.v_colmajor || (q.softcap && q.local);
      return {128, needs_room ? 192 : 224, true, true};
    }
    case k192: {
      const bool needs_room = q.local && (q.softcap || q.paged_without_tma);
      return {128, needs_room ? 128 : 160, true, true};
    }
    case k256:
      break;
  }
  return {128, q.local ? 64 : 128, true, !q.paged_without_tma};
}

// One head dimension on sm_8x: block_n by what shrinks it most.
Fa3Sm8xTile sm8x_tile_128(const Fa3Sm8xQuery& q) {
  const bool eight_warps = q.sm86_or_89 || q.varlen_and_split;
  if (!eight_warps) return {128, q.local ? 48 : 64, 4, 1, false};
  if (q.local) return {128, 96, 8, 1, true};
  return {128, q.varlen_and_split ? 112 : 128, 8, 1, true};
}

Fa3Sm8xTile sm8x_tile_256(const Fa3Sm8xQuery& q) {
  const std::int64_t sm80[] = {96, 64, 48};
  const std::int64_t sm86[] = {64, 48, 32};
  const std::size_t shrink = q.append_kv ? 2 : (q.local || q.varlen_and_split ? 1 : 0);
  return {128, q.sm86_or_89 ? sm86[shrink] : sm80[shrink], 8, 1, q.sm86_or_89 && !q.append_kv};
}

std::optional<std::int64_t> first_at_least(std::span<const std::int64_t> sizes, std::int64_t dim) {
  const auto found = std::lower_bound(sizes.begin(), sizes.end(), dim);
  if (found == sizes.end()) return std::nullopt;
  return *found;
}

// Rows used of rows computed.
float row_efficiency(std::int64_t rows, std::int64_t block_m) {
  return static_cast<float>(rows) / static_cast<float>(round_up(rows, block_m));
}

std::string invalid_call(const Fa3Call& c) {
  struct Extent {
    const char* name;
    std::int64_t value, least, most;
  };
  constexpr std::int64_t kTokens = std::int64_t{1} << 40;
  const Extent extents[] = {
      {"batch", c.batch, 1, 1 << 20},
      {"seq_q", c.seq_q, 1, 1 << 30},
      {"seq_k", c.seq_k, 0, kTokens},
      {"heads", c.heads, 1, 1 << 20},
      {"kv_heads", c.kv_heads, 1, 1 << 20},
      {"dim", c.dim, 1, 256},
      {"dim_v", c.dim_v, 1, 512},
      {"element_bytes", c.element_bytes, 1, 2},
      {"window_left", c.window_left, -1, kTokens},
      {"window_right", c.window_right, -1, kTokens},
      {"num_sms", c.num_sms, 1, 1 << 16},
      {"compute capability x10", c.cc, 80, 1000},
  };
  for (const auto& [name, value, least, most] : extents) {
    if (value < least || value > most) {
      return std::string("fa3: ") + name + " must be " + std::to_string(least) + " to " +
             std::to_string(most) + ", not " + std::to_string(value);
    }
  }
  if (c.heads % c.kv_heads != 0) {
    return "fa3: heads " + std::to_string(c.heads) + " is not a multiple of kv_heads " +
           std::to_string(c.kv_heads);
  }
  return {};
}

}  // namespace

Fa3Sm90Tile fa3_sm90_tile(const Fa3Sm90Query& query) {
  return query.element_bytes == 2 ? sm90_tile_2_bytes(query) : sm90_tile_1_byte(query);
}

Fa3Sm8xTile fa3_sm8x_tile(const Fa3Sm8xQuery& query) {
  if (query.element_bytes != 2) return {128, 64, 8, 2, false};
  switch (dim_class(query.dim)) {
    case k64: {
      const std::int64_t whole = query.local ? 96 : 112;
      return {128, query.varlen_and_split ? 80 : whole, 4, 1, false};
    }
    case k96:
      return {128, query.varlen_and_split || query.local ? 48 : 64, 4, 1, false};
    case k128:
      return sm8x_tile_128(query);
    case k192: {
      const bool needs_room = query.append_kv || query.local || query.varlen_and_split || query.paged;
      return {128, needs_room ? 64 : 96, 8, query.sm86_or_89 ? 1 : 2, !needs_room};
    }
    case k256:
      break;
  }
  return sm8x_tile_256(query);
}

std::optional<std::int64_t> fa3_rounded_dim(std::int64_t dim) {
  static constexpr std::int64_t kSizes[] = {64, 96, 128, 192, 256};
  return first_at_least(kSizes, dim);
}

std::optional<std::int64_t> fa3_rounded_dim_v(std::int64_t dim_v) {
  static constexpr std::int64_t kSizes[] = {64, 96, 128, 192, 256, 512};
  return first_at_least(kSizes, dim_v);
}

bool fa3_should_pack_gqa(bool varlen_q, std::int64_t seq_q, std::int64_t group, std::int64_t block_m) {
  if (varlen_q) return true;
  if (seq_q < 1 || group < 1 || block_m < 1) return false;
  const float unpacked = row_efficiency(seq_q, block_m);
  const float packed = row_efficiency(seq_q * group, block_m);
  return static_cast<double>(unpacked) < 0.9 * static_cast<double>(packed);
}

bool fa3_packs_gqa(const Fa3PackQuery& query) {
  if (query.cc < 90 || query.paged_without_tma || query.splits > 1) return true;
  if (query.heads == query.kv_heads || query.kv_heads < 1) return false;
  return fa3_should_pack_gqa(query.varlen_q, query.seq_q, query.heads / query.kv_heads, query.block_m);
}

BlockRange fa3_block_range(const Fa3BlockQuery& q) {
  if (q.block_m < 1 || q.block_n < 1 || q.group < 1 || q.num_splits < 1 || q.seq_k < 0) return {};
  // Keys that the row's own key is ahead of its index.
  const std::int64_t offset = q.seq_k - q.seq_q;
  const std::int64_t heads_a_row = q.pack_gqa ? q.group : 1;
  BlockRange range{0, ceil_div(q.seq_k, q.block_n)};
  if (q.causal || q.local) {
    const std::int64_t row_end = ((q.m_block + 1) * q.block_m - 1) / heads_a_row + 1;
    const std::int64_t key_end = row_end + offset + (q.local ? q.window_right : 0);
    range.max = std::min(range.max, ceil_div_towards_zero(key_end, q.block_n));
  }
  if (q.local) {
    const std::int64_t first_key = q.m_block * q.block_m / heads_a_row + offset - q.window_left;
    range.min = std::max<std::int64_t>(first_key / q.block_n, 0);
  }
  if (q.split) {
    const std::int64_t each = ceil_div(range.size(), q.num_splits);
    range.min += q.split_idx * each;
    range.max = std::min(range.min + each, range.max);
  }
  return range;
}

Fa3SplitPlan fa3_split_plan(const Fa3Call& call) {
  Fa3SplitPlan plan;
  plan.error = invalid_call(call);
  if (!plan.ok()) return plan;

  // A window that shows everything is none, and a single query has nothing to its right.
  std::int64_t left = call.window_left >= call.seq_k - 1 ? -1 : call.window_left;
  std::int64_t right = call.window_right >= call.seq_q - 1 ? -1 : call.window_right;
  const bool mask_is_void = call.seq_q == 1 && left < 0;
  const bool keeps_void_mask = call.paged && call.dim > 64 && call.dim <= 128;  // for its smaller block_n
  if (call.causal && (!mask_is_void || keeps_void_mask)) right = 0;
  plan.causal = left < 0 && right == 0;
  plan.local = !plan.causal && (left >= 0 || right >= 0);
  if (left < 0) left = std::max<std::int64_t>(call.seq_k - 1, 0);
  if (right < 0) right = call.seq_q - 1;

  const std::int64_t dim = *fa3_rounded_dim(call.dim);
  const std::int64_t dim_v = *fa3_rounded_dim_v(call.dim_v);
  if (call.cc >= 90) {
    const Fa3Sm90Tile tile = fa3_sm90_tile({.dim = dim,
                                            .dim_v = dim_v,
                                            .causal = plan.causal,
                                            .local = plan.local,
                                            .element_bytes = call.element_bytes,
                                            .paged_without_tma = call.paged_without_tma,
                                            .softcap = call.softcap});
    plan.block_m = tile.block_m;
    plan.block_n = tile.block_n;
  } else {
    const Fa3Sm8xTile tile = fa3_sm8x_tile({.sm86_or_89 = call.cc == 86 || call.cc == 89,
                                            .dim = dim,
                                            .dim_v = dim_v,
                                            .causal = plan.causal,
                                            .local = plan.local,
                                            .element_bytes = call.element_bytes,
                                            .paged = call.paged,
                                            .varlen_and_split = call.varlen,
                                            .softcap = call.softcap,
                                            .append_kv = call.append_kv});
    plan.block_m = tile.block_m;
    plan.block_n = tile.block_n;
  }

  const std::int64_t loaded =
      plan.local ? std::clamp<std::int64_t>(left + right + 1 + plan.block_m, 0, call.seq_k) : call.seq_k;
  plan.n_blocks = ceil_div(loaded, plan.block_n);
  const std::int64_t m_blocks = ceil_div(call.seq_q * (call.heads / call.kv_heads), plan.block_m);
  plan.num_splits =
      fa3_num_splits({.total_mblocks = (call.varlen ? 1 : call.batch) * call.kv_heads * m_blocks,
                      .num_sms = call.num_sms,
                      .n_blocks = plan.n_blocks,
                      .m_blocks = m_blocks,
                      .kv_head_bytes = call.seq_k * (call.dim + call.dim_v) * call.element_bytes,
                      .causal_or_local = plan.causal || plan.local});
  return plan;
}

}  // namespace fdbench::rules
