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
  outcome.median_ns = {100.0, 100.0, 100.0};
  outcome.winner = Winner{};
  outcome.winner->point = plan;
  outcome.winner->ties = {plan};
  outcome.winner->ns = 100.0;
  return outcome;
}

// ns(point, round), the rounds numbered over all batches.
class Scripted : public Measurer {
 public:
  explicit Scripted(std::function<double(std::size_t, int)> ns) : ns_(std::move(ns)) {}
  Batch measure(std::span<const std::size_t> points, int rounds) override {
    Batch batch;
    for (int r = 0; r < rounds; ++r) batch.rounds.push_back(next_ + r);
    for (const std::size_t i : points) {
      auto& ns = batch.ns.emplace_back();
      for (const int round : batch.rounds) ns.push_back(ns_(i, round));
      batch.failed.emplace_back();
    }
    next_ += rounds;
    batch.cost_s = 0.5;
    asked.emplace_back(points.begin(), points.end());
    batch.stop = asked.size() == stop_after;
    return batch;
  }
  std::vector<std::vector<std::size_t>> asked;
  std::size_t stop_after = 0;

 private:
  std::function<double(std::size_t, int)> ns_;
  int next_ = 0;
};

TEST(ProfileEntry, GainsAreOverTheOwnPlanAndEveryRules) {
  SearchSpace space = three();
  SearchOutcome outcome = found(2);
  Scripted measurer([](std::size_t i, int) { return i == 0 ? 120.0 : i == 1 ? 105.0 : 100.0; });
  outcome.median_ns = {120.0, 105.0, 100.0};
  space.points[2].plan.isa = "AVX2";
  ProfileEntry entry = entry_of(space, outcome, {});
  EXPECT_EQ(entry.isa, "AVX2");
  EXPECT_EQ(entry.key.bucket, seq_bucket(8192));
  EXPECT_EQ(entry.workspace_bytes, 2000);
  const Gains gains = add_gains(space, outcome, measurer, entry);
  EXPECT_EQ(gains.plan, 2u);
  EXPECT_FALSE(gains.stopped);
  EXPECT_DOUBLE_EQ(gains.cost_s, 0.5) << "of what decides";
  EXPECT_EQ(measurer.asked.size(), 2u) << "some rounds decide, others are kept";
  EXPECT_EQ(entry.samples, 2 * kGainRounds) << "the rule's and the search's";
  ASSERT_EQ(entry.gains.size(), 3u);
  EXPECT_EQ(entry.gains[0].over, "default");
  EXPECT_NEAR(entry.gains[0].gain, 0.2, 1e-12);
  EXPECT_NEAR(entry.gains[1].gain, 0.05, 1e-12);
  EXPECT_EQ(entry.gains[2].over, "rule:xqa");
  ASSERT_TRUE(entry.gains[0].ci95);
  EXPECT_DOUBLE_EQ(entry.ns, 100.0) << "of the search's scoring rounds, which chose nothing either";
}

TEST(ProfileEntry, AKnownPlanThatIsShownToBeFasterIsTakenAndScoredByOtherRounds) {
  const SearchSpace space = three();
  const SearchOutcome outcome = found(2);
  // The rule's plan is lucky while it is chosen.
  Scripted measurer([](std::size_t i, int round) {
    if (i == 0) return 130.0;
    return i == 1 ? (round < kGainRounds ? 60.0 : 96.0) : 100.0;
  });
  ProfileEntry entry = entry_of(space, outcome, {});
  EXPECT_EQ(add_gains(space, outcome, measurer, entry).plan, 1u);
  EXPECT_EQ(entry.tuning.get("splits"), 16);
  EXPECT_EQ(entry.splits, 16);
  ASSERT_TRUE(entry.runner_up);
  EXPECT_EQ(entry.runner_up->get("splits"), 20);
  EXPECT_TRUE(entry.ties.empty());
  EXPECT_DOUBLE_EQ(entry.ns, 96.0);
  EXPECT_NEAR(entry.margin, 100.0 / 96.0 - 1.0, 1e-12);
  ASSERT_TRUE(entry.margin_ci95);
  EXPECT_EQ(entry.won, 1.0);
  EXPECT_EQ(entry.choosing_rounds, kGainRounds);
  EXPECT_EQ(entry.scoring_rounds, kGainRounds);
  for (const ProfileGain& gain : entry.gains) {
    EXPECT_NEAR(gain.gain, gain.over == "default" ? 130.0 / 96.0 - 1.0 : 0.0, 1e-12) << gain.over;
  }
}

