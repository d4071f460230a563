#include "io/compare_export.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "io/json_text.h"
#include "io/record_json.h"

namespace fdbench::io {

namespace {

using Json = nlohmann::ordered_json;

Json number(const std::optional<double>& value) {
  return value ? number_or_null(*value) : Json(nullptr);
}

Json json_of(const std::optional<Effect>& effect) {
  if (!effect) return nullptr;
  Json out;
  out["percent"] = number_or_null(effect->percent);
  out["ci95_percent"] = Json::array({number_or_null(effect->ci95.lo), number_or_null(effect->ci95.hi)});
  out["p"] = number_or_null(effect->p);
  out["p_holm"] = number_or_null(effect->p_holm);
  out["between_processes_percent"] = number_or_null(effect->sd_percent);
  out["between_processes_is_floor"] = effect->sd_is_floor;
  out["base_processes"] = effect->base_processes;
  out["new_processes"] = effect->new_processes;
  return out;
}

// Text as XML character data or an attribute. What XML 1.0 has no way to write becomes a question mark.
std::string xml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\n':
      case '\t':
        out += ' ';
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return out;
}

std::string markdown(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

std::string microseconds(const std::optional<double>& ns) {
  return ns ? fmt::format("{:.4g}", *ns / 1e3) : "-";
}

std::size_t count(const Comparison& comparison, Verdict verdict) {
  return static_cast<std::size_t>(
      std::count_if(comparison.rows.begin(), comparison.rows.end(),
                    [&](const RowComparison& row) { return row.verdict == verdict; }));
}

constexpr Verdict kOrder[] = {Verdict::wrong,  Verdict::slower, Verdict::gone, Verdict::unsure,
                              Verdict::faster, Verdict::fresh,  Verdict::same};

std::string markdown_rows(const Comparison& comparison, bool same) {
  std::string out =
      "| verdict | result | base us | new us | effect | why |\n| :-- | :-- | --: | --: | --: | :-- |\n";
  for (const Verdict verdict : kOrder) {
    if ((verdict == Verdict::same) != same) continue;
    for (const RowComparison& row : comparison.rows) {
      if (row.verdict != verdict) continue;
      out += fmt::format("| {} | `{}` | {} | {} | {} | {} |\n", to_string(row.verdict), markdown(row.id),
                         microseconds(row.base_ns), microseconds(row.new_ns),
                         row.effect ? fmt::format("{:+.1f} %", row.effect->percent) : "-", markdown(row.why));
    }
  }
  return out;
}

}  // namespace

std::string comparison_json(const Comparison& comparison) {
  Json out;
  out["schema"] = "fdbench.compare/1.0";
  out["gate"] = comparison.gate;
  out["base_commit"] = text_or_null(comparison.base_commit);
  out["new_commit"] = text_or_null(comparison.new_commit);
  out["device"] = json_of(comparison.device);
  out["not_comparable"] = comparison.not_comparable;
  out["warnings"] = comparison.warnings;
  Json rows = Json::array();
  for (const RowComparison& row : comparison.rows) {
    Json entry;
    entry["id"] = row.id;
    entry["variant"] = row.variant;
    entry["problem"] = json_of(row.problem);
    entry["role"] = std::string(to_string(row.role));
    entry["verdict"] = std::string(to_string(row.verdict));
    entry["why"] = row.why;
    entry["base_ns"] = number(row.base_ns);
    entry["new_ns"] = number(row.new_ns);
    entry["threshold_percent"] = row.threshold_percent;
    entry["smallest_effect_percent"] = number(row.smallest_effect_percent);
    entry["effect"] = json_of(row.effect);
    entry["first_effect"] = json_of(row.first_effect);
    rows.push_back(std::move(entry));
  }
  out["rows"] = std::move(rows);
  return pretty_text(out);
}

std::string comparison_junit(const Comparison& comparison, bool allow_missing) {
  std::string cases;
  std::size_t tests = 0, failures = 0, skipped = 0, errors = 0;
  if (!comparison.not_comparable.empty()) {
    ++tests;
    ++errors;
    std::string why;
    for (const std::string& line : comparison.not_comparable) why += (why.empty() ? "" : "; ") + line;
    cases += fmt::format(
        "    <testcase classname=\"fdbench\" name=\"comparable\">\n      <error message=\"{}\"/>\n    "
        "</testcase>\n",
        xml(why));
  }
  for (const RowComparison& row : comparison.rows) {
    ++tests;
    // JUnit's time is in seconds.
    const double seconds = row.new_ns.value_or(0.0) * 1e-9;
    cases += fmt::format("    <testcase classname=\"fdbench.{}\" name=\"{}\" time=\"{:.9f}\"",
                         xml(row.variant), xml(row.id), seconds);
    const bool bad = row.verdict == Verdict::slower || row.verdict == Verdict::wrong ||
                     (row.verdict == Verdict::gone && !allow_missing);
    const bool open = row.verdict == Verdict::unsure || row.verdict == Verdict::fresh ||
                      (row.verdict == Verdict::gone && allow_missing);
    if (!bad && !open) {
      cases += "/>\n";
      continue;
    }
    ++(bad ? failures : skipped);
    cases += fmt::format(">\n      <{0} {3}message=\"{1}: {2}\"/>\n    </testcase>\n",
                         bad ? "failure" : "skipped", to_string(row.verdict), xml(row.why),
                         bad ? fmt::format("type=\"{}\" ", to_string(row.verdict)) : "");
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"fdbench compare\" "
      "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n{}  </testsuite>\n</testsuites>\n",
      tests, failures, errors, skipped, cases);
}

std::string comparison_github_benchmark(const Comparison& comparison) {
  Json out = Json::array();
  for (const RowComparison& row : comparison.rows) {
    if (!row.new_ns) continue;
    Json entry;
    entry["name"] = row.id;
    entry["unit"] = "us";
    entry["value"] = *row.new_ns / 1e3;
    if (row.new_ci95_ns) {
      entry["range"] = fmt::format("{:.4g} ... {:.4g}", row.new_ci95_ns->lo / 1e3, row.new_ci95_ns->hi / 1e3);
    }
    entry["extra"] = fmt::format("{}: {}", to_string(row.verdict), row.why);
    out.push_back(std::move(entry));
  }
  return pretty_text(out);
}

std::string comparison_bmf(const Comparison& comparison) {
  Json out = Json::object();
  for (const RowComparison& row : comparison.rows) {
    if (!row.new_ns) continue;
    Json latency;
    latency["value"] = *row.new_ns;
    if (row.new_ci95_ns) {
      latency["lower_value"] = row.new_ci95_ns->lo;
      latency["upper_value"] = row.new_ci95_ns->hi;
    }
    out[row.id]["latency"] = std::move(latency);
  }
  return pretty_text(out);
}

std::string comparison_markdown(const Comparison& comparison) {
  std::string out = fmt::format("### fdbench compare: {} against {}, gate {}\n\n", comparison.new_commit,
                                comparison.base_commit, comparison.gate);
  for (const std::string& line : comparison.not_comparable) out += "**Not comparable.** " + line + "\n\n";
  std::string counts;
  for (const Verdict verdict : kOrder) {
    if (const std::size_t n = count(comparison, verdict); n > 0)
      counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", n, to_string(verdict));
  }
  if (!counts.empty()) out += "**" + counts + "** on " + markdown(comparison.device.name) + "\n\n";
  for (const std::string& warning : comparison.warnings) out += "- " + markdown(warning) + "\n";
  if (!comparison.warnings.empty()) out += "\n";
  const std::size_t same = count(comparison, Verdict::same);
  if (same < comparison.rows.size()) out += markdown_rows(comparison, false) + "\n";
  if (same > 0) {
    out += fmt::format("<details><summary>{} rows without a change</summary>\n\n{}\n</details>\n", same,
                       markdown_rows(comparison, true));
  }
  return out;
}

}  // namespace fdbench::io
