#include "tune/profile_entry.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fdbench::tune {

namespace {

bool is_known(const std::string& origin) {
  return origin == "default" || origin.rfind("rule:", 0) == 0;
}

// The plan, the variant's own and every rule's once more, together. The one that is shown to be faster, if
// any is.
std::optional<std::size_t> measure_gains(const SearchSpace& space, const SearchOutcome& outcome,
                                         std::size_t plan, Measurer& measurer, ProfileEntry& entry) {
  std::vector<std::size_t> points{plan};
  for (std::size_t i = 0; i < space.points.size(); ++i) {
    const SpacePoint& point = space.points[i];
    if (i != plan && std::any_of(point.origins.begin(), point.origins.end(), is_known) &&
        point.variant == space.points[plan].variant && outcome.failed[i].empty())
      points.push_back(i);
  }
  entry.gains.clear();
  const Batch batch = measurer.measure(points, kGainRounds);
  if (batch.rounds.empty() || !batch.failed[0].empty()) return std::nullopt;
  std::optional<std::size_t> faster;
  double least = 0.0;
  for (std::size_t p = 0; p < points.size(); ++p) {
    const SpacePoint& point = space.points[points[p]];
    const auto ratio = paired(batch.ns[p], batch.ns[0], std::nullopt);
    if (!ratio) continue;
    if (p > 0 && ratio->ci && ratio->ci->hi < 1.0 && ratio->ratio - 1.0 < least) {
      faster = points[p];
      least = ratio->ratio - 1.0;
    }
    for (const std::string& origin : point.origins) {
      if (!is_known(origin)) continue;
      ProfileGain gain{origin, point.tuning, entry.ns * ratio->ratio, ratio->ratio - 1.0, {}};
      if (p > 0 && ratio->ci) gain.ci95 = Bounds{ratio->ci->lo - 1.0, ratio->ci->hi - 1.0};
      entry.gains.push_back(std::move(gain));
    }
  }
  return faster;
}

// The search's plan becomes the runner-up.
void take_instead(const SearchSpace& space, std::size_t plan, ProfileEntry& entry) {
  const SpacePoint& point = space.points[plan];
  for (const ProfileGain& gain : entry.gains) {
    if (!(gain.tuning == point.tuning) || !gain.ci95) continue;
    entry.ns = gain.ns;
    entry.margin = 1.0 / (1.0 + gain.gain) - 1.0;
    entry.margin_ci95 = Bounds{1.0 / (1.0 + gain.ci95->hi) - 1.0, 1.0 / (1.0 + gain.ci95->lo) - 1.0};
    break;
  }
  entry.runner_up = std::exchange(entry.tuning, point.tuning);
  entry.ties.clear();
  entry.won = 0.0;  // of the rounds that chose the other
  entry.splits = point.plan.splits;
  entry.chunk = point.plan.chunk;
  entry.workspace_bytes = workspace_bytes(point.plan);
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
  entry.tuning = point.tuning;
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
  entry.splits = point.plan.splits;
  entry.chunk = point.plan.chunk;
  entry.workspace_bytes = workspace_bytes(point.plan);
  entry.points = static_cast<std::int64_t>(space.points.size());
  entry.points_measured = static_cast<std::int64_t>(outcome.measured);
  entry.samples = outcome.samples;
  return entry;
}

std::size_t add_gains(const SearchSpace& space, const SearchOutcome& outcome, Measurer& measurer,
                      ProfileEntry& entry) {
  const std::size_t plan = outcome.winner->point;
  const auto faster = measure_gains(space, outcome, plan, measurer, entry);
  if (!faster) return plan;
  take_instead(space, *faster, entry);
  measure_gains(space, outcome, *faster, measurer, entry);
  return *faster;
}

}  // namespace fdbench::tune
