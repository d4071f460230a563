#include "tune/replay.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "stats/summary.h"
#include "tune/profile_entry.h"
#include "tune/rule_plans.h"

namespace fdbench::tune {

namespace {

using Round = std::pair<int, int>;  // process, round

bool wanted(const ResultRecord& row, std::span<const std::string> variants) {
  if (row.role != Role::candidate) return false;
  return variants.empty() || std::find(variants.begin(), variants.end(), row.variant) != variants.end();
}

std::optional<SplitAxis> axis_of(const SearchSpace& space, const std::string& variant) {
  for (const SplitAxis axis : {SplitAxis::splits, SplitAxis::chunk}) {
    for (const SpacePoint& point : space.points) {
      if (point.variant == variant && point.tuning.get(to_string(axis))) return axis;
    }
  }
  return std::nullopt;
}

void add_rule_starts(SearchSpace& space, const DeviceInfo& device, const std::string& variant,
                     std::span<const rules::NamedSplitRule> rules) {
  const auto axis = axis_of(space, variant);
  if (!axis) return;
  Site site{space.problem, device, *axis, {}};
  // The widest grid: the others may be persistent, which says nothing of a split's CTAs. Of the points that a
  // rule may answer with, where there are any: other axes can share a split out to several CTAs.
  const auto answers = [&](const SpacePoint& point) {
    return point.tuning.values().size() == 1 && point.tuning.get(to_string(*axis));
  };
  const bool any = std::any_of(space.points.begin(), space.points.end(), [&](const SpacePoint& point) {
    return point.variant == variant && answers(point);
  });
  for (const SpacePoint& point : space.points) {
    if (point.variant != variant || (any && !answers(point))) continue;
    if (site.base.splits == 0 ||
        point.plan.grid.total() * site.base.splits > site.base.grid.total() * point.plan.splits)
      site.base = point.plan;
  }
  for (const rules::NamedSplitRule& rule : rules) {
    const std::string origin = "rule:" + rule.name();
    if (space.with_origin(variant, origin)) continue;
    const rules::Split answer = rule(rule_input(site, rule));
    if (!answer.ok()) continue;
    const auto at = nearest_point(space, variant, answer.splits, answer.splits * site.ctas_per_split());
    if (at) add_start(space, variant, space.points[*at].tuning, origin);
  }
}

}  // namespace

std::vector<RecordedShape> recorded_shapes(std::span<const ResultRecord> rows, const DeviceInfo& device,
                                           std::span<const std::string> variants,
                                           std::span<const rules::NamedSplitRule> rules) {
  std::vector<Problem> problems;
  for (const ResultRecord& row : rows) {
    if (wanted(row, variants) && std::find(problems.begin(), problems.end(), row.problem) == problems.end())
      problems.push_back(row.problem);
  }
  std::vector<RecordedShape> shapes;
  for (const Problem& problem : problems) {
    RecordedShape shape;
    shape.space.problem = problem;
    std::map<Round, std::size_t> numbers;
    std::vector<std::map<Round, double>> times;
    for (const ResultRecord& row : rows) {
      if (!(row.problem == problem) || !wanted(row, variants) || !row.plan) continue;
      const bool ok = row.status == Status::ok && row.time && row.time->n > 0;
      if (row.status == Status::unsupported || (row.status == Status::ok && !ok)) continue;
      // A launch that is there already only gets another name.
      auto& points = shape.space.points;
      const auto same = std::find_if(points.begin(), points.end(), [&](const SpacePoint& point) {
        return point.variant == row.variant && same_launch(point.plan, *row.plan);
      });
      if (same != points.end()) {
        if (!(same->tuning == row.tuning)) same->others.push_back(row.tuning);
        for (const std::string& origin : origins_of(row.tuning, row.source)) {
          if (!same->has_origin(origin)) same->origins.push_back(origin);
        }
        continue;
      }
      points.push_back({row.variant, row.tuning, *row.plan, {}, origins_of(row.tuning, row.source)});
      shape.failed.push_back(ok ? "" : row.reason.empty() ? std::string(to_string(row.status)) : row.reason);
      shape.tuning_versions.push_back(row.tuning_version);
      auto& of = times.emplace_back();
      if (!ok) continue;
      for (const Sample& sample : row.time->samples) {
        if (sample.set_aside || !(sample.ns > 0.0)) continue;
        of[{sample.process, sample.round}] = sample.ns;
        numbers[{sample.process, sample.round}] = 0;
      }
    }
    if (std::count(shape.failed.begin(), shape.failed.end(), std::string()) < 2) continue;
    for (auto& [round, number] : numbers) number = shape.rounds++;
    for (const auto& of : times) {
      auto& ns = shape.ns.emplace_back(shape.rounds, std::numeric_limits<double>::quiet_NaN());
      for (const auto& [round, time] : of) ns[numbers[round]] = time;
    }
    complete_space(shape.space);
    std::vector<std::string> names;
    for (const SpacePoint& point : shape.space.points) {
      if (std::find(names.begin(), names.end(), point.variant) == names.end()) names.push_back(point.variant);
    }
    for (const std::string& name : names) add_rule_starts(shape.space, device, name, rules);
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

Landscape landscape_of(const SearchSpace& space) {
  Landscape landscape;
  landscape.neighbours = space.neighbours;
  landscape.starts = space.starts;
  for (const SpacePoint& point : space.points) landscape.workspace.push_back(workspace_bytes(point.plan));
  return landscape;
}

Replay::Replay(const RecordedShape& shape) : shape_(shape) {
  for (std::size_t r = 0; r < shape.rounds; ++r) {
    if (is_scoring(r)) continue;
    choosing_.push_back(static_cast<int>(r));
    bool whole = true;
    for (std::size_t i = 0; i < shape.ns.size(); ++i)
      whole = whole && (!shape.failed[i].empty() || std::isfinite(shape.ns[i][r]));
    whole_ += whole ? 1u : 0u;
  }
  used_.assign(shape.space.points.size(), std::vector<bool>(shape.rounds, false));
}

Batch Replay::measure(std::span<const std::size_t> points, int rounds) {
  Batch batch;
  std::vector<std::pair<std::size_t, int>> order;  // how many have given it, round
  for (const int round : choosing_) {
    const auto r = static_cast<std::size_t>(round);
    std::size_t given = 0;
    bool whole = true;
    for (const std::size_t i : points) {
      given += used_[i][r] ? 1u : 0u;
      whole = whole && (!shape_.failed[i].empty() || std::isfinite(shape_.ns[i][r]));
    }
    if (whole) order.emplace_back(given, round);
  }
  std::sort(order.begin(), order.end());
  if (order.size() > static_cast<std::size_t>(rounds)) order.resize(static_cast<std::size_t>(rounds));
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  for (const auto& [given, round] : order) batch.rounds.push_back(round);
  for (const std::size_t i : points) {
    batch.failed.push_back(shape_.failed[i]);
    auto& ns = batch.ns.emplace_back();
    if (!shape_.failed[i].empty()) continue;
    for (const int round : batch.rounds) {
      const auto r = static_cast<std::size_t>(round);
      used_[i][r] = true;
      ns.push_back(shape_.ns[i][r]);
      batch.cost_s += shape_.ns[i][r] * 1e-9;
    }
  }
  return batch;
}

std::optional<ReplayScore> replay(const RecordedShape& shape, const SearchSettings& settings) {
  ReplayScore score;
  Replay measurer(shape);
  score.points = shape.space.points.size();
  SearchSettings within = settings;
  within.rounds = std::min(within.rounds, static_cast<int>(measurer.rounds()));
  score.outcome = search(landscape_of(shape.space), measurer, within);
  if (!score.outcome.winner) return std::nullopt;
  ProfileEntry entry = entry_of(shape.space, score.outcome, {});
  const Gains gains = add_gains(shape.space, score.outcome, measurer, entry);
  score.plan = gains.plan;
  score.cost_s = score.outcome.cost_s + gains.cost_s;

  const auto choosing_half = [&](std::size_t i) {
    std::vector<double> values;
    for (std::size_t r = 0; r < shape.rounds; ++r) {
      if (!is_scoring(r) && std::isfinite(shape.ns[i][r])) values.push_back(shape.ns[i][r]);
    }
    return values;
  };
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < shape.ns.size(); ++i) {
    const auto values = choosing_half(i);
    for (const double ns : values) score.exhaustive_s += ns * 1e-9;
    if (values.empty()) continue;
    if (const double median = stats::median(values); median < least) {
      least = median;
      score.best = i;
    }
  }
  std::vector<double> chosen, best;
  for (std::size_t r = 0; r < shape.rounds; ++r) {
    const double a = shape.ns[score.plan][r], b = shape.ns[score.best][r];
    if (!is_scoring(r) || !std::isfinite(a) || !std::isfinite(b)) continue;
    chosen.push_back(a);
    best.push_back(b);
  }
  if (const auto ratio = stats::paired_ratio(chosen, best)) {
    score.ratio = ratio->median;
    if (ratio->ci95) score.ratio_ci = Bounds{ratio->ci95->lo, ratio->ci95->hi};
    score.best_ns = stats::median(best);
  }
  score.cost_share = score.exhaustive_s > 0.0 ? score.cost_s / score.exhaustive_s : 0.0;
  return score;
}

}  // namespace fdbench::tune
