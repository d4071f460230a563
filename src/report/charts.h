// The pictures of the HTML report: SVG and a table behind each. Colours come from the page's style sheet; a
// mark names the row it stands for in data-row ("FILE-ROW"), from which the page's script says what it is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/comparison.h"
#include "report/series.h"

namespace fdbench::report {

// The same variant looks the same in every picture. Roofs have a look of their own.
class Styles {
 public:
  explicit Styles(std::span<const ResultFile> files);
  // 0 for the first variant of the files, ...; -1 for a roof.
  int of(std::string_view variant, Role role) const;

 private:
  std::vector<std::string> names_;
};

// "s3", "roof": the class that colours a style.
std::string style_class(int style);
// The mark of a style around (x, y): shapes differ where colours may not.
std::string style_mark(int style, double x, double y, double radius);

// "0-12", for data-row and, after an r, for the row's id in the table of all rows.
std::string row_key(const RowRef& ref);

// A table that is closed until asked for. Cells are text, not yet escaped; of a row, the first is its
// heading.
using TextRows = std::vector<std::vector<std::string>>;
std::string details_table(const std::vector<std::string>& header, const TextRows& rows);

std::string figure(std::string_view kind, std::string_view caption, const std::string& body);

// One bar. `text` stands at its end.
struct Bar {
  std::string group, label;  // bars of one group stand together under it
  int style = 0;
  double value = 0.0;
  std::optional<Bounds> ci95;
  std::string text;
  std::string row;  // row_key, or empty
  std::string tip;  // what a mark without a row says
};
// Bars to the right from 0, values may be negative; a line at `reference`. `label` says what is shown, for
// those who can't see it; `axis` writes a tick.
using TickText = std::string (*)(double);
std::string bar_chart(std::string_view label, const std::vector<Bar>& bars, std::optional<double> reference,
                      TickText axis);

// Whole figures, with captions.
std::string bandwidth_figure(const Panel& panel, const Styles& styles);
std::string share_figure(const Panel& panel, const Styles& styles);
std::string speedup_figure(const Panel& panel, const Styles& styles);
std::string sweep_figure(const SweepMap& map, std::span<const RuleChoice> rules);  // of this map alone
std::string regret_figure(std::span<const SweepMap> maps, std::span<const RuleChoice> rules);
std::string change_figure(const Comparison& comparison);

// Whether the rule's choice is of this map.
bool is_of(const RuleChoice& choice, const SweepMap& map);

}  // namespace fdbench::report
