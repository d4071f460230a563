#include "tune/winner.h"

#include <algorithm>
#include <cmath>

#include "stats/summary.h"

namespace fdbench::tune {

namespace {

std::vector<double> half(std::span<const double> ns, std::optional<bool> scoring) {
  std::vector<double> values;
  for (std::size_t k = 0; k < ns.size(); ++k) {
    if (!scoring || is_scoring(k) == *scoring) values.push_back(ns[k]);
  }
  return values;
}

double median_of(std::span<const double> ns, std::optional<bool> scoring) {
  const auto values = half(ns, scoring);
  return values.empty() ? 0.0 : stats::median(values);
}

}  // namespace

std::optional<PairedRatio> paired(std::span<const double> other, std::span<const double> base,
                                  std::optional<bool> scoring) {
  const std::size_t n = std::min(other.size(), base.size());
  const auto a = half(other.first(n), scoring), b = half(base.first(n), scoring);
  const auto ratio = stats::paired_ratio(a, b);
  if (!ratio) return std::nullopt;
  PairedRatio out{ratio->median, {}};
  if (ratio->ci95) out.ci = Bounds{ratio->ci95->lo, ratio->ci95->hi};
  return out;
}

bool is_tie(const PairedRatio& other_over_base) {
  return other_over_base.ratio <= 1.0 + kTieRange && (!other_over_base.ci || other_over_base.ci->lo <= 1.0);
}

std::optional<Winner> choose_winner(const FinalRounds& rounds, const TieBreak& tie_break) {
  std::size_t longest = 0;
  for (const auto& ns : rounds.ns) longest = std::max(longest, ns.size());
  if (longest == 0) return std::nullopt;
  // Whoever was left behind was slower: it is out, but still a runner-up.
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < rounds.ns.size(); ++i) {
    if (!rounds.ns[i].empty()) order.push_back(i);
  }
  const auto stayed = [&](std::size_t i) { return rounds.ns[i].size() == longest; };
  std::vector<double> chosen_by(rounds.ns.size());
  for (const std::size_t i : order) chosen_by[i] = median_of(rounds.ns[i], false);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (stayed(a) != stayed(b)) return stayed(a);
    return chosen_by[a] < chosen_by[b];
  });

  const std::size_t fastest = order.front();
  std::vector<std::size_t> ties{fastest};
  for (const std::size_t i : order) {
    if (i == fastest || !stayed(i)) continue;
    const auto ratio = paired(rounds.ns[i], rounds.ns[fastest], false);
    if (ratio && is_tie(*ratio)) ties.push_back(i);
  }
  const auto steepness = [&](std::size_t i) {
    const std::size_t point = rounds.points[i];
    return point < tie_break.steepness.size() ? tie_break.steepness[point] : INFINITY;
  };
  double flattest = INFINITY;
  for (const std::size_t i : ties) flattest = std::min(flattest, steepness(i));
  const auto is_flat = [&](std::size_t i) {
    return !std::isfinite(flattest) || steepness(i) <= flattest + kFlatStep;
  };
  const auto workspace = [&](std::size_t i) {
    const std::size_t point = rounds.points[i];
    return point < tie_break.workspace.size() ? tie_break.workspace[point] : 0;
  };
  std::size_t best = *std::find_if(ties.begin(), ties.end(), is_flat);
  for (const std::size_t i : ties) {
    if (is_flat(i) && workspace(i) < workspace(best)) best = i;
  }

  Winner winner;
  winner.point = rounds.points[best];
  winner.ties.push_back(winner.point);
  for (const std::size_t i : ties) {
    if (i != best) winner.ties.push_back(rounds.points[i]);
  }
  winner.choosing_rounds = half(rounds.ns[best], false).size();
  const auto scored = half(rounds.ns[best], true);
  winner.scoring_rounds = scored.size();
  const std::optional<bool> scoring = scored.empty() ? std::nullopt : std::optional(true);
  winner.ns = median_of(rounds.ns[best], scoring);
  for (const std::size_t i : order) {
    if (i == best) continue;
    winner.runner_up = rounds.points[i];
    if (const auto ratio = paired(rounds.ns[i], rounds.ns[best], scoring)) {
      winner.margin = ratio->change();
      winner.margin_ci = ratio->change_ci();
    }
    break;
  }
  if (!winner.runner_up) return winner;
  std::size_t won = 0, counted = 0;
  for (std::size_t k = 0; k < rounds.ns[best].size(); ++k) {
    if (scoring && !is_scoring(k)) continue;
    ++counted;
    const bool beaten = std::any_of(order.begin(), order.end(), [&](std::size_t i) {
      return k < rounds.ns[i].size() && rounds.ns[i][k] < rounds.ns[best][k];
    });
    won += beaten ? 0u : 1u;
  }
  if (counted > 0) winner.won = static_cast<double>(won) / static_cast<double>(counted);
  return winner;
}

}  // namespace fdbench::tune
