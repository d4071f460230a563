#include "rules/tile_schedulers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <tuple>

#include "golden_csv.h"

namespace fdbench::rules {
namespace {

constexpr std::array kFixedLength = {TileScheduler::single_tile, TileScheduler::static_persistent,
                                     TileScheduler::dynamic_persistent,
                                     TileScheduler::backward_longest_first};

std::int64_t number_of(const TileGrid& grid, const Tile& tile) {
  return ((tile.batch * grid.heads + tile.head) * grid.splits + tile.split) * grid.blocks + tile.block;
}

TEST(DynamicPersistent, IsTheGoldenTable) {
  const auto rows = read_golden("fa3_dynamic_persistent_order.csv");
  ASSERT_EQ(rows.size(), kGoldenRows);
  Lines overflows;
  for (const GoldenRow& row : rows) {
    const TileGrid grid{.blocks = row["num_blocks"],
                        .heads = row["num_head"],
                        .batch = row["num_batch"],
                        .splits = row.flag("split") ? row["num_splits"] : 1,
                        .group = row["qhead_per_khead"],
                        .pack_gqa = row.flag("pack_gqa"),
                        .l2_seq = row["seqlen_k"],
                        .dim = row["headdim"],
                        .dim_v = row["headdim_v"]};
    const std::int64_t section = l2_section_heads(TileScheduler::dynamic_persistent, grid);
    if (past_32_bits(tile_count(grid)) || past_32_bits(section * grid.blocks * grid.splits)) {
      overflows.push_back(row.line);
      continue;
    }
    EXPECT_EQ(tile_count(grid), row["total_blocks"]) << "line " << row.line;
    const auto tile = tile_at(TileScheduler::dynamic_persistent, grid, row["tile_idx"]);
    const Tile golden{row["m_block"], row["head"], row["batch"], row["split_idx"]};
    ASSERT_TRUE(tile.has_value()) << "line " << row.line;
    EXPECT_EQ(*tile, golden) << "line " << row.line;
  }
  EXPECT_EQ(overflows, Lines{});
}

TEST(FixedLength, EveryTileExactlyOnce) {
  std::mt19937 random(7);
  const auto upto = [&random](int most) {
    return std::uniform_int_distribution<std::int64_t>(1, most)(random);
  };
  for (int round = 0; round < 300; ++round) {
    TileGrid grid{.blocks = upto(9), .heads = upto(24), .batch = upto(5)};
    grid.splits = upto(4);
    grid.group = upto(8);
    grid.pack_gqa = upto(2) == 1;
    grid.l2_seq = std::int64_t{1} << upto(20);
    grid.dim = 64 * upto(3);
    grid.dim_v = 64 * upto(3);
    grid.deterministic = upto(2) == 1;
    for (const TileScheduler scheduler : kFixedLength) {
      const std::vector<Tile> order = tile_order(scheduler, grid);
      ASSERT_EQ(static_cast<std::int64_t>(order.size()), tile_count(grid));
      std::vector<bool> seen(order.size());
      for (const Tile& tile : order) {
        ASSERT_TRUE(tile.block >= 0 && tile.block < grid.blocks && tile.head >= 0 && tile.head < grid.heads &&
                    tile.batch >= 0 && tile.batch < grid.batch && tile.split >= 0 &&
                    tile.split < grid.splits);
        const auto number = static_cast<std::size_t>(number_of(grid, tile));
        ASSERT_FALSE(seen[number]) << to_string(scheduler);
        seen[number] = true;
      }
    }
  }
}

TEST(StaticPersistent, BlockThenSplitThenHeadThenBatch) {
  const TileGrid grid{.blocks = 2, .heads = 2, .batch = 2, .splits = 2};
  for (const TileScheduler scheduler : {TileScheduler::static_persistent, TileScheduler::single_tile}) {
    const std::vector<Tile> order = tile_order(scheduler, grid);
    ASSERT_EQ(order.size(), 16u);
    EXPECT_EQ(order[0], (Tile{0, 0, 0, 0}));
    EXPECT_EQ(order[1], (Tile{1, 0, 0, 0}));
    EXPECT_EQ(order[2], (Tile{0, 0, 0, 1}));
    EXPECT_EQ(order[4], (Tile{0, 1, 0, 0}));
    EXPECT_EQ(order[8], (Tile{0, 0, 1, 0}));
    EXPECT_EQ(order[15], (Tile{1, 1, 1, 1}));
  }
}

TEST(DynamicPersistent, LongestFirstInSectionsWithARemainder) {
  // A KV head is 32768 * 512 bytes = 16 MiB: two fit, the third head is a section of its own.
  TileGrid grid{.blocks = 2, .heads = 3, .pack_gqa = true, .l2_seq = 32768, .dim = 128, .dim_v = 128};
  EXPECT_EQ(l2_section_heads(TileScheduler::dynamic_persistent, grid), 2);
  const std::vector<Tile> order = tile_order(TileScheduler::dynamic_persistent, grid);
  EXPECT_EQ(order, (std::vector<Tile>{{1, 0}, {1, 1}, {0, 0}, {0, 1}, {1, 2}, {0, 2}}));
  // Splits are slower than blocks.
  grid.splits = 2;
  grid.heads = 1;
  EXPECT_EQ(tile_order(TileScheduler::dynamic_persistent, grid),
            (std::vector<Tile>{{1, 0, 0, 0}, {0, 0, 0, 0}, {1, 0, 0, 1}, {0, 0, 0, 1}}));
}

TEST(DynamicPersistent, SectionsAreAPowerOfTwoOfKvHeads) {
  const auto section = [](std::int64_t seq, std::int64_t group, bool packed) {
    return l2_section_heads(TileScheduler::dynamic_persistent, {.blocks = 1,
                                                                .heads = 1,
                                                                .group = group,
                                                                .pack_gqa = packed,
                                                                .l2_seq = seq,
                                                                .dim = 128,
                                                                .dim_v = 128});
  };
  EXPECT_EQ(section(8192, 1, false), 8);   // 4 MiB
  EXPECT_EQ(section(9000, 1, false), 4);   // 7.28 fit
  EXPECT_EQ(section(65536, 1, false), 1);  // 32 MiB exactly
  EXPECT_EQ(section(65537, 4, false), 4);  // not even one
  EXPECT_EQ(section(8192, 4, false), 32);
  EXPECT_EQ(section(8192, 4, true), 8);
  EXPECT_EQ(section(0, 1, true), 1 << 25);  // nothing to keep: all in one
  EXPECT_EQ(section(std::int64_t{1} << 40, 1, true), 1);
}

TEST(BackwardLongestFirst, SectionsByQueryBytesAndAscends) {
  // 8192 * (512 + 512) bytes = 8 MiB of 40: five fit, four are taken.
  TileGrid grid{.blocks = 2, .heads = 5, .group = 8, .l2_seq = 8192, .dim = 128, .dim_v = 128};
  EXPECT_EQ(l2_section_heads(TileScheduler::backward_longest_first, grid), 4);
  EXPECT_EQ(
      tile_order(TileScheduler::backward_longest_first, grid),
      (std::vector<Tile>{{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 0}, {1, 1}, {1, 2}, {1, 3}, {0, 4}, {1, 4}}));
  grid.deterministic = true;
  EXPECT_EQ(tile_at(TileScheduler::backward_longest_first, grid, 0), (Tile{1, 0}));
}

TEST(TileAt, IsNothingOutsideTheGrid) {
  const TileGrid grid{.blocks = 2, .heads = 3};
  for (const TileScheduler scheduler : kFixedLength) {
    EXPECT_EQ(tile_at(scheduler, grid, -1), std::nullopt);
    EXPECT_TRUE(tile_at(scheduler, grid, 5).has_value());
    EXPECT_EQ(tile_at(scheduler, grid, 6), std::nullopt);
    EXPECT_EQ(tile_at(scheduler, {}, 0), std::nullopt);
  }
  EXPECT_EQ(tile_at(TileScheduler::varlen_persistent, grid, 0), std::nullopt);
}

TEST(TileGrid, HasLimits) {
  EXPECT_EQ(invalid_reason(TileGrid{.blocks = 1, .heads = 1}), std::nullopt);
  EXPECT_EQ(invalid_reason(TileGrid{.blocks = 0, .heads = 1}), "blocks must be 1 to 1099511627776, not 0");
  const TileGrid wide{.blocks = std::int64_t{1} << 40, .heads = 2};
  EXPECT_EQ(invalid_reason(wide), "blocks x heads x batch x splits must be at most 2^40");
  EXPECT_EQ(tile_count(wide), 0);
  const TileGrid long_one{.blocks = std::int64_t{1} << 34, .heads = 64};
  EXPECT_EQ(tile_count(long_one), std::int64_t{1} << 40);
  EXPECT_EQ(tile_at(TileScheduler::static_persistent, long_one, (std::int64_t{1} << 40) - 1),
            (Tile{(std::int64_t{1} << 34) - 1, 63}));
  EXPECT_EQ(tile_at(TileScheduler::dynamic_persistent, long_one, (std::int64_t{1} << 40) - 1), (Tile{0, 63}));
  EXPECT_TRUE(tile_order(TileScheduler::single_tile, long_one).empty());
}

TEST(ForwardScheduler, AsksVariableLengthFirst) {
  using S = TileScheduler;
  EXPECT_EQ(forward_scheduler({}), S::static_persistent);
  EXPECT_EQ(forward_scheduler({.causal = true}), S::dynamic_persistent);
  EXPECT_EQ(forward_scheduler({.local = true}), S::dynamic_persistent);
  EXPECT_EQ(forward_scheduler({.split = true}), S::single_tile);  // a split decode
  EXPECT_EQ(forward_scheduler({.split = true, .causal = true}), S::single_tile);
  EXPECT_EQ(forward_scheduler({.varlen = true}), S::varlen_persistent);
  EXPECT_EQ(forward_scheduler({.varlen = true, .split = true, .causal = true}), S::varlen_persistent);
  EXPECT_EQ(forward_scheduler({.cc = 80}), S::single_tile);
  EXPECT_EQ(forward_scheduler({.cc = 80, .causal = true}), S::dynamic_persistent);
  EXPECT_EQ(forward_scheduler({.cc = 80, .local = true}), S::single_tile);
  EXPECT_EQ(forward_scheduler({.cc = 89, .varlen = true, .causal = true}), S::single_tile);
  EXPECT_EQ(forward_scheduler({.cc = 89, .varlen = true, .split = true}), S::varlen_persistent);
  EXPECT_EQ(backward_scheduler(true), S::backward_longest_first);
  EXPECT_EQ(backward_scheduler(false), S::single_tile);
}

TEST(RunTiles, GivesTilesToTheFirstFreeOrInTurn) {
  const std::vector<Tile> order = {{3}, {1}, {2}, {4}};
  const auto cost = [](const Tile& tile) { return static_cast<double>(tile.block); };
  const auto free = run_tiles(order, 2, Dispatch::first_free, cost);
  ASSERT_EQ(free.size(), 4u);
  EXPECT_EQ(free[1].worker, 1);
  EXPECT_EQ(free[2].worker, 1);  // free at 1
  EXPECT_EQ(free[2].start, 1.0);
  EXPECT_EQ(free[3].worker, 0);  // both free at 3: the lower
  EXPECT_EQ(makespan(free), 7.0);
  const auto turn = run_tiles(order, 2, Dispatch::in_turn, cost);
  EXPECT_EQ(turn[2].worker, 0);
  EXPECT_EQ(turn[2].start, 3.0);
  EXPECT_EQ(turn[3].worker, 1);
  EXPECT_EQ(makespan(turn), 5.0);
  EXPECT_EQ(run_tiles(order, std::int64_t{1} << 40, Dispatch::first_free, cost)[3].worker, 3);
  EXPECT_TRUE(run_tiles(order, 0, Dispatch::in_turn, cost).empty());
  EXPECT_TRUE(run_tiles({}, 4, Dispatch::in_turn, cost).empty());
  EXPECT_EQ(makespan({}), 0.0);
}

TEST(RunTiles, LongestFirstIsNotSlowerThanInTurnOnACausalHead) {
  const TileGrid grid{.blocks = 33, .heads = 8, .l2_seq = 4224, .dim = 128, .dim_v = 128};
  const auto causal = [](const Tile& tile) { return static_cast<double>(tile.block + 1); };
  const double total = 8 * 33 * 34 / 2;
  const auto with = [&](TileScheduler scheduler) {
    return makespan(run_tiles(tile_order(scheduler, grid), 20, dispatch_of(scheduler), causal));
  };
  const double dynamic = with(TileScheduler::dynamic_persistent);
  EXPECT_LT(dynamic, with(TileScheduler::static_persistent));
  EXPECT_GE(dynamic, total / 20);
  EXPECT_LE(dynamic, total / 20 + 33);
  EXPECT_EQ(dispatch_of(TileScheduler::static_persistent), Dispatch::in_turn);
  EXPECT_EQ(dispatch_of(TileScheduler::single_tile), Dispatch::first_free);
}

TEST(TileScheduler, HasNames) {
  std::set<std::string_view> names;
  for (const TileScheduler scheduler : kFixedLength) names.insert(to_string(scheduler));
  names.insert(to_string(TileScheduler::varlen_persistent));
  EXPECT_EQ(names.size(), 5u);
  EXPECT_FALSE(names.contains("?"));
}

}  // namespace
}  // namespace fdbench::rules