TEST(ProfileEntry, TheOwnPlanStaysUnlessItIsShownToBeSlower) {
  const SearchSpace space = three();
  const SearchOutcome outcome = found(2);
  // By median 1 % slower, now faster and now slower.
  Scripted even([](std::size_t i, int round) { return i == 2 ? 100.0 : round % 3 == 0 ? 97.0 : 101.0; });
  ProfileEntry entry = entry_of(space, outcome, {});
  EXPECT_EQ(add_gains(space, outcome, even, entry).plan, 0u);
  EXPECT_TRUE(entry.tuning.empty());
  ASSERT_EQ(entry.ties.size(), 1u);
  EXPECT_EQ(entry.ties[0].get("splits"), 20);
  EXPECT_NEAR(entry.won.value(), 7.0 / 20.0, 0.06) << "of the rounds after those that chose";

  // Open by more than a tie, and then for good.
  Scripted open([](std::size_t i, int round) { return i == 2 ? 100.0 : round % 5 < 2 ? 95.0 : 103.0; });
  ProfileEntry kept = entry_of(space, outcome, {});
  EXPECT_EQ(add_gains(space, outcome, open, kept).plan, 0u);
  ASSERT_EQ(open.asked.size(), 3u);
  EXPECT_EQ(open.asked[1], (std::vector<std::size_t>{2, 0}));
  EXPECT_EQ(kept.choosing_rounds, 2 * kGainRounds);

  Scripted slower([](std::size_t i, int) { return i == 2 ? 100.0 : 101.0; });
  ProfileEntry tuned = entry_of(space, outcome, {});
  EXPECT_EQ(add_gains(space, outcome, slower, tuned).plan, 2u);
  EXPECT_EQ(tuned.tuning.get("splits"), 20);
}

// Fast while it was chosen, slower than the variant's own ever after.
TEST(ProfileEntry, TheOwnPlanComesBackWhereTheScoringRoundsShowThatItIsFaster) {
  const SearchSpace space = three();
  Scripted lucky([](std::size_t i, int round) {
    if (i == 1) return 120.0;
    return i == 0 ? 100.0 : round < kGainRounds ? 90.0 : 103.0;
  });
  ProfileEntry entry = entry_of(space, found(2), {});
  EXPECT_EQ(add_gains(space, found(2), lucky, entry).plan, 0u);
  EXPECT_TRUE(entry.tuning.empty());
  EXPECT_EQ(entry.splits, 8);
  ASSERT_EQ(lucky.asked.size(), 3u);
  EXPECT_EQ(lucky.asked[2], (std::vector<std::size_t>{0, 2, 1}));
  EXPECT_DOUBLE_EQ(entry.ns, 100.0);
  EXPECT_NEAR(entry.margin, 0.03, 1e-12);
  EXPECT_TRUE(entry.ties.empty());
  EXPECT_EQ(entry.choosing_rounds, 2 * kGainRounds);
  EXPECT_EQ(entry.scoring_rounds, kGainRounds);
  for (const ProfileGain& gain : entry.gains) EXPECT_GE(gain.gain, 0.0) << gain.over;
}

TEST(ProfileEntry, APlanThatTheSearchSawToBeHopelessDecidesNothing) {
  const SearchSpace space = three();
  SearchOutcome outcome = found(2);
  outcome.median_ns = {150.0, 104.0, 100.0};
  Scripted measurer([](std::size_t i, int) { return i == 0 ? 150.0 : i == 1 ? 104.0 : 100.0; });
  ProfileEntry entry = entry_of(space, outcome, {});
  add_gains(space, outcome, measurer, entry);
  EXPECT_EQ(measurer.asked[0], (std::vector<std::size_t>{2, 1}));
  EXPECT_EQ(measurer.asked[1], (std::vector<std::size_t>{2, 0, 1}));
}

TEST(ProfileEntry, SaysSoWhereItWasStopped) {
  const SearchSpace space = three();
  const SearchOutcome outcome = found(2);
  for (const std::size_t after : {1u, 2u}) {
    Scripted measurer([](std::size_t, int) { return 100.0; });
    measurer.stop_after = after;
    ProfileEntry entry = entry_of(space, outcome, {});
    EXPECT_TRUE(add_gains(space, outcome, measurer, entry).stopped);
    EXPECT_TRUE(entry.gains.empty());
  }
}

}  // namespace
}  // namespace fdbench::tune
