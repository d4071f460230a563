#include "tune/regret.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "made_sweep.h"

namespace fdbench::tune {
namespace {

const Problem kProblem{8192, 32, 8, 128, Dtype::bf16, {}};

SplitSweep sweep_of(const std::vector<ResultRecord>& rows) {
  const auto sweeps = split_sweeps(rows, made_gpu(), "made");
  EXPECT_EQ(sweeps.size(), 1u);
  return sweeps.front();
}

Chooser fixed(int splits) {
  return rule_chooser(rules::find_split_rule("fixed:" + std::to_string(splits)));
}

TEST(SplitSweeps, TakeOnlyWhatWasMeasuredOverOneAxis) {
  auto rows = made_rows(
      kProblem, {1, 2, 4}, 8, [](std::int64_t s, int) { return 100.0 + static_cast<double>(s); }, 16);
  rows[1].status = Status::failed;
  rows[2].tuning.set("stages", 2);
  auto other = rows[3];
  other.variant = "other";
  rows.push_back(other);
  const SplitSweep sweep = sweep_of(rows);
  ASSERT_EQ(sweep.points.size(), 2u);
  EXPECT_EQ(sweep.own(), 0u);
  EXPECT_EQ(sweep.site.base.splits, 16);
  EXPECT_EQ(sweep.find(rules::split_by_count(8192, 4)), 1u);
  EXPECT_EQ(sweep.find(rules::split_by_count(8192, 16)), 0u) << "the variant's own plan launches that";
  EXPECT_EQ(sweep.find(rules::split_by_count(8192, 2)), std::nullopt);
  EXPECT_EQ(swept_variants(rows), (std::vector<std::string>{"made", "other"}));
}

TEST(Regret, IsTheTimeOverThatOfTheBest) {
  const auto rows = made_rows(kProblem, {1, 2, 4, 8}, 40, [](std::int64_t s, int) {
    return s == 4 ? 100.0 : 100.0 + 10.0 * static_cast<double>(s);
  });
  const auto shape = score(sweep_of(rows), std::vector{fixed(1), fixed(4), fixed(8), fixed(3)});
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->best_splits, 4);
  EXPECT_EQ(shape->choosing_rounds, 20u);
  EXPECT_EQ(shape->scoring_rounds, 20u);
  EXPECT_DOUBLE_EQ(shape->rules[0].ratio, 1.1);
  EXPECT_FALSE(shape->rules[0].best);
  EXPECT_DOUBLE_EQ(shape->rules[1].ratio, 1.0);
  EXPECT_TRUE(shape->rules[1].best);
  EXPECT_DOUBLE_EQ(shape->rules[2].ratio, 1.8);
  EXPECT_FALSE(shape->rules[3].choice.point);
  EXPECT_NE(shape->rules[3].choice.why.find("3 splits"), std::string::npos);

  const auto summary = summarise(std::vector{*shape, *shape});
  EXPECT_DOUBLE_EQ(summary[0].geomean, 1.1);
  EXPECT_EQ(summary[0].shapes, 2u);
  EXPECT_EQ(summary[1].best, 2u);
  EXPECT_DOUBLE_EQ(summary[2].worst, 1.8);
  EXPECT_EQ(summary[3].refused, 2u);
  EXPECT_EQ(summary[3].shapes, 0u);
}

// The plans are all the same and noisy. Chosen and scored on the same rounds, the luckiest would make
// everything else look slow; chosen on one half and scored on the other, it does not.
TEST(Regret, LuckIsNobodysRegret) {
  std::vector<std::int64_t> splits;
  for (int s = 1; s <= 24; ++s) splits.push_back(s);
  double log_ratio = 0.0, luckiest = 0.0;
  int shapes = 0, ties = 0;
  for (int seed = 0; seed < 60; ++seed) {
    const auto ns = [seed](std::int64_t s, int round) {
      std::uint64_t x = static_cast<std::uint64_t>(seed * 1000003 + s * 1009 + round) * 0x9e3779b97f4a7c15u;
      x ^= x >> 29;
      x *= 0xbf58476d1ce4e5b9u;
      x ^= x >> 32;
      return 1000.0 + 100.0 * static_cast<double>(x >> 11) * 0x1p-53;
    };
    const SplitSweep sweep = sweep_of(made_rows(kProblem, splits, 24, ns));
    const auto shape = score(sweep, std::vector{fixed(8)});
    ASSERT_TRUE(shape);
    log_ratio += std::log(shape->rules[0].ratio);
    ties += shape->rules[0].best ? 1 : 0;
    ++shapes;
    // On all rounds at once, for comparison.
    double least = 1e9;
    for (const std::int64_t s : splits) {
      std::vector<double> all;
      for (int r = 0; r < 24; ++r) all.push_back(ns(s, r));
      std::sort(all.begin(), all.end());
      least = std::min(least, (all[11] + all[12]) / 2);
    }
    luckiest += std::log(1050.0 / least);
  }
  EXPECT_LT(std::abs(log_ratio / shapes), 0.005);
  EXPECT_GT(luckiest / shapes, 0.008);
  EXPECT_GT(ties, shapes * 8 / 10);
}

TEST(Regret, BothHalvesHaveForwardAndBackwardRounds) {
  // Backward rounds (odd) are all slower for point 2: as much in either half.
  const auto rows = made_rows(kProblem, {1, 2}, 40, [](std::int64_t s, int r) {
    return 100.0 + (s == 2 && r % 2 == 1 ? 50.0 : 0.0);
  });
  const auto shape = score(sweep_of(rows), std::vector{fixed(2)});
  ASSERT_TRUE(shape);
  EXPECT_DOUBLE_EQ(shape->rules[0].ratio, 1.25);
}

TEST(Regret, NeedsBothHalves) {
  const auto ns = [](std::int64_t, int) { return 100.0; };
  EXPECT_FALSE(score(sweep_of(made_rows(kProblem, {1, 2}, 2, ns)), std::vector{fixed(1)}));
  const auto three = score(sweep_of(made_rows(kProblem, {1, 2}, 3, ns)), std::vector{fixed(1)});
  ASSERT_TRUE(three);
  EXPECT_FALSE(three->rules[0].ratio_ci);
  EXPECT_FALSE(three->rules[0].best) << "without an interval nothing ties";
}

TEST(Regret, LooksOnlyAtRoundsThatAllPointsKept) {
  auto rows = made_rows(kProblem, {1, 2}, 12, [](std::int64_t, int) { return 100.0; });
  for (int r = 0; r < 4; ++r) rows[0].time->samples[static_cast<std::size_t>(r)].set_aside = true;
  const auto shape = score(sweep_of(rows), std::vector{fixed(1)});
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->choosing_rounds + shape->scoring_rounds, 8u);
}

}  // namespace
}  // namespace fdbench::tune
