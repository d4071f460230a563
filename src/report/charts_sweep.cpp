// Pictures of sweeps and of changes.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "report/charts.h"
#include "report/markup.h"

namespace fdbench::report {

namespace {

// Upper ends of the classes of time over the best's, minus 1; the last class has none.
constexpr std::array<double, 6> kLossClasses = {0.01, 0.02, 0.05, 0.10, 0.25, 0.50};

std::size_t loss_class(double loss) {
  return static_cast<std::size_t>(std::lower_bound(kLossClasses.begin(), kLossClasses.end(), loss) -
                                  kLossClasses.begin());
}

std::string class_text(std::size_t c) {
  if (c == kLossClasses.size()) return fmt::format("over +{:.0f} %", kLossClasses.back() * 100.0);
  return fmt::format("up to +{:.0f} %", kLossClasses[c] * 100.0);
}

std::string map_name(const SweepMap& map) {
  return fmt::format("{}, seq {}, {}", map.variant, map.problem.seq, heads_text(map.problem));
}

std::string loss_text(double loss) {
  return loss < 0.0995 ? fmt::format("+{:.1f} %", loss * 100.0) : fmt::format("+{:.0f} %", loss * 100.0);
}

std::string cell_text(const SweepCell& cell) {
  if (!cell.timed) return std::string(to_string(cell.best.record->status));
  return cell.is_best ? "\u2605 best" : (cell.tied ? "= " : "") + loss_text(cell.loss);
}

// Chunks that rules choose, with the rules' names.
std::map<std::int64_t, std::string> by_chunk(std::span<const RuleChoice> rules) {
  std::map<std::int64_t, std::string> chunks;
  for (const RuleChoice& choice : rules) {
    std::string& names = chunks[choice.chunk];
    names += (names.empty() ? "" : ", ") + choice.rule;
  }
  return chunks;
}

std::string heat_legend() {
  std::string out = "<ul class=\"legend\"><li>time over the best's:</li>";
  for (std::size_t c = 0; c <= kLossClasses.size(); ++c)
    out += fmt::format("<li><span class=\"swatch h{}\"></span> {}</li>", c, class_text(c));
  return out + "<li>\u2605 best</li><li>= tied: intervals overlap</li></ul>\n";
}

}  // namespace

bool is_of(const RuleChoice& choice, const SweepMap& map) {
  return choice.file == map.file && choice.variant == map.variant && choice.problem == map.problem;
}

std::string sweep_figure(const SweepMap& map, std::span<const RuleChoice> rules) {
  const bool single = map.y_axis.empty();
  const double left = single ? 20.0 : 96.0, top = 30.0, cell_width = 66.0, cell_height = 34.0;
  const double right = left + cell_width * static_cast<double>(map.xs.size());
  const double base = top + cell_height * static_cast<double>(map.ys.size());
  const auto column = [&](std::int64_t x) {
    return left +
           cell_width * static_cast<double>(std::find(map.xs.begin(), map.xs.end(), x) - map.xs.begin());
  };
  const auto chunks = map.x_axis == "chunk" ? by_chunk(rules) : std::map<std::int64_t, std::string>{};

  // Between the centres of columns, by the logarithm; beyond the measured ones, at the edge.
  const auto rule_x = [&](std::int64_t chunk) {
    if (chunk < map.xs.front()) return left + 6.0;
    if (chunk > map.xs.back()) return right - 6.0;
    const auto after = std::lower_bound(map.xs.begin(), map.xs.end(), chunk);
    if (*after == chunk) return column(chunk) + cell_width / 2;
    const double lo = static_cast<double>(*(after - 1)), hi = static_cast<double>(*after);
    return column(*(after - 1)) + cell_width / 2 +
           cell_width * std::log(static_cast<double>(chunk) / lo) / std::log(hi / lo);
  };
  std::string marks, list;
  std::vector<double> lanes;  // where each lane of marks ends
  int number = 0;
  TextRows rule_rows;
  for (const auto& [chunk, names] : chunks) {
    const double x = rule_x(chunk);
    std::size_t lane = 0;
    while (lane < lanes.size() && lanes[lane] > x - 20.0) ++lane;
    if (lane == lanes.size()) lanes.push_back(0.0);
    lanes[lane] = x;
    const double y = base + 32.0 + 24.0 * static_cast<double>(lane);
    const auto cost = rule_cost(map, chunk);
    const std::string where =
        cost ? fmt::format("nearest measured chunk {}: {}", cost->measured_chunk, loss_text(cost->loss)) : "";
    marks += fmt::format(
        "<g class=\"m rule\" data-t=\"{}\"><line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>"
        "<circle cx=\"{}\" cy=\"{}\" r=\"9\"/><text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text></g>\n",
        escaped(fmt::format("{}: chunk {}; {}", names, chunk, where)), coord(x), coord(base + 1), coord(x),
        coord(y - 9), coord(x), coord(y), coord(x), coord(y + 4), ++number);
    list += fmt::format("<li>chunk {}: {}</li>", chunk, escaped(names));
    rule_rows.push_back({names, std::to_string(chunk), cost ? std::to_string(cost->measured_chunk) : "",
                         cost ? loss_text(cost->loss) : ""});
  }

  std::string cells;
  TextRows rows;
  for (const SweepCell& cell : map.cells) {
    const double x = column(cell.x);
    const double y = top + cell_height * static_cast<double>(std::find(map.ys.begin(), map.ys.end(), cell.y) -
                                                             map.ys.begin());
    const std::string looks = !cell.timed
                                  ? "none"
                                  : fmt::format("h{}{}{}", loss_class(cell.loss), cell.is_best ? " best" : "",
                                                cell.tied ? " tied" : "");
    cells += fmt::format(
        "<g class=\"m cell {}\" data-row=\"{}\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>"
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text></g>\n",
        looks, row_key(cell.best), coord(x + 1.5), coord(y + 1.5), coord(cell_width - 3),
        coord(cell_height - 3), coord(x + cell_width / 2), coord(y + cell_height / 2 + 4),
        escaped(clipped(cell_text(cell), 9)));
    std::vector<std::string> row{cell.best.record->tuning.id(), cell_text(cell)};
    const auto b = bandwidth(*cell.best.record);
    row.push_back(cell.timed ? microseconds(cell.best.record->time->median) : "");
    row.push_back(cell.timed ? interval_text(cell.best.record->time->ci95, microseconds) : "");
    row.push_back(b ? gigabytes_per_s(b->value) : "");
    rows.push_back(std::move(row));
  }

  const std::string title = "Sweep of " + map_name(map);
  const double height = base + 24.0 + 24.0 * static_cast<double>(lanes.size());
  std::string svg = fmt::format(
      "<svg class=\"chart heat\" viewBox=\"0 0 {} {}\" role=\"img\" tabindex=\"0\" aria-label=\"{}\" "
      "style=\"min-width:{}px;max-width:{}px\">\n",
      coord(right + 10), coord(height), escaped(title), coord((right + 10) * 0.75),
      coord((right + 10) * 1.15));
  svg += fmt::format("<text class=\"axis\" x=\"{}\" y=\"12\" text-anchor=\"start\">{}{}</text>\n",
                     coord(single ? left : 6.0), escaped(clipped(map.x_axis, 30)),
                     single ? "" : " \u2192, " + escaped(clipped(map.y_axis, 30)) + " \u2193");
  for (const std::int64_t x : map.xs)
    svg += fmt::format("<text class=\"tick\" x=\"{}\" y=\"26\" text-anchor=\"middle\">{}</text>",
                       coord(column(x) + cell_width / 2), x);
  if (!single) {
    for (std::size_t i = 0; i < map.ys.size(); ++i)
      svg +=
          fmt::format("<text class=\"tick\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", coord(left - 6),
                      coord(top + cell_height * (static_cast<double>(i) + 0.5) + 4), map.ys[i]);
  }
  svg += "\n" + cells + marks + "</svg>\n";

  std::string notes;
  for (const std::string& axis : map.folded)
    notes += (notes.empty() ? "Each cell is the best over " : ", ") + axis;
  if (!notes.empty()) notes = "<p class=\"note\">" + escaped(notes) + ".</p>\n";
  if (!list.empty())
    notes +=
        "<p class=\"note\">Numbers below the map: what the split rules would choose.</p><ol "
        "class=\"rules\">" +
        list + "</ol>\n";
  std::string tables = details_table({"point", "", "median us", "95 % interval", "GB/s"}, rows);
  if (!rule_rows.empty())
    tables += details_table({"rules", "chunk", "nearest measured", "time over the best's"}, rule_rows);
  return figure("sweep", title, heat_legend() + "<div class=\"scroll\">" + svg + "</div>" + notes + tables);
}

std::string regret_figure(std::span<const SweepMap> maps, std::span<const RuleChoice> rules) {
  struct Regret {
    double log_sum = 0.0, worst = 0.0;
    int maps = 0;
    const SweepMap* worst_map = nullptr;
  };
  std::vector<std::pair<std::string, Regret>> regrets;
  for (const RuleChoice& choice : rules) {
    for (const SweepMap& map : maps) {
      const auto cost = is_of(choice, map) ? rule_cost(map, choice.chunk) : std::nullopt;
      if (!cost) continue;
      auto at =
          std::find_if(regrets.begin(), regrets.end(), [&](const auto& r) { return r.first == choice.rule; });
      if (at == regrets.end()) at = regrets.insert(regrets.end(), {choice.rule, {}});
      Regret& regret = at->second;
      regret.log_sum += std::log1p(cost->loss);
      ++regret.maps;
      if (!regret.worst_map || cost->loss > regret.worst) {
        regret.worst = cost->loss;
        regret.worst_map = &map;
      }
    }
  }
  if (regrets.empty()) return {};
  const auto mean = [](const Regret& r) { return std::expm1(r.log_sum / r.maps); };
  std::sort(regrets.begin(), regrets.end(),
            [&](const auto& a, const auto& b) { return mean(a.second) < mean(b.second); });
  std::vector<Bar> bars;
  TextRows rows;
  for (const auto& [rule, regret] : regrets) {
    const std::string worst = loss_text(regret.worst) + " at " + map_name(*regret.worst_map);
    bars.push_back(
        {"", rule, 0, mean(regret), std::nullopt, loss_text(mean(regret)), "",
         fmt::format("{}: {} over {} sweeps; worst {}", rule, loss_text(mean(regret)), regret.maps, worst)});
    rows.push_back({rule, loss_text(mean(regret)), worst, std::to_string(regret.maps)});
  }
  const std::string title =
      "Regret of each split rule: time at its chunk over the best, geometric mean of the sweeps";
  return figure(
      "regret", title,
      "<div class=\"scroll\">" +
          bar_chart(title, bars, std::nullopt, [](double v) { return fmt::format("{:g} %", v * 100.0); }) +
          "</div><p class=\"note\">A chunk that was not measured counts as the nearest one that was; of the "
          "other axes the best is taken.</p>" +
          details_table({"rule", "regret", "worst", "sweeps"}, rows));
}

std::string change_figure(const Comparison& comparison) {
  std::vector<Bar> bars;
  TextRows rows;
  for (const RowComparison& row : comparison.rows) {
    std::optional<double> change;
    std::optional<Bounds> ci95;
    if (row.effect) {
      change = row.effect->percent / 100.0;
      ci95 = Bounds{row.effect->ci95.lo / 100.0, row.effect->ci95.hi / 100.0};
      if (!std::isfinite(ci95->lo) || !std::isfinite(ci95->hi)) ci95.reset();
    } else if (row.base_ns && row.new_ns && *row.base_ns > 0.0) {
      change = *row.new_ns / *row.base_ns - 1.0;
    }
    const std::string verdict(to_string(row.verdict));
    if (change) {
      const int style = row.verdict == Verdict::slower || row.verdict == Verdict::wrong ? 1
                        : row.verdict == Verdict::faster                                ? 2
                        : row.verdict == Verdict::same                                  ? 0
                                                                                        : -1;
      bars.push_back({fmt::format("seq {}, {}", row.problem.seq, heads_text(row.problem)), row.variant, style,
                      *change, ci95, verdict, "", fmt::format("{}\n{}: {}", row.id, verdict, row.why)});
    }
    const auto us = [](const std::optional<double>& ns) { return ns ? microseconds(*ns) : std::string(); };
    rows.push_back({row.id, verdict, us(row.base_ns), us(row.new_ns), change ? signed_percent(*change) : "",
                    interval_text(ci95, signed_percent), row.why});
  }
  const std::string title = "Change of time, before to after";
  std::string body;
  if (!bars.empty()) {
    body = "<div class=\"scroll\">" +
           bar_chart(title, bars, std::nullopt,
                     [](double v) { return fmt::format("{:+g} %", std::round(v * 1e4) / 100.0); }) +
           "</div>" +
           "<p class=\"note\">To the right: slower. Bars are the effect on time over the same round's roof "
           "with its 95 % "
           "interval where processes suffice for one, else the plain ratio of medians.</p>";
  }
  return figure(
      "change", title,
      body +
          details_table({"row", "verdict", "before us", "after us", "change", "95 % interval", "why"}, rows));
}

}  // namespace fdbench::report
