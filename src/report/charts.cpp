#include "report/charts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "report/markup.h"

namespace fdbench::report {

namespace {

constexpr int kColors = 8, kShapes = 5;

constexpr double kWidth = 600.0;

std::string svg_open(std::string_view kind, std::string_view label, double width, double height) {
  return fmt::format(
      "<svg class=\"chart {}\" viewBox=\"0 0 {} {}\" role=\"img\" tabindex=\"0\" aria-label=\"{}\">\n", kind,
      coord(width), coord(height), escaped(label));
}

std::string line(std::string_view cls, double x1, double y1, double x2, double y2) {
  return fmt::format("<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>", cls, coord(x1),
                     coord(y1), coord(x2), coord(y2));
}

std::string text(std::string_view cls, double x, double y, std::string_view anchor,
                 std::string_view content) {
  return fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>", cls, coord(x),
                     coord(y), anchor, escaped(content));
}

std::string curve_name(const Curve& curve) {
  std::string name = curve.variant;
  if (curve.role == Role::roof) name += " (roof)";
  if (curve.role == Role::reference) name += " (reference)";
  if (curve.best_of_points) name += " (best point)";
  return name;
}

// Marks, whiskers, line and band of one curve.
template <class X, class Y>
std::string curve_shapes(const Curve& curve, int style, const X& x_of, const Y& y_of) {
  std::string upper, lower, path, whiskers, points;
  for (const RowRef& ref : curve.points) {
    const Bandwidth b = *bandwidth(*ref.record);
    const double x = x_of(ref.record->problem.seq);
    const Bounds bounds = b.ci95.value_or(Bounds{b.value, b.value});
    upper += fmt::format("{} {} ", coord(x), coord(y_of(bounds.hi)));
    lower = fmt::format("{} {} ", coord(x), coord(y_of(bounds.lo))) + lower;
    path += fmt::format("{} {} ", coord(x), coord(y_of(b.value)));
    if (b.ci95) whiskers += line("whisker", x, y_of(bounds.lo), x, y_of(bounds.hi));
    points += fmt::format("<g class=\"m pt\" data-row=\"{}\">{}</g>", row_key(ref),
                          style_mark(style, x, y_of(b.value), 4.0));
  }
  std::string out =
      fmt::format("<g class=\"{}\" data-name=\"{}\">", style_class(style), escaped(curve_name(curve)));
  if (curve.points.size() > 1) {
    out += fmt::format("<polygon class=\"band\" points=\"{}{}\"/>", upper, lower);
    out += fmt::format("<polyline class=\"curve\" points=\"{}\"/>", path);
  }
  return out + whiskers + points + "</g>\n";
}

std::string legend(const Panel& panel, const Styles& styles) {
  std::string out = "<ul class=\"legend\">";
  for (const Curve& curve : panel.curves) {
    const int style = styles.of(curve.variant, curve.role);
    out += fmt::format(
        "<li><svg class=\"{}\" viewBox=\"0 0 26 14\" width=\"26\" height=\"14\" aria-hidden=\"true\">"
        "{}{}</svg> {}</li>",
        style_class(style), line("curve", 0, 7, 26, 7), style_mark(style, 13, 7, 4.5),
        escaped(curve_name(curve)));
  }
  return out + "</ul>\n";
}

// A table of `cell` by sequence length and curve.
template <class Cell>
std::string panel_table(const Panel& panel, const Cell& cell) {
  std::vector<std::string> header{"seq"};
  for (const Curve& curve : panel.curves) header.push_back(curve_name(curve));
  TextRows rows;
  for (const std::int64_t seq : panel.seqs()) {
    std::vector<std::string> row{std::to_string(seq)};
    for (const Curve& curve : panel.curves) {
      const auto at = std::find_if(curve.points.begin(), curve.points.end(),
                                   [&](const RowRef& ref) { return ref.record->problem.seq == seq; });
      row.push_back(at == curve.points.end() ? std::string() : cell(*at->record));
    }
    rows.push_back(std::move(row));
  }
  return details_table(header, rows);
}

std::string with_interval(const std::string& value, const std::string& interval) {
  return interval.empty() ? value : value + " (" + interval + ")";
}

std::string times(double value) {
  return fmt::format("{:.2f}\u00d7", value);
}

std::string whole_percent(double value) {
  return fmt::format("{:.0f} %", value * 100.0);
}

std::string short_times(double value) {
  return fmt::format("{:g}\u00d7", value);
}

// Bars of the panel's rows, a group a sequence length.
template <class Value>
std::vector<Bar> panel_bars(const Panel& panel, const Styles& styles, const Value& value_of) {
  std::vector<Bar> bars;
  for (const std::int64_t seq : panel.seqs()) {
    for (const Curve& curve : panel.curves) {
      for (const RowRef& ref : curve.points) {
        if (ref.record->problem.seq != seq) continue;
        Bar bar{"seq " + std::to_string(seq),
                name_of(*ref.record),
                styles.of(curve.variant, curve.role),
                0.0,
                {},
                {},
                row_key(ref),
                {}};
        if (value_of(*ref.record, bar)) bars.push_back(std::move(bar));
      }
    }
  }
  return bars;
}

}  // namespace

