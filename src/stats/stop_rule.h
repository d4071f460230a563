// When the rounds of a shape end. Its variants end together: they share rounds, so that they can be paired.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace fdbench::stats {

struct StopSettings {
  double max_noise = 0.01;          // of relative_width(): 0.01 is "median +- 1 %"
  double max_time_s = 10;           // of the shape, seconds; infinity is no limit
  std::size_t min_rounds = 6;       // before convergence or max_time_s can end it
  std::size_t max_rounds = 10'000;  // a cap on samples kept, whatever the noise
  // Exactly so many; the four above are then not looked at.
  std::optional<std::size_t> fixed_rounds = std::nullopt;
};

// Past this many times max_time_s a shape ends even before min_rounds.
inline constexpr double kTimeOverrun = 5;

enum class StopReason { none, converged, fixed_rounds, max_time, max_rounds, interrupted };

// The enumerator's own name: the word of a result's `stop`.
std::string_view to_string(StopReason reason);
std::optional<StopReason> parse_stop_reason(std::string_view text);

// To be asked after each round. series_per_entry: the kept samples so far of each variant of the shape, one
// unit, that of timer_step (the timer's resolution). elapsed_s: seconds since the shape's first round began.
// The first that applies, where `rounds` is the shortest series' length:
// - none: no entry has a sample, or fixed_rounds is set and not reached
// - fixed_rounds: rounds >= fixed_rounds
// - converged: rounds >= min_rounds, and every entry's interval of the median is within max_noise of its
//   median or no wider than the timer's step (more rounds cannot narrow it below that)
// - max_rounds: the longest series has max_rounds
// - max_time: elapsed_s >= max_time_s and rounds >= min_rounds; or elapsed_s >= kTimeOverrun * max_time_s,
//   however few the rounds. So a slow row still gets an interval if that costs a small multiple of the time
//   allowed, and a very slow one ends after its first round, with a median and no interval.
// `interrupted` is for the caller to record; it is never returned. Without entries there is nothing to wait
// for: converged. A single round longer than any limit is the caller's watchdog's business.
//
// Looking after every round and stopping at the first narrow interval costs coverage, since some are narrow
// by luck: on exponential noise the interval at the stop covered the median in 91 to 94 % of simulated runs,
// where a number of rounds fixed beforehand gives 95 %.
//
// Throws std::invalid_argument when a sample is not finite.
StopReason evaluate(const StopSettings& settings, std::span<const std::vector<double>> series_per_entry,
                    double timer_step, double elapsed_s);

}  // namespace fdbench::stats
