#include "tune/cost_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "made_sweep.h"
#include "rules/int_math.h"

namespace fdbench::tune {
namespace {

// A made device: what one multiprocessor takes against what the memory gives, and a merge that costs a little
// a split.
double made_ns(const Problem& p, std::int64_t splits) {
  const double tokens = static_cast<double>(rules::ceil_div(p.seq, splits));
  const double waves = static_cast<double>(rules::ceil_div(splits * p.kv_heads, 132));
  const double core = waves * (400.0 + 0.012 * tokens * 4.0 * static_cast<double>(p.dim));
  const double memory = 2.2e-4 * 2.0 * static_cast<double>(p.kv_bytes());
  return 3000.0 + std::max(core, memory) + (splits > 1 ? 1500.0 + 20.0 * static_cast<double>(splits) : 0.0);
}

// A bit of noise that depends on nothing but its arguments; sd about 0.6 %.
double noise(std::int64_t seed) {
  std::uint64_t x = static_cast<std::uint64_t>(seed) * 0x9e3779b97f4a7c15u;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 32;
  return 1.0 + 0.02 * (static_cast<double>(x >> 11) * 0x1p-53 - 0.5);
}

std::vector<SplitSweep> made_sweeps() {
  std::vector<ResultRecord> rows;
  for (const auto& [heads, kv_heads] : {std::pair{32, 32}, {32, 8}, {8, 1}, {16, 2}}) {
    for (const std::int64_t seq : {512, 1000, 2048, 5000, 8192, 20000, 50000, 131072}) {
      const Problem p{seq, heads, kv_heads, 128, Dtype::bf16, {}};
      const auto splits = candidate_splits(seq, kv_heads, 132, true);
      for (auto& row : made_rows(p, splits, 12, [&](std::int64_t s, int r) {
             return made_ns(p, s) * noise(seq * 7919 + kv_heads * 104729 + s * 31 + r);
           }))
        rows.push_back(row);
    }
  }
  return split_sweeps(rows, made_gpu(), "made");
}

const Halves& made_halves() {
  static const Halves kHalves = halves(made_sweeps());
  return kHalves;
}
const CostModel& made_model() {
  static const CostModel kModel = fit_cost_model(made_halves().fit);
  return kModel;
}

TEST(CostModel, ChoosesWellOnShapesItHasNotSeen) {
  std::vector<ShapeScore> scores;
  const std::vector<Chooser> choosers{fitted_chooser(made_model()),
                                      rule_chooser(rules::find_split_rule("fa3")),
                                      rule_chooser(rules::find_split_rule("sm_multiple:1"))};
  for (const SplitSweep& sweep : made_halves().test) {
    const auto shape = score(sweep, choosers);
    ASSERT_TRUE(shape);
    scores.push_back(*shape);
  }
  const auto summary = summarise(scores);
  ASSERT_EQ(summary[0].shapes, 16u);
  EXPECT_LT(summary[0].geomean, 1.02);
  EXPECT_LT(summary[0].geomean, summary[1].geomean);
  EXPECT_LT(summary[0].geomean, summary[2].geomean);
  EXPECT_LT(log_error(made_model(), made_halves().test), 0.05);
}

TEST(CostModel, IsDeterministic) {
  const CostModel again = fit_cost_model(made_halves().fit);
  EXPECT_EQ(again.terms, made_model().terms);
  EXPECT_EQ(again.doublings, made_model().doublings);
}

TEST(CostModel, RefusesWhatItHasNotSeen) {
  const CostModel& model = made_model();
  const Problem inside{4000, 32, 8, 128, Dtype::bf16, {}};
  EXPECT_FALSE(outside(model, inside));
  EXPECT_GE(fitted_splits(model, inside), 1);
  for (const Problem& beyond :
       {Problem{131073, 32, 8, 128, Dtype::bf16, {}}, Problem{100, 32, 8, 128, Dtype::bf16, {}},
        Problem{4000, 64, 64, 128, Dtype::bf16, {}}, Problem{4000, 32, 2, 128, Dtype::bf16, {}},
        Problem{4000, 32, 8, 64, Dtype::bf16, {}}}) {
    EXPECT_TRUE(outside(model, beyond)) << shape_id(beyond);
    EXPECT_EQ(fitted_splits(model, beyond), 0) << shape_id(beyond);
  }
}

TEST(CostModel, ItsChoiceIsACandidateOfLeastTime) {
  const CostModel& model = made_model();
  for (const std::int64_t seq : {600, 4000, 8191, 65536, 130000}) {
    const Problem p{seq, 32, 8, 128, Dtype::bf16, {}};
    const std::int64_t chosen = fitted_splits(model, p);
    bool candidate = false;
    for (const std::int64_t splits : candidate_splits(seq, 8, 132, true)) {
      candidate = candidate || splits == chosen;
      EXPECT_LE(predicted_ns(model, p, chosen), predicted_ns(model, p, splits) * (1.0 + 1e-8));
    }
    EXPECT_TRUE(candidate);
  }
}

TEST(CostModel, SaysWhyItCannotBeFitted) {
  const auto& fit = made_halves().fit;
  EXPECT_THROW(fit_cost_model(std::span(fit).first(3)), std::invalid_argument);
  auto mixed = fit;
  mixed[1].site.device.sms = 26;
  EXPECT_THROW(fit_cost_model(mixed), std::invalid_argument);
  auto odd = fit;
  odd[1].site.base.grid.y = 5;
  EXPECT_THROW(fit_cost_model(odd), std::invalid_argument);
}

TEST(Halves, AreHalvesAndNoTestShapeLiesOutside) {
  const auto all = made_sweeps();
  const Halves both = halves(all);
  EXPECT_EQ(both.fit.size(), all.size() / 2);
  EXPECT_EQ(both.test.size(), all.size() / 2);
  for (const SplitSweep& sweep : both.test) EXPECT_FALSE(outside(made_model(), sweep.site.problem));
  for (const SplitSweep& sweep : both.fit) {
    for (const SplitSweep& other : both.test) EXPECT_FALSE(sweep.site.problem == other.site.problem);
  }
  EXPECT_TRUE(halves({}).fit.empty());
}

}  // namespace
}  // namespace fdbench::tune
