// From what workers say to result rows: what counts, what is set aside, what a figure is a figure of.
#include "bench/row_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "backend/fake/fake_backend.h"

namespace fdbench::bench {
namespace {

const Problem kProblem{64, 4, 2, 128, Dtype::bf16, {}};

const Variant* variant(const char* name) {
  return find_variant(fake_variant_table(), name);
}

bool has(const std::vector<std::string>& flags, const char* flag) {
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

class Rows : public testing::Test {
 protected:
  // Items 0, 1, 2: roof, reference, candidate.
  static std::vector<RowRequest> requests() {
    return {{variant("fake_roof"), {}, "default"},
            {variant("fake_reference"), {}, "default"},
            {variant("fake_candidate"), {}, "default"}};
  }
  static RowBuilder builder(MeasureSettings settings = {}) { return {kProblem, requests(), settings}; }

  static void plan_all(RowBuilder& rows) {
    for (int item = 0; item < 3; ++item) {
      rows.take(ItemPlanned{item, LaunchPlan{}, 5.0});
      if (item > 0) rows.take(ItemChecked{item, Accuracy{1e-3, 1e-2, {}, "fake_oracle"}});
    }
  }
  static void round(RowBuilder& rows, int number, std::vector<double> ns, double mhz = 0.0) {
    RoundDone done;
    done.round = number;
    for (std::size_t i = 0; i < ns.size(); ++i) {
      done.items.push_back(static_cast<int>(i));
      done.ns.push_back(ns[i]);
      done.sm_mhz.push_back(mhz);
      done.void_samples.push_back(0);
    }
    rows.take(done);
  }
  static std::map<std::string, ResultRecord> by_name(const RowBuilder& rows) {
    std::map<std::string, ResultRecord> found;
    for (ResultRecord& record : rows.records()) found[record.variant] = std::move(record);
    return found;
  }
};

TEST_F(Rows, FiguresOfOneProcess) {
  RowBuilder rows = builder();
  rows.begin_attempt(0);
  plan_all(rows);
  // Median 4, 20 and 10; in every round the candidate takes half the reference's time.
  for (int r = 0; r < 7; ++r) round(rows, r, {4.0, 17.0 + r, (17.0 + r) / 2.0});
  rows.take(WorkDone{"converged", 0.0, {}});
  auto found = by_name(rows);
  ASSERT_EQ(found.size(), 3u);
  const ResultRecord& candidate = found["fake_candidate"];
  ASSERT_TRUE(candidate.time.has_value());
  EXPECT_EQ(candidate.status, Status::ok);
  EXPECT_EQ(candidate.id, "fake_candidate/seq=64/heads=4/kv_heads=2/dim=128/bf16/default/cold/events");
  EXPECT_EQ(candidate.time->n, 7);
  EXPECT_EQ(candidate.time->median, 10.0);
  EXPECT_EQ(candidate.time->min, 8.5);
  EXPECT_EQ(candidate.time->max, 11.5);
  EXPECT_EQ(candidate.time->stop, "converged");
  ASSERT_TRUE(candidate.time->ci95.has_value());
  EXPECT_EQ(candidate.time->ci95->lo, 8.5);  // of seven the extremes
  EXPECT_EQ(candidate.time->ci95->hi, 11.5);
  // Q and O 4 x 128, K and V 64 x 2 x 128, two bytes each.
  EXPECT_EQ(candidate.bytes, 2 * 2 * (4 * 128) + 2 * 2 * (64 * 2 * 128));
  EXPECT_DOUBLE_EQ(*candidate.bytes_per_s, static_cast<double>(candidate.bytes) / 10e-9);
  // The ratios are the rounds', not the medians'.
  EXPECT_EQ(*candidate.speedup, 2.0);
  EXPECT_EQ(candidate.speedup_ci95->lo, 2.0);
  EXPECT_EQ(candidate.speedup_ci95->hi, 2.0);
  EXPECT_DOUBLE_EQ(*candidate.roof_share, 0.4);
  EXPECT_EQ(*found["fake_reference"].speedup, 1.0);
  EXPECT_EQ(*found["fake_roof"].roof_share, 1.0);
  EXPECT_EQ(*found["fake_roof"].speedup, 5.0);
  EXPECT_TRUE(candidate.flags.empty());
}

TEST_F(Rows, RatiosNeverClaimMoreThanTheTimer) {
  RowBuilder rows = builder();
  rows.begin_attempt(0);
  plan_all(rows);
  for (int r = 0; r < 6; ++r) round(rows, r, {100.0, 200.0, 100.0});
  rows.take(WorkDone{"converged", 10.0, {}});
  const ResultRecord candidate = by_name(rows)["fake_candidate"];
  EXPECT_EQ(candidate.time->ci95->hi - candidate.time->ci95->lo, 10.0);
  // r step (1/a + 1/b) = 2 x 10 x (1/200 + 1/100).
  EXPECT_DOUBLE_EQ(candidate.speedup_ci95->hi - candidate.speedup_ci95->lo, 0.3);
}

TEST_F(Rows, WhoWasInSlowRoundsAloneHasThem) {
  RowBuilder rows = builder();
  rows.begin_attempt(0);
  plan_all(rows);
  for (int r = 0; r < 2; ++r) rows.take(RoundDone{r, {1}, {40.0}, {1200.0}, {0}});
  for (int r = 2; r < 9; ++r) rows.take(RoundDone{r, {2}, {20.0}, {1980.0}, {0}});
  rows.take(WorkDone{"fixed_rounds", 0.0, {}});
  auto found = by_name(rows);
  ASSERT_TRUE(found["fake_reference"].time);
  EXPECT_EQ(found["fake_reference"].time->n, 2);
  EXPECT_EQ(found["fake_reference"].time->set_aside, 0);
  EXPECT_TRUE(has(found["fake_reference"].flags, "throttled"));
  EXPECT_FALSE(has(found["fake_candidate"].flags, "throttled"));
}

TEST_F(Rows, SlowRoundsAreSetAsideOfAll) {
  RowBuilder rows = builder();
  rows.begin_attempt(0);
  plan_all(rows);
  for (int r = 0; r < 8; ++r) {
    const bool slow = r == 2 || r == 5;
    RoundDone done{
        r, {0, 1, 2}, {10.0, 40.0, slow ? 90.0 : 20.0}, {1980.0, slow ? 900.0 : 1980.0, 0.0}, {0, 1, 2}};
    rows.take(done);
  }
  rows.take(WorkDone{"converged", 0.0, {}});
  for (const auto& [name, record] : by_name(rows)) {
    EXPECT_EQ(record.time->n, 6) << name;
    EXPECT_EQ(record.time->set_aside, 2) << name;
    ASSERT_EQ(record.time->samples.size(), 8u);
    for (std::size_t r = 0; r < 8; ++r) EXPECT_EQ(record.time->samples[r].set_aside, r == 2 || r == 5);
    EXPECT_FALSE(has(record.flags, "throttled"));
  }
  const ResultRecord candidate = by_name(rows)["fake_candidate"];
  EXPECT_EQ(candidate.time->max, 20.0);
  EXPECT_EQ(*candidate.speedup, 2.0);
  EXPECT_EQ(candidate.time->void_samples, 16);
}

TEST_F(Rows, ThrottledWhereTooFewWouldStay) {
  RowBuilder rows = builder();
  rows.begin_attempt(0);
  plan_all(rows);
  for (int r = 0; r < 8; ++r) round(rows, r, {10.0, 40.0, 20.0}, r < 5 ? 1980.0 : 1200.0);
  rows.take(WorkDone{"fixed_rounds", 0.0, {}});
  for (const auto& [name, record] : by_name(rows)) {
    EXPECT_EQ(record.time->n, 8);
    EXPECT_EQ(record.time->set_aside, 0);
    EXPECT_TRUE(has(record.flags, "throttled"));
  }
}

TEST_F(Rows, EachProcessHasItsOwnBestClock) {
  RowBuilder rows = builder();
  for (int process = 0; process < 2; ++process) {
    rows.begin_attempt(process);
    plan_all(rows);
    // The second process runs at a lower clock throughout: nothing in it is slow.
    for (int r = 0; r < 6; ++r) round(rows, r, {10.0, 40.0, 20.0}, process == 0 ? 1980.0 : 1200.0);
    rows.take(WorkDone{"fixed_rounds", 0.0, {}});
  }
  for (const auto& [name, record] : by_name(rows)) {
    EXPECT_EQ(record.time->n, 12);
    EXPECT_EQ(record.time->set_aside, 0);
  }
}

TEST_F(Rows, FewRounds) {
  RowBuilder rows = builder();
  rows.begin_attempt(0);
  plan_all(rows);
  for (int r = 0; r < 5; ++r) round(rows, r, {10.0, 40.0, 20.0});
  rows.take(WorkDone{"fixed_rounds", 0.0, {"launches_batched"}});
  const ResultRecord candidate = by_name(rows)["fake_candidate"];
  EXPECT_FALSE(candidate.time->ci95.has_value());
  EXPECT_EQ(candidate.flags, (std::vector<std::string>{"launches_batched", "few_rounds"}));
}

TEST_F(Rows, AboveTheRoofOnlyWhereBothIntervalsSaySo) {
  for (const bool overlapping : {false, true}) {
    RowBuilder rows = builder();
    rows.begin_attempt(0);
    plan_all(rows);
    for (int r = 0; r < 6; ++r) {
      const double drift = overlapping ? 2.0 * r : 0.0;
      round(rows, r, {10.0 + drift, 40.0, 9.0 + drift});
    }
    rows.take(WorkDone{"converged", 0.0, {}});
    auto found = by_name(rows);
    EXPECT_GT(found["fake_candidate"].roof_share_ci95->lo, 1.0);
    EXPECT_EQ(has(found["fake_candidate"].flags, "above_roof"), !overlapping);
    EXPECT_FALSE(has(found["fake_roof"].flags, "above_roof"));
  }
}

TEST_F(Rows, ProcessesArePooledAndPairedWithin) {
  RowBuilder rows = builder();
  // The second process is three times as slow, all alike: ratios don't see it, times do.
  for (int process = 0; process < 2; ++process) {
    rows.begin_attempt(process);
    plan_all(rows);
    for (int r = 0; r < 4; ++r)
      round(rows, r, process == 0 ? std::vector{10.0, 40.0, 20.0} : std::vector{30.0, 120.0, 60.0});
    rows.take(WorkDone{process == 0 ? "max_time" : "converged", 0.0, {process == 0 ? "a" : "b", "c"}});
  }
  const ResultRecord candidate = by_name(rows)["fake_candidate"];
  EXPECT_EQ(candidate.time->n, 8);
  EXPECT_EQ(candidate.time->median, 40.0);
  EXPECT_EQ(*candidate.speedup, 2.0);
  EXPECT_EQ(candidate.speedup_ci95->lo, 2.0);
  ASSERT_TRUE(candidate.time->ci95.has_value());
  EXPECT_LE(candidate.time->ci95->lo, 20.0);  // what another process would measure is not known better
  EXPECT_GE(candidate.time->ci95->hi, 60.0);
  EXPECT_EQ(candidate.time->stop, "max_time");  // the worse of the two
  EXPECT_EQ(candidate.flags, (std::vector<std::string>{"a", "c", "b"}));
  EXPECT_EQ(candidate.time->samples.back().process, 1);
  EXPECT_EQ(candidate.time->samples.back().round, 3);
}

TEST_F(Rows, ADroppedAttemptTakesItsSamplesAlong) {
  RowBuilder rows = builder();
  rows.begin_attempt(0);
  plan_all(rows);
  for (int r = 0; r < 2; ++r) round(rows, r, {10.0, 40.0, 20.0});
  rows.take(WorkDone{"fixed_rounds", 0.0, {}});
  rows.begin_attempt(1);
  plan_all(rows);
  for (int r = 0; r < 2; ++r) round(rows, r, {999.0, 999.0, 999.0});
  rows.end_item(2, Status::failed, "killed by signal 11");
  rows.drop_attempt();
  rows.begin_attempt(1);
  for (int r = 0; r < 2; ++r) round(rows, r, {11.0, 41.0});
  rows.take(WorkDone{"fixed_rounds", 0.0, {}});
  auto found = by_name(rows);
  EXPECT_EQ(found["fake_roof"].time->n, 4);
  EXPECT_EQ(found["fake_roof"].time->max, 11.0);
  EXPECT_EQ(found["fake_reference"].time->max, 41.0);
  // The culprit fails for good, and no time of it is believed.
  EXPECT_EQ(found["fake_candidate"].status, Status::failed);
  EXPECT_EQ(found["fake_candidate"].reason, "killed by signal 11");
  EXPECT_FALSE(found["fake_candidate"].time.has_value());
  EXPECT_FALSE(found["fake_candidate"].speedup.has_value());
  EXPECT_TRUE(found["fake_candidate"].plan.has_value());
}

TEST_F(Rows, WhatARowEndedWithFirstStays) {
  RowBuilder rows = builder();
  rows.begin_attempt(0);
  rows.take(ItemEnded{2, Status::incorrect, "wrong"});
  rows.end_item(2, Status::failed, "died of it");
  EXPECT_TRUE(rows.ended(2));
  EXPECT_FALSE(rows.ended(1));
  const ResultRecord candidate = by_name(rows)["fake_candidate"];
  EXPECT_EQ(candidate.status, Status::incorrect);
  EXPECT_EQ(candidate.reason, "wrong");
}

TEST_F(Rows, ARowThatFailedIsNobodysBase) {
  RowBuilder rows = builder();
  rows.begin_attempt(0);
  plan_all(rows);
  for (int r = 0; r < 6; ++r) round(rows, r, {10.0, 40.0, 20.0});
  rows.take(ItemEnded{1, Status::incorrect, "after measuring: wrong"});
  rows.take(WorkDone{"converged", 0.0, {}});
  auto found = by_name(rows);
  EXPECT_FALSE(found["fake_reference"].time.has_value());
  EXPECT_FALSE(found["fake_candidate"].speedup.has_value());
  EXPECT_EQ(*found["fake_candidate"].roof_share, 0.5);
}

TEST_F(Rows, ASweptRoofIsNobodysBase) {
  TuningPoint point;
  point.set("chunk", 4);
  RowBuilder rows(kProblem, {{variant("fake_roof"), {}, "default"}, {variant("fake_roof"), point, "flag"}},
                  {});
  rows.begin_attempt(0);
  for (int item = 0; item < 2; ++item) rows.take(ItemPlanned{item, LaunchPlan{}, 5.0});
  for (int r = 0; r < 6; ++r) round(rows, r, {10.0, 20.0});
  rows.take(WorkDone{"converged", 0.0, {}});
  const auto records = rows.records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(*records[0].roof_share, 1.0);
  EXPECT_EQ(*records[1].roof_share, 0.5);
  EXPECT_EQ(records[1].source, "flag");
  EXPECT_EQ(records[1].id, "fake_roof/seq=64/heads=4/kv_heads=2/dim=128/bf16/chunk=4/cold/events");
}

TEST_F(Rows, InterruptedRowsAreKeptAndSaySo) {
  RowBuilder rows = builder();
  rows.begin_attempt(0);
  plan_all(rows);
  EXPECT_TRUE(rows.records().empty());  // nothing was measured yet
  round(rows, 0, {10.0, 40.0, 20.0});
  // The worker was killed before it could say why it stopped.
  auto found = by_name(rows);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found["fake_candidate"].time->stop, "interrupted");
  rows.take(WorkDone{"interrupted", 0.0, {}});
  EXPECT_EQ(by_name(rows)["fake_candidate"].time->stop, "interrupted");
}

TEST_F(Rows, CheckedOnly) {
  MeasureSettings settings;
  settings.measure = false;
  RowBuilder rows = builder(settings);
  rows.begin_attempt(0);
  rows.take(ItemPlanned{0, LaunchPlan{}, 5.0});
  rows.take(ItemPlanned{1, LaunchPlan{}, 5.0});
  rows.take(ItemPlanned{2, LaunchPlan{}, 5.0});
  rows.take(ItemChecked{1, Accuracy{1e-3, 1e-2, {}, "fake_oracle"}});
  // The candidate was not checked: no row. The roof has nothing to check.
  auto found = by_name(rows);
  EXPECT_EQ(found.count("fake_candidate"), 0u);
  EXPECT_EQ(found["fake_reference"].accuracy->rel_l2, 1e-3);
  EXPECT_EQ(found["fake_reference"].time.has_value(), false);
  EXPECT_EQ(found.count("fake_roof"), 1u);
}

TEST_F(Rows, UnsupportedNeedsNoMeasuring) {
  RowBuilder rows = builder();
  rows.begin_attempt(0);
  rows.take(ItemEnded{2, Status::unsupported, "dim 128 is too much"});
  rows.take(WorkDone{});
  const auto records = rows.records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].status, Status::unsupported);
  EXPECT_FALSE(records[0].plan.has_value());
}

