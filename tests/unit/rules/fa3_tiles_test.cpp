#include "rules/fa3_tiles.h"

#include <gtest/gtest.h>

#include "golden_csv.h"

namespace fdbench::rules {
namespace {

TEST(Fa3Sm90Tile, IsTheGoldenTable) {
  const auto rows = read_golden("fa3_tile_size_sm90.csv");
  ASSERT_EQ(rows.size(), kGoldenRows);
  for (const GoldenRow& row : rows) {
    const Fa3Sm90Tile tile = fa3_sm90_tile({.dim = row["headdim"],
                                            .dim_v = row["headdim_v"],
                                            .causal = row.flag("is_causal"),
                                            .local = row.flag("is_local"),
                                            .element_bytes = row["element_size"],
                                            .v_colmajor = row.flag("v_colmajor"),
                                            .paged_without_tma = row.flag("paged_kv_non_tma"),
                                            .softcap = row.flag("softcap")});
    const Fa3Sm90Tile golden{row["block_m"], row["block_n"], row.flag("mma_pv_is_rs"),
                             row.flag("intra_wg_overlap")};
    EXPECT_EQ(tile, golden) << "line " << row.line;
  }
}

TEST(Fa3Sm8xTile, IsTheGoldenTable) {
  const auto rows = read_golden("fa3_tile_size_sm8x.csv");
  ASSERT_EQ(rows.size(), kGoldenRows);
  for (const GoldenRow& row : rows) {
    const Fa3Sm8xTile tile = fa3_sm8x_tile({.sm86_or_89 = row.flag("sm86_or_89"),
                                            .dim = row["headdim"],
                                            .dim_v = row["headdim_v"],
                                            .causal = row.flag("is_causal"),
                                            .local = row.flag("is_local"),
                                            .element_bytes = row["element_size"],
                                            .paged = row.flag("paged_kv"),
                                            .varlen_and_split = row.flag("varlen_and_split"),
                                            .softcap = row.flag("softcap"),
                                            .append_kv = row.flag("append_kv")});
    const Fa3Sm8xTile golden{row["block_m"], row["block_n"], row["num_warps"], row["stages"],
                             row.flag("q_in_regs")};
    EXPECT_EQ(tile, golden) << "line " << row.line;
  }
}

TEST(Fa3ShouldPackGqa, IsTheGoldenTable) {
  const auto rows = read_golden("fa3_should_pack_gqa.csv");
  ASSERT_EQ(rows.size(), kGoldenRows);
  Lines overflows;
  for (const GoldenRow& row : rows) {
    const std::int64_t group = row["qhead_per_khead"];
    if (past_32_bits(row["seqlen_q"] * group + row["block_m"] - 1)) {
      overflows.push_back(row.line);
      continue;
    }
    EXPECT_EQ(fa3_should_pack_gqa(row.flag("varlen_q"), row["seqlen_q"], group, row["block_m"]),
              row.flag("pack"))
        << "line " << row.line;
  }
  EXPECT_EQ(overflows, Lines{});
}

TEST(Fa3BlockRange, IsTheGoldenTable) {
  const auto rows = read_golden("fa3_n_block_range.csv");
  ASSERT_EQ(rows.size(), kGoldenRows);
  Lines overflows;
  for (const GoldenRow& row : rows) {
    const std::int64_t row_end = (row["m_block"] + 1) * row["block_m"];
    if (past_32_bits(row_end + row["seqlen_k"] + row["window_right"] + row["block_n"])) {
      overflows.push_back(row.line);
      continue;
    }
    const BlockRange range = fa3_block_range({.block_m = row["block_m"],
                                              .block_n = row["block_n"],
                                              .causal = row.flag("is_causal"),
                                              .local = row.flag("is_local"),
                                              .pack_gqa = row.flag("pack_gqa"),
                                              .split = row.flag("split"),
                                              .seq_q = row["seqlen_q"],
                                              .seq_k = row["seqlen_k"],
                                              .m_block = row["m_block"],
                                              .split_idx = row["split_idx"],
                                              .num_splits = row["num_splits"],
                                              .window_left = row["window_left"],
                                              .window_right = row["window_right"],
                                              .group = row["qhead_per_khead"]});
    EXPECT_EQ(range.min, row["n_block_min"]) << "line " << row.line;
    EXPECT_EQ(range.max, row["n_block_max"]) << "line " << row.line;
  }
  EXPECT_EQ(overflows, Lines{});
}

TEST(Fa3RoundedDim, IsTheNextSizeBuilt) {
  EXPECT_EQ(fa3_rounded_dim(1), 64);
  EXPECT_EQ(fa3_rounded_dim(64), 64);
  EXPECT_EQ(fa3_rounded_dim(65), 96);
  EXPECT_EQ(fa3_rounded_dim(112), 128);
  EXPECT_EQ(fa3_rounded_dim(256), 256);
  EXPECT_EQ(fa3_rounded_dim(257), std::nullopt);
  EXPECT_EQ(fa3_rounded_dim_v(257), 512);
  EXPECT_EQ(fa3_rounded_dim_v(513), std::nullopt);
}

TEST(Fa3ShouldPackGqa, ByHand) {
  EXPECT_TRUE(fa3_should_pack_gqa(false, 1, 4, 128));     // 1/128 against 4/128
  EXPECT_FALSE(fa3_should_pack_gqa(false, 128, 8, 128));  // both full
  EXPECT_TRUE(fa3_should_pack_gqa(true, 128, 8, 128));
  // 116/128 = 0.906 is not below 0.9 of a full tile; 115/128 = 0.898 of 460/512 = 0.898 is not either.
  EXPECT_FALSE(fa3_should_pack_gqa(false, 116, 32, 128));
  EXPECT_FALSE(fa3_should_pack_gqa(false, 115, 4, 128));
  EXPECT_FALSE(fa3_should_pack_gqa(false, 0, 4, 128));
  EXPECT_TRUE(fa3_should_pack_gqa(false, (std::int64_t{1} << 31) - 127, 128, std::int64_t{1} << 32));
}

TEST(Fa3PacksGqa, OverridesComeBeforeUngroupedHeadsAndThoseBeforeTheRule) {
  const Fa3PackQuery grouped{.heads = 32, .kv_heads = 8};
  EXPECT_TRUE(fa3_packs_gqa(grouped));
  Fa3PackQuery query{.heads = 32, .kv_heads = 32, .varlen_q = true};
  EXPECT_FALSE(fa3_packs_gqa(query));  // ungrouped, whatever the rule says
  query.splits = 2;
  EXPECT_TRUE(fa3_packs_gqa(query));
  query.splits = 1;
  query.paged_without_tma = true;
  EXPECT_TRUE(fa3_packs_gqa(query));
  query.paged_without_tma = false;
  query.cc = 89;
  EXPECT_TRUE(fa3_packs_gqa(query));
  EXPECT_FALSE(fa3_packs_gqa({.heads = 32, .kv_heads = 8, .seq_q = 128}));
  EXPECT_FALSE(fa3_packs_gqa({.heads = 32, .kv_heads = 0}));
}

TEST(Fa3BlockRange, ByHand) {
  Fa3BlockQuery query{.block_m = 128, .block_n = 128, .causal = true, .seq_q = 256, .seq_k = 1024};
  EXPECT_EQ(fa3_block_range(query), (BlockRange{0, 7}));  // rows to 128 see keys to 896
  query.m_block = 1;
  EXPECT_EQ(fa3_block_range(query), (BlockRange{0, 8}));
  query.m_block = 0;
  query.split = true;
  query.num_splits = 2;
  EXPECT_EQ(fa3_block_range(query), (BlockRange{0, 4}));
  query.split_idx = 1;
  EXPECT_EQ(fa3_block_range(query), (BlockRange{4, 7}));
  // Seven splits over 8 blocks have 2 each: the fifth is empty.
  query = {.block_m = 64,
           .block_n = 128,
           .split = true,
           .seq_q = 1,
           .seq_k = 1024,
           .split_idx = 4,
           .num_splits = 7};
  EXPECT_TRUE(fa3_block_range(query).empty());
  EXPECT_EQ(fa3_block_range(query).size(), 0);
  // A window of 100 to the left: the first row's own key is 768, so 668 is seen.
  query = {.block_m = 128, .block_n = 128, .local = true, .seq_q = 256, .seq_k = 1024, .window_left = 100};
  query.window_right = 0;
  EXPECT_EQ(fa3_block_range(query), (BlockRange{5, 7}));
  // Packed: 64 rows are 8 queries of 8 heads; only one exists, and it sees all.
  query = {.block_m = 64, .block_n = 128, .causal = true, .pack_gqa = true, .seq_q = 1, .seq_k = 1000};
  query.group = 8;
  EXPECT_EQ(fa3_block_range(query), (BlockRange{0, 8}));
  // More queries than keys: the first rows see nothing, and the bound is rounded towards zero.
  query = {.block_m = 64, .block_n = 64, .causal = true, .seq_q = 500, .seq_k = 200};
  EXPECT_EQ(fa3_block_range(query), (BlockRange{0, -2}));
  EXPECT_TRUE(fa3_block_range(query).empty());
  EXPECT_EQ(fa3_block_range({}), (BlockRange{0, 0}));
}

TEST(Fa3BlockRange, SplitsPartitionTheUnsplitRange) {
  for (std::int64_t seq_k = 1; seq_k < 3000; seq_k += 97) {
    for (std::int64_t splits = 1; splits <= 20; ++splits) {
      Fa3BlockQuery query{.block_m = 64, .block_n = 128, .local = true, .seq_q = 3, .seq_k = seq_k};
      query.window_left = 700;
      query.window_right = 0;
      const std::int64_t whole = fa3_block_range(query).size();
      query.split = true;
      query.num_splits = splits;
      std::int64_t sum = 0;
      for (query.split_idx = 0; query.split_idx < splits; ++query.split_idx)
        sum += fa3_block_range(query).size();
      EXPECT_EQ(sum, whole) << seq_k << " keys, " << splits << " splits";
    }
  }
}

Fa3Call decode_call() {
  Fa3Call call;
  call.seq_k = 8192;
  call.heads = 32;
  call.kv_heads = 8;
  call.dim = 128;
  call.dim_v = 128;
  call.num_sms = 132;
  return call;
}

TEST(Fa3SplitPlan, OfADecodeByHand) {
  // 176 keys a block: 47 blocks; 8 tiles; 15 splits reach 120/132 of two full waves' 1.
  const Fa3SplitPlan plan = fa3_split_plan(decode_call());
  ASSERT_TRUE(plan.ok()) << plan.error;
  EXPECT_EQ(plan.block_m, 128);
  EXPECT_EQ(plan.block_n, 176);
  EXPECT_EQ(plan.n_blocks, 47);
  EXPECT_EQ(plan.num_splits, 15);
  EXPECT_FALSE(plan.causal);
  EXPECT_FALSE(plan.local);
}

TEST(Fa3SplitPlan, ASingleQueryNeedsNoCausalMask) {
  Fa3Call call = decode_call();
  call.causal = true;
  call.window_right = 5;
  EXPECT_FALSE(fa3_split_plan(call).causal);
  EXPECT_EQ(fa3_split_plan(call).block_n, 176);
  call.paged = true;  // keeps it at dim 128, for the smaller block
  EXPECT_TRUE(fa3_split_plan(call).causal);
  EXPECT_EQ(fa3_split_plan(call).block_n, 128);
  call.paged = false;
  call.seq_q = 2;
  EXPECT_TRUE(fa3_split_plan(call).causal);
}

TEST(Fa3SplitPlan, LoadsWhatAWindowShows) {
  Fa3Call call = decode_call();
  call.window_left = 1000;
  // 1000 + 0 + 1 + 128 = 1129 tokens, 9 blocks of 128; 8 splits reach 64/132 of at best 72/132.
  const Fa3SplitPlan plan = fa3_split_plan(call);
  EXPECT_TRUE(plan.local);
  EXPECT_EQ(plan.block_n, 128);
  EXPECT_EQ(plan.n_blocks, 9);
  EXPECT_EQ(plan.num_splits, 8);
  call.window_left = 8191;  // shows everything
  EXPECT_FALSE(fa3_split_plan(call).local);
}

TEST(Fa3SplitPlan, MeasuresAKvHeadIn64Bits) {
  // 313 query blocks read 5,000,000 tokens of 512 bytes: 2.56e9 bytes, 48.8 times 50 MiB. In 32 bits that is
  // negative.
  Fa3Call call = decode_call();
  call.seq_q = 40000;
  call.seq_k = 5'000'000;
  call.heads = 8;
  EXPECT_TRUE(past_32_bits(call.seq_k * 256 * 2));
  EXPECT_EQ(fa3_split_plan(call).num_splits, 49);
  call.seq_k = 4'194'303;  // the last that fits: 2^31 - 512
  EXPECT_FALSE(past_32_bits(call.seq_k * 256 * 2));
  EXPECT_EQ(fa3_split_plan(call).num_splits, 41);
}

TEST(Fa3SplitPlan, HasSm8xTilesAndVariableLength) {
  Fa3Call call = decode_call();
  call.cc = 80;
  EXPECT_EQ(fa3_split_plan(call).block_n, 64);
  call.cc = 89;
  EXPECT_EQ(fa3_split_plan(call).block_n, 128);
  call.varlen = true;
  EXPECT_EQ(fa3_split_plan(call).block_n, 112);
  call = decode_call();
  call.batch = 32;
  EXPECT_EQ(fa3_split_plan(call).num_splits, 1);  // 256 tiles fill 132
  call.varlen = true;
  EXPECT_EQ(fa3_split_plan(call).num_splits, 15);  // as if the batch were 1
}

TEST(Fa3SplitPlan, RefusesWhatItHasNoTilesFor) {
  Fa3Call call = decode_call();
  call.dim = 257;
  EXPECT_EQ(fa3_split_plan(call).error, "fa3: dim must be 1 to 256, not 257");
  call = decode_call();
  call.cc = 75;
  EXPECT_FALSE(fa3_split_plan(call).ok());
  call = decode_call();
  call.num_sms = 0;
  EXPECT_FALSE(fa3_split_plan(call).ok());
  call = decode_call();
  call.kv_heads = 7;
  EXPECT_FALSE(fa3_split_plan(call).ok());
  call = decode_call();
  call.seq_k = 0;
  EXPECT_EQ(fa3_split_plan(call).num_splits, 1);
}

}  // namespace
}  // namespace fdbench::rules
