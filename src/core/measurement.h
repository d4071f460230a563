// What measuring yields: samples, their summary, and how a row ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fdbench {

enum class CacheMode {
  cold,  // the last-level cache is evicted before each sample
  hot,   // the sample follows a launch on the same data
};
enum class TimerMode {
  events,  // each launch timed by itself
  graph,   // throughput of replayed launches, inputs rotated; never compared with `events`
};

std::string_view to_string(CacheMode mode);
std::string_view to_string(TimerMode mode);
std::optional<CacheMode> parse_cache_mode(std::string_view text);
std::optional<TimerMode> parse_timer_mode(std::string_view text);

struct MeasureSettings {
  CacheMode cache = CacheMode::cold;
  TimerMode timer = TimerMode::events;
  double max_noise = 0.01;    // half-width of the median's 95 % interval over the median
  double max_time_s = 3.0;    // a row
  std::optional<int> rounds;  // exactly so many, whatever the noise
  std::uint64_t seed = 1;     // of the inputs
  bool measure = true;        // false: validation only
};

enum class Status { ok, unsupported, incorrect, failed, timeout };

std::string_view to_string(Status status);
std::optional<Status> parse_status(std::string_view text);

struct Accuracy {
  double rel_l2 = 0.0;   // ||o - oracle|| / ||oracle||; infinity when the output holds a NaN
  double max_abs = 0.0;  // largest |o - oracle|
  std::optional<double> lse_max_abs;
  std::string oracle;  // the variant that said what is true
};

struct Sample {
  int process = 0;
  int round = 0;
  double ns = 0.0;
  double sm_mhz = 0.0;  // 0 where the clock is not known
  bool set_aside = false;
};

// An interval, in the unit of what it bounds.
struct Bounds {
  double lo = 0.0, hi = 0.0;
};

// Over the samples that were not set aside; nanoseconds.
struct TimeSummary {
  std::int64_t n = 0;
  double min = 0.0, q1 = 0.0, median = 0.0, q3 = 0.0, max = 0.0;
  std::optional<Bounds> ci95;  // of the median; absent below six rounds
  std::string stop;            // why measuring ended
  std::int64_t void_samples = 0;
  std::int64_t set_aside = 0;
  std::vector<Sample> samples;
};

}  // namespace fdbench