Styles::Styles(std::span<const ResultFile> files) {
  for (const ResultFile& file : files) {
    for (const ResultRecord& row : file.results) {
      if (row.role != Role::roof && std::find(names_.begin(), names_.end(), row.variant) == names_.end())
        names_.push_back(row.variant);
    }
  }
}

int Styles::of(std::string_view variant, Role role) const {
  if (role == Role::roof) return -1;
  return static_cast<int>(std::find(names_.begin(), names_.end(), variant) - names_.begin());
}

std::string style_class(int style) {
  return style < 0 ? "roof" : fmt::format("s{}", style % kColors);
}

std::string style_mark(int style, double x, double y, double r) {
  // A wider circle that is not drawn makes the mark easy to hit.
  const std::string hit =
      fmt::format("<circle class=\"hit\" cx=\"{}\" cy=\"{}\" r=\"9\"/>", coord(x), coord(y));
  // Colour and shape part ways after a round of colours, so that the two together last longer.
  switch (style < 0 ? 1 : (style + style / kColors) % kShapes) {
    case 0:
      return hit + fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"/>", coord(x), coord(y), coord(r));
    case 1:
      return hit + fmt::format("<path d=\"M{} {}h{}v{}h{}z\"/>", coord(x - r), coord(y - r), coord(2 * r),
                               coord(2 * r), coord(-2 * r));
    case 2:
      return hit + fmt::format("<path d=\"M{} {}l{} {}h{}z\"/>", coord(x), coord(y - 1.2 * r), coord(1.2 * r),
                               coord(2.2 * r), coord(-2.4 * r));
    case 3:
      return hit + fmt::format("<path d=\"M{} {}l{} {} {} {} {} {}z\"/>", coord(x), coord(y - 1.4 * r),
                               coord(1.4 * r), coord(1.4 * r), coord(-1.4 * r), coord(1.4 * r),
                               coord(-1.4 * r), coord(-1.4 * r));
    default:
      return hit + fmt::format("<path d=\"M{} {}l{} {}h{}z\"/>", coord(x), coord(y + 1.2 * r), coord(1.2 * r),
                               coord(-2.2 * r), coord(-2.4 * r));
  }
}

std::string row_key(const RowRef& ref) {
  return fmt::format("{}-{}", ref.file, ref.row);
}

std::string details_table(const std::vector<std::string>& header, const TextRows& rows) {
  std::string out = "<details><summary>As a table</summary><div class=\"scroll\"><table><thead><tr>";
  for (const std::string& cell : header) out += "<th scope=\"col\">" + escaped(cell) + "</th>";
  out += "</tr></thead><tbody>\n";
  for (const auto& row : rows) {
    out += "<tr>";
    for (std::size_t c = 0; c < row.size(); ++c)
      out += (c == 0 ? "<th scope=\"row\">" : "<td>") + escaped(row[c]) + (c == 0 ? "</th>" : "</td>");
    out += "</tr>\n";
  }
  return out + "</tbody></table></div></details>\n";
}

