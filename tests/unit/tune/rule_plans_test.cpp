#include "tune/rule_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "cli/variant_table.h"
#include "made_sweep.h"
#include "rules/int_math.h"

namespace fdbench::tune {
namespace {

DeviceInfo some_cpu() {
  DeviceInfo device;
  device.sms = 6;
  device.l1d_bytes = 32768;
  device.core_l2_bytes = 1 << 20;
  return device;
}

const Variant& cpu_split_kv() {
  const Variant* variant = find_variant(variant_table(), "cpu_split_kv");
  EXPECT_NE(variant, nullptr);
  return *variant;
}

TEST(SplitAxis, SplitsBeforeChunk) {
  const Axis chunk[] = {{"stages", ""}, {"chunk", ""}};
  const Axis both[] = {{"chunk", ""}, {"splits", ""}};
  const Axis neither[] = {{"stages", ""}};
  EXPECT_EQ(split_axis(chunk), SplitAxis::chunk);
  EXPECT_EQ(split_axis(both), SplitAxis::splits);
  EXPECT_EQ(split_axis(neither), std::nullopt);
}

TEST(RulePoints, AChunkAsItIsThenInWholeTiles) {
  Site site{{1000, 8, 8, 128, Dtype::bf16, {}},
            made_gpu(),
            SplitAxis::chunk,
            made_plan({1000, 8, 8, 128, Dtype::bf16, {}}, 4)};
  auto points = rule_points(site, rules::split_by_chunk(1000, 200));
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].get("chunk"), 200);
  EXPECT_EQ(points[1].get("chunk"), 256);
  EXPECT_EQ(rule_points(site, rules::split_by_chunk(1000, 256)).size(), 1u);
  site.axis = SplitAxis::splits;
  points = rule_points(site, rules::split_by_chunk(1000, 200));
  ASSERT_EQ(points.size(), 1u);
  EXPECT_EQ(points[0].get("splits"), 5);
  EXPECT_TRUE(rule_points(site, {.error = "none"}).empty());
}

TEST(RuleInput, OnlyLlamaCppIsToldTheOccupancyOfAGpuKernel) {
  Site site{{4096, 32, 8, 128, Dtype::bf16, {}},
            made_gpu(),
            SplitAxis::splits,
            made_plan({4096, 32, 8, 128, Dtype::bf16, {}}, 16)};
  site.base.dynamic_smem = 65536;
  EXPECT_EQ(site.ctas_per_split(), 8);
  const auto asked = [&](const char* name) { return rule_input(site, rules::find_split_rule(name)); };
  EXPECT_EQ(asked("llama_cpp").occupancy, 3);  // 228 KB hold three times 65 KB
  EXPECT_EQ(asked("flashinfer").occupancy, std::nullopt);
  EXPECT_EQ(asked("fa3").ctas_per_split, 8);
  site.device = some_cpu();
  EXPECT_EQ(asked("flashinfer").occupancy, 1);
}

// A variant that shares a KV head out to two CTAs only where nothing is asked.
PlanResult two_blocks_of_its_own(const Problem& problem, const DeviceInfo&, const TuningPoint& tuning) {
  LaunchPlan plan = made_plan(problem, tuning.get("splits").value_or(4));
  plan.grid.z = tuning.empty() ? 2 : 1;
  return plan;
}

TEST(SiteOf, IsHowTheVariantLaunchesWhatARuleAnswers) {
  const Problem problem{4096, 32, 8, 128, Dtype::bf16, {}};
  constexpr Axis axes[] = {{"splits", ""}};
  Variant variant = cpu_split_kv();
  variant.unsupported = [](const Problem&, const DeviceInfo&) -> std::optional<std::string> {
    return std::nullopt;
  };
  variant.plan = two_blocks_of_its_own;
  variant.axes = axes;
  const LaunchPlan own = std::get<LaunchPlan>(two_blocks_of_its_own(problem, made_gpu(), {}));
  const Site site = site_of(variant, problem, made_gpu(), SplitAxis::splits, own);
  EXPECT_EQ(site.base.splits, own.splits);
  EXPECT_EQ(site.base.grid.z, 1);
  EXPECT_EQ(2 * site.ctas_per_split(), (Site{problem, made_gpu(), SplitAxis::splits, own}.ctas_per_split()));
  // With what is asked refused, its own plan.
  variant.plan = [](const Problem& p, const DeviceInfo& device, const TuningPoint& tuning) -> PlanResult {
    if (!tuning.empty()) return Unsupported{"nothing may be asked"};
    return two_blocks_of_its_own(p, device, tuning);
  };
  EXPECT_EQ(site_of(variant, problem, made_gpu(), SplitAxis::splits, own).base.grid.z, 2);
}

