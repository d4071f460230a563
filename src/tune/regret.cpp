#include "tune/regret.h"

#include <map>
#include <utility>

#include "stats/resampling.h"
#include "stats/summary.h"

namespace fdbench::tune {

namespace {

using Round = std::pair<int, int>;  // process, round
using Times = std::map<Round, double>;

bool is_scoring(const Round& round) {
  return (round.second / 2) % 2 == 1;
}

// The rounds that all points have.
std::vector<Times> common_rounds(const SplitSweep& sweep) {
  std::map<Round, std::size_t> seen;
  for (const SplitTimes& point : sweep.points) {
    for (const Sample& sample : point.samples) ++seen[{sample.process, sample.round}];
  }
  std::vector<Times> times(sweep.points.size());
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    for (const Sample& sample : sweep.points[i].samples) {
      const Round round{sample.process, sample.round};
      if (seen[round] == sweep.points.size()) times[i][round] = sample.ns;
    }
  }
  return times;
}

std::vector<double> half(const Times& times, bool scoring) {
  std::vector<double> values;
  for (const auto& [round, ns] : times) {
    if (is_scoring(round) == scoring) values.push_back(ns);
  }
  return values;
}

void score_point(const Times& best, const Times& own, RuleScore& score) {
  std::map<int, std::vector<double>> ratios;
  for (const auto& [round, ns] : own) {
    if (is_scoring(round)) ratios[round.first].push_back(ns / best.at(round));
  }
  std::vector<std::vector<double>> series;
  for (auto& [process, values] : ratios) series.push_back(std::move(values));
  const stats::Summary summary = stats::summarise_processes(series, 0.0);
  score.ns = stats::median(half(own, true));
  score.ratio = summary.median;
  if (summary.ci95) {
    score.ratio_ci = Bounds{summary.ci95->lo, summary.ci95->hi};
    score.best = summary.ci95->lo <= 1.0;
  }
}

}  // namespace

Chooser rule_chooser(const rules::NamedSplitRule& rule) {
  return {rule.name(), [rule](const SplitSweep& sweep) {
            const rules::Split answer = rule(rule_input(sweep.site, rule));
            if (!answer.ok()) return Choice{0, 0, std::nullopt, answer.error};
            Choice choice{answer.splits, answer.chunk, sweep.find(answer), {}};
            if (!choice.point) {
              choice.why = std::to_string(answer.splits) + " splits of " + std::to_string(answer.chunk) +
                           " tokens are not among the points measured";
            }
            return choice;
          }};
}

Chooser own_chooser() {
  return {"own", [](const SplitSweep& sweep) {
            const auto point = sweep.own();
            if (!point) return Choice{0, 0, std::nullopt, "the variant's own plan was not measured"};
            const LaunchPlan& plan = sweep.points[*point].plan;
            return Choice{plan.splits, plan.chunk, point, {}};
          }};
}

std::optional<ShapeScore> score(const SplitSweep& sweep, std::span<const Chooser> choosers) {
  const std::vector<Times> times = common_rounds(sweep);
  ShapeScore shape;
  shape.problem = sweep.site.problem;
  shape.points = sweep.points.size();
  shape.choosing_rounds = half(times.front(), false).size();
  shape.scoring_rounds = half(times.front(), true).size();
  if (shape.choosing_rounds == 0 || shape.scoring_rounds == 0) return std::nullopt;
  std::size_t best = 0;
  for (std::size_t i = 1; i < times.size(); ++i) {
    if (stats::median(half(times[i], false)) < stats::median(half(times[best], false))) best = i;
  }
  shape.best_splits = sweep.points[best].plan.splits;
  shape.best_chunk = sweep.points[best].plan.chunk;
  shape.best_ns = stats::median(half(times[best], true));
  for (const Chooser& chooser : choosers) {
    RuleScore& rule = shape.rules.emplace_back();
    rule.rule = chooser.name;
    rule.choice = chooser.choose(sweep);
    if (rule.choice.point) score_point(times[best], times[*rule.choice.point], rule);
  }
  return shape;
}

std::vector<RuleSummary> summarise(std::span<const ShapeScore> scores) {
  std::vector<RuleSummary> summaries;
  if (scores.empty()) return summaries;
  for (std::size_t r = 0; r < scores.front().rules.size(); ++r) {
    RuleSummary& summary = summaries.emplace_back();
    summary.rule = scores.front().rules[r].rule;
    std::vector<double> ratios;
    for (const ShapeScore& shape : scores) {
      const RuleScore& rule = shape.rules[r];
      if (!rule.choice.point) {
        if (summary.refused++ == 0) summary.first_why = rule.choice.why;
        continue;
      }
      ratios.push_back(rule.ratio);
      summary.best += rule.best ? 1u : 0u;
      if (rule.ratio > summary.worst) {
        summary.worst = rule.ratio;
        summary.worst_problem = shape.problem;
      }
    }
    summary.shapes = ratios.size();
    if (!ratios.empty()) summary.geomean = stats::geometric_mean(ratios);
  }
  return summaries;
}

}  // namespace fdbench::tune
