#include "compare/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "compare/comparable.h"
#include "compare/noise.h"

namespace fdbench::compare {
namespace {

constexpr double kWobble[] = {0.0, 0.002, -0.002, 0.001, -0.001};

struct RowSpec {
  std::string variant = "kernel";
  Role role = Role::candidate;
  double ns = 2000.0;
  std::int64_t seq = 1024;
};

ResultRecord row(const RowSpec& spec, int processes, double mhz = 0.0) {
  ResultRecord record;
  record.variant = spec.variant;
  record.role = spec.role;
  record.problem = Problem{spec.seq, 32, 8, 128, Dtype::bf16, {}};
  record.id = result_id(spec.variant, record.problem, {}, CacheMode::cold, TimerMode::events);
  TimeSummary time;
  time.median = spec.ns;
  for (int process = 0; process < processes; ++process) {
    const double wobble = spec.role == Role::roof ? 0.0 : kWobble[process % 5];
    for (int round = 0; round < 3; ++round)
      time.samples.push_back({process, round, spec.ns * std::exp(wobble), mhz, false});
  }
  record.time = time;
  return record;
}

ResultFile file(const std::vector<RowSpec>& rows, int processes = 5, double mhz = 0.0) {
  ResultFile out;
  out.run.device.name = "Some GPU";
  out.run.device.kind = BackendKind::cuda;
  out.run.device.sms = 132;
  out.run.inputs = "recipe/1";
  for (const RowSpec& spec : rows) out.results.push_back(row(spec, processes, mhz));
  return out;
}

const RowSpec kRoof{"roof", Role::roof, 1000.0, 1024};

Comparison compared(const ResultFile& base, const ResultFile& now, const CompareSettings& settings = {}) {
  return compare_sides({{&base}, {"base.json"}, false}, {{&now}, {"new.json"}, false}, settings);
}

const RowComparison& kernel_row(const Comparison& comparison) {
  const auto found = std::find_if(comparison.rows.begin(), comparison.rows.end(),
                                  [](const RowComparison& one) { return one.variant == "kernel"; });
  if (found == comparison.rows.end()) throw std::runtime_error("no such row");
  return *found;
}

Verdict verdict_of(double base_ns, double new_ns, int processes = 5) {
  const ResultFile base = file({kRoof, {"kernel", Role::candidate, base_ns}}, processes),
                   now = file({kRoof, {"kernel", Role::candidate, new_ns}}, processes);
  return kernel_row(compared(base, now)).verdict;
}

TEST(Verdicts, FollowEffectAndEvidence) {
  EXPECT_EQ(verdict_of(2000, 2000), Verdict::same);
  EXPECT_EQ(verdict_of(2000, 2040), Verdict::same);  // +2 %, below the threshold
  EXPECT_EQ(verdict_of(2000, 2100), Verdict::slower);
  EXPECT_EQ(verdict_of(2000, 1900), Verdict::faster);
}

TEST(Verdicts, FewProcessesCanOnlyBeUnsure) {
  for (const int processes : {1, 2, 4}) {
    EXPECT_EQ(verdict_of(2000, 4000, processes), Verdict::unsure) << processes;
    EXPECT_EQ(verdict_of(2000, 1000, processes), Verdict::unsure) << processes;
    EXPECT_EQ(verdict_of(2000, 2000, processes), Verdict::unsure) << processes;
  }
}

TEST(Verdicts, WhatMovesTheRoofAlikeIsNoChange) {
  const ResultFile base = file({kRoof, {"kernel", Role::candidate, 2000}}),
                   now = file({{"roof", Role::roof, 1200}, {"kernel", Role::candidate, 2400}});
  const Comparison comparison = compared(base, now);
  EXPECT_EQ(kernel_row(comparison).verdict, Verdict::same);
  EXPECT_EQ(comparison.rows[0].verdict, Verdict::unsure);  // the roof: seen, never gated
  EXPECT_EQ(exit_for(comparison, false, false), Exit::good);
}

TEST(Verdicts, AFasterRoofIsNoRegressionOfARow) {
  const ResultFile base = file({kRoof, {"kernel", Role::candidate, 2000}}),
                   now = file({{"roof", Role::roof, 900}, {"kernel", Role::candidate, 1990}});
  const RowComparison row_seen = kernel_row(compared(base, now));
  EXPECT_EQ(row_seen.verdict, Verdict::unsure);
  EXPECT_NE(row_seen.why.find("did not rise"), std::string::npos) << row_seen.why;
}

TEST(Verdicts, ClocksThatDifferAndThrottlingCanOnlyBeUnsure) {
  const ResultFile base = file({kRoof, {"kernel", Role::candidate, 2000}}, 5, 1980.0);
  const ResultFile slower_clock = file({kRoof, {"kernel", Role::candidate, 2200}}, 5, 1700.0);
  EXPECT_EQ(kernel_row(compared(base, slower_clock)).verdict, Verdict::unsure);
  ResultFile throttled = file({kRoof, {"kernel", Role::candidate, 2200}}, 5, 1980.0);
  EXPECT_EQ(kernel_row(compared(base, throttled)).verdict, Verdict::slower);
  throttled.results[1].flags = {"throttled"};
  EXPECT_EQ(kernel_row(compared(base, throttled)).verdict, Verdict::unsure);
}

TEST(Verdicts, WithoutARoofThereIsNoEvidence) {
  const ResultFile base = file({{"kernel", Role::candidate, 2000}}),
                   now = file({{"kernel", Role::candidate, 3000}});
  EXPECT_EQ(kernel_row(compared(base, now)).verdict, Verdict::unsure);
}

TEST(Verdicts, NewGoneWrong) {
  const RowSpec other{"other", Role::candidate, 2000};
  const ResultFile base = file({kRoof, {}, other});
  ResultFile now = file({kRoof, {}, {"third", Role::candidate, 2000}});
  Comparison comparison = compared(base, now);
  ASSERT_EQ(comparison.rows.size(), 4u);
  EXPECT_EQ(comparison.rows[2].verdict, Verdict::gone);
  EXPECT_EQ(comparison.rows[3].verdict, Verdict::fresh);
  EXPECT_EQ(exit_for(comparison, false, false), Exit::not_comparable);
  EXPECT_EQ(exit_for(comparison, true, false), Exit::good);

  now.results[1].status = Status::incorrect;
  now.results[1].reason = "off by 3";
  now.results[1].time.reset();
  comparison = compared(base, now);
  EXPECT_EQ(kernel_row(comparison).verdict, Verdict::wrong);
  EXPECT_EQ(exit_for(comparison, true, false), Exit::wrong_result);
  EXPECT_EQ(exit_for(comparison, false, false), Exit::not_comparable);
}

TEST(Verdicts, ARowThatFailsIsGoneAndStillAFailure) {
  const ResultFile base = file({kRoof, {}});
  ResultFile now = base;
  now.results[1].status = Status::failed;
  now.results[1].time.reset();
  const Comparison comparison = compared(base, now);
  EXPECT_EQ(kernel_row(comparison).verdict, Verdict::gone);
  EXPECT_EQ(exit_for(comparison, false, false), Exit::not_comparable);
  EXPECT_EQ(exit_for(comparison, true, false), Exit::failed);
}

TEST(Exits, RegressionBeforeNoiseBeforeFailure) {
  Comparison comparison;
  const auto add = [&](Verdict verdict, bool failed = false) {
    RowComparison row;
    row.verdict = verdict;
    row.failed = failed;
    row.new_ns = 1.0;
    if (verdict != Verdict::fresh) row.base_ns = 1.0;
    comparison.rows.push_back(row);
  };
  EXPECT_EQ(exit_for(comparison, false, false), Exit::failed);  // nothing was compared
  add(Verdict::fresh);
  EXPECT_EQ(exit_for(comparison, false, false), Exit::failed);  // new alone is nothing compared
  add(Verdict::faster);
  EXPECT_EQ(exit_for(comparison, false, true), Exit::good);
  add(Verdict::gone, true);
  EXPECT_EQ(exit_for(comparison, true, true), Exit::failed);
  add(Verdict::unsure);
  EXPECT_EQ(exit_for(comparison, true, false), Exit::failed);
  EXPECT_EQ(exit_for(comparison, true, true), Exit::too_noisy);
  add(Verdict::slower);
  EXPECT_EQ(exit_for(comparison, true, true), Exit::regression);
  add(Verdict::wrong);
  EXPECT_EQ(exit_for(comparison, true, true), Exit::wrong_result);
  EXPECT_EQ(exit_for(comparison, false, true), Exit::not_comparable);
}

TEST(Comparable, EachKeyStopsAndCanBeAllowed) {
  const ResultFile base = file({kRoof, {}});
  const auto stops = [&](const std::string& key, const ResultFile& now) {
    const Comparison comparison = compared(base, now);
    ASSERT_EQ(comparison.not_comparable.size(), 1u) << key;
    EXPECT_EQ(comparison.not_comparable[0].rfind(key + ": ", 0), 0u) << comparison.not_comparable[0];
    EXPECT_TRUE(comparison.rows.empty());
    EXPECT_EQ(exit_for(comparison, true, false), Exit::not_comparable);
    CompareSettings allowed;
    allowed.allow = {key};
    const Comparison through = compared(base, now, allowed);
    EXPECT_TRUE(through.not_comparable.empty()) << key;
    EXPECT_EQ(kernel_row(through).verdict, Verdict::same) << key << kernel_row(through).why;
    EXPECT_FALSE(through.warnings.empty()) << key;
  };
  ResultFile now = base;
  now.run.device.name = "Another GPU";
  stops("device", now);
  now = base;
  now.run.device.power_limit_w = 350.0;
  stops("power", now);
  now = base;
  now.run.device.sms = 66;
  now.run.device.mig = true;
  stops("mig", now);
  now = base;
  now.run.seed = 7;
  stops("inputs", now);
  now = base;
  now.run.cache = CacheMode::hot;
  for (ResultRecord& record : now.results)
    record.id = result_id(record.variant, record.problem, {}, CacheMode::hot, TimerMode::events);
  stops("cache", now);
  now = base;
  now.run.timer = TimerMode::graph;
  for (ResultRecord& record : now.results)
    record.id = result_id(record.variant, record.problem, {}, CacheMode::cold, TimerMode::graph);
  stops("timer", now);
  now = base;
  for (ResultRecord& record : now.results) {
    record.problem.dtype = Dtype::fp16;
    record.id = result_id(record.variant, record.problem, {}, CacheMode::cold, TimerMode::events);
  }
  stops("dtype", now);
}

TEST(Comparable, AnotherSerialIsAWarning) {
  ResultFile base = file({kRoof, {}}), now = base;
  base.run.device.uuid = "GPU-1";
  now.run.device.uuid = "GPU-2";
  const Comparison comparison = compared(base, now);
  EXPECT_TRUE(comparison.not_comparable.empty());
  ASSERT_EQ(comparison.warnings.size(), 1u);
  EXPECT_NE(comparison.warnings[0].find("another serial"), std::string::npos);
}

TEST(Comparable, OtherInstructionsAreAWarning) {
  ResultFile base = file({kRoof, {}}), now = base;
  base.results[1].plan = LaunchPlan{};
  base.results[1].plan->isa = "AVX2";
  EXPECT_TRUE(compared(base, now).warnings.empty()) << "one side does not say";
  now.results[1].plan = base.results[1].plan;
  EXPECT_TRUE(compared(base, now).warnings.empty());
  now.results[1].plan->isa = "AMX";
  const Comparison comparison = compared(base, now);
  EXPECT_TRUE(comparison.not_comparable.empty());
  ASSERT_EQ(comparison.warnings.size(), 1u);
  EXPECT_EQ(comparison.warnings[0].find("kernel uses AVX2 in "), 0u) << comparison.warnings[0];
  EXPECT_NE(comparison.warnings[0].find(", AMX in "), std::string::npos) << comparison.warnings[0];
}

TEST(Comparable, OtherInstructionSetsOfTheDeviceAreAWarning) {
  ResultFile base = file({kRoof, {}}), now = base;
  base.run.device.isas = {"AVX3", "AVX2", "plain"};
  EXPECT_TRUE(compared(base, now).warnings.empty()) << "one side does not say";
  now.run.device.isas = base.run.device.isas;
  EXPECT_TRUE(compared(base, now).warnings.empty());
  now.run.device.isas = {"AVX2", "plain"};
  const Comparison comparison = compared(base, now);
  EXPECT_TRUE(comparison.not_comparable.empty());
  ASSERT_EQ(comparison.warnings.size(), 1u);
  EXPECT_EQ(comparison.warnings[0].find("instruction sets AVX3, AVX2, plain in "), 0u)
      << comparison.warnings[0];
  EXPECT_NE(comparison.warnings[0].find(", AVX2, plain in "), std::string::npos) << comparison.warnings[0];
}

TEST(Compare, HistoryIsPooledAndItsSessionsCount) {
  const ResultFile slow = file({kRoof, {"kernel", Role::candidate, 2200}}),
                   fast = file({kRoof, {"kernel", Role::candidate, 2000}}),
                   middle = file({kRoof, {"kernel", Role::candidate, 2090}}),
                   now = file({kRoof, {"kernel", Role::candidate, 2210}});
  // Against the fast one alone it is slower; a history that has been there before says that this happens.
  EXPECT_EQ(kernel_row(compared(fast, now)).verdict, Verdict::slower);
  const Comparison pooled =
      compare_sides({{&slow, &fast, &middle}, {"a", "b", "c"}, false}, {{&now}, {"n"}, false}, {});
  EXPECT_EQ(kernel_row(pooled).verdict, Verdict::unsure) << kernel_row(pooled).why;
}

TEST(Compare, OneResultTwiceIsRefused) {
  const ResultFile base = file({kRoof, {}}), now = file({kRoof, {}, {}});
  EXPECT_THROW(compared(base, now), Error);
}

TEST(Compare, TheDoctorsFloorHoldsAndItsWarningComes) {
  const ResultFile base = file({kRoof, {}}), now = file({kRoof, {"kernel", Role::candidate, 2100}});
  CompareSettings settings;
  RowNoise noise;
  noise.id = base.results[1].id;
  noise.between_percent = 4.0;
  noise.smallest_effect_percent = 20.0;
  settings.noise[noise.id] = noise;
  const Comparison comparison = compared(base, now, settings);
  EXPECT_EQ(kernel_row(comparison).verdict, Verdict::unsure);
  ASSERT_EQ(comparison.warnings.size(), 1u);
  EXPECT_NE(comparison.warnings[0].find("20 % can be seen"), std::string::npos) << comparison.warnings[0];
}

TEST(Compare, ThresholdsFollowThePatterns) {
  const ResultFile base = file({kRoof, {}}), now = file({kRoof, {"kernel", Role::candidate, 2100}});
  CompareSettings settings;
  settings.gate.rules = {{"*/seq=4096/*", 1.0}, {"ker?el/*", 10.0}, {"*", 1.0}};
  EXPECT_EQ(kernel_row(compared(base, now, settings)).verdict, Verdict::same);
  EXPECT_EQ(threshold_percent(settings.gate, "kernel/seq=4096/x"), 1.0);
  EXPECT_EQ(threshold_percent(settings.gate, "ab"), 1.0);
  EXPECT_EQ(threshold_percent(Gate{}, "anything"), 3.0);
}

TEST(Confirm, FreshFiguresReplaceTheSuspects) {
  const ResultFile base = file({kRoof, {}}), slow = file({kRoof, {"kernel", Role::candidate, 2100}});
  Comparison comparison = compared(base, slow);
  const auto found = suspects(comparison);
  ASSERT_EQ(found.size(), 1u);
  confirm(comparison, found, compared(base, base));
  EXPECT_EQ(kernel_row(comparison).verdict, Verdict::same);
  ASSERT_TRUE(kernel_row(comparison).first_effect);
  EXPECT_NEAR(kernel_row(comparison).first_effect->percent, 5.0, 0.01);

  comparison = compared(base, slow);
  confirm(comparison, found, compared(base, slow));
  EXPECT_EQ(kernel_row(comparison).verdict, Verdict::slower);

  comparison = compared(base, slow);
  confirm(comparison, found, Comparison{});
  EXPECT_EQ(kernel_row(comparison).verdict, Verdict::unsure);
}

TEST(Noise, IsWhatProcessesAndRoundsDifferBy) {
  ResultFile same = file({kRoof, {}});
  const auto rows = row_noise(same, Gate{});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].processes, 5);
  EXPECT_NEAR(rows[0].between_percent, 0.158, 0.001);  // of kWobble
  EXPECT_NEAR(rows[0].within_percent, 0.0, 1e-9);
  // The gate's own floor, 0.2 %, is larger.
  EXPECT_NEAR(rows[0].smallest_effect_percent,
              100 * std::expm1(kSessionShare * std::log(1.03) + smallest_effect(0.002, 5, 1, 0.005, 0.95)),
              1e-9);
}

}  // namespace
}  // namespace fdbench::compare
