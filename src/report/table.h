// Result rows as text: for a terminal, and as Markdown for a pull request.
#pragma once

#include <span>
#include <string>

#include "core/result_record.h"

namespace fdbench::report {

// `fdbench verify` times nothing.
enum class Shown { times, verdicts };
Shown shown_of(const RunInfo& run);

struct TableStyle {
  bool color = false;
  Shown shown = Shown::times;
};

// One line on what was measured: the device and why it was chosen.
std::string device_line(const RunInfo& run, const std::string& why);

// The rows of one shape under a heading with its extents: per variant role, median and its 95 % interval
// (us), GB/s, share of the roof, speedup over the reference, relative L2 error, rounds and flags; or, of
// verdicts, status, errors, tolerance and the oracle. A row that failed says why.
std::string shape_table(std::span<const ResultRecord> rows, const TableStyle& style);

// The same for all shapes, as Markdown; verdicts for a file of `fdbench verify`.
std::string markdown_tables(const ResultFile& file);

// Rows of the same shape stand together: calls `each` with each such stretch.
template <class Each>
void for_each_shape(std::span<const ResultRecord> rows, const Each& each) {
  for (std::size_t begin = 0; begin < rows.size();) {
    std::size_t end = begin;
    while (end < rows.size() && rows[end].problem == rows[begin].problem) ++end;
    each(rows.subspan(begin, end - begin));
    begin = end;
  }
}

}  // namespace fdbench::report
