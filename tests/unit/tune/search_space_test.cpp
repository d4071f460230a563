#include "tune/search_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cuda/detail/split_plan.h"
#include "made_sweep.h"
#include "tune/replay.h"

namespace fdbench::tune {
namespace {

constexpr split::Kernel kKernel{.name = "split_kv_tma", .lowest_cc = 90, .clusters = true, .max_stages = 8};
const Problem kProblem{8192, 32, 8, 128, Dtype::bf16, {}};

Variant tma() {
  Variant variant;
  variant.name = kKernel.name;
  variant.backend = BackendKind::cuda;
  variant.axes = split::kTmaAxes;
  variant.unsupported = [](const Problem&, const DeviceInfo&) -> std::optional<std::string> {
    return std::nullopt;
  };
  variant.plan = [](const Problem& problem, const DeviceInfo& device, const TuningPoint& tuning) {
    return split::plan(kKernel, problem, device, tuning);
  };
  return variant;
}

DeviceInfo gpu() {
  DeviceInfo device = made_gpu();
  device.cooperative_launch = true;
  device.bandwidth_datasheet = 4.8e12;
  return device;
}

SearchSpace space_of(const AxisChoice& axes = {}) {
  const Variant variant = tma();
  const Variant* const variants[] = {&variant};
  return search_space(variants, kProblem, gpu(), standard_rules(), axes);
}

TEST(SearchSpace, HasEveryLaunchOnceAndOnlyWhatFits) {
  const SearchSpace space = space_of();
  EXPECT_GT(space.points.size(), 50u);
  for (std::size_t i = 0; i < space.points.size(); ++i) {
    const SpacePoint& point = space.points[i];
    EXPECT_LE(point.plan.dynamic_smem, gpu().smem_per_block);
    for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(same_launch(point.plan, space.points[j].plan));
    for (const std::size_t n : space.neighbours[i]) {
      const auto& back = space.neighbours[n];
      EXPECT_TRUE(std::find(back.begin(), back.end(), i) != back.end());
    }
    EXPECT_FALSE(space.neighbours[i].empty()) << point.name();
  }
}

TEST(SearchSpace, OneChunkIsOneLaunchHoweverLong) {
  LaunchPlan a, b;
  a.splits = b.splits = 1;
  a.chunk = 128;
  b.chunk = 256;
  EXPECT_TRUE(same_launch(a, b));
  a.splits = b.splits = 2;
  EXPECT_FALSE(same_launch(a, b));
  b.chunk = a.chunk;
  b.splits = 1;
  EXPECT_FALSE(same_launch(a, b));
}

TEST(SearchSpace, StartsAreTheOwnPlanAndTheRules) {
  SearchSpace space = space_of();
  const auto own = space.with_origin("split_kv_tma", "default");
  ASSERT_TRUE(own);
  EXPECT_TRUE(space.points[*own].tuning.empty());
  EXPECT_TRUE(space.with_origin("split_kv_tma", "rule:fa3"));
  EXPECT_LT(space.starts.size(), 16u);
  // The own plan by its long name is the same point.
  TuningPoint longer;
  longer.set("splits", space.points[*own].plan.splits);
  longer.set("stages", space.points[*own].plan.stages);
  EXPECT_EQ(space.find("split_kv_tma", longer), own);
  TuningPoint odd;
  odd.set("splits", 3);
  const auto starts = space.starts.size();
  EXPECT_TRUE(add_start(space, "split_kv_tma", odd, "model"));
  EXPECT_LE(space.starts.size(), starts + 1);
  EXPECT_TRUE(space.with_origin("split_kv_tma", "model"));
  odd.set("splits", 4001);
  EXPECT_FALSE(add_start(space, "split_kv_tma", odd, "model"));
}

TEST(SearchSpace, AxesCanBeNarrowed) {
  const SearchSpace all = space_of(), narrow = space_of({{"stages", {2}}, {"merge", {1}}});
  EXPECT_LT(narrow.points.size(), all.points.size() / 2);
  EXPECT_EQ(narrow.starts.size(), all.starts.size()) << "the rules' plans stay";
}

TEST(SearchSpace, ARowsWordNamesTheOriginsOfItsPoint) {
  SpacePoint point;
  EXPECT_EQ(source_of(point), "default");
  point.tuning.set("splits", 4);
  EXPECT_EQ(source_of(point), "search");
  point.origins = {"near", "rule:fa2", "rule:sm_multiple:2"};
  EXPECT_EQ(source_of(point), "rule:fa2,sm_multiple:2");
  EXPECT_EQ(origins_of(point.tuning, source_of(point)),
            (std::vector<std::string>{"rule:fa2", "rule:sm_multiple:2"}));
  EXPECT_EQ(origins_of({}, "default"), std::vector<std::string>{"default"});
  EXPECT_TRUE(origins_of(point.tuning, "search").empty());
}

std::vector<RecordedShape> recorded(const std::vector<ResultRecord>& rows) {
  return recorded_shapes(rows, made_gpu(), {}, standard_rules());
}

TEST(Replay, FindsTheOptimumOfARecordAndCountsItsCost) {
  std::vector<std::int64_t> splits;
  for (std::int64_t s = 1; s <= 200; ++s) splits.push_back(s);
  auto rows = made_rows(
      kProblem, splits, 40,
      [](std::int64_t s, int) { return 1000.0 + 30.0 * std::abs(static_cast<double>(s - 19)); }, 19);
  auto shapes = recorded(rows);
  ASSERT_EQ(shapes.size(), 1u);
  // The variant's own plan launches what a point does: it is that point.
  EXPECT_EQ(shapes[0].space.points.size(), 200u);
  const auto score = replay(shapes[0], {});
  ASSERT_TRUE(score);
  EXPECT_EQ(score->plan, score->best);
  EXPECT_DOUBLE_EQ(score->ratio, 1.0);
  EXPECT_LT(score->cost_share, 0.1);
  double all = 0.0;
  for (const auto& ns : shapes[0].ns) {
    for (const double one : ns) all += one * 1e-9;
  }
  EXPECT_NEAR(score->exhaustive_s, all / 2.0, 1e-9 * all) << "of the rounds that the search could have";
  const auto exhaustive = replay(shapes[0], {.strategy = Strategy::exhaustive});
  ASSERT_TRUE(exhaustive);
  EXPECT_NEAR(exhaustive->outcome.cost_s, exhaustive->exhaustive_s, 1e-9 * all);
}

TEST(Replay, GivesOutOnlyTheChoosingHalf) {
  auto rows = made_rows(kProblem, {1, 2, 4}, 12, [](std::int64_t, int round) { return 1.0 + round; });
  const auto shapes = recorded(rows);
  Replay measurer(shapes[0]);
  EXPECT_EQ(measurer.rounds(), 6u);
  const std::size_t one[] = {0}, two[] = {0, 1};
  EXPECT_EQ(measurer.measure(one, 2).rounds, (std::vector<int>{0, 1}));
  EXPECT_EQ(measurer.measure(two, 3).rounds, (std::vector<int>{4, 5, 8}));
  EXPECT_EQ(measurer.measure(two, 99).rounds, (std::vector<int>{0, 1, 4, 5, 8, 9}));
}

TEST(Replay, KnowsAFailedPoint) {
  auto rows =
      made_rows(kProblem, {1, 2, 4}, 40, [](std::int64_t s, int) { return 100.0 - static_cast<double>(s); });
  rows[2].status = Status::failed;
  rows[2].reason = "it crashed";
  const auto shapes = recorded(rows);
  const auto score = replay(shapes[0], {.strategy = Strategy::exhaustive});
  ASSERT_TRUE(score);
  EXPECT_EQ(shapes[0].space.points[score->outcome.winner->point].tuning.get("splits"), 2);
  EXPECT_EQ(score->outcome.failed[2], "it crashed");
}

}  // namespace
}  // namespace fdbench::tune
