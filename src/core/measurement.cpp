#include "core/measurement.h"

namespace fdbench {

std::string_view to_string(CacheMode mode) {
  return mode == CacheMode::cold ? "cold" : "hot";
}

std::string_view to_string(TimerMode mode) {
  return mode == TimerMode::events ? "events" : "graph";
}

std::optional<CacheMode> parse_cache_mode(std::string_view text) {
  if (text == "cold") return CacheMode::cold;
  if (text == "hot") return CacheMode::hot;
  return std::nullopt;
}

std::optional<TimerMode> parse_timer_mode(std::string_view text) {
  if (text == "events") return TimerMode::events;
  if (text == "graph") return TimerMode::graph;
  return std::nullopt;
}

namespace {
constexpr std::string_view kStatusNames[] = {"ok", "unsupported", "incorrect", "failed", "timeout"};
}

std::string_view to_string(Status status) {
  return kStatusNames[static_cast<int>(status)];
}

std::optional<Status> parse_status(std::string_view text) {
  for (int i = 0; i < 5; ++i) {
    if (kStatusNames[i] == text) return static_cast<Status>(i);
  }
  return std::nullopt;
}

}  // namespace fdbench
