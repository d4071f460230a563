#include "tune/split_sweep.h"

#include <algorithm>
#include <tuple>

namespace fdbench::tune {

namespace {

// The axis that the row was swept over; nothing for the variant's own plan and for other axes.
std::optional<SplitAxis> swept_axis(const TuningPoint& tuning) {
  if (tuning.values().size() != 1) return std::nullopt;
  const std::string& name = tuning.values().front().first;
  for (const SplitAxis axis : {SplitAxis::splits, SplitAxis::chunk}) {
    if (name == to_string(axis)) return axis;
  }
  return std::nullopt;
}

// Neither the variant's own plan nor one of a sweep.
bool from_profile(const ResultRecord& row) {
  return !(asked_tuning(row.tuning, row.source) == row.tuning);
}

bool measured(const ResultRecord& row) {
  return row.status == Status::ok && row.plan && row.time && row.time->n > 0;
}

SplitTimes times_of(const ResultRecord& row) {
  SplitTimes times{row.tuning, *row.plan, row.time->median, {}};
  for (const Sample& sample : row.time->samples) {
    if (!sample.set_aside && sample.ns > 0.0) times.samples.push_back(sample);
  }
  std::sort(times.samples.begin(), times.samples.end(), [](const Sample& a, const Sample& b) {
    return std::tie(a.process, a.round) < std::tie(b.process, b.round);
  });
  return times;
}

}  // namespace

std::optional<std::size_t> SplitSweep::own() const {
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].tuning.empty()) return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> SplitSweep::find(const rules::Split& answer) const {
  for (const TuningPoint& point : rule_points(site, answer)) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (points[i].tuning == point) return i;
    }
    if (const auto i = own()) {
      if (point.get(to_string(site.axis)) == axis_value(site.axis, points[*i].plan)) return i;
    }
  }
  return std::nullopt;
}

std::vector<SplitSweep> split_sweeps(std::span<const ResultRecord> rows, const DeviceInfo& device,
                                     const std::string& variant) {
  std::vector<const ResultRecord*> mine;
  std::vector<Problem> problems;
  for (const ResultRecord& row : rows) {
    if (row.variant != variant || !measured(row) || from_profile(row)) continue;
    mine.push_back(&row);
    if (std::find(problems.begin(), problems.end(), row.problem) == problems.end())
      problems.push_back(row.problem);
  }
  std::vector<SplitSweep> sweeps;
  for (const Problem& problem : problems) {
    int chunks = 0, splits = 0;
    for (const ResultRecord* row : mine) {
      if (!(row->problem == problem)) continue;
      const auto axis = swept_axis(row->tuning);
      chunks += axis == SplitAxis::chunk ? 1 : 0;
      splits += axis == SplitAxis::splits ? 1 : 0;
    }
    if (chunks + splits == 0) continue;
    SplitSweep sweep;
    sweep.variant = variant;
    sweep.site = {problem, device, splits >= chunks ? SplitAxis::splits : SplitAxis::chunk, {}};
    for (const ResultRecord* row : mine) {
      if (!(row->problem == problem)) continue;
      if (row->tuning.empty() || swept_axis(row->tuning) == sweep.site.axis)
        sweep.points.push_back(times_of(*row));
    }
    if (sweep.points.size() < 2) continue;
    // As site_of has it.
    const LaunchPlan& own = sweep.points[sweep.own().value_or(0)].plan;
    sweep.site.base = own;
    for (const SplitTimes& point : sweep.points) {
      if (point.tuning.get(to_string(sweep.site.axis)) == axis_value(sweep.site.axis, own))
        sweep.site.base = point.plan;
    }
    sweeps.push_back(std::move(sweep));
  }
  return sweeps;
}

std::vector<std::string> swept_variants(std::span<const ResultRecord> rows) {
  std::vector<std::string> names;
  for (const ResultRecord& row : rows) {
    if (!measured(row) || from_profile(row) || !swept_axis(row.tuning) || row.role != Role::candidate)
      continue;
    if (std::find(names.begin(), names.end(), row.variant) == names.end()) names.push_back(row.variant);
  }
  return names;
}

}  // namespace fdbench::tune
