#include "tune/profile_entry.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stats/summary.h"

namespace fdbench::tune {

namespace {

bool is_known(const std::string& origin) {
  return origin == "default" || origin.rfind("rule:", 0) == 0;
}

std::vector<std::size_t> known_plans(const SearchSpace& space, const SearchOutcome& outcome,
                                     std::size_t plan) {
  std::vector<std::size_t> known;
  for (std::size_t i = 0; i < space.points.size(); ++i) {
    const SpacePoint& point = space.points[i];
    if (i != plan && std::any_of(point.origins.begin(), point.origins.end(), is_known) &&
        point.variant == space.points[plan].variant && outcome.failed[i].empty())
      known.push_back(i);
  }
  return known;
}

// Nothing where the first point has no rounds.
std::optional<Batch> measured(Measurer& measurer, const std::vector<std::size_t>& points, Gains& gains) {
  Batch batch = measurer.measure(points, kGainRounds);
  gains.stopped = gains.stopped || batch.stop;
  if (gains.stopped || batch.rounds.empty() || !batch.failed[0].empty()) return std::nullopt;
  return batch;
}

std::int64_t samples_of(const Batch& batch) {
  std::int64_t samples = 0;
  for (const auto& ns : batch.ns) samples += static_cast<std::int64_t>(ns.size());
  return samples;
}

// A point's time over the first's, where it is shown to be faster.
std::optional<double> shown_faster(const Batch& batch, std::size_t p) {
  if (!batch.failed[p].empty()) return std::nullopt;
  const auto ratio = paired(batch.ns[p], batch.ns[0], std::nullopt);
  if (!ratio || !ratio->ci || ratio->ci->hi >= 1.0) return std::nullopt;
  return ratio->ratio;
}

// Which of the plans to keep: the search's, `points`[0], or a known one.
struct Decision {
  std::size_t plan = 0;
  bool tie = false;  // the search's is one of it
  std::int64_t rounds = 0;
};

// Once more between the search's plan and the variant's own where one batch leaves that open. Nothing where
// the measurer stopped.
std::optional<Decision> decide(const SearchSpace& space, std::vector<std::size_t> points, Measurer& measurer,
                               Gains& gains) {
  const std::size_t found = points[0];
  std::vector<double> of_found, of_own;
  std::int64_t rounds = 0;
  for (int pass = 0; pass < 2; ++pass) {
    const auto batch = measured(measurer, points, gains);
    if (!batch) return std::nullopt;
    gains.cost_s += batch->cost_s;
    rounds += static_cast<std::int64_t>(batch->rounds.size());
    gains.samples += samples_of(*batch);
    std::size_t own = 0;
    std::optional<std::size_t> faster;
    double least = 1.0;
    for (std::size_t p = 1; p < points.size(); ++p) {
      if (!batch->failed[p].empty()) continue;
      if (space.points[points[p]].has_origin("default")) own = p;
      const auto ratio = pass == 0 ? shown_faster(*batch, p) : std::nullopt;
      if (!ratio || *ratio >= least) continue;
      faster = points[p];
      least = *ratio;
    }
    if (faster) return Decision{*faster, false, rounds};
    if (own == 0) break;
    of_found.insert(of_found.end(), batch->ns[0].begin(), batch->ns[0].end());
    of_own.insert(of_own.end(), batch->ns[own].begin(), batch->ns[own].end());
    const auto ratio = paired(of_own, of_found, std::nullopt);
    if (!ratio || (ratio->ci && ratio->ci->lo > 1.0)) break;
    if (is_tie(*ratio) || pass > 0) return Decision{points[own], true, rounds};
    points = {found, points[own]};
  }
  return Decision{found, false, rounds};
}

// The variant's own plan where it is shown to be faster than the first.
std::optional<std::size_t> own_if_faster(const SearchSpace& space, const std::vector<std::size_t>& points,
                                         const Batch& batch) {
  for (std::size_t p = 1; p < points.size(); ++p) {
    if (space.points[points[p]].has_origin("default") && shown_faster(batch, p)) return points[p];
  }
  return std::nullopt;
}

void set_plan(const SpacePoint& point, ProfileEntry& entry) {
  entry.tuning = point.tuning;
  entry.splits = point.plan.splits;
  entry.chunk = point.plan.chunk;
  entry.workspace_bytes = workspace_bytes(point.plan);
  entry.isa = point.plan.isa;
}

// The search's plan becomes the runner-up, and a tie where it was not shown to be slower.
void take_instead(const SpacePoint& point, bool tie, ProfileEntry& entry) {
  entry.runner_up = entry.tuning;
  entry.ties.clear();
  if (tie) entry.ties.push_back(*entry.runner_up);
  set_plan(point, entry);
}

// Every figure of an entry whose plan was exchanged: of rounds that did not choose it.
void score(const std::vector<double>& plan, const std::vector<double>& runner_up, ProfileEntry& entry) {
  entry.ns = stats::median(plan);
  entry.margin = 0.0;
  entry.margin_ci95.reset();
  if (const auto ratio = paired(runner_up, plan, std::nullopt)) {
    entry.margin = ratio->change();
    entry.margin_ci95 = ratio->change_ci();
  }
  std::size_t won = 0;
  for (std::size_t k = 0; k < plan.size(); ++k)
    won += k < runner_up.size() && runner_up[k] < plan[k] ? 0u : 1u;
  entry.won = static_cast<double>(won) / static_cast<double>(plan.size());
  entry.scoring_rounds = static_cast<std::int64_t>(plan.size());
}

}  // namespace

ProfileEntry entry_of(const SearchSpace& space, const SearchOutcome& outcome, ProfileEntry entry) {
  const Winner& winner = *outcome.winner;
  const SpacePoint& point = space.points[winner.point];
  const Problem& problem = space.problem;
  entry.key.variant = point.variant;
  entry.key.dtype = problem.dtype;
  entry.key.dim = problem.dim;
  entry.key.heads = problem.heads;
  entry.key.kv_heads = problem.kv_heads;
  entry.key.bucket = seq_bucket(problem.seq);
  entry.seq = problem.seq;
  set_plan(point, entry);
  entry.ns = winner.ns;
  // Another variant's plan is no tie of this one's, but may have been the runner-up.
  for (const std::size_t tie : winner.ties) {
    if (tie != winner.point && space.points[tie].variant == point.variant)
      entry.ties.push_back(space.points[tie].tuning);
  }
  if (winner.runner_up) entry.runner_up = space.points[*winner.runner_up].tuning;
  entry.margin = winner.margin;
  entry.margin_ci95 = winner.margin_ci;
  entry.won = winner.won;
  entry.choosing_rounds = static_cast<std::int64_t>(winner.choosing_rounds);
  entry.scoring_rounds = static_cast<std::int64_t>(winner.scoring_rounds);
  entry.points = static_cast<std::int64_t>(space.points.size());
  entry.points_measured = static_cast<std::int64_t>(outcome.measured);
  entry.samples = outcome.samples;
  return entry;
}

Gains add_gains(const SearchSpace& space, const SearchOutcome& outcome, Measurer& measurer,
                ProfileEntry& entry) {
  const std::size_t found = outcome.winner->point;
  const std::vector<std::size_t> known = known_plans(space, outcome, found);
  Gains gains{found};
  std::vector<std::size_t> rivals{found};
  for (const std::size_t i : known) {
    const double seen = outcome.median_ns[i];  // 0: never
    if (seen <= kHopelessKnown * outcome.median_ns[found]) rivals.push_back(i);
  }
  Decision decision{found};
  if (rivals.size() > 1) {
    const auto decided = decide(space, rivals, measurer, gains);
    entry.samples += gains.samples;
    if (!decided) return gains;
    decision = *decided;
  }
  gains.plan = decision.plan;
  std::size_t other = found;  // the runner-up of a plan that was exchanged
  bool exchanged = gains.plan != found;
  if (exchanged) take_instead(space.points[gains.plan], decision.tie, entry);

  std::vector<std::size_t> points;
  std::optional<Batch> batch;
  for (int pass = 0; pass < 2; ++pass) {
    points = {gains.plan};
    if (exchanged) points.push_back(other);
    for (const std::size_t i : known) {
      if (std::find(points.begin(), points.end(), i) == points.end()) points.push_back(i);
    }
    entry.gains.clear();
    batch = measured(measurer, points, gains);
    if (!batch) return gains;
    // Chosen by luck: these rounds decide, and others score.
    const auto own = pass == 0 ? own_if_faster(space, points, *batch) : std::nullopt;
    if (!own) break;
    other = gains.plan;
    gains.plan = *own;
    exchanged = true;
    take_instead(space.points[*own], false, entry);
    gains.cost_s += batch->cost_s;
    entry.samples += samples_of(*batch);
    decision.rounds += static_cast<std::int64_t>(batch->rounds.size());
  }
  if (exchanged && batch->failed[1].empty()) {
    entry.choosing_rounds = decision.rounds;
    score(batch->ns[0], batch->ns[1], entry);
  }
  for (std::size_t p = 0; p < points.size(); ++p) {
    const SpacePoint& point = space.points[points[p]];
    const auto ratio = paired(batch->ns[p], batch->ns[0], std::nullopt);
    if (!ratio) continue;
    for (const std::string& origin : point.origins) {
      if (!is_known(origin)) continue;
      entry.gains.push_back({origin, point.tuning, stats::median(batch->ns[p]), ratio->change(),
                             p > 0 ? ratio->change_ci() : std::nullopt});
    }
  }
  return gains;
}

}  // namespace fdbench::tune
