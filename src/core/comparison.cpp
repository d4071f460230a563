#include "core/comparison.h"

namespace fdbench {

namespace {

// Glob with * and ?, over the whole text. Goes back to the last star only, so linear times pattern length.
bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::same:
      return "SAME";
    case Verdict::faster:
      return "FASTER";
    case Verdict::slower:
      return "SLOWER";
    case Verdict::unsure:
      return "UNSURE";
    case Verdict::fresh:
      return "NEW";
    case Verdict::gone:
      return "GONE";
    case Verdict::wrong:
      return "WRONG";
  }
  return "?";
}

double threshold_percent(const Gate& gate, std::string_view id) {
  for (const GateRule& rule : gate.rules) {
    if (matches(rule.pattern, id)) return rule.threshold_percent;
  }
  return gate.threshold_percent;
}

}  // namespace fdbench
