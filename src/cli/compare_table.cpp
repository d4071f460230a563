#include "cli/compare_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <vector>

namespace fdbench::cli {

namespace {

const char* color_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::slower:
    case Verdict::wrong:
    case Verdict::gone:
      return "31";
    case Verdict::unsure:
      return "33";
    case Verdict::faster:
      return "32";
    case Verdict::fresh:
    case Verdict::same:
      break;
  }
  return "0";
}

std::string microseconds(const std::optional<double>& ns) {
  return ns ? fmt::format("{:.4g}", *ns / 1e3) : "-";
}

// The id as it is read: the variant, then the rest.
std::string short_id(const RowComparison& row) {
  const Problem& p = row.problem;
  const std::string head = row.variant + "/" + shape_id(p);
  std::string rest = row.id.size() > head.size() ? row.id.substr(head.size() + 1) : "";
  if (rest.rfind("default/", 0) == 0) rest.clear();
  if (const auto at = rest.find('/'); at != std::string::npos) rest.resize(at);
  return fmt::format("{}{}{}", row.variant, rest.empty() ? "" : " ", rest);
}

std::string shape_text(const Problem& p) {
  return fmt::format("{} x {}/{} x {} {}", p.seq, p.heads, p.kv_heads, p.dim, to_string(p.dtype));
}

}  // namespace

std::string comparison_table(const Comparison& comparison, bool color) {
  std::string out = fmt::format("fdbench compare: {} against {} on {}, gate {}\n", comparison.new_commit,
                                comparison.base_commit, comparison.device.name, comparison.gate);
  for (const std::string& warning : comparison.warnings) out += "warning: " + warning + "\n";
  if (!comparison.not_comparable.empty()) return out;
  using Line = std::array<std::string, 7>;
  std::vector<Line> lines{{"verdict", "variant", "seq x heads x dim", "base us", "new us", "effect", "why"}};
  for (const RowComparison& row : comparison.rows) {
    lines.push_back({std::string(to_string(row.verdict)), short_id(row), shape_text(row.problem),
                     microseconds(row.base_ns), microseconds(row.new_ns),
                     row.effect ? fmt::format("{:+.1f} %", row.effect->percent) : "-", row.why});
  }
  std::array<std::size_t, 7> width{};
  for (const Line& line : lines) {
    for (std::size_t c = 0; c < line.size(); ++c) width[c] = std::max(width[c], line[c].size());
  }
  for (std::size_t r = 0; r < lines.size(); ++r) {
    const Line& line = lines[r];
    std::string text = fmt::format("{:<{}}", line[0], width[0]);
    if (color && r > 0)
      text = fmt::format("\x1b[{}m{}\x1b[0m", color_of(comparison.rows[r - 1].verdict), text);
    text += fmt::format("  {:<{}}  {:<{}}  {:>{}}  {:>{}}  {:>{}}  {}", line[1], width[1], line[2], width[2],
                        line[3], width[3], line[4], width[4], line[5], width[5], line[6]);
    while (!text.empty() && text.back() == ' ') text.pop_back();
    out += text + "\n";
  }
  std::string counts;
  for (const Verdict verdict : {Verdict::wrong, Verdict::slower, Verdict::gone, Verdict::unsure,
                                Verdict::faster, Verdict::fresh, Verdict::same}) {
    const auto n = std::count_if(comparison.rows.begin(), comparison.rows.end(),
                                 [&](const RowComparison& row) { return row.verdict == verdict; });
    if (n > 0) counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", n, to_string(verdict));
  }
  return out + (counts.empty() ? "nothing to compare" : counts) + "\n";
}

}  // namespace fdbench::cli