TEST(CandidateSplits, AscendFromOneWithinTheGrid) {
  for (const std::int64_t seq : {0, 1, 31, 32, 33, 1000, 8192, 131072}) {
    for (const std::int64_t ctas : {1, 2, 3, 8, 32, 1000}) {
      for (const std::int64_t sms : {1, 2, 26, 132}) {
        for (const bool gpu : {false, true}) {
          const auto splits = candidate_splits(seq, ctas, sms, gpu);
          ASSERT_FALSE(splits.empty());
          EXPECT_EQ(splits.front(), 1);
          EXPECT_EQ(std::set<std::int64_t>(splits.begin(), splits.end()).size(), splits.size());
          EXPECT_TRUE(std::is_sorted(splits.begin(), splits.end()));
          if (splits.back() > 1) {
            EXPECT_LE(splits.back() * ctas, sms * (gpu ? 4 : 16));
            EXPECT_LE(splits.back(), rules::ceil_div(seq, 32));
          }
        }
      }
    }
  }
  EXPECT_EQ(candidate_splits(8192, 8, 132, true),
            (std::vector<std::int64_t>{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 33, 48, 64, 66}));
}

TEST(CandidateSplits, DoNotOverflow) {
  const auto splits = candidate_splits(std::int64_t{1} << 40, 1, 65536, true);
  EXPECT_EQ(splits.back(), 4 * 65536);
}

TEST(StandardRules, AreAllFound) {
  std::set<std::string> names;
  for (const rules::NamedSplitRule& rule : standard_rules()) {
    EXPECT_TRUE(rule.ok()) << rule.error;
    names.insert(std::string(rule.rule->name));
  }
  for (const rules::SplitRule& rule : rules::split_rules())
    EXPECT_TRUE(names.count(std::string(rule.name))) << rule.name;
}

TEST(PointsToMeasure, EveryRuleAndCandidateOnceAndAllCanRun) {
  const auto rules = standard_rules();
  const Variant& variant = cpu_split_kv();
  for (const std::int64_t seq : {1, 100, 5000, 131072}) {
    const Problem problem{seq, 32, 8, 128, Dtype::bf16, {}};
    const auto points = points_to_measure(variant, problem, some_cpu(), rules);
    ASSERT_GT(points.size(), 1u);
    EXPECT_TRUE(points.front().tuning.empty());
    EXPECT_EQ(points.front().source, "default");
    std::set<std::string> seen;
    std::string sources;
    for (const PlannedPoint& point : points) {
      EXPECT_TRUE(seen.insert(point.tuning.id()).second) << point.tuning.id();
      EXPECT_TRUE(std::holds_alternative<LaunchPlan>(make_plan(variant, problem, some_cpu(), point.tuning)));
      sources += point.source + ",";
    }
    for (const auto& rule : rules) {
      const Site site{problem, some_cpu(), SplitAxis::chunk,
                      std::get<LaunchPlan>(make_plan(variant, problem, some_cpu(), {}))};
      if (!rule(rule_input(site, rule)).ok()) continue;
      EXPECT_NE(sources.find(rule.name()), std::string::npos) << rule.name() << " at " << seq;
    }
  }
}

TEST(PointsToMeasure, OnlyTheOwnPointWhereThereIsNothingToSplit) {
  const Variant* variant = find_variant(variant_table(), "cpu_three_pass");
  ASSERT_NE(variant, nullptr);
  EXPECT_EQ(
      points_to_measure(*variant, {1024, 8, 8, 128, Dtype::bf16, {}}, some_cpu(), standard_rules()).size(),
      1u);
}

}  // namespace
}  // namespace fdbench::tune
