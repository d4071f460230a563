#include "rules/schedule_model.h"

#include <algorithm>
#include <functional>

#include "rules/int_math.h"

namespace fdbench::rules {

namespace {

constexpr std::int64_t kMostTiles = std::int64_t{1} << 22;

Fa3BlockQuery block_query(const ScheduleCall& call, const ScheduleModel& model, std::int64_t seq_k) {
  Fa3BlockQuery query;
  query.block_m = model.plan.block_m;
  query.block_n = model.plan.block_n;
  query.causal = model.plan.causal;
  query.local = model.plan.local;
  query.pack_gqa = model.packed;
  query.seq_q = call.seq_q;
  query.seq_k = seq_k;
  query.window_left = call.window_left;
  query.window_right = model.plan.causal ? 0 : call.window_right;
  query.group = call.heads / call.kv_heads;
  return query;
}

// KV blocks of every (m block, split) of a sequence.
using Costs = std::vector<std::vector<double>>;

Costs costs_of(const ScheduleCall& call, const ScheduleModel& model, std::int64_t seq_k,
               std::int64_t splits) {
  Costs costs(static_cast<std::size_t>(model.m_blocks),
              std::vector<double>(static_cast<std::size_t>(splits)));
  Fa3BlockQuery query = block_query(call, model, seq_k);
  query.split = splits > 1;
  query.num_splits = splits;
  for (std::int64_t m = 0; m < model.m_blocks; ++m) {
    for (std::int64_t s = 0; s < splits; ++s) {
      query.m_block = m;
      query.split_idx = s;
      costs[static_cast<std::size_t>(m)][static_cast<std::size_t>(s)] =
          static_cast<double>(fa3_block_range(query).size());
    }
  }
  return costs;
}

double cost_at(const Costs& costs, const Tile& tile) {
  return costs[static_cast<std::size_t>(tile.block)][static_cast<std::size_t>(tile.split)];
}

double sum_of(const Costs& costs) {
  double sum = 0.0;
  for (const auto& row : costs) {
    for (const double cost : row) sum += cost;
  }
  return sum;
}

double longest_of(const Costs& costs) {
  double longest = 0.0;
  for (const auto& row : costs) {
    for (const double cost : row) longest = std::max(longest, cost);
  }
  return longest;
}

ScheduleRun run_scheduler(TileScheduler scheduler, const std::vector<Tile>& order, std::int64_t num_sms,
                          const std::function<double(const Tile&)>& cost) {
  ScheduleRun run;
  run.scheduler = scheduler;
  run.runs = run_tiles(order, num_sms, dispatch_of(scheduler), cost);
  run.makespan = makespan(run.runs);
  std::vector<double> ends(static_cast<std::size_t>(num_sms), 0.0);
  double work = 0.0;
  for (const TileRun& one : run.runs) {
    double& end = ends[static_cast<std::size_t>(one.worker)];
    end = std::max(end, one.end);
    work += one.end - one.start;
  }
  if (run.makespan > 0.0) {
    run.utilisation = work / (run.makespan * static_cast<double>(num_sms));
    run.tail = 1.0 - *std::min_element(ends.begin(), ends.end()) / run.makespan;
  }
  return run;
}

void fixed_length(const ScheduleCall& call, ScheduleModel& model) {
  const Costs costs = costs_of(call, model, call.seq_k, model.splits);
  const double a_head = sum_of(costs);
  model.blocks_visited = static_cast<std::int64_t>(a_head) * call.batch;
  model.blocks_all = model.m_blocks * ceil_div(call.seq_k, model.plan.block_n) * call.batch;
  model.longest_tile = longest_of(costs);
  model.work = a_head * static_cast<double>(model.scheduled_heads * call.batch);
  model.tiles = model.m_blocks * model.splits * model.scheduled_heads * call.batch;
  const TileGrid grid{.blocks = model.m_blocks,
                      .heads = model.scheduled_heads,
                      .batch = call.batch,
                      .splits = model.splits,
                      .group = call.heads / call.kv_heads,
                      .pack_gqa = model.packed,
                      .l2_seq = std::max<std::int64_t>(1, call.seq_k),
                      .dim = call.dim,
                      .dim_v = call.dim,
                      .element_bytes = call.element_bytes};
  if (auto why = invalid_reason(grid)) {
    model.error = *why;
    return;
  }
  for (const TileScheduler scheduler :
       {TileScheduler::single_tile, TileScheduler::static_persistent, TileScheduler::dynamic_persistent}) {
    model.schedulers.push_back(run_scheduler(scheduler, tile_order(scheduler, grid), call.num_sms,
                                             [&](const Tile& tile) { return cost_at(costs, tile); }));
  }
}

void various_lengths(const ScheduleCall& call, ScheduleModel& model) {
  VarlenCall varlen{.sequences = {},
                    .heads = call.heads,
                    .kv_heads = call.kv_heads,
                    .pack_gqa = model.packed,
                    .block_m = model.plan.block_m,
                    .block_n = model.plan.block_n,
                    .max_splits = model.splits,
                    .num_sms = call.num_sms,
                    .causal = model.plan.causal,
                    .local = model.plan.local,
                    .dim = call.dim,
                    .dim_v = call.dim,
                    .element_bytes = call.element_bytes};
  for (const std::int64_t length : call.lengths) varlen.sequences.push_back({call.seq_q, length});
  const VarlenPlan plan = varlen_plan(varlen);
  if (!plan.ok()) {
    model.error = plan.error;
    return;
  }
  model.entries = plan.entries;
  std::sort(model.entries.begin(), model.entries.end(),
            [](const VarlenEntry& a, const VarlenEntry& b) { return a.batch < b.batch; });
  // With the splits that the scheduler on the device decides on, and with those that a plain grid has.
  std::vector<Costs> decided, plain;
  for (const VarlenEntry& entry : model.entries) {
    const std::int64_t length = call.lengths[static_cast<std::size_t>(entry.batch)];
    decided.push_back(costs_of(call, model, length, entry.splits));
    plain.push_back(costs_of(call, model, length, model.splits));
    model.blocks_visited += static_cast<std::int64_t>(sum_of(decided.back()));
    model.blocks_all += entry.m_blocks * entry.n_blocks;
    model.longest_tile = std::max(model.longest_tile, longest_of(decided.back()));
    model.tiles += entry.m_blocks * entry.splits * model.scheduled_heads;
  }
  model.work = static_cast<double>(model.blocks_visited) * static_cast<double>(model.scheduled_heads);
  const TileGrid grid{.blocks = model.m_blocks,
                      .heads = model.scheduled_heads,
                      .batch = static_cast<std::int64_t>(call.lengths.size()),
                      .splits = model.splits};
  model.schedulers.push_back(run_scheduler(
      TileScheduler::single_tile, tile_order(TileScheduler::single_tile, grid), call.num_sms,
      [&](const Tile& tile) { return cost_at(plain[static_cast<std::size_t>(tile.batch)], tile); }));
  model.schedulers.push_back(run_scheduler(
      TileScheduler::varlen_persistent, varlen_tile_order(plan), call.num_sms,
      [&](const Tile& tile) { return cost_at(decided[static_cast<std::size_t>(tile.batch)], tile); }));
}

}  // namespace

ScheduleModel schedule_model(const ScheduleCall& call) {
  ScheduleModel model;
  const bool varlen = !call.lengths.empty();
  if (call.splits && (*call.splits < 1 || *call.splits > 256)) {
    model.error = "splits must be 1 to 256, not " + std::to_string(*call.splits);
    return model;
  }
  const std::int64_t longest =
      varlen ? *std::max_element(call.lengths.begin(), call.lengths.end()) : call.seq_k;
  model.plan = fa3_split_plan({.batch = varlen ? static_cast<std::int64_t>(call.lengths.size()) : call.batch,
                               .seq_q = call.seq_q,
                               .seq_k = longest,
                               .heads = call.heads,
                               .kv_heads = call.kv_heads,
                               .dim = call.dim,
                               .dim_v = call.dim,
                               .element_bytes = call.element_bytes,
                               .causal = call.causal,
                               .window_left = call.window_left,
                               .window_right = call.window_right,
                               .varlen = varlen,
                               .num_sms = call.num_sms,
                               .cc = call.cc});
  if (!model.plan.ok()) {
    model.error = model.plan.error;
    return model;
  }
  model.splits = call.splits.value_or(model.plan.num_splits);
  model.packed = fa3_packs_gqa({.cc = call.cc,
                                .splits = model.splits,
                                .heads = call.heads,
                                .kv_heads = call.kv_heads,
                                .seq_q = call.seq_q,
                                .block_m = model.plan.block_m});
  const std::int64_t group = call.heads / call.kv_heads;
  model.m_blocks = ceil_div(call.seq_q * (model.packed ? group : 1), model.plan.block_m);
  model.scheduled_heads = model.packed ? call.kv_heads : call.heads;
  model.chosen = forward_scheduler({.cc = call.cc,
                                    .varlen = varlen,
                                    .split = model.splits > 1,
                                    .causal = model.plan.causal,
                                    .local = model.plan.local});
  const double sequences =
      varlen ? static_cast<double>(call.lengths.size()) : static_cast<double>(call.batch);
  if (static_cast<double>(model.m_blocks) * static_cast<double>(model.splits * model.scheduled_heads) *
          sequences >
      static_cast<double>(kMostTiles)) {
    model.error = "the call has more than 4194304 tiles";
    return model;
  }
  if (varlen) {
    various_lengths(call, model);
  } else {
    fixed_length(call, model);
  }
  return model;
}

}  // namespace fdbench::rules
