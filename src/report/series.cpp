#include "report/series.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace fdbench::report {

namespace {

bool is_timed(const ResultRecord& row) {
  return row.status == Status::ok && row.time && row.time->median > 0.0 && std::isfinite(row.time->median);
}

bool is_faster(const ResultRecord& a, const ResultRecord& b) {
  if (is_timed(a) != is_timed(b)) return is_timed(a);
  return is_timed(a) && a.time->median < b.time->median;
}

bool same_but_seq(Problem a, const Problem& b) {
  a.seq = b.seq;
  return a == b;
}

int axis_rank(const std::string& axis) {
  return axis == "chunk" ? 0 : axis == "sm_multiple" ? 1 : 2;
}

// Axes with more than one value among the rows, in the order in which they are drawn.
std::vector<std::string> varying_axes(const std::vector<RowRef>& rows) {
  std::map<std::string, std::set<std::int64_t>> values;
  for (const RowRef& ref : rows) {
    for (const auto& [axis, value] : ref.record->tuning.values()) values[axis].insert(value);
  }
  std::vector<std::string> axes;
  for (const auto& [axis, seen] : values) {
    if (seen.size() > 1) axes.push_back(axis);
  }
  std::stable_sort(axes.begin(), axes.end(),
                   [](const auto& a, const auto& b) { return axis_rank(a) < axis_rank(b); });
  return axes;
}

void judge_cells(SweepMap& map) {
  for (std::size_t i = 0; i < map.cells.size(); ++i) {
    if (map.cells[i].timed &&
        (!map.best || is_faster(*map.cells[i].best.record, *map.cells[*map.best].best.record)))
      map.best = i;
  }
  if (!map.best) return;
  const TimeSummary& best = *map.cells[*map.best].best.record->time;
  for (SweepCell& cell : map.cells) {
    if (!cell.timed) continue;
    const TimeSummary& time = *cell.best.record->time;
    cell.is_best = &cell == &map.cells[*map.best];
    cell.loss = time.median / best.median - 1.0;
    cell.tied = cell.is_best || (time.ci95 && best.ci95 && time.ci95->lo <= best.ci95->hi);
  }
}

SweepMap make_map(const std::vector<RowRef>& rows, const std::vector<std::string>& axes) {
  SweepMap map;
  map.file = rows.front().file;
  map.variant = rows.front().record->variant;
  map.problem = rows.front().record->problem;
  map.x_axis = axes[0];
  if (axes.size() > 1) map.y_axis = axes[1];
  if (axes.size() > 2) map.folded.assign(axes.begin() + 2, axes.end());
  std::map<std::pair<std::int64_t, std::int64_t>, SweepCell> cells;
  std::set<std::int64_t> xs, ys;
  for (const RowRef& ref : rows) {
    const auto x = ref.record->tuning.get(map.x_axis);
    const auto y = map.y_axis.empty() ? std::optional<std::int64_t>(0) : ref.record->tuning.get(map.y_axis);
    if (!x || !y) continue;
    SweepCell& cell = cells[{*y, *x}];
    if (cell.points++ == 0 || is_faster(*ref.record, *cell.best.record)) cell.best = ref;
    cell.x = *x;
    cell.y = *y;
    cell.timed = is_timed(*cell.best.record);
    xs.insert(*x);
    ys.insert(*y);
  }
  map.xs.assign(xs.begin(), xs.end());
  map.ys.assign(ys.begin(), ys.end());
  for (auto& [key, cell] : cells) map.cells.push_back(cell);
  judge_cells(map);
  return map;
}

}  // namespace

std::optional<Bandwidth> bandwidth(const ResultRecord& row) {
  if (!is_timed(row) || row.bytes <= 0) return std::nullopt;
  const double bytes = static_cast<double>(row.bytes);
  Bandwidth out{bytes / (row.time->median * 1e-9), std::nullopt};
  if (row.time->ci95 && row.time->ci95->lo > 0.0 && std::isfinite(row.time->ci95->hi))
    out.ci95 = Bounds{bytes / (row.time->ci95->hi * 1e-9), bytes / (row.time->ci95->lo * 1e-9)};
  return out;
}

