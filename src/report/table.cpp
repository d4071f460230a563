#include "report/table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace fdbench::report {

namespace {

using Row = std::vector<std::string>;

// What a row shows beside its remarks. Text to the left, numbers to the right.
struct Columns {
  Row header;  // variant and role first
  std::vector<bool> right;
  void (*fill)(const ResultRecord& row, Row& out);  // the cells after those, "-" so far
};

// Four significant digits, no exponent.
std::string microseconds(double ns) {
  const double us = ns / 1e3;
  const int decimals = us >= 1000.0 ? 0 : us >= 100.0 ? 1 : us >= 10.0 ? 2 : 3;
  return fmt::format("{:.{}f}", us, decimals);
}

// What stands behind the figures, or in their place.
std::string remark(const ResultRecord& row) {
  std::string text;
  if (row.status != Status::ok) {
    text = fmt::format("{}: {}", to_string(row.status), row.reason);
  } else if (!row.reason.empty()) {
    text = row.reason;
  }
  if (row.source.rfind("profile:", 0) == 0) text += (text.empty() ? "" : ", ") + row.source;
  for (const std::string& flag : row.flags) text += (text.empty() ? "" : ", ") + flag;
  if (row.time && row.time->set_aside > 0) {
    text += fmt::format("{}{} set aside", text.empty() ? "" : ", ", row.time->set_aside);
  }
  if (row.time && row.time->stop == "max_time") text += std::string(text.empty() ? "" : ", ") + "max_time";
  return text;
}

std::string error_text(double error) {
  return std::isfinite(error) ? fmt::format("{:.1e}", error) : "not finite";
}

void fill_times(const ResultRecord& row, Row& out) {
  if (row.time) {
    out[2] = microseconds(row.time->median);
    if (row.time->ci95)
      out[3] = microseconds(row.time->ci95->lo) + " ... " + microseconds(row.time->ci95->hi);
    if (row.bytes_per_s)
      out[4] = fmt::format("{:.{}f}", *row.bytes_per_s / 1e9, *row.bytes_per_s < 100e9 ? 2 : 0);
    if (row.roof_share) out[5] = fmt::format("{:.1f} %", *row.roof_share * 100.0);
    if (row.speedup) out[6] = fmt::format("{:.2f}x", *row.speedup);
    out[8] = std::to_string(row.time->n);
  }
  if (row.accuracy) out[7] = error_text(row.accuracy->rel_l2);
}

// The roof has no output that could be right or wrong.
void fill_verdicts(const ResultRecord& row, Row& out) {
  out[2] = row.status == Status::ok && !row.accuracy ? "no output" : to_string(row.status);
  if (row.accuracy) {
    out[3] = error_text(row.accuracy->rel_l2);
    if (row.tolerance) out[4] = error_text(*row.tolerance);
    out[5] = error_text(row.accuracy->max_abs);
    if (row.accuracy->lse_max_abs) out[6] = error_text(*row.accuracy->lse_max_abs);
    out[7] = row.accuracy->oracle;
  }
}

const Columns& columns_of(Shown shown) {
  static const Columns kTimes = {
      {"variant", "role", "median us", "95 % interval", "GB/s", "of roof", "speedup", "rel. error", "rounds"},
      {false, false, true, true, true, true, true, true, true},
      fill_times};
  static const Columns kVerdicts = {
      {"variant", "role", "verdict", "rel. error", "tolerance", "max. error", "of lse", "against"},
      {false, false, false, true, true, true, true, false},
      fill_verdicts};
  return shown == Shown::verdicts ? kVerdicts : kTimes;
}

Row cells(const Columns& columns, const ResultRecord& row) {
  Row out(columns.header.size(), "-");
  out[0] = name_with(row.variant, row.tuning);
  out[1] = to_string(row.role);
  columns.fill(row, out);
  return out;
}

std::string bytes_text(std::int64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (value >= 1e9) return fmt::format("{:.2f} GB", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.1f} MB", value / 1e6);
  return fmt::format("{:.1f} kB", value / 1e3);
}

std::string heading(const ResultRecord& row) {
  const Problem& p = row.problem;
  return fmt::format("seq {}, heads {}/{}, dim {}, {}, {} of Q, K, V and O", p.seq, p.heads, p.kv_heads,
                     p.dim, to_string(p.dtype), bytes_text(row.bytes));
}

std::string paint(const std::string& text, const char* code, bool color) {
  return color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}

}  // namespace

Shown shown_of(const RunInfo& run) {
  return run.command == "verify" ? Shown::verdicts : Shown::times;
}

std::string device_line(const RunInfo& run, const std::string& why) {
  const DeviceInfo& d = run.device;
  std::string what = d.kind == BackendKind::cuda
                         ? fmt::format("{} (cuda:{}, sm_{}, {} multiprocessors, {:.0f} MB L2)", d.name,
                                       d.index, d.cc, d.sms, static_cast<double>(d.l2_bytes) / 1e6)
                         : fmt::format("{} ({} cores, {:.0f} MB last-level cache)", d.name, d.sms,
                                       static_cast<double>(d.l2_bytes) / 1e6);
  return fmt::format("fdbench {}: {} {}: {}", run.tool.version, to_string(d.kind), what, why);
}

std::string shape_table(std::span<const ResultRecord> rows, const TableStyle& style) {
  if (rows.empty()) return {};
  const Columns& columns = columns_of(style.shown);
  std::vector<Row> lines{columns.header};
  for (const ResultRecord& row : rows) lines.push_back(cells(columns, row));
  std::vector<std::size_t> width(columns.header.size());
  for (const Row& line : lines) {
    for (std::size_t c = 0; c < line.size(); ++c) width[c] = std::max(width[c], line[c].size());
  }
  std::string out = paint(heading(rows.front()), "1", style.color) + "\n";
  for (std::size_t r = 0; r < lines.size(); ++r) {
    std::string text;
    for (std::size_t c = 0; c < columns.header.size(); ++c) {
      text += "  ";
      text += columns.right[c] ? fmt::format("{:>{}}", lines[r][c], width[c])
                               : fmt::format("{:<{}}", lines[r][c], width[c]);
    }
    if (r == 0) {
      text.erase(text.find_last_not_of(' ') + 1);
      out += paint(text, "2", style.color) + "\n";
      continue;
    }
    const ResultRecord& row = rows[r - 1];
    if (const std::string note = remark(row); !note.empty()) {
      const bool bad = row.status != Status::ok && row.status != Status::unsupported;
      text += "  " + paint(note, bad ? "31" : "33", style.color);
    }
    while (!text.empty() && text.back() == ' ') text.pop_back();
    out += text + "\n";
  }
  return out;
}

std::string markdown_tables(const ResultFile& file) {
  const auto escaped = [](std::string text) {
    for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
    return text;
  };
  const Columns& columns = columns_of(shown_of(file.run));
  std::string out;
  for_each_shape(file.results, [&](std::span<const ResultRecord> rows) {
    out += "**" + heading(rows.front()) + "**\n\n|";
    for (const std::string& name : columns.header) out += " " + name + " |";
    out += " remarks |\n|";
    for (const bool right : columns.right) out += right ? " ---: |" : " :--- |";
    out += " :--- |\n";
    for (const ResultRecord& row : rows) {
      out += "|";
      for (const std::string& cell : cells(columns, row)) out += " " + escaped(cell) + " |";
      out += " " + escaped(remark(row)) + " |\n";
    }
    out += "\n";
  });
  return out;
}

}  // namespace fdbench::report
