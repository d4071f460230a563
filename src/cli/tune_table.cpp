#include "cli/tune_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <vector>

#include "cli/rules_table.h"
#include "stats/summary.h"

namespace fdbench::cli {

namespace {

using Row = std::vector<std::string>;

std::string gain_text(const ProfileGain* gain) {
  if (!gain) return "-";
  return gain->gain == 0.0 && !gain->ci95 ? "same plan" : regret_text(1.0 + gain->gain);
}

std::string interval_text(const ProfileGain* gain) {
  if (!gain || !gain->ci95) return "-";
  return regret_text(1.0 + gain->ci95->lo) + " ... " + regret_text(1.0 + gain->ci95->hi);
}

Problem problem_of(const ProfileEntry& entry) {
  return {entry.seq, entry.key.heads, entry.key.kv_heads, entry.key.dim, entry.key.dtype, {}};
}

const Row kHeader = {"shape",    "variant",        "plan", "splits x chunk", "us",  "over default",
                     "interval", "over best rule", "rule", "margin",         "won", "ties"};

// With its tuning_version where the table has another of it.
std::string variant_text(const ProfileEntry& entry, std::span<const ProfileEntry> entries) {
  const ProfileKey& key = entry.key;
  const bool several = std::any_of(entries.begin(), entries.end(), [&](const ProfileEntry& other) {
    return other.key.variant == key.variant && other.key.tuning_version != key.tuning_version;
  });
  return several ? fmt::format("{} v{}", key.variant, key.tuning_version) : key.variant;
}

Row cells(const ProfileEntry& entry, std::span<const ProfileEntry> entries) {
  const ProfileGain* own = gain_over(entry, "default");
  const ProfileGain* rule = best_rule(entry);
  return {short_shape(problem_of(entry)),
          variant_text(entry, entries),
          entry.tuning.id(),
          fmt::format("{} x {}", entry.splits, entry.chunk),
          fmt::format("{:.2f}", entry.ns / 1e3),
          gain_text(own),
          interval_text(own),
          gain_text(rule),
          rule ? rule->over.substr(rule->over.find(':') + 1) : "-",
          entry.runner_up ? regret_text(1.0 + entry.margin) : "-",
          entry.won ? fmt::format("{:.0f} %", 100.0 * *entry.won) : "-",
          std::to_string(entry.ties.size())};
}

}  // namespace

const ProfileGain* best_rule(const ProfileEntry& entry) {
  const ProfileGain* best = nullptr;
  for (const ProfileGain& gain : entry.gains) {
    if (gain.over.rfind("rule:", 0) == 0 && (!best || gain.gain < best->gain)) best = &gain;
  }
  return best;
}

std::string profile_table(std::span<const ProfileEntry> entries) {
  std::vector<Row> lines{kHeader};
  for (const ProfileEntry& entry : entries) lines.push_back(cells(entry, entries));
  std::vector<std::size_t> width(kHeader.size());
  for (const Row& line : lines) {
    for (std::size_t c = 0; c < line.size(); ++c) width[c] = std::max(width[c], line[c].size());
  }
  std::string out;
  for (const Row& line : lines) {
    std::string text;
    for (std::size_t c = 0; c < line.size(); ++c)
      text += c < 3 ? fmt::format("  {:<{}}", line[c], width[c]) : fmt::format("  {:>{}}", line[c], width[c]);
    out += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

std::string profile_markdown(std::span<const ProfileEntry> entries) {
  std::string out = "|";
  for (const std::string& name : kHeader) out += " " + name + " |";
  out += "\n|";
  for (std::size_t c = 0; c < kHeader.size(); ++c) out += c < 3 ? " :--- |" : " ---: |";
  for (const ProfileEntry& entry : entries) {
    out += "\n|";
    for (const std::string& cell : cells(entry, entries)) out += " " + cell + " |";
  }
  return out + "\n";
}

std::string gain_summary(std::span<const ProfileEntry> entries, bool markdown) {
  std::map<std::string, std::vector<double>> ratios;
  std::vector<double> best;
  for (const ProfileEntry& entry : entries) {
    for (const ProfileGain& gain : entry.gains) ratios[gain.over].push_back(1.0 + gain.gain);
    if (const ProfileGain* rule = best_rule(entry)) best.push_back(1.0 + rule->gain);
  }
  std::string out =
      markdown
          ? "| over | shapes | mean gain | least | most |\n| :--- | ---: | ---: | ---: | ---: |\n"
          : fmt::format("  {:<26}{:>7}{:>12}{:>10}{:>10}\n", "gain over", "shapes", "mean", "least", "most");
  const auto add = [&](const std::string& name, const std::vector<double>& values) {
    if (values.empty()) return;
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    out += fmt::format(
        fmt::runtime(markdown ? "| {} | {} | {} | {} | {} |\n" : "  {:<26}{:>7}{:>12}{:>10}{:>10}\n"), name,
        values.size(), regret_text(stats::geometric_mean(values)), regret_text(*least), regret_text(*most));
  };
  add("the default plan", ratios["default"]);
  add("the best rule of each shape", best);
  for (const auto& [name, values] : ratios) {
    if (name != "default") add(name, values);
  }
  return out;
}

}  // namespace fdbench::cli
