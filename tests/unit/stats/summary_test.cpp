#include "stats/summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

namespace fdbench::stats {
namespace {

using Values = std::vector<double>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// 1, 2, ..., n: the k-th smallest is k.
Values counting(std::size_t n) {
  Values values(n);
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

TEST(Median, OddTakesTheMiddleEvenTheMidpoint) {
  EXPECT_EQ(median(Values{7}), 7);
  EXPECT_EQ(median(Values{9, 1, 5}), 5);          // 1 [5] 9
  EXPECT_EQ(median(Values{10, 1, 4, 3}), 3.5);    // 1 [3 4] 10
  EXPECT_EQ(median(Values{2, 2, 2, 2, 100}), 2);  // one outlier moves nothing
}

TEST(Median, LeavesItsInputAsItWas) {
  const Values values{3, 1, 2};
  median(values);
  EXPECT_EQ(values, (Values{3, 1, 2}));
}

TEST(Median, RejectsNothingAndWhatIsNotFinite) {
  EXPECT_THROW(median(Values{}), std::invalid_argument);
  EXPECT_THROW(median(Values{1, kNan, 2}), std::invalid_argument);
  EXPECT_THROW(median(Values{1, kInf}), std::invalid_argument);
}

TEST(Quantile, IsHyndmanFanType7) {
  const Values values{40, 10, 30, 20};
  EXPECT_EQ(quantile(values, 0), 10);
  EXPECT_DOUBLE_EQ(quantile(values, 0.25), 17.5);  // rank 1 + 3 * 0.25 = 1.75: 10 + 0.75 * 10
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 25);     // rank 2.5: 20 + 0.5 * 10, the median
  EXPECT_DOUBLE_EQ(quantile(values, 0.9), 37);     // rank 3.7: 30 + 0.7 * 10
  EXPECT_EQ(quantile(values, 1), 40);
  EXPECT_EQ(quantile(Values{5}, 0.3), 5);
}

TEST(Quantile, RejectsNothingAndPOutsideItsRange) {
  EXPECT_THROW(quantile(Values{}, 0.5), std::invalid_argument);
  EXPECT_THROW(quantile(Values{1}, -0.1), std::invalid_argument);
  EXPECT_THROW(quantile(Values{1}, 1.1), std::invalid_argument);
  EXPECT_THROW(quantile(Values{1}, kNan), std::invalid_argument);
}

TEST(MedianRank, IsTheLargestWithBothTailsWithin5Percent) {
  // P(B <= k) of B ~ Binomial(n, 1/2); the rank is the number of k that have P <= 0.025.
  EXPECT_EQ(median_ci95_rank(0), std::nullopt);
  EXPECT_EQ(median_ci95_rank(5), std::nullopt);  // P(B <= 0) = 1/32 = 0.031
  EXPECT_EQ(median_ci95_rank(6), 1u);            // 1/64 = 0.0156; (1 + 6)/64 = 0.109
  EXPECT_EQ(median_ci95_rank(8), 1u);            // 1/256; (1 + 8)/256 = 0.0352
  EXPECT_EQ(median_ci95_rank(9), 2u);            // (1 + 9)/512 = 0.0195; (1 + 9 + 36)/512 = 0.0898
  EXPECT_EQ(median_ci95_rank(10), 2u);           // (1 + 10)/1024 = 0.0107; (1 + 10 + 45)/1024 = 0.0547
  EXPECT_EQ(median_ci95_rank(11), 2u);           // (1 + 11)/2048 = 0.0059; (1 + 11 + 55)/2048 = 0.0327
  EXPECT_EQ(median_ci95_rank(25), 8u);           // P(B <= 7) = 0.0216, P(B <= 8) = 0.0539
}

TEST(MedianRank, StaysExactForManyValues) {
  // From exact fractions. 1001 is close to the edge.
  EXPECT_EQ(median_ci95_rank(100), 40u);      // P(B <= 39) = 0.01760, P(B <= 40) = 0.02844
  EXPECT_EQ(median_ci95_rank(1000), 469u);    // P(B <= 468) = 0.02315, P(B <= 469) = 0.02684
  EXPECT_EQ(median_ci95_rank(1001), 470u);    // P(B <= 469) = 0.02499, P(B <= 470) = 0.02893
  EXPECT_EQ(median_ci95_rank(10000), 4902u);  // P(B <= 4901) = 0.02442, P(B <= 4902) = 0.02559
  // Beyond, the normal approximation is within 1: n/2 + 1/2 - 1.959964 sqrt(n)/2 = 500000.5 - 979.98 =
  // 499020.5.
  EXPECT_EQ(median_ci95_rank(1'000'000), 499'020u);
}

TEST(MedianInterval, IsTheOrderStatisticsOfThoseRanks) {
  EXPECT_EQ(median_ci95(Values{}), std::nullopt);
  EXPECT_EQ(median_ci95(counting(5)), std::nullopt);
  EXPECT_EQ(median_ci95(Values{6, 5, 4, 3, 2, 1}), (Interval{1, 6}));  // rank 1: min and max
  EXPECT_EQ(median_ci95(counting(10)), (Interval{2, 9}));              // rank 2
  EXPECT_EQ(median_ci95(counting(25)), (Interval{8, 18}));             // rank 8: 25 + 1 - 8 = 18
}

TEST(MedianInterval, IsNeverNarrowerThanTheTimersStep) {
  // Width 0, step 4: 2 to each side.
  EXPECT_EQ(median_ci95(Values(6, 100.0), 4), (Interval{98, 102}));
  // 1..10 gives [2, 9], width 7. Step 10 misses 3: 1.5 to each side. Step 7 misses nothing.
  EXPECT_EQ(median_ci95(counting(10), 10), (Interval{0.5, 10.5}));
  EXPECT_EQ(median_ci95(counting(10), 7), (Interval{2, 9}));
}

TEST(MedianInterval, RejectsWhatIsNotFinite) {
  EXPECT_THROW(median_ci95(Values{1, 2, 3, kNan, 5, 6}), std::invalid_argument);
}

// How often, in %, the interval covers the median of 1 + Exp(1), which is 1 + ln 2.
double simulated_coverage(std::size_t n, int draws) {
  std::mt19937_64 engine(20240607 + n);  // the engine's numbers are the standard's; a distribution's are not
  const double truth = 1 + std::log(2.0);
  int covered = 0;
  Values values(n);
  for (int i = 0; i < draws; ++i) {
    for (double& v : values) v = 1 - std::log((static_cast<double>(engine() >> 11) + 0.5) * 0x1p-53);
    const Interval ci = median_ci95(values).value();
    covered += ci.lo <= truth && truth <= ci.hi;
  }
  return 100.0 * covered / draws;
}

TEST(MedianInterval, CoversASkewedDistributionsMedianAsOftenAsItsRanksSay) {
  // The coverage is 1 - 2 P(B <= rank - 1), exactly and for any distribution (see MedianRank): at least 95 %.
  // Of 20000 draws the standard error is sqrt(0.0433 * 0.9567 / 20000) = 0.144 % at most; 0.6 is 4 of them.
  EXPECT_NEAR(simulated_coverage(6, 20000), 96.875, 0.6);   // 1 - 2/64
  EXPECT_NEAR(simulated_coverage(10, 20000), 97.852, 0.6);  // 1 - 22/1024
  EXPECT_NEAR(simulated_coverage(25, 20000), 95.671, 0.6);  // 1 - 2 * 0.021643
}

TEST(Summarise, GivesTheFiveNumbersAndTheInterval) {
  EXPECT_FALSE(summarise(Values{}));
  const Summary s = summarise(Values{8, 1, 7, 2, 6, 3, 5, 4}).value();
  EXPECT_EQ(s.n, 8u);
  EXPECT_EQ(s.min, 1);
  EXPECT_DOUBLE_EQ(s.q1, 2.75);  // rank 1 + 7/4 = 2.75
  EXPECT_EQ(s.median, 4.5);
  EXPECT_DOUBLE_EQ(s.q3, 6.25);  // rank 1 + 21/4 = 6.25
  EXPECT_EQ(s.max, 8);
  EXPECT_EQ(s.ci95, (Interval{1, 8}));  // n = 8: rank 1
}

TEST(Summarise, HasNoIntervalOfFiveValues) {
  const Summary s = summarise(counting(5), 10).value();
  EXPECT_EQ(s.median, 3);
  EXPECT_FALSE(s.ci95);
}

TEST(RelativeWidth, IsHalfTheWidthOverTheMedian) {
  // [98, 104] about 100: 6 / 2 / 100.
  EXPECT_DOUBLE_EQ(relative_width({.n = 6, .median = 100, .ci95 = Interval{98, 104}}), 0.03);
  EXPECT_EQ(relative_width({.n = 6, .median = 100, .ci95 = Interval{100, 100}}), 0);
}

TEST(RelativeWidth, IsInfiniteWhenThereIsNothingToCompare) {
  EXPECT_EQ(relative_width({.n = 5, .median = 100, .ci95 = std::nullopt}), kInf);
  EXPECT_EQ(relative_width({.n = 6, .median = 0, .ci95 = Interval{0, 0}}), kInf);
}

TEST(PairedRatio, CancelsWhatMovesBothWithinARound) {
  // Rounds 1 to 6 times slower; the pairs' ratio is 2 in each.
  const Values a{2, 4, 6, 8, 10, 12}, b{1, 2, 3, 4, 5, 6};
  const Ratio r = paired_ratio(a, b).value();
  EXPECT_EQ(r.median, 2);
  EXPECT_EQ(r.ci95, (Interval{2, 2}));
}

TEST(PairedRatio, IsTheMedianOfRatiosNotTheRatioOfMedians) {
  // Ratios 1, 2, 9: median 2. The medians are 9 and 2: ratio 4.5.
  const Ratio r = paired_ratio(Values{1, 10, 9}, Values{1, 5, 1}).value();
  EXPECT_EQ(r.median, 2);
  EXPECT_FALSE(r.ci95);  // 3 rounds
  // Ratios 1..6: median 3.5, and rank 1 of 6 is min and max.
  const Ratio six = paired_ratio(Values{2, 4, 6, 8, 10, 12}, Values(6, 2.0)).value();
  EXPECT_EQ(six.median, 3.5);
  EXPECT_EQ(six.ci95, (Interval{1, 6}));
}

TEST(PairedRatio, IsNoSurerThanTheTimer) {
  // 200/100 each round, step 10: the width is 2 * 10 * (1/200 + 1/100) = 0.3, so 2 +- 0.15.
  const Ratio r = paired_ratio(Values(6, 200.0), Values(6, 100.0), 10).value();
  EXPECT_EQ(r.median, 2);
  ASSERT_TRUE(r.ci95);
  EXPECT_NEAR(r.ci95->lo, 1.85, 1e-12);
  EXPECT_NEAR(r.ci95->hi, 2.15, 1e-12);
}

TEST(PairedRatio, IsNothingWithoutPairsOfPositiveValues) {
  EXPECT_FALSE(paired_ratio(Values{}, Values{}));
  EXPECT_FALSE(paired_ratio(Values{1, 2}, Values{1}));
  EXPECT_FALSE(paired_ratio(Values{1, 2}, Values{1, 0}));
  EXPECT_FALSE(paired_ratio(Values{-1}, Values{1}));
}

TEST(GeometricMean, IsTheNthRootOfTheProduct) {
  EXPECT_DOUBLE_EQ(geometric_mean(Values{2, 8}), 4);                   // sqrt(16)
  EXPECT_DOUBLE_EQ(geometric_mean(Values{1, 10, 100}), 10);            // cbrt(1000)
  EXPECT_NEAR(geometric_mean(Values{2, 0.5}), 1, 1e-15);               // twice as fast and twice as slow
  EXPECT_NEAR(geometric_mean(Values(1000, 1e300)) / 1e300, 1, 1e-10);  // the product would overflow
}

TEST(GeometricMean, RejectsNothingAndWhatIsNotPositive) {
  EXPECT_THROW(geometric_mean(Values{}), std::invalid_argument);
  EXPECT_THROW(geometric_mean(Values{1, 0}), std::invalid_argument);
  EXPECT_THROW(geometric_mean(Values{1, -1}), std::invalid_argument);
}

}  // namespace
}  // namespace fdbench::stats