std::string figure(std::string_view kind, std::string_view caption, const std::string& body) {
  return fmt::format("<figure class=\"{}\"><figcaption>{}</figcaption>\n{}</figure>\n", kind,
                     escaped(caption), body);
}

std::string bar_chart(std::string_view label, const std::vector<Bar>& bars, std::optional<double> reference,
                      TickText axis) {
  double top = reference.value_or(0.0), bottom = 0.0;
  for (const Bar& bar : bars) {
    const Bounds bounds = bar.ci95.value_or(Bounds{bar.value, bar.value});
    top = std::max({top, bar.value, bounds.hi});
    bottom = std::min({bottom, bar.value, bounds.lo});
  }
  const std::vector<double> up = ticks_to(top, 5);
  std::vector<double> ticks(up);
  if (bottom < 0.0) {
    const double step = top > 0.0 ? up[1] : ticks_to(-bottom, 5)[1];
    if (!(top > 0.0)) ticks = {0.0};
    while (ticks.front() > bottom) ticks.insert(ticks.begin(), ticks.front() - step);
  }
  const double left = 200.0, right = kWidth - 70.0, row_height = 19.0;
  const auto x_of = [&](double v) {
    return left + (right - left) * (v - ticks.front()) / (ticks.back() - ticks.front());
  };

  std::string rows;
  double y = 6.0;
  const std::string* group = nullptr;
  for (const Bar& bar : bars) {
    if ((!group || *group != bar.group) && !bar.group.empty()) {
      y += group ? 6.0 : 0.0;
      rows += text("group", 4, y + 13, "start", bar.group) + "\n";
      y += row_height;
    }
    group = &bar.group;
    const double x0 = x_of(std::min(0.0, bar.value)), x1 = x_of(std::max(0.0, bar.value)),
                 mid = y + row_height / 2;
    rows += text("label", left - 6, mid + 4, "end", clipped(bar.label, 29));
    rows += fmt::format("<g class=\"m bar {}\"", style_class(bar.style));
    rows += bar.row.empty() ? fmt::format(" data-t=\"{}\">", escaped(bar.tip))
                            : fmt::format(" data-row=\"{}\">", bar.row);
    rows += fmt::format("<rect class=\"hit\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>", coord(left),
                        coord(y), coord(right - left), coord(row_height));
    rows += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>", coord(x0), coord(y + 3),
                        coord(std::max(x1 - x0, 1.0)), coord(row_height - 6));
    rows += "</g>";
    double end = x1;
    if (bar.ci95) {
      end = std::max(end, x_of(bar.ci95->hi));
      rows += "<g class=\"interval\">" + line("", x_of(bar.ci95->lo), mid, x_of(bar.ci95->hi), mid) +
              line("", x_of(bar.ci95->lo), mid - 4, x_of(bar.ci95->lo), mid + 4) +
              line("", x_of(bar.ci95->hi), mid - 4, x_of(bar.ci95->hi), mid + 4) + "</g>";
    }
    rows += text("value", std::max(end, x_of(0.0)) + 6, mid + 4, "start", bar.text) + "\n";
    y += row_height;
  }
  std::string out = svg_open("bars", label, kWidth, y + 30);
  for (const double tick : ticks) {
    out += line(tick == 0.0 ? "zero" : "grid", x_of(tick), 4, x_of(tick), y + 4);
    out += text("tick", x_of(tick), y + 20, "middle", axis(tick));
  }
  out += "\n" + rows;
  if (reference) out += line("reference", x_of(*reference), 4, x_of(*reference), y + 4);
  return out + "</svg>\n";
}

