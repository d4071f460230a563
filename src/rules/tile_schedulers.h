// FlashAttention-3's tile schedulers: in which order the tiles of a grid go to the multiprocessors.
//
// Source: hopper/tile_scheduler.hpp and hopper/flash_{fwd,bwd}_launch_template.h of FlashAttention.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fdbench::rules {

// One unit of work: a query block (backward: a KV block) of a head of a batch entry, for one split of the
// keys.
struct Tile {
  std::int64_t block = 0;
  std::int64_t head = 0;  // a query head; a KV head where heads are packed
  std::int64_t batch = 0;
  std::int64_t split = 0;
  bool operator==(const Tile&) const = default;
};

// Tiles of sequences of one length. Counts of 1 at least, tile_count within 2^40.
struct TileGrid {
  std::int64_t blocks = 0;  // query blocks (backward: KV blocks) a head
  std::int64_t heads = 0;   // query heads; KV heads where they are packed
  std::int64_t batch = 1;
  std::int64_t splits = 1;  // backward: 1
  // Only the longest-first orders look at the rest.
  std::int64_t group = 1;  // query heads a KV head
  bool pack_gqa = false;
  std::int64_t l2_seq = 0;  // tokens of the tensors that should stay in L2: keys; backward: queries
  std::int64_t dim = 0;
  std::int64_t dim_v = 0;
  std::int64_t element_bytes = 2;
  bool deterministic = false;  // backward only: the shortest first
};

// Why a grid is none (a sentence without its full stop), or nothing.
std::optional<std::string> invalid_reason(const TileGrid& grid);

std::int64_t tile_count(const TileGrid& grid);  // blocks * heads * batch * splits; 0 of a grid that is none

enum class TileScheduler {
  // A CTA a tile; grid (blocks, heads * splits, batch), x fastest, split fastest within y. The hardware hands
  // CTAs out in that order.
  single_tile,
  // One CTA a multiprocessor, tile i, i + CTAs, ...: block fastest, then head * splits + split, then batch.
  static_persistent,
  // One CTA a multiprocessor that takes the next tile when it is done, the longest (the last block of a
  // causal head) first. The heads of
  // all batch entries are cut into sections whose K and V fit 32 MiB of L2, a power of two of KV heads (1
  // where not even one fits), times
  // group where heads are not packed; within a section head fastest, then block from the last to the first,
  // then split. What is left for
  // the last section is divided among its own number of heads.
  dynamic_persistent,
  // For sequences of different lengths: see VarlenPlan.
  varlen_persistent,
  // A CTA a tile, sections as above of heads whose Q, dO (2 tensors) and float dQ fit 40 MiB: l2_seq * ((dim
  // + dim_v) * element_bytes +
  // 4 * dim) bytes a head. Blocks ascend, which under a causal mask is longest first.
  backward_longest_first,
};

std::string_view to_string(TileScheduler scheduler);

// Tile number `index` in the scheduler's order; nothing outside 0 .. tile_count - 1, and never for
// varlen_persistent.
std::optional<Tile> tile_at(TileScheduler scheduler, const TileGrid& grid, std::int64_t index);

// All of them in order. Empty for a grid that is none, or of more than 2^24 tiles.
std::vector<Tile> tile_order(TileScheduler scheduler, const TileGrid& grid);

// KV heads (backward: query heads) in one section of a longest-first order.
std::int64_t l2_section_heads(TileScheduler scheduler, const TileGrid& grid);

struct SchedulerQuery {
  int cc = 90;  // compute capability x10
  bool varlen = false;
  bool split = false;
  bool causal = false;
  bool local = false;
};

// Which one a kernel is built with. Forward: varlen is asked first; from sm_90 on all are persistent but a
// split of fixed length, below only causal ones of fixed length and splits of variable length. Backward:
// longest first if causal, else single tile.
TileScheduler forward_scheduler(const SchedulerQuery& query);
TileScheduler backward_scheduler(bool causal);

// Whether a free worker takes the next tile, or worker w the tiles w, w + workers, ... whenever it gets to
// them.
enum class Dispatch { first_free, in_turn };

Dispatch dispatch_of(TileScheduler scheduler);  // in_turn for static_persistent

struct TileRun {
  Tile tile;
  std::int64_t worker = 0;
  double start = 0.0;  // in units of the cost
  double end = 0.0;
};

// Runs the tiles on `workers` (CTAs resident at once) with a cost each, which must not be negative. In the
// order of `order`; of workers free at the same time the lowest goes first. Empty for workers below 1.
std::vector<TileRun> run_tiles(std::span<const Tile> order, std::int64_t workers, Dispatch dispatch,
                               const std::function<double(const Tile&)>& cost);

// The last end of a run; 0 of none.
double makespan(std::span<const TileRun> runs);

}  // namespace fdbench::rules
