#include "core/work_message.h"

namespace fdbench {

namespace {
constexpr std::string_view kPhaseNames[] = {"prepare", "validate", "warm_up", "sample", "recheck"};
}

std::string_view to_string(Phase phase) {
  return kPhaseNames[static_cast<int>(phase)];
}

std::optional<Phase> parse_phase(std::string_view text) {
  for (int i = 0; i < 5; ++i) {
    if (kPhaseNames[i] == text) return static_cast<Phase>(i);
  }
  return std::nullopt;
}

}  // namespace fdbench
