#include "stats/stop_rule.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "stats/summary.h"

namespace fdbench::stats {
namespace {

constexpr std::array<std::pair<StopReason, std::string_view>, 6> kNames{{
    {StopReason::none, "none"},
    {StopReason::converged, "converged"},
    {StopReason::fixed_rounds, "fixed_rounds"},
    {StopReason::max_time, "max_time"},
    {StopReason::max_rounds, "max_rounds"},
    {StopReason::interrupted, "interrupted"},
}};

// Readings a step apart may have passed through float milliseconds.
constexpr double kStepSlack = 1.001;

bool settled(std::span<const double> series, double max_noise, double timer_step) {
  const std::optional<Summary> summary = summarise(series);
  if (!summary || !summary->ci95) return false;
  return summary->ci95->width() <= timer_step * kStepSlack || relative_width(*summary) <= max_noise;
}

}  // namespace

std::string_view to_string(StopReason reason) {
  for (const auto& [value, name] : kNames)
    if (value == reason) return name;
  return "none";
}

std::optional<StopReason> parse_stop_reason(std::string_view text) {
  for (const auto& [value, name] : kNames)
    if (name == text) return value;
  return std::nullopt;
}

StopReason evaluate(const StopSettings& settings, std::span<const std::vector<double>> series_per_entry,
                    double timer_step, double elapsed_s) {
  if (series_per_entry.empty()) return StopReason::converged;
  std::size_t rounds = std::numeric_limits<std::size_t>::max(), longest = 0;
  for (const auto& series : series_per_entry) {
    rounds = std::min(rounds, series.size());
    longest = std::max(longest, series.size());
  }
  if (longest == 0) return StopReason::none;
  if (settings.fixed_rounds)
    return rounds >= *settings.fixed_rounds ? StopReason::fixed_rounds : StopReason::none;

  if (rounds >= settings.min_rounds &&
      std::all_of(series_per_entry.begin(), series_per_entry.end(), [&](const std::vector<double>& series) {
        return settled(series, settings.max_noise, timer_step);
      }))
    return StopReason::converged;
  if (longest >= settings.max_rounds) return StopReason::max_rounds;
  const bool time_is_up = elapsed_s >= settings.max_time_s;
  const bool overrun = elapsed_s >= kTimeOverrun * settings.max_time_s;
  if (overrun || (time_is_up && rounds >= settings.min_rounds)) return StopReason::max_time;
  return StopReason::none;
}

}  // namespace fdbench::stats
