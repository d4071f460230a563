#include "cpu/detail/split_kv_plan.h"

#include <algorithm>

#include "cpu/detail/rows.h"
#include "cpu/detail/simd_targets.h"
#include "cpu/detail/split_kv.h"
#include "cpu/detail/split_kv_amx.h"
#include "cpu/detail/touch.h"

namespace fdbench::cpu {

namespace {

// Matrix tiles (split_kv_amx.cpp) keep 16 lanes for each 16 query heads of a KV head, or part of 16. Vectors
// and plain loops keep q as floats.
std::int64_t tile_lanes(std::int64_t heads, std::int64_t kv_heads) {
  return kv_heads * tile_blocks(heads / kv_heads) * kTileHeads;
}

// Of tiles: scores of a tile, two forms of the weights of a unit, and a visit's rows.
std::int64_t tile_work_floats(std::int64_t lanes, std::int64_t dim) {
  const std::int64_t scores = lanes * round_up(kMostTileTokens, 64);
  const std::int64_t softmax = 2 * lanes, weights = 2 * lanes * kVisitRows;
  return scores + softmax + weights + kVisitRows * dim / 2;
}

}  // namespace

SplitKvLayout lay_out_split_kv(std::int64_t heads, std::int64_t kv_heads, std::int64_t dim,
                               const LaunchPlan& plan) {
  const auto lines = [](std::int64_t floats) { return round_up(floats, kLine / 4); };
  SplitKvLayout at;
  at.max = plan.splits * heads * dim;
  at.sum = at.max + lines(plan.splits * heads);
  at.rank = at.sum + lines(plan.splits * heads);
  const std::int64_t lanes = tile_lanes(heads, kv_heads);
  const bool tiles = plan.isa == kTilesTarget;
  at.scores = lines(tiles ? lanes * dim / 2 : heads * dim);
  at.row = at.scores + lines(tiles ? tile_work_floats(lanes, dim) : heads * plan.tile);
  at.rank_size = lines(at.row + dim);
  at.end = at.rank + plan.block.x * at.rank_size;
  return at;
}

namespace {

// About sixteen chunks a thread, so that one thread held up leaves little for the others to wait for; but at
// least 32 tokens for each query head of a group, which keeps the partials (4 bytes a dim and query head,
// against 4 for a token of K and V) within 3 % of the traffic, and 512 KiB of K and V, over which the start
// of the streams is spread; and no longer than a thread's even share. Long chunks are rounded up to what
// matrix tiles take at once, where those would be used and every thread has so many chunks that shares stay
// even. Machines without tiles cut alike.
std::int64_t default_chunk(const Problem& problem, std::int64_t threads) {
  const auto ceil_div = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  const std::int64_t token = 2 * problem.kv_heads * problem.dim * element_bytes(problem.dtype);
  const std::int64_t balanced = ceil_div(problem.seq, threads * 16);
  const std::int64_t thrifty = std::max(32 * problem.group(), ceil_div(std::int64_t{512} << 10, token));
  const std::int64_t parallel = ceil_div(problem.seq, threads);
  const std::int64_t chunk = std::max<std::int64_t>(1, std::min(std::max(balanced, thrifty), parallel));
  const bool tiles =
      amx_applies(problem.dtype, problem.group()) && amx_pays(problem.group(), problem.kv_bytes());
  const std::int64_t whole = whole_tile(chunk);
  return tiles && chunk >= 128 && ceil_div(problem.seq, whole) >= 8 * threads ? whole : chunk;
}

// Tokens whose scores are kept at once. Ungrouped: scores take a quarter of the first-level cache. Grouped
// rows bring more work each, and long streams count for more than scores that are near.
std::int64_t tile_tokens(const Problem& problem, const DeviceInfo& device) {
  constexpr std::int64_t kLeast = 16, kMost = 256;
  if (problem.group() > 1) return kMost;
  return std::clamp(device.l1d_bytes / 4 / (problem.heads * 4) / 16 * 16, kLeast, kMost);
}

}  // namespace

PlanResult plan_split_kv(const Problem& problem, const DeviceInfo& device, const TuningPoint& tuning) {
  const std::int64_t cores = std::max(1, device.sms);
  const std::int64_t threads = tuning.get("threads").value_or(cores);
  if (threads > cores) {
    return Unsupported{"threads=" + std::to_string(threads) + " exceeds the " + std::to_string(cores) +
                       " cores there are"};
  }
  LaunchPlan plan;
  const auto chunk = tuning.get("chunk");
  plan.chunk = chunk.value_or(default_chunk(problem, threads));
  plan.rule = chunk ? "" : "cpu_balanced";
  plan.splits = problem.seq == 0 ? 1 : (problem.seq - 1) / plan.chunk + 1;
  plan.isa = best_target(problem, device);
  plan.tile = plan.isa == kTilesTarget ? kMostTileTokens : tile_tokens(problem, device);
  plan.grid.x = plan.splits;
  plan.block.x = std::min(threads, plan.splits);
  plan.merge = "team";
  plan.scratch_bytes = lay_out_split_kv(problem.heads, problem.kv_heads, problem.dim, plan).end *
                       static_cast<std::int64_t>(sizeof(float));
  return plan;
}

}  // namespace fdbench::cpu
