#include "tune/profile_entry.h"

#include <gtest/gtest.h>

#include <functional>

namespace fdbench::tune {
namespace {

// Three plans: the variant's own, a rule's, and one of the search alone.
SearchSpace three() {
  SearchSpace space;
  space.problem = {8192, 32, 8, 128, Dtype::bf16, {}};
  for (const std::int64_t splits : {8, 16, 20}) {
    SpacePoint point;
    point.variant = "made";
    if (splits != 8) point.tuning.set("splits", splits);
    point.plan.splits = splits;
    point.plan.scratch_bytes = 100 * splits;
    space.points.push_back(point);
  }
  space.points[0].origins = {"default"};
  space.points[1].origins = {"rule:fa3", "rule:xqa"};
  complete_space(space);
  return space;
}

SearchOutcome found(std::size_t plan) {
  SearchOutcome outcome;
  outcome.failed.resize(3);
  outcome.winner = Winner{};
  outcome.winner->point = plan;
  outcome.winner->ties = {plan};
  outcome.winner->ns = 100.0;
  return outcome;
}

class Scripted : public Measurer {
 public:
  explicit Scripted(std::function<double(std::size_t)> ns) : ns_(std::move(ns)) {}
  Batch measure(std::span<const std::size_t> points, int rounds) override {
    Batch batch;
    for (int r = 0; r < rounds; ++r) batch.rounds.push_back(r);
    for (const std::size_t i : points) {
      batch.ns.emplace_back(static_cast<std::size_t>(rounds), ns_(i));
      batch.failed.emplace_back();
    }
    ++batches;
    return batch;
  }
  int batches = 0;

 private:
  std::function<double(std::size_t)> ns_;
};

TEST(ProfileEntry, GainsAreOverTheOwnPlanAndEveryRules) {
  const SearchSpace space = three();
  const SearchOutcome outcome = found(2);
  Scripted measurer([](std::size_t i) { return i == 0 ? 120.0 : i == 1 ? 105.0 : 100.0; });
  ProfileEntry entry = entry_of(space, outcome, {});
  EXPECT_EQ(entry.key.bucket, seq_bucket(8192));
  EXPECT_EQ(entry.workspace_bytes, 2000);
  EXPECT_EQ(add_gains(space, outcome, measurer, entry), 2u);
  EXPECT_EQ(measurer.batches, 1);
  ASSERT_EQ(entry.gains.size(), 3u);
  EXPECT_EQ(entry.gains[0].over, "default");
  EXPECT_NEAR(entry.gains[0].gain, 0.2, 1e-12);
  EXPECT_NEAR(entry.gains[1].gain, 0.05, 1e-12);
  EXPECT_EQ(entry.gains[2].over, "rule:xqa");
  ASSERT_TRUE(entry.gains[0].ci95);
}

TEST(ProfileEntry, AKnownPlanThatIsShownToBeFasterIsTaken) {
  const SearchSpace space = three();
  const SearchOutcome outcome = found(2);
  Scripted measurer([](std::size_t i) { return i == 0 ? 80.0 : 100.0; });
  ProfileEntry entry = entry_of(space, outcome, {});
  EXPECT_EQ(add_gains(space, outcome, measurer, entry), 0u);
  EXPECT_EQ(measurer.batches, 2);
  EXPECT_TRUE(entry.tuning.empty());
  EXPECT_EQ(entry.splits, 8);
  ASSERT_TRUE(entry.runner_up);
  EXPECT_EQ(entry.runner_up->get("splits"), 20);
  EXPECT_NEAR(entry.margin, 0.25, 1e-12);
  EXPECT_DOUBLE_EQ(entry.ns, 80.0);
  EXPECT_EQ(entry.gains[0].gain, 0.0) << "the plan is the variant's own";
}

}  // namespace
}  // namespace fdbench::tune
