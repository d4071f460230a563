#include "rules/varlen_scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>

namespace fdbench::rules {
namespace {

VarlenCall decode_of(std::vector<VarlenSequence> sequences) {
  VarlenCall call;
  call.sequences = std::move(sequences);
  call.heads = 32;
  call.kv_heads = 8;
  call.pack_gqa = true;
  call.block_m = 128;
  call.block_n = 128;
  call.max_splits = 128;
  call.num_sms = 132;
  call.dim = 128;
  call.dim_v = 128;
  return call;
}

TEST(VarlenPlan, SplitsByHand) {
  // 8 + 1 + 32 blocks * 1.1 * 8 heads / 132 = 2.73: 3 blocks a split.
  const VarlenPlan plan = varlen_plan(decode_of({{1, 1000}, {1, 100}, {1, 4000}}));
  ASSERT_TRUE(plan.ok()) << plan.error;
  EXPECT_EQ(plan.heads, 8);
  EXPECT_FALSE(plan.longest_first);
  ASSERT_EQ(plan.entries.size(), 3u);
  // In order of blocks a split: 3, 3, 1.
  EXPECT_EQ(plan.entries[0].batch, 0);
  EXPECT_EQ(plan.entries[0].splits, 3);
  EXPECT_EQ(plan.entries[1].batch, 2);
  EXPECT_EQ(plan.entries[1].splits, 11);
  EXPECT_EQ(plan.entries[1].n_blocks, 32);
  EXPECT_EQ(plan.entries[2].batch, 1);
  EXPECT_EQ(plan.entries[2].splits, 1);
}

TEST(VarlenPlan, HeedsTheMostSplits) {
  VarlenCall call = decode_of({{1, 1000}, {1, 4000}});
  call.max_splits = 4;
  for (const VarlenEntry& entry : varlen_plan(call).entries) EXPECT_LE(entry.splits, 4);
  call.max_splits = 1;
  for (const VarlenEntry& entry : varlen_plan(call).entries) EXPECT_EQ(entry.splits, 1);
}

TEST(VarlenPlan, DoesNotSplitAbove992Sequences) {
  // 782 blocks * 1.1 * 8 / 132 = 52.1: 53 a split.
  VarlenCall call = decode_of(std::vector<VarlenSequence>(991, {0, 0}));
  call.sequences.push_back({1, 100000});
  EXPECT_EQ(varlen_plan(call).entries[0].splits, 15);
  call.sequences.push_back({1, 1000});
  const VarlenPlan plan = varlen_plan(call);
  EXPECT_EQ(plan.entries[0].splits, 1);
  // Sorted within each 992: the short one is alone in the second lot.
  EXPECT_EQ(plan.entries[0].batch, 991);
  EXPECT_EQ(plan.entries[992].batch, 992);
}

TEST(VarlenPlan, UnpackedSchedulesQueryHeads) {
  VarlenCall call = decode_of({{300, 4096}});
  call.pack_gqa = false;
  const VarlenPlan plan = varlen_plan(call);
  EXPECT_EQ(plan.heads, 32);
  EXPECT_EQ(plan.entries[0].m_blocks, 3);
  // 3 * 32 blocks * 1.1 * 32 / 132 = 25.6: 26 a split.
  EXPECT_EQ(plan.entries[0].splits, 2);
}

TEST(VarlenPlan, NothingToDoIsOneSplit) {
  const VarlenPlan plan = varlen_plan(decode_of({{0, 0}, {1, 0}, {0, 5}}));
  ASSERT_TRUE(plan.ok());
  for (const VarlenEntry& entry : plan.entries) EXPECT_EQ(entry.splits, 1);
  EXPECT_EQ(varlen_tile_order(plan).size(),
            8u);  // the sequence with a query and no key still writes its zeros
}

TEST(VarlenPlan, SortsCausalByWhatTheShortestRowSees) {
  VarlenCall call = decode_of({{2000, 2048}, {1, 1024}, {512, 4096}});
  call.pack_gqa = false;
  call.max_splits = 1;
  call.causal = true;
  const VarlenPlan plan = varlen_plan(call);
  EXPECT_TRUE(plan.longest_first);
  EXPECT_EQ(plan.entries[0].batch, 2);  // 4096 - 512
  EXPECT_EQ(plan.entries[1].batch, 1);  // 1024 - 128
  EXPECT_EQ(plan.entries[2].batch, 0);  // 0
  call.causal = false;
  call.local = true;  // not sorted
  EXPECT_EQ(varlen_plan(call).entries[0].batch, 0);
}

TEST(VarlenPlan, SectionsFitEightMebibytes) {
  // A block is 128 * 256 * 2 = 64 KiB: 128 of them fit.
  const auto section = [](std::int64_t seq, bool packed, std::int64_t heads) {
    VarlenCall call = decode_of({{1, seq}});
    call.pack_gqa = packed;
    call.max_splits = 1;
    call.heads = heads;
    call.kv_heads = heads / 4;
    return varlen_plan(call).entries[0].l2_heads;
  };
  EXPECT_EQ(section(8 * 128, true, 128), 16);
  EXPECT_EQ(section(8 * 128 + 1, true, 128), 8);
  EXPECT_EQ(section(32 * 128, false, 128), 16);  // 4 KV heads of 4
  EXPECT_EQ(section(1 << 20, true, 128), 1);
  EXPECT_EQ(section(8 * 128, true, 32), 8);  // there are no more
}

TEST(VarlenTileOrder, LongestFirstGoesThroughSections) {
  VarlenPlan plan;
  plan.heads = 3;
  plan.longest_first = true;
  plan.entries = {{.batch = 4, .m_blocks = 2, .n_blocks = 2, .splits = 1, .l2_heads = 2}};
  EXPECT_EQ(varlen_tile_order(plan),
            (std::vector<Tile>{{1, 0, 4}, {1, 1, 4}, {0, 0, 4}, {0, 1, 4}, {1, 2, 4}, {0, 2, 4}}));
  plan.entries[0].splits = 2;
  EXPECT_EQ(varlen_tile_order(plan)[0], (Tile{1, 0, 4, 0}));
  EXPECT_EQ(varlen_tile_order(plan)[1], (Tile{0, 0, 4, 0}));
  EXPECT_EQ(varlen_tile_order(plan)[2], (Tile{1, 0, 4, 1}));
  plan.longest_first = false;
  EXPECT_EQ(varlen_tile_order(plan)[0], (Tile{0, 0, 4, 0}));
}

TEST(VarlenTileOrder, EveryTileExactlyOnce) {
  std::mt19937 random(11);
  const auto from = [&random](int least, int most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<VarlenSequence> sequences(static_cast<std::size_t>(from(1, 80)));
    for (VarlenSequence& s : sequences) s = {from(0, 400), from(0, 9000)};
    VarlenCall call = decode_of(std::move(sequences));
    call.pack_gqa = from(0, 1) == 1;
    call.causal = from(0, 2) == 0;
    call.local = !call.causal && from(0, 1) == 0;
    call.max_splits = from(1, 9);
    const VarlenPlan plan = varlen_plan(call);
    ASSERT_TRUE(plan.ok()) << plan.error;
    ASSERT_EQ(plan.entries.size(), call.sequences.size());
    std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>> tiles;
    std::int64_t expected = 0;
    std::set<std::int64_t> batches;
    for (const VarlenEntry& entry : plan.entries) {
      EXPECT_TRUE(batches.insert(entry.batch).second);
      expected += entry.m_blocks * entry.splits * plan.heads;
    }
    for (const Tile& tile : varlen_tile_order(plan)) {
      ASSERT_TRUE(tiles.emplace(tile.batch, tile.head, tile.split, tile.block).second);
      const auto entry = std::find_if(plan.entries.begin(), plan.entries.end(),
                                      [&](const VarlenEntry& e) { return e.batch == tile.batch; });
      ASSERT_NE(entry, plan.entries.end());
      ASSERT_TRUE(tile.block >= 0 && tile.block < entry->m_blocks && tile.head >= 0 &&
                  tile.head < plan.heads && tile.split >= 0 && tile.split < entry->splits);
    }
    EXPECT_EQ(static_cast<std::int64_t>(tiles.size()), expected);
  }
}

TEST(VarlenPlan, RefusesBadExtents) {
  EXPECT_EQ(varlen_plan(decode_of({})).error, "sequences must be 1 to 1048576, not 0");
  VarlenCall call = decode_of({{1, 1}});
  call.block_n = 0;
  EXPECT_EQ(varlen_plan(call).error, "block_n must be 1 to 65536, not 0");
  EXPECT_TRUE(varlen_tile_order(varlen_plan(call)).empty());
  call = decode_of({{1, -1}});
  EXPECT_FALSE(varlen_plan(call).ok());
  call = decode_of({{1, std::int64_t{1} << 40}});
  EXPECT_TRUE(varlen_plan(call).ok());
  EXPECT_EQ(varlen_plan(call).entries[0].splits, 15);  // 2^33 blocks by 2^33 / 15, rounded up in float
}

}  // namespace
}  // namespace fdbench::rules
