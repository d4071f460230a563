#include "rules/split_rules.h"

#include <gtest/gtest.h>

namespace fdbench::rules {
namespace {

SplitInput input_of(std::int64_t seq, std::int64_t heads, std::int64_t kv_heads, std::int64_t num_sms = 132) {
  SplitInput input;
  input.seq = seq;
  input.heads = heads;
  input.kv_heads = kv_heads;
  input.dim = 128;
  input.num_sms = num_sms;
  return input;
}

TEST(SeedRule, TakesTheFirstTierNotBelowTheShare) {
  // 32 * 8192 / 264 = 992.9 -> 992.
  EXPECT_EQ(seed_rule(input_of(8192, 32, 8)), (Split{.splits = 8, .chunk = 1024, .upstream_splits = 8}));
  // 32 * 2112 / 264 = 256 exactly; a token more is still 256 (256.1), 9 more are 257.
  EXPECT_EQ(seed_rule(input_of(2112, 32, 8)).chunk, 256);
  EXPECT_EQ(seed_rule(input_of(2113, 32, 8)).chunk, 256);
  EXPECT_EQ(seed_rule(input_of(2121, 32, 8)).chunk, 512);
  // Past the last tier the cap holds: 32 * 131072 / 264 = 15887.
  EXPECT_EQ(seed_rule(input_of(131072, 32, 8)), (Split{.splits = 64, .chunk = 2048, .upstream_splits = 64}));
  EXPECT_EQ(seed_rule(input_of(1, 1, 1)), (Split{.splits = 1, .chunk = 256, .upstream_splits = 1}));
}

TEST(SeedRule, FineHasSmallerTiers) {
  EXPECT_EQ(seed_fine_rule(input_of(128, 32, 8)).chunk, 64);    // 15
  EXPECT_EQ(seed_fine_rule(input_of(528, 32, 8)).chunk, 64);    // 64
  EXPECT_EQ(seed_fine_rule(input_of(537, 32, 8)).chunk, 128);   // 65
  EXPECT_EQ(seed_fine_rule(input_of(1065, 32, 8)).chunk, 256);  // 129
  EXPECT_EQ(seed_fine_rule(input_of(131072, 32, 8)).chunk, 2048);
}

TEST(SeedRule, DoesNotOverflowWhereHeadsTimesSeqPassesTwoToThe31) {
  const Split at = seed_rule(input_of(std::int64_t{1} << 26, 64, 8));
  EXPECT_EQ(at, (Split{.splits = 32768, .chunk = 2048, .upstream_splits = 32768}));
  EXPECT_EQ(seed_rule(input_of(std::int64_t{1} << 40, 1 << 20, 1, 1)).splits, std::int64_t{1} << 29);
}

TEST(SmMultipleRule, KeepsTheGridWithinTheMultiple) {
  // 132 / 32 = 4 splits, 128 CTAs.
  EXPECT_EQ(sm_multiple_rule(input_of(8192, 32, 32), 1),
            (Split{.splits = 4, .chunk = 2048, .upstream_splits = 4}));
  EXPECT_EQ(sm_multiple_rule(input_of(8192, 32, 32), 2),
            (Split{.splits = 8, .chunk = 1024, .upstream_splits = 8}));
  // 132 / 8 = 16.
  EXPECT_EQ(sm_multiple_rule(input_of(8192, 32, 8), 1),
            (Split{.splits = 16, .chunk = 512, .upstream_splits = 16}));
  // A kernel with a CTA a query head says so.
  SplitInput ungrouped = input_of(8192, 32, 8);
  ungrouped.ctas_per_split = 32;
  EXPECT_EQ(sm_multiple_rule(ungrouped, 1).splits, 4);
  // One KV head splits 132 ways: 4096 / 132 -> 32 tokens, 128 splits.
  EXPECT_EQ(sm_multiple_rule(input_of(4096, 64, 1), 1),
            (Split{.splits = 128, .chunk = 32, .upstream_splits = 132}));
  // More heads than CTAs wanted: no split. Fewer tokens than splits: one each.
  EXPECT_EQ(sm_multiple_rule(input_of(4096, 256, 256), 1).splits, 1);
  EXPECT_EQ(sm_multiple_rule(input_of(5, 1, 1), 1), (Split{.splits = 5, .chunk = 1, .upstream_splits = 5}));
  SplitInput batched = input_of(8192, 32, 8);
  batched.batch = 4;
  EXPECT_EQ(sm_multiple_rule(batched, 1).splits, 4);
  EXPECT_FALSE(sm_multiple_rule(input_of(8192, 32, 8), 0).ok());
}

TEST(FixedRule, GivesWhatWasAsked) {
  EXPECT_EQ(fixed_rule(input_of(8192, 32, 8), 7), (Split{.splits = 7, .chunk = 1171, .upstream_splits = 7}));
  // 10 tokens over 7 are 2 each: 5 CTAs have some.
  EXPECT_EQ(fixed_rule(input_of(10, 32, 8), 7), (Split{.splits = 5, .chunk = 2, .upstream_splits = 7}));
  EXPECT_FALSE(fixed_rule(input_of(8192, 32, 8), 0).ok());
}

TEST(RoundToTile, RoundsTheChunkUpAndCountsAgain) {
  const Split five = fixed_rule(input_of(320, 4, 4), 4);
  EXPECT_EQ(five, (Split{.splits = 4, .chunk = 80, .upstream_splits = 4}));
  EXPECT_EQ(round_to_tile(five, 320, 64), (Split{.splits = 3, .chunk = 128, .upstream_splits = 4}));
  EXPECT_EQ(round_to_tile(five, 320, 16), five);
  EXPECT_EQ(round_to_tile(fixed_rule(input_of(0, 4, 4), 4), 0, 64),
            (Split{.splits = 1, .chunk = 64, .upstream_splits = 4}));
  EXPECT_FALSE(round_to_tile(five, 320, 0).ok());
  EXPECT_EQ(round_to_tile(Split{.error = "why"}, 320, 64).error, "why");
}

TEST(SplitInput, RefusesExtentsThatMakeNoProblem) {
  EXPECT_EQ(invalid_reason(input_of(8192, 32, 8)), std::nullopt);
  EXPECT_EQ(invalid_reason(input_of(0, 1, 1)), std::nullopt);
  EXPECT_EQ(invalid_reason(input_of(8192, 33, 8)), "heads 33 is not a multiple of kv_heads 8");
  EXPECT_EQ(invalid_reason(input_of(8192, 32, 8, 0)), "num_sms must be 1 to 65536, not 0");
  EXPECT_EQ(invalid_reason(input_of(-1, 32, 8)), "seq must be 0 to 1099511627776, not -1");
  EXPECT_TRUE(invalid_reason(input_of(8192, 0, 8)).has_value());
  EXPECT_TRUE(invalid_reason(input_of(8192, 32, 0)).has_value());
  SplitInput wide = input_of(8192, 1 << 20, 1);
  wide.batch = 8;
  EXPECT_EQ(invalid_reason(wide), "heads x batch must be at most 4194304, not 8388608");
}

TEST(SplitInput, IsMadeFromAProblemAndADevice) {
  DeviceInfo device;
  device.sms = 26;
  device.smem_per_sm = 102400;
  device.smem_per_block = 101376;
  device.threads_per_sm = 1536;
  device.ctas_per_sm = 24;
  device.cc = 120;
  Problem problem;
  problem.seq = 100;
  problem.heads = 32;
  problem.kv_heads = 8;
  problem.dim = 64;
  const SplitInput input = split_input(problem, device);
  EXPECT_EQ(input.seq, 100);
  EXPECT_EQ(input.heads, 32);
  EXPECT_EQ(input.kv_heads, 8);
  EXPECT_EQ(input.dim, 64);
  EXPECT_EQ(input.element_bytes, 2);
  EXPECT_EQ(input.batch, 1);
  EXPECT_EQ(input.num_sms, 26);
  EXPECT_EQ(input.smem_per_sm, 102400);
  EXPECT_EQ(input.smem_per_cta, 101376);
  EXPECT_EQ(input.threads_per_sm, 1536);
  EXPECT_EQ(input.ctas_per_sm, 24);
  EXPECT_EQ(input.cc, 120);
}

}  // namespace
}  // namespace fdbench::rules
