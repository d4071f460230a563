#include "cli/rules_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace fdbench::cli {

namespace {

std::string paint(const std::string& text, const char* code, bool color) {
  return color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}

std::string microseconds(double ns) {
  const double us = ns / 1e3;
  return fmt::format("{:.{}f}", us, us >= 1000.0 ? 0 : us >= 100.0 ? 1 : us >= 10.0 ? 2 : 3);
}

std::string plan_text(std::int64_t splits, std::int64_t chunk) {
  return splits > 0 ? fmt::format("{} x {}", splits, chunk) : "-";
}

std::string interval_text(const Bounds& ratio) {
  return regret_text(ratio.lo) + " ... " + regret_text(ratio.hi);
}

// `lines` in columns, those of `right` aligned to the right; the first line is the header.
std::string columns(const std::vector<std::vector<std::string>>& lines, const std::vector<bool>& right,
                    bool color) {
  std::vector<std::size_t> width(right.size());
  for (const auto& line : lines) {
    for (std::size_t c = 0; c < right.size(); ++c) width[c] = std::max(width[c], line[c].size());
  }
  std::string out;
  for (std::size_t l = 0; l < lines.size(); ++l) {
    std::string text;
    for (std::size_t c = 0; c < right.size(); ++c) {
      text += "  ";
      text += right[c] ? fmt::format("{:>{}}", lines[l][c], width[c])
                       : fmt::format("{:<{}}", lines[l][c], width[c]);
    }
    while (!text.empty() && text.back() == ' ') text.pop_back();
    out += (l == 0 ? paint(text, "2", color) : text) + "\n";
  }
  return out;
}

}  // namespace

std::string regret_text(double ratio) {
  const double percent = (ratio - 1.0) * 100.0;
  // No "-0.0 %".
  const double rounded = std::round(percent * 10.0) / 10.0;
  return rounded == 0.0 ? "0.0 %" : fmt::format("{:+.1f} %", rounded);
}

std::string short_shape(const Problem& p) {
  return fmt::format("{} x {}/{} x {} {}", p.seq, p.heads, p.kv_heads, p.dim, to_string(p.dtype));
}

std::string regret_block(const tune::ShapeScore& shape, bool color) {
  const std::string heading =
      fmt::format("seq {}, heads {}/{}, dim {}, {}: {} splits of {} tokens are best of {} points, {} us",
                  shape.problem.seq, shape.problem.heads, shape.problem.kv_heads, shape.problem.dim,
                  to_string(shape.problem.dtype), shape.best_splits, shape.best_chunk, shape.points,
                  microseconds(shape.best_ns));
  std::vector<std::vector<std::string>> lines{
      {"rule", "splits x chunk", "median us", "regret", "95 % interval", ""}};
  for (const tune::RuleScore& rule : shape.rules) {
    std::vector<std::string> line{rule.rule, plan_text(rule.choice.splits, rule.choice.chunk), "-", "-", "-",
                                  ""};
    if (rule.choice.point) {
      line[2] = microseconds(rule.ns);
      line[3] = regret_text(rule.ratio);
      if (rule.ratio_ci) line[4] = interval_text(*rule.ratio_ci);
      if (rule.best) line[5] = "ties with the best";
    } else {
      line[5] = rule.choice.why;
    }
    lines.push_back(std::move(line));
  }
  return paint(heading, "1", color) + "\n" + columns(lines, {false, true, true, true, true, false}, color);
}

std::string regret_summary(const std::string& title, std::span<const tune::RuleSummary> rules,
                           std::size_t shapes, bool color) {
  std::vector<std::vector<std::string>> lines{{"rule", "shapes", "mean regret", "worst", "ties", "worst at"}};
  for (const tune::RuleSummary& rule : rules) {
    lines.push_back({rule.rule, fmt::format("{}/{}", rule.shapes, shapes), "-", "-", "-", ""});
    if (rule.shapes == 0) {
      lines.back()[5] = rule.first_why;
      continue;
    }
    lines.back()[2] = regret_text(rule.geomean);
    lines.back()[3] = regret_text(rule.worst);
    lines.back()[4] = fmt::format("{}", rule.best);
    lines.back()[5] = short_shape(*rule.worst_problem);
  }
  return paint(title, "1", color) + "\n" + columns(lines, {false, true, true, true, true, false}, color);
}

std::string regret_markdown(std::span<const tune::ShapeScore> shapes,
                            std::span<const tune::RuleSummary> rules) {
  std::string out =
      "| rule | shapes | geometric mean regret | worst | worst at | ties |\n"
      "| :--- | ---: | ---: | ---: | :--- | ---: |\n";
  for (const tune::RuleSummary& rule : rules) {
    if (rule.shapes == 0) {
      out += fmt::format("| {} | 0/{} | - | - | - | - |\n", rule.rule, shapes.size());
    } else {
      out += fmt::format("| {} | {}/{} | {} | {} | {} | {} |\n", rule.rule, rule.shapes, shapes.size(),
                         regret_text(rule.geomean), regret_text(rule.worst), short_shape(*rule.worst_problem),
                         rule.best);
    }
  }
  if (shapes.empty()) return out;
  out += "\n| seq x heads x dim | best | us |";
  for (const tune::RuleSummary& rule : rules) out += " " + rule.rule + " |";
  out += "\n| :--- | ---: | ---: |";
  for (std::size_t r = 0; r < rules.size(); ++r) out += " ---: |";
  out += "\n";
  for (const tune::ShapeScore& shape : shapes) {
    out += fmt::format("| {} | {} | {} |", short_shape(shape.problem),
                       plan_text(shape.best_splits, shape.best_chunk), microseconds(shape.best_ns));
    for (const tune::RuleScore& rule : shape.rules) {
      out +=
          rule.choice.point ? fmt::format(" {}{} |", regret_text(rule.ratio), rule.best ? " =" : "") : " - |";
    }
    out += "\n";
  }
  return out + "\nA cell is the rule's regret; = marks what ties with the best by its 95 % interval.\n";
}

}  // namespace fdbench::cli
