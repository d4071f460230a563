// A whole forward call on a device, as FlashAttention-3's host code would launch it: tiles, blocks, splits
// and packing, and what each tile scheduler makes of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rules/fa3_tiles.h"
#include "rules/tile_schedulers.h"
#include "rules/varlen_scheduler.h"

namespace fdbench::rules {

struct ScheduleCall {
  std::int64_t batch = 1;                // of fixed length; not looked at with lengths
  std::vector<std::int64_t> lengths;     // keys of each sequence, where they differ; each 0 at least
  std::int64_t seq_q = 1;                // queries of each sequence
  std::int64_t seq_k = 0;                // keys of each; not looked at with lengths
  std::int64_t heads = 0, kv_heads = 0;  // kv_heads divides heads
  std::int64_t dim = 128;
  std::int64_t element_bytes = 2;
  bool causal = false;
  std::int64_t window_left = -1, window_right = -1;  // keys to either side, -1 without bound
  std::int64_t num_sms = 0;
  int cc = 90;
  std::optional<std::int64_t> splits;  // instead of upstream's rule
};

// What one scheduler makes of the tiles. A tile costs its KV blocks, nothing else: no start, no merge, and
// memory that gives every multiprocessor the same. One CTA a multiprocessor.
struct ScheduleRun {
  TileScheduler scheduler = TileScheduler::single_tile;
  std::vector<TileRun> runs;
  double makespan = 0.0;     // KV blocks
  double utilisation = 0.0;  // work / (makespan * multiprocessors)
  double tail = 0.0;         // share of the makespan after the first multiprocessor has run dry
};

struct ScheduleModel {
  Fa3SplitPlan plan;    // of the longest sequence, where lengths differ
  bool packed = false;  // the query heads of a KV head share tiles
  std::int64_t m_blocks = 0;
  std::int64_t scheduled_heads = 0;  // KV heads where packed
  std::int64_t splits = 1;           // the most a sequence gets, where lengths differ
  std::int64_t tiles = 0;
  // KV blocks of a head over all sequences: in its rectangle of query by KV blocks, and visited.
  std::int64_t blocks_all = 0, blocks_visited = 0;
  double work = 0.0;                 // KV blocks, all heads and sequences
  double longest_tile = 0.0;         // KV blocks
  std::vector<VarlenEntry> entries;  // of lengths: in the order of the sequences
  TileScheduler chosen = TileScheduler::single_tile;
  std::vector<ScheduleRun> schedulers;  // the chosen one among them

  std::string error = {};  // why there is no model: a sentence without its full stop
  bool ok() const { return error.empty(); }
};

// Error: what fa3_split_plan and varlen_plan refuse; more than 2^22 tiles.
ScheduleModel schedule_model(const ScheduleCall& call);

}  // namespace fdbench::rules
