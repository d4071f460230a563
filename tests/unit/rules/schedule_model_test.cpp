#include "rules/schedule_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace fdbench::rules {
namespace {

ScheduleCall some_call() {
  ScheduleCall call;
  call.seq_k = 65536;
  call.heads = 32;
  call.kv_heads = 8;
  call.num_sms = 132;
  return call;
}

TEST(ScheduleModel, CausalSquareSkipsHalfOfItsBlocks) {
  ScheduleCall call = some_call();
  call.heads = call.kv_heads = 16;
  call.seq_q = call.seq_k = 4096;
  call.causal = true;
  const ScheduleModel model = schedule_model(call);
  ASSERT_TRUE(model.ok()) << model.error;
  EXPECT_EQ(model.plan.block_m, 128);
  EXPECT_EQ(model.plan.block_n, 128);
  EXPECT_EQ(model.blocks_all, 1024);
  EXPECT_EQ(model.blocks_visited, 528);  // 32 * 33 / 2
  EXPECT_EQ(model.splits, 1);
  EXPECT_EQ(model.chosen, TileScheduler::dynamic_persistent);
}

TEST(ScheduleModel, DecodeIsSplitPackedAndASingleTileGrid) {
  const ScheduleModel model = schedule_model(some_call());
  ASSERT_TRUE(model.ok()) << model.error;
  EXPECT_GT(model.splits, 1);
  EXPECT_TRUE(model.packed);
  EXPECT_EQ(model.scheduled_heads, 8);
  EXPECT_EQ(model.chosen, TileScheduler::single_tile);
  EXPECT_EQ(model.blocks_visited, model.blocks_all);
}

std::vector<ScheduleCall> many_calls() {
  std::vector<ScheduleCall> calls;
  for (const std::int64_t sms : {26, 132}) {
    for (const std::int64_t seq_q : {1, 3, 300}) {
      for (const std::int64_t seq_k : {1, 200, 5000}) {
        for (const int mask : {0, 1, 2}) {
          for (const std::int64_t splits : {0, 1, 5}) {
            for (const int cc : {80, 89, 90}) {
              ScheduleCall call = some_call();
              call.num_sms = sms;
              call.batch = 3;
              call.seq_q = seq_q;
              call.seq_k = seq_k;
              call.cc = cc;
              call.causal = mask == 1;
              if (mask == 2) call.window_left = 100, call.window_right = 20;
              if (splits > 0) call.splits = splits;
              calls.push_back(call);
              call.lengths = {0, seq_k, 17, 3 * seq_k};
              calls.push_back(call);
            }
          }
        }
      }
    }
  }
  return calls;
}

TEST(ScheduleModel, EverySchedulerVisitsEveryTileOnceAndDoesAllTheWork) {
  for (const ScheduleCall& call : many_calls()) {
    const ScheduleModel model = schedule_model(call);
    ASSERT_TRUE(model.ok()) << model.error;
    bool chosen = false;
    for (const ScheduleRun& run : model.schedulers) {
      chosen = chosen || run.scheduler == model.chosen;
      std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>> seen;
      double work = 0.0;
      std::map<std::int64_t, double> last_end;
      for (const TileRun& one : run.runs) {
        EXPECT_TRUE(seen.emplace(one.tile.block, one.tile.head, one.tile.batch, one.tile.split).second);
        EXPECT_GE(one.worker, 0);
        EXPECT_LT(one.worker, call.num_sms);
        EXPECT_GE(one.start, last_end[one.worker]) << "a multiprocessor runs one tile at a time";
        last_end[one.worker] = one.end;
        work += one.end - one.start;
      }
      // Splits cut a masked row's own range, so that they never add a block.
      EXPECT_DOUBLE_EQ(work, model.work) << to_string(run.scheduler);
      EXPECT_GE(run.makespan, std::max(model.work / static_cast<double>(call.num_sms), 0.0) - 1e-9);
      EXPECT_LE(run.utilisation, 1.0 + 1e-12);
      EXPECT_GE(run.tail, -1e-12);
      EXPECT_LE(run.tail, 1.0);
      if (run.scheduler != TileScheduler::single_tile || call.lengths.empty()) {
        EXPECT_EQ(static_cast<std::int64_t>(run.runs.size()), model.tiles);
      }
    }
    EXPECT_TRUE(chosen) << to_string(model.chosen);
    EXPECT_LE(model.blocks_visited, model.blocks_all);
    if (!call.causal && call.window_left < 0) {
      EXPECT_EQ(model.blocks_visited, model.blocks_all);
    }
  }
}

TEST(ScheduleModel, SaysWhatItCannotModel) {
  ScheduleCall call = some_call();
  call.dim = 300;
  EXPECT_NE(schedule_model(call).error, "");
  call = some_call();
  call.splits = 0;
  EXPECT_NE(schedule_model(call).error.find("splits"), std::string::npos);
  call = some_call();
  call.batch = 1 << 20;
  call.seq_q = 4096;
  EXPECT_NE(schedule_model(call).error.find("tiles"), std::string::npos);
}

}  // namespace
}  // namespace fdbench::rules
