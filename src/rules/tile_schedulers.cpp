#include "rules/tile_schedulers.h"

#include <algorithm>
#include <bit>
#include <queue>
#include <utility>

namespace fdbench::rules {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kMostTiles = std::int64_t{1} << 40;
constexpr std::int64_t kMostListed = 1 << 24;

// Bytes of one head that a longest-first order wants to find in L2 again.
std::int64_t head_bytes(bool backward, const TileGrid& grid) {
  const std::int64_t a_token = (grid.dim + grid.dim_v) * grid.element_bytes + (backward ? 4 * grid.dim : 0);
  return grid.l2_seq * a_token;
}

struct BlockOfHead {
  std::int64_t block;
  std::int64_t head;  // over all batch entries
};

// Number `index` of an order that goes through `heads` heads of `blocks` blocks in sections, head fastest
// within one.
BlockOfHead by_sections(std::int64_t index, std::int64_t blocks, std::int64_t heads, std::int64_t section) {
  const std::int64_t whole = std::min(section, heads);
  const std::int64_t number = index / (whole * blocks);
  const std::int64_t within = index % (whole * blocks);
  const std::int64_t first_head = number * whole;
  const std::int64_t width = std::min(whole, heads - first_head);
  return {within / width, first_head + within % width};
}

Tile plain_tile(const TileGrid& grid, std::int64_t index) {
  const std::int64_t row = index / grid.blocks;  // head * splits + split, over all batch entries
  const std::int64_t head = row / grid.splits;
  return {.block = index % grid.blocks,
          .head = head % grid.heads,
          .batch = head / grid.heads,
          .split = row % grid.splits};
}

Tile sectioned_tile(TileScheduler scheduler, const TileGrid& grid, std::int64_t index) {
  const auto [step, head] = by_sections(index, grid.blocks * grid.splits, grid.heads * grid.batch,
                                        l2_section_heads(scheduler, grid));
  const bool backward = scheduler == TileScheduler::backward_longest_first;
  const bool from_last = !backward || grid.deterministic;
  const std::int64_t block = step % grid.blocks;
  return {.block = from_last ? grid.blocks - 1 - block : block,
          .head = head % grid.heads,
          .batch = head / grid.heads,
          .split = step / grid.blocks};
}

}  // namespace

std::optional<std::string> invalid_reason(const TileGrid& grid) {
  struct Extent {
    const char* name;
    std::int64_t value, least, most;
  };
  const Extent extents[] = {
      {"blocks", grid.blocks, 1, kMostTiles},
      {"heads", grid.heads, 1, 1 << 20},
      {"batch", grid.batch, 1, 1 << 20},
      {"splits", grid.splits, 1, 1 << 20},
      {"group", grid.group, 1, 1 << 20},
      {"l2_seq", grid.l2_seq, 0, std::int64_t{1} << 40},
      {"dim", grid.dim, 0, 1 << 12},
      {"dim_v", grid.dim_v, 0, 1 << 12},
      {"element_bytes", grid.element_bytes, 1, 8},
  };
  for (const auto& [name, value, least, most] : extents) {
    if (value < least || value > most) {
      return std::string(name) + " must be " + std::to_string(least) + " to " + std::to_string(most) +
             ", not " + std::to_string(value);
    }
  }
  std::int64_t tiles = grid.blocks;
  for (const std::int64_t extent : {grid.heads, grid.batch, grid.splits}) {
    if (tiles > kMostTiles / extent) return "blocks x heads x batch x splits must be at most 2^40";
    tiles *= extent;
  }
  return std::nullopt;
}

std::int64_t tile_count(const TileGrid& grid) {
  if (invalid_reason(grid)) return 0;
  return grid.blocks * grid.heads * grid.batch * grid.splits;
}

