#include "report/plot.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "report/markup.h"
#include "report/series.h"

namespace fdbench::report {

namespace {

struct PlotPoint {
  std::int64_t x = 0;
  double y = 0.0;  // GB/s
};
struct PlotLine {
  char mark = ' ';
  std::string name;
  std::vector<PlotPoint> points;  // by x
};

char letter(std::size_t i) {
  return static_cast<char>(i < 26 ? 'a' + i : i < 52 ? 'A' + (i - 26) : '?');
}

std::string draw(const std::string& title, const std::string& x_name, const std::vector<PlotLine>& lines,
                 const PlotStyle& style) {
  std::vector<std::int64_t> xs;
  double most = 0.0;
  for (const PlotLine& line : lines) {
    for (const PlotPoint& p : line.points) {
      xs.push_back(p.x);
      most = std::max(most, p.y);
    }
  }
  std::sort(xs.begin(), xs.end());
  xs.erase(std::unique(xs.begin(), xs.end()), xs.end());
  if (xs.size() < 2 || !(most > 0.0)) return {};
  const int margin = 9, width = std::max(style.width, 40) - margin - 2, height = std::max(style.height, 4);
  const double top = ticks_to(most, 4).back();
  const auto log_of = [](std::int64_t x) {
    return std::log(static_cast<double>(std::max<std::int64_t>(x, 1)));
  };
  const auto column = [&](std::int64_t x) {
    return static_cast<int>(std::lround((width - 1) * (log_of(x) - log_of(xs.front())) /
                                        std::max(log_of(xs.back()) - log_of(xs.front()), 1e-9)));
  };
  const auto line_of = [&](double y) {
    return height - 1 - static_cast<int>(std::lround((height - 1) * y / top));
  };
  std::vector<std::string> grid(static_cast<std::size_t>(height),
                                std::string(static_cast<std::size_t>(width), ' '));
  const auto cell = [&](int row, int col) -> char& {
    return grid[static_cast<std::size_t>(row)][static_cast<std::size_t>(col)];
  };
  for (const PlotLine& line : lines) {
    for (std::size_t i = 0; i + 1 < line.points.size(); ++i) {
      const int from = column(line.points[i].x), to = column(line.points[i + 1].x);
      for (int c = from + 1; c < to; ++c) {
        const double share = static_cast<double>(c - from) / (to - from);
        char& at = cell(line_of(line.points[i].y + share * (line.points[i + 1].y - line.points[i].y)), c);
        if (at == ' ') at = line.mark == '=' ? '=' : '.';
      }
    }
  }
  // Marks over lines.
  for (const PlotLine& line : lines) {
    for (const PlotPoint& p : line.points) {
      char& at = cell(line_of(p.y), column(p.x));
      at = at == ' ' || at == '.' || at == '=' || at == line.mark ? line.mark : '*';
    }
  }
  std::string out = title + "\n";
  for (int row = 0; row < height; ++row) {
    const bool labelled = row == 0 || row == height - 1 || row == (height - 1) / 2;
    const double value = top * (height - 1 - row) / (height - 1);
    std::string text = fmt::format("{:>{}} |{}", labelled ? fmt::format("{:.4g}", value) : "", margin - 2,
                                   grid[static_cast<std::size_t>(row)]);
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  }
  out += std::string(static_cast<std::size_t>(margin) - 1, ' ') + "+" +
         std::string(static_cast<std::size_t>(width), '-') + "\n";
  std::string ticks(static_cast<std::size_t>(margin + width + 8), ' ');
  std::size_t free_from = 0;
  for (const std::int64_t x : xs) {
    const std::string text = length_text(x);
    const auto centre = static_cast<std::size_t>(margin + column(x));
    const std::size_t at = centre >= text.size() / 2 ? centre - text.size() / 2 : 0;
    if (at < free_from || at + text.size() > ticks.size()) continue;
    ticks.replace(at, text.size(), text);
    free_from = at + text.size() + 1;
  }
  ticks.erase(ticks.find_last_not_of(' ') + 1);
  out += ticks + "\n" + std::string(static_cast<std::size_t>(margin), ' ') + "GB/s against " + x_name +
         ", log scale\n";
  for (const PlotLine& line : lines) out += fmt::format("  {} {}\n", line.mark, line.name);
  return out;
}

std::string curves_text(const Panel& panel, const PlotStyle& style) {
  std::vector<PlotLine> lines;
  std::size_t letters = 0;
  for (const Curve& curve : panel.curves) {
    PlotLine line{curve.role == Role::roof ? '=' : letter(letters++), curve.variant, {}};
    if (curve.role != Role::candidate) line.name += fmt::format(" ({})", to_string(curve.role));
    if (curve.best_of_points) line.name += " (best point)";
    for (const RowRef& ref : curve.points)
      line.points.push_back({ref.record->problem.seq, bandwidth(*ref.record)->value / 1e9});
    lines.push_back(std::move(line));
  }
  return draw(heads_text(panel.shape), "sequence length", lines, style);
}

std::string sweep_text(const SweepMap& map, const PlotStyle& style) {
  std::vector<PlotLine> lines;
  for (std::size_t i = 0; i < map.ys.size(); ++i) {
    PlotLine line{
        letter(i), map.y_axis.empty() ? map.variant : fmt::format("{}={}", map.y_axis, map.ys[i]), {}};
    for (const SweepCell& cell : map.cells) {
      const auto b = cell.y == map.ys[i] || map.y_axis.empty() ? bandwidth(*cell.best.record) : std::nullopt;
      if (b) line.points.push_back({cell.x, b->value / 1e9});
    }
    if (!line.points.empty()) lines.push_back(std::move(line));
  }
  return draw(fmt::format("{}, seq {}, {}", map.variant, map.problem.seq, heads_text(map.problem)),
              map.x_axis, lines, style);
}

}  // namespace

std::string plot_text(std::span<const ResultRecord> rows, const PlotStyle& style) {
  std::string out;
  const auto add = [&](const std::string& text) {
    if (!text.empty()) out += (out.empty() ? "" : "\n") + text;
  };
  for (const Panel& panel : panels_of(rows, 0)) add(curves_text(panel, style));
  for (const SweepMap& map : sweep_maps_of(rows, 0)) add(sweep_text(map, style));
  return out;
}

}  // namespace fdbench::report
