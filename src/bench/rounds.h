// Rounds: one sample of each variant of a shape, in ABBA order, until the stop rule ends them together.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "bench/session.h"

namespace fdbench::bench {

// One variant in the rounds. `sample` takes one reading and may throw.
struct Contestant {
  int item = 0;  // index into WorkRequest::items
  std::function<Reading(int round)> sample;
};

// Throws what a sample throws only where `usable` says that the backend can't go on; otherwise that
// contestant is ended and the round starts again without it. Returns why measuring stopped.
std::string run_rounds(std::vector<Contestant> contestants, const MeasureSettings& settings,
                       double timer_step_ns, const std::function<double()>& now_s,
                       const std::function<bool()>& usable, const EventSink& emit,
                       const std::atomic<bool>& interrupted);

// Rounds at most, whatever the noise: the interval of a bimodal time does not narrow with more, and files
// have to hold them.
inline constexpr std::size_t kMaxRounds = 2000;
// Tries for one valid sample.
inline constexpr int kMaxVoidSamples = 50;

}  // namespace fdbench::bench
