// Bandwidth as characters, for a terminal.
#pragma once

#include <span>
#include <string>

#include "core/result_record.h"

namespace fdbench::report {

struct PlotStyle {
  int width = 78;   // columns, at least 40
  int height = 16;  // lines of a plot
};

// GB/s against the sequence length (log scale), a letter a variant, '=' for the roof, where two lengths or
// more were measured; and for each sweep GB/s against its first axis, a letter for each value of the second.
// Where letters meet, '*'. Empty where there is nothing to draw.
std::string plot_text(std::span<const ResultRecord> rows, const PlotStyle& style);

}  // namespace fdbench::report
