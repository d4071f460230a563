// What a rule costs: its plan's time over that of the best plan measured.
//
// The best of twenty noisy plans looks faster than it is, and everything held against it slower: so the best
// plan is chosen on one half of the rounds and scored on the other, like all the rest. Rounds go to the
// halves in pairs (0, 1, then 2, 3, ...), since each pair runs its points forwards and backwards. Scored so,
// a regret can come out a little below 0: another plan was as good as the one chosen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/measurement.h"
#include "tune/split_sweep.h"

namespace fdbench::tune {

// What a rule picks of a sweep.
struct Choice {
  std::int64_t splits = 0, chunk = 0;  // 0 where it gives no answer
  std::optional<std::size_t> point;    // of the sweep
  std::string why;                     // there is no point: a sentence without its full stop
};

struct Chooser {
  std::string name;
  std::function<Choice(const SplitSweep&)> choose;
};

Chooser rule_chooser(const rules::NamedSplitRule& rule);
Chooser own_chooser();  // "own": the variant's own plan

struct RuleScore {
  std::string rule;
  Choice choice;
  double ns = 0.0;                 // median over the scoring half; 0 without a point
  double ratio = 0.0;              // over the best plan's, paired by round, median; 0 without a point
  std::optional<Bounds> ratio_ci;  // 95 %; absent below six rounds in the scoring half
  bool best = false;               // not slower, by that interval
};

struct ShapeScore {
  Problem problem;
  std::size_t points = 0;
  std::int64_t best_splits = 0, best_chunk = 0;  // chosen on the choosing half
  double best_ns = 0.0;                          // on the scoring half
  std::size_t choosing_rounds = 0, scoring_rounds = 0;
  std::vector<RuleScore> rules;  // as the choosers
};

// Nothing where the points share fewer than 3 rounds: then one half is empty.
std::optional<ShapeScore> score(const SplitSweep& sweep, std::span<const Chooser> choosers);

struct RuleSummary {
  std::string rule;
  std::size_t shapes = 0;   // scored
  std::size_t refused = 0;  // no answer, or none that the variant or the sweep has
  double geomean = 0.0;     // of the ratios; 0 without a shape
  double worst = 0.0;
  std::optional<Problem> worst_problem;
  std::size_t best = 0;   // shapes where it is not slower than the best plan
  std::string first_why;  // of the first refusal
};

// One a chooser, in the order of the choosers.
std::vector<RuleSummary> summarise(std::span<const ShapeScore> scores);

}  // namespace fdbench::tune