TEST_F(Rows, TheRuleThatChoseIsTheSource) {
  RowBuilder rows = builder();
  rows.begin_attempt(0);
  LaunchPlan plan;
  plan.rule = "seed";
  rows.take(ItemPlanned{2, plan, 5.0});
  round(rows, 0, {10.0, 40.0, 20.0});
  EXPECT_EQ(by_name(rows)["fake_candidate"].source, "rule:seed");
}

TEST_F(Rows, TimesOfNothingDivideNothing) {
  RowBuilder rows = builder();
  rows.begin_attempt(0);
  plan_all(rows);
  for (int r = 0; r < 6; ++r) round(rows, r, {0.0, 40.0, 0.0});
  rows.take(WorkDone{"converged", 1.0, {}});
  auto found = by_name(rows);
  EXPECT_FALSE(found["fake_candidate"].bytes_per_s.has_value());
  EXPECT_FALSE(found["fake_candidate"].speedup.has_value());
  EXPECT_EQ(*found["fake_reference"].roof_share, 0.0);
}

TEST_F(Rows, ItemsThatDoNotExistAreRefused) {
  RowBuilder rows = builder();
  rows.begin_attempt(0);
  EXPECT_THROW(rows.take(ItemPlanned{3, LaunchPlan{}, 5.0}), std::out_of_range);
  EXPECT_THROW(rows.take(ItemChecked{-1, Accuracy{}}), std::out_of_range);
}

}  // namespace
}  // namespace fdbench::bench