std::string bandwidth_figure(const Panel& panel, const Styles& styles) {
  const double height = 330.0, left = 58.0, right = kWidth - 16.0, top = 26.0, base = height - 46.0;
  double most = 0.0;
  for (const Curve& curve : panel.curves) {
    for (const RowRef& ref : curve.points) {
      const Bandwidth b = *bandwidth(*ref.record);
      most = std::max({most, b.value, b.ci95 ? b.ci95->hi : 0.0});
    }
  }
  const std::vector<std::int64_t> seqs = panel.seqs();
  const auto log_of = [](std::int64_t seq) {
    return std::log2(static_cast<double>(std::max<std::int64_t>(seq, 1)));
  };
  const double first = log_of(seqs.front()), last = log_of(seqs.back());
  const std::vector<double> ticks = ticks_to(most / 1e9, 5);
  const auto x_of = [&](std::int64_t seq) {
    return last > first ? left + 14 + (right - left - 28) * (log_of(seq) - first) / (last - first)
                        : (left + right) / 2;
  };
  const auto y_of = [&](double bytes_per_s) {
    return base - (base - top) * bytes_per_s / 1e9 / ticks.back();
  };

  const std::string title = "Bandwidth against sequence length: " + heads_text(panel.shape);
  std::string svg = svg_open("lines", title, kWidth, height);
  for (const double tick : ticks) {
    svg += line(tick == 0.0 ? "zero" : "grid", left, y_of(tick * 1e9), right, y_of(tick * 1e9));
    svg += text("tick", left - 6, y_of(tick * 1e9) + 4, "end", fmt::format("{:g}", tick));
  }
  double free_from = 0.0;
  for (const std::int64_t seq : seqs) {
    const double x = x_of(seq);
    svg += line("zero", x, base, x, base + 4);
    if (x < free_from) continue;
    svg += text("tick", x, base + 18, "middle", length_text(seq));
    free_from = x + 40.0;
  }
  svg += text("axis", left - 46, 11, "start", "GB/s");
  svg += text("axis", right, height - 8, "end", "sequence length, KV tokens (log scale)") + "\n";
  for (const Curve& curve : panel.curves)
    svg += curve_shapes(curve, styles.of(curve.variant, curve.role), x_of, y_of);
  svg += "</svg>\n";
  return figure("bandwidth", title,
                legend(panel, styles) + "<div class=\"scroll\">" + svg + "</div>" +
                    panel_table(panel, [](const ResultRecord& row) {
                      const Bandwidth b = *bandwidth(row);
                      return with_interval(gigabytes_per_s(b.value) + " GB/s",
                                           interval_text(b.ci95, gigabytes_per_s));
                    }));
}

std::string share_figure(const Panel& panel, const Styles& styles) {
  const auto bars = panel_bars(panel, styles, [](const ResultRecord& row, Bar& bar) {
    if (!row.roof_share || row.role == Role::roof) return false;
    bar.value = *row.roof_share;
    bar.ci95 = row.roof_share_ci95;
    bar.text = percent(bar.value);
    return true;
  });
  if (bars.empty()) return {};
  const std::string title = "Share of the measured roof: " + heads_text(panel.shape);
  return figure("share", title,
                "<div class=\"scroll\">" + bar_chart(title, bars, 1.0, whole_percent) + "</div>" +
                    panel_table(panel, [](const ResultRecord& row) {
                      return row.roof_share ? with_interval(percent(*row.roof_share),
                                                            interval_text(row.roof_share_ci95, percent))
                                            : std::string();
                    }));
}

std::string speedup_figure(const Panel& panel, const Styles& styles) {
  const auto bars = panel_bars(panel, styles, [](const ResultRecord& row, Bar& bar) {
    if (!row.speedup || row.role == Role::reference) return false;
    bar.value = *row.speedup;
    bar.ci95 = row.speedup_ci95;
    bar.text = times(bar.value);
    return true;
  });
  if (bars.empty()) return {};
  const std::string title = "Speedup over the reference: " + heads_text(panel.shape);
  return figure("speedup", title,
                "<div class=\"scroll\">" + bar_chart(title, bars, 1.0, short_times) + "</div>" +
                    panel_table(panel, [](const ResultRecord& row) {
                      return row.speedup
                                 ? with_interval(times(*row.speedup), interval_text(row.speedup_ci95, times))
                                 : std::string();
                    }));
}

}  // namespace fdbench::report