std::string_view to_string(TileScheduler scheduler) {
  switch (scheduler) {
    case TileScheduler::single_tile:
      return "single_tile";
    case TileScheduler::static_persistent:
      return "static_persistent";
    case TileScheduler::dynamic_persistent:
      return "dynamic_persistent";
    case TileScheduler::varlen_persistent:
      return "varlen_persistent";
    case TileScheduler::backward_longest_first:
      return "backward_longest_first";
  }
  return "?";
}

std::int64_t l2_section_heads(TileScheduler scheduler, const TileGrid& grid) {
  const bool backward = scheduler == TileScheduler::backward_longest_first;
  const std::int64_t budget = (backward ? 40 : 32) * kMiB;
  const std::int64_t a_head = std::max<std::int64_t>(head_bytes(backward, grid), 1);
  const auto fit = static_cast<std::uint64_t>(std::max<std::int64_t>(budget / a_head, 1));
  const std::int64_t query_heads = backward || grid.pack_gqa ? 1 : grid.group;
  return static_cast<std::int64_t>(std::bit_floor(fit)) * query_heads;
}

std::optional<Tile> tile_at(TileScheduler scheduler, const TileGrid& grid, std::int64_t index) {
  if (index < 0 || index >= tile_count(grid)) return std::nullopt;
  switch (scheduler) {
    case TileScheduler::single_tile:
    case TileScheduler::static_persistent:
      return plain_tile(grid, index);
    case TileScheduler::dynamic_persistent:
    case TileScheduler::backward_longest_first:
      return sectioned_tile(scheduler, grid, index);
    case TileScheduler::varlen_persistent:
      break;
  }
  return std::nullopt;
}

std::vector<Tile> tile_order(TileScheduler scheduler, const TileGrid& grid) {
  std::vector<Tile> order;
  const std::int64_t count = tile_count(grid);
  if (count > kMostListed || scheduler == TileScheduler::varlen_persistent) return order;
  order.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) order.push_back(*tile_at(scheduler, grid, i));
  return order;
}

TileScheduler forward_scheduler(const SchedulerQuery& query) {
  const bool masked = query.causal || query.local;
  if (query.varlen) {
    const bool persistent = query.cc >= 90 || query.split;
    return persistent ? TileScheduler::varlen_persistent : TileScheduler::single_tile;
  }
  const bool persistent = query.cc >= 90 ? !query.split : query.causal;
  if (!persistent) return TileScheduler::single_tile;
  return masked ? TileScheduler::dynamic_persistent : TileScheduler::static_persistent;
}

TileScheduler backward_scheduler(bool causal) {
  return causal ? TileScheduler::backward_longest_first : TileScheduler::single_tile;
}

Dispatch dispatch_of(TileScheduler scheduler) {
  return scheduler == TileScheduler::static_persistent ? Dispatch::in_turn : Dispatch::first_free;
}

std::vector<TileRun> run_tiles(std::span<const Tile> order, std::int64_t workers, Dispatch dispatch,
                               const std::function<double(const Tile&)>& cost) {
  std::vector<TileRun> runs;
  if (workers < 1) return runs;
  // More workers than tiles would only idle.
  const auto used = std::min(static_cast<std::uint64_t>(workers), static_cast<std::uint64_t>(order.size()));
  std::vector<double> free_at(used, 0.0);
  using Free = std::pair<double, std::size_t>;
  std::priority_queue<Free, std::vector<Free>, std::greater<>> next;
  for (std::size_t w = 0; w < used; ++w) next.emplace(0.0, w);

  runs.reserve(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::size_t worker = i % used;
    if (dispatch == Dispatch::first_free) {
      worker = next.top().second;
      next.pop();
    }
    const double start = free_at[worker];
    free_at[worker] = start + cost(order[i]);
    if (dispatch == Dispatch::first_free) next.emplace(free_at[worker], worker);
    runs.push_back({order[i], static_cast<std::int64_t>(worker), start, free_at[worker]});
  }
  return runs;
}

double makespan(std::span<const TileRun> runs) {
  double last = 0.0;
  for (const TileRun& run : runs) last = std::max(last, run.end);
  return last;
}

}  // namespace fdbench::rules
