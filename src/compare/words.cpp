#include "compare/words.h"

#include <cstdio>

namespace fdbench::compare {

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string signed_percent(double value) {
  char text[48];
  std::snprintf(text, sizeof text, "%+.1f %%", value);
  return text;
}

std::string evidence_text(const Effect& effect, double threshold_percent, std::size_t rows, bool is_roof) {
  char interval[80];
  std::snprintf(interval, sizeof interval, "(95 %%: %+.1f ... %+.1f)", effect.ci95.lo, effect.ci95.hi);
  char p[32];
  std::snprintf(p, sizeof p, "%.1g", effect.p_holm);
  std::string text = signed_percent(effect.percent) + " " + interval + ", threshold " +
                     short_number(threshold_percent) + " %, ";
  if (!is_roof)
    text += std::string("p = ") + p + " over " + std::to_string(rows) + (rows == 1 ? " row, " : " rows, ");
  text += std::to_string(effect.base_processes) + " + " + std::to_string(effect.new_processes) +
          " processes that differ by " + short_number(effect.sd_percent) + " %";
  if (effect.sd_is_floor) text += " (the floor)";
  return text;
}

}  // namespace fdbench::compare
