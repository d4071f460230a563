#include "rules/wave_heuristics.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "golden_csv.h"

namespace fdbench::rules {
namespace {

TEST(Fa2NumSplits, IsTheGoldenTable) {
  const auto rows = read_golden("fa2_num_splits.csv");
  ASSERT_EQ(rows.size(), kGoldenRows);
  Lines overflows;
  for (const GoldenRow& row : rows) {
    const std::int64_t tiles = row["batch_nheads_mblocks"], slots = row["num_sms_times_2"];
    const std::int64_t most = std::min({row["max_splits"], slots, row["num_n_blocks"]});
    if (past_32_bits(tiles * most) || past_32_bits(row["num_n_blocks"] + most - 1)) {
      overflows.push_back(row.line);
      continue;
    }
    EXPECT_EQ(fa2_num_splits(tiles, slots, row["num_n_blocks"], row["max_splits"]), row["num_splits"])
        << "line " << row.line;
  }
  EXPECT_EQ(overflows, Lines{});
}

TEST(Fa3NumSplits, IsTheGoldenTable) {
  const auto rows = read_golden("fa3_num_splits.csv");
  ASSERT_EQ(rows.size(), kGoldenRows);
  Lines overflows;
  for (const GoldenRow& row : rows) {
    const Fa3Waves waves{.total_mblocks = row["total_mblocks"],
                         .num_sms = row["num_sms"],
                         .n_blocks = row["num_n_blocks"],
                         .m_blocks = row["num_m_blocks"],
                         .kv_head_bytes = row["size_one_kv_head_bytes"],
                         .causal_or_local = row.flag("is_causal_or_local"),
                         .max_splits = row["max_splits"]};
    const std::int64_t most = std::min({waves.max_splits, waves.num_sms, waves.n_blocks});
    if (past_32_bits(waves.total_mblocks * most) || past_32_bits(waves.kv_head_bytes + (50 << 20) - 1)) {
      overflows.push_back(row.line);
      continue;
    }
    EXPECT_EQ(fa3_num_splits(waves), row["num_splits"]) << "line " << row.line;
  }
  EXPECT_EQ(overflows, Lines{});
}

TEST(Fa2NumSplits, ByHand) {
  // 108 slots, 48 tiles: 2 splits reach 96/108 = 0.889; 9 fill four waves exactly, so 0.85 is asked for.
  EXPECT_EQ(fa2_num_splits(48, 108, 64, 128), 2);
  EXPECT_EQ(fa2_num_splits(87, 108, 64, 128), 1);  // 0.8 * 108 = 86.4
  // 32 tiles on 264 slots, 64 blocks: 7 splits of 10 blocks reach 224/264 = 0.848 of at best 0.970.
  EXPECT_EQ(fa2_num_splits(32, 264, 64, 128), 7);
  // 8 tiles: 32 is the first count of those that change the share (..., 22, 32, 64) within 85 %.
  EXPECT_EQ(fa2_num_splits(8, 264, 64, 128), 32);
}

TEST(Fa3NumSplits, ByHand) {
  // Float efficiencies against a threshold in double: 85/120 is not within 85 % of 100/120, 86/120 is.
  EXPECT_EQ(fa3_num_splits({.total_mblocks = 1, .num_sms = 120, .n_blocks = 100}), 86);
  // 8 tiles on 132: 33 splits fill two waves; 15 reach 120/132.
  EXPECT_EQ(fa3_num_splits({.total_mblocks = 8, .num_sms = 132, .n_blocks = 47}), 15);
  EXPECT_EQ(fa3_num_splits({.total_mblocks = 1, .num_sms = 132, .n_blocks = 4}), 1);
  EXPECT_EQ(fa3_num_splits({.total_mblocks = 1, .num_sms = 132, .n_blocks = 5}), 5);
  // A full machine splits only for a head past 50 MiB, unmasked, whose queries read it twice.
  Fa3Waves full{
      .total_mblocks = 132, .num_sms = 132, .n_blocks = 100, .m_blocks = 264, .kv_head_bytes = 50 << 20};
  EXPECT_EQ(fa3_num_splits(full), 1);
  full.kv_head_bytes += 1;
  EXPECT_EQ(fa3_num_splits(full), 2);
  full.m_blocks = 263;
  EXPECT_EQ(fa3_num_splits(full), 1);
  full.m_blocks = 264;
  full.causal_or_local = true;
  EXPECT_EQ(fa3_num_splits(full), 1);
  full.causal_or_local = false;
  full.kv_head_bytes = std::int64_t{1} << 40;  // 20972 L2s
  EXPECT_EQ(fa3_num_splits(full), 128);
  full.max_splits = 1 << 20;
  EXPECT_EQ(fa3_num_splits(full), 20972);
}

TEST(NumSplits, IsOneOfNothing) {
  EXPECT_EQ(fa2_num_splits(0, 264, 64, 128), 1);
  EXPECT_EQ(fa2_num_splits(1, 0, 64, 128), 1);
  EXPECT_EQ(fa2_num_splits(1, 264, 0, 128), 1);
  EXPECT_EQ(fa2_num_splits(1, 264, 64, 0), 1);
  EXPECT_EQ(fa3_num_splits({}), 1);
  EXPECT_EQ(fa3_num_splits({.total_mblocks = 1, .num_sms = 132, .n_blocks = 64, .max_splits = 0}), 1);
}

TEST(Fa2NumSplits, LeavesNoSplitEmpty) {
  for (std::int64_t blocks = 1; blocks <= 300; ++blocks) {
    for (const std::int64_t tiles : {1, 3, 8, 20, 32, 100}) {
      const std::int64_t splits = fa2_num_splits(tiles, 264, blocks, 128);
      const std::int64_t each = (blocks + splits - 1) / splits;
      EXPECT_LT((splits - 1) * each, blocks) << tiles << " tiles, " << blocks << " blocks";
    }
  }
}

}  // namespace
}  // namespace fdbench::rules
