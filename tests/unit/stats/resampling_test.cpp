#include "stats/resampling.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

namespace fdbench::stats {
namespace {

using Values = std::vector<double>;
using Processes = std::vector<Values>;

double median_statistic(std::span<double> values) {
  return median(values);
}

TEST(BootstrapInterval, OfEqualValuesIsThatValue) {
  EXPECT_EQ(bootstrap_interval(Processes{Values(4, 5.0), Values(3, 5.0)}, median_statistic),
            (Interval{5, 5}));
}

TEST(BootstrapInterval, ResamplesWholeProcesses) {
  // Each process is constant, so a resample is {10, 10}, {10, 20} or {20, 20} processes: medians 10, 15 or 20
  // with chances 1/4, 1/2, 1/4, and the 2.5 % quantiles are 10 and 20. Values drawn without regard to their
  // process would mostly mix 10 and 20.
  EXPECT_EQ(bootstrap_interval(Processes{Values(50, 10.0), Values(50, 20.0)}, median_statistic),
            (Interval{10, 20}));
}

TEST(BootstrapInterval, ResamplesTheRoundsOfAProcess) {
  // The mean of one process {0, 1} is 0, 1/2 or 1 with chances 1/4, 1/2, 1/4.
  const auto mean = [](std::span<double> v) { return (v[0] + v[1]) / 2; };
  EXPECT_EQ(bootstrap_interval(Processes{{0, 1}}, mean), (Interval{0, 1}));
  // The middle half of those: the quartiles of 2000 draws lie next to the steps at 1/4 and 3/4, so only the
  // central 40 % (0.3 to 0.7) is sure: 1/2.
  EXPECT_EQ(bootstrap_interval(Processes{{0, 1}}, mean, {.confidence = 0.4}), (Interval{0.5, 0.5}));
}

TEST(BootstrapInterval, DependsOnTheSeedAlone) {
  Processes processes(4);
  for (std::size_t p = 0; p < 4; ++p)
    for (std::size_t i = 0; i < 25; ++i) processes[p].push_back(static_cast<double>((i * 37 + p * 11) % 101));
  const auto first = bootstrap_interval(processes, median_statistic, {.resamples = 100, .seed = 7});
  EXPECT_EQ(first, bootstrap_interval(processes, median_statistic, {.resamples = 100, .seed = 7}));
  // With so few resamples another seed gives other ends.
  const auto mean = [](std::span<double> v) {
    double sum = 0;
    for (const double x : v) sum += x;
    return sum / static_cast<double>(v.size());
  };
  EXPECT_NE(bootstrap_interval(processes, mean, {.resamples = 100, .seed = 7}),
            bootstrap_interval(processes, mean, {.resamples = 100, .seed = 8}));
}

TEST(BootstrapInterval, DrawsTheNumbersOfSplitMix64) {
  // SplitMix64 from 0 begins e220a839..., 6e789e6a..., 06c45d18... (the published test vector). One process
  // of three values: the first number picks it; the next three pick indices floor(3 u): of 0x6e78.. (u =
  // 0.43) 1, of 0x06c4.. (0.026) 0, of f88bb8a8... (0.97) 2. Positional digits show the order.
  const auto digits = [](std::span<double> v) { return 100 * v[0] + 10 * v[1] + v[2]; };
  EXPECT_EQ(bootstrap_interval(Processes{{4, 5, 6}}, digits, {.resamples = 1, .seed = 0}),
            (Interval{546, 546}));
}

TEST(BootstrapInterval, LeavesEmptyProcessesOut) {
  EXPECT_FALSE(bootstrap_interval(Processes{}, median_statistic));
  EXPECT_FALSE(bootstrap_interval(Processes{{}, {}}, median_statistic));
  EXPECT_EQ(bootstrap_interval(Processes{{}, {3, 3}}, median_statistic), (Interval{3, 3}));
}

TEST(BootstrapInterval, RejectsWhatCannotBeMeant) {
  const Processes one{{1, 2}};
  EXPECT_THROW(bootstrap_interval(one, median_statistic, {.resamples = 0}), std::invalid_argument);
  EXPECT_THROW(bootstrap_interval(one, median_statistic, {.confidence = 0}), std::invalid_argument);
  EXPECT_THROW(bootstrap_interval(one, median_statistic, {.confidence = 1}), std::invalid_argument);
  EXPECT_THROW(bootstrap_interval(Processes{{std::numeric_limits<double>::infinity()}}, median_statistic),
               std::invalid_argument);
}

TEST(StudentT975, MatchesTheTables) {
  EXPECT_NEAR(student_t975(1), 12.706, 1e-3);
  EXPECT_NEAR(student_t975(2), 4.303, 1e-3);
  EXPECT_NEAR(student_t975(10), 2.228, 1e-3);
  EXPECT_NEAR(student_t975(11), 2.201, 1e-3);  // from here on the expansion
  EXPECT_NEAR(student_t975(30), 2.042, 1e-3);
  EXPECT_NEAR(student_t975(1000000), 1.960, 1e-3);
  EXPECT_THROW(student_t975(0), std::invalid_argument);
}

TEST(SummariseProcesses, OfOneProcessIsItsSummary) {
  const Values values{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const Summary s = summarise_processes(Processes{values, {}}, 0);
  EXPECT_EQ(s.n, 10u);
  EXPECT_EQ(s.median, 5.5);
  EXPECT_EQ(s.ci95, (Interval{2, 9}));  // ranks 2 and 9 of 10
}

TEST(SummariseProcesses, PoolsTheQuartilesAndWidensForProcesses) {
  // Ten times 100, 101 and 102: pooled median 101, quartiles at ranks 8.25 and 22.75: 100 and 102. Process
  // medians 100, 101, 102: mean 101, s = 1, t(2) = 4.3027, half-width 4.3027 / sqrt(3) = 2.4842; the
  // bootstrap stays within 100..102.
  const Summary s =
      summarise_processes(Processes{Values(10, 100.0), Values(10, 101.0), Values(10, 102.0)}, 0);
  EXPECT_EQ(s.n, 30u);
  EXPECT_EQ(s.min, 100);
  EXPECT_EQ(s.q1, 100);
  EXPECT_EQ(s.median, 101);
  EXPECT_EQ(s.q3, 102);
  EXPECT_EQ(s.max, 102);
  ASSERT_TRUE(s.ci95);
  EXPECT_NEAR(s.ci95->lo, 98.5158, 1e-4);
  EXPECT_NEAR(s.ci95->hi, 103.4842, 1e-4);
}

TEST(SummariseProcesses, KeepsTheRoundsNoiseWhenProcessesAgree) {
  // Process medians 5 and 5: Student's interval has width 0; the rounds' scatter still shows.
  const Values values{1, 2, 3, 4, 5, 6, 7, 8, 9};
  const Summary s = summarise_processes(Processes{values, values}, 0);
  ASSERT_TRUE(s.ci95);
  EXPECT_LT(s.ci95->lo, 5);
  EXPECT_GT(s.ci95->hi, 5);
}

TEST(SummariseProcesses, IsNeverNarrowerThanTheTimersStep) {
  // All equal, step 4: 100 +- 2.
  EXPECT_EQ(summarise_processes(Processes{Values(6, 100.0), Values(6, 100.0)}, 4).ci95, (Interval{98, 102}));
}

TEST(SummariseProcesses, HasNoIntervalBelowSixValues) {
  EXPECT_FALSE(summarise_processes(Processes{{1, 2}, {3, 4, 5}}, 0).ci95);
  EXPECT_TRUE(summarise_processes(Processes{{1, 2, 3}, {4, 5, 6}}, 0).ci95);
}

TEST(SummariseProcesses, RejectsNothing) {
  EXPECT_THROW(summarise_processes(Processes{}, 0), std::invalid_argument);
  EXPECT_THROW(summarise_processes(Processes{{}, {}}, 0), std::invalid_argument);
}

TEST(SummariseProcesses, CoversTheMedianWhereProcessesDiffer) {
  // 3 processes of 12 rounds; both effects are sums of 12 uniforms less 6 (mean 0, variance 1, nearly
  // normal), those of the process doubled. The nominal 95 % of 500 draws has a standard error of 1 %: at
  // least 91 % is 4 of them. Pooled rounds taken as independent cover it in
  // about 57 % of draws; 70 % is well past their error of 2.2 %.
  std::mt19937_64 engine(11);
  const auto bell = [&engine] {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(engine() >> 11) * 0x1p-53;
    return sum;
  };
  int covered = 0, pooled_covered = 0;
  for (int draw = 0; draw < 500; ++draw) {
    Processes processes(3);
    Values all;
    for (Values& process : processes) {
      const double centre = 100 + 2 * bell();
      for (int i = 0; i < 12; ++i) process.push_back(centre + bell());
      all.insert(all.end(), process.begin(), process.end());
    }
    const Interval ci = summarise_processes(processes, 0, {.resamples = 100}).ci95.value();
    covered += ci.lo <= 100 && 100 <= ci.hi;
    const Interval pooled = median_ci95(all).value();
    pooled_covered += pooled.lo <= 100 && 100 <= pooled.hi;
  }
  EXPECT_GE(covered, 455);
  EXPECT_LT(pooled_covered, 350);
}

}  // namespace
}  // namespace fdbench::stats