std::vector<std::int64_t> Panel::seqs() const {
  std::set<std::int64_t> seen;
  for (const Curve& curve : curves) {
    for (const RowRef& ref : curve.points) seen.insert(ref.record->problem.seq);
  }
  return {seen.begin(), seen.end()};
}

std::string heads_text(const Problem& p) {
  std::string text = fmt::format("{} heads", p.heads);
  if (p.kv_heads != p.heads) text += fmt::format(" over {}", p.kv_heads);
  text += fmt::format(", dim {}, {}", p.dim, to_string(p.dtype));
  if (p.scale) text += fmt::format(", scale {}", *p.scale);
  return text;
}

std::string name_of(const ResultRecord& row) {
  // A profile's points differ from shape to shape, and are one line.
  const TuningPoint asked = asked_tuning(row.tuning, row.source);
  return asked.empty() ? row.variant : row.variant + " " + asked.id();
}

std::vector<Panel> panels_of(std::span<const ResultRecord> rows, std::size_t file) {
  std::vector<Panel> panels;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ResultRecord& row = rows[i];
    if (!bandwidth(row)) continue;
    auto panel = std::find_if(panels.begin(), panels.end(),
                              [&](const Panel& p) { return same_but_seq(p.shape, row.problem); });
    if (panel == panels.end()) panel = panels.insert(panels.end(), Panel{file, row.problem, {}});
    auto& curves = panel->curves;
    auto curve = std::find_if(curves.begin(), curves.end(),
                              [&](const Curve& c) { return c.variant == row.variant && c.role == row.role; });
    if (curve == curves.end()) curve = curves.insert(curves.end(), Curve{row.variant, row.role, false, {}});
    const RowRef ref{file, i, &row};
    const auto at = std::find_if(curve->points.begin(), curve->points.end(), [&](const RowRef& other) {
      return other.record->problem.seq == row.problem.seq;
    });
    if (at == curve->points.end()) {
      curve->points.push_back(ref);
      continue;
    }
    curve->best_of_points = true;
    if (is_faster(row, *at->record)) *at = ref;
  }
  for (Panel& panel : panels) {
    for (Curve& curve : panel.curves) {
      std::sort(curve.points.begin(), curve.points.end(), [](const RowRef& a, const RowRef& b) {
        return a.record->problem.seq < b.record->problem.seq;
      });
    }
  }
  return panels;
}

std::vector<SweepMap> sweep_maps_of(std::span<const ResultRecord> rows, std::size_t file) {
  std::vector<std::vector<RowRef>> groups;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ResultRecord& row = rows[i];
    if (asked_tuning(row.tuning, row.source).empty()) continue;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const std::vector<RowRef>& g) {
      return g.front().record->variant == row.variant && g.front().record->problem == row.problem;
    });
    if (group == groups.end()) group = groups.insert(groups.end(), std::vector<RowRef>{});
    group->push_back({file, i, &row});
  }
  std::vector<SweepMap> maps;
  for (const std::vector<RowRef>& group : groups) {
    const std::vector<std::string> axes = varying_axes(group);
    if (!axes.empty()) maps.push_back(make_map(group, axes));
  }
  return maps;
}

std::optional<RuleCost> rule_cost(const SweepMap& map, std::int64_t chunk) {
  if (map.x_axis != "chunk" || map.xs.empty() || !map.best || chunk < 1) return std::nullopt;
  const auto distance = [&](std::int64_t x) {
    return std::abs(std::log(static_cast<double>(x) / static_cast<double>(chunk)));
  };
  const std::int64_t nearest =
      *std::min_element(map.xs.begin(), map.xs.end(),
                        [&](std::int64_t a, std::int64_t b) { return distance(a) < distance(b); });
  std::optional<RuleCost> cost;
  for (const SweepCell& cell : map.cells) {
    if (cell.x == nearest && cell.timed && (!cost || cell.loss < cost->loss))
      cost = RuleCost{nearest, cell.loss};
  }
  return cost;
}

}  // namespace fdbench::report
