#include "cli/tune_estimate.h"

#include <algorithm>

#include "tune/profile_entry.h"

namespace fdbench::cli {

namespace {

// A GPU's worker, with the oracle and some fifty checks; a CPU has its oracle to compute.
constexpr double kGpuWorkerSeconds = 0.6, kCpuWorkerSeconds = 0.4;
constexpr double kCpuOracleBytesPerS = 1e9;
// What a sample takes beside launches and eviction.
constexpr double kSampleSeconds = 1e-4;
constexpr double kGpuBytesPerS = 2e12;                             // where the device does not say
constexpr double kCpuBytesPerS = 1e10, kCpuFlushBytesPerS = 3e10;  // a candidate's, all cores' reading
constexpr double kFlushedCaches = 2.0;
// Beside the starts, in rounds of final ones and in samples: neighbourhoods; finals and what decides.
constexpr double kNeighbourSamples = 100.0, kFinalists = 3.0;
constexpr double kKnownDeciding = 4.0, kKnownPlans = 8.0;
constexpr double kUsualPoints = 250.0, kUsualStarts = 15.0;

double samples_of(double points, double starts, const tune::SearchSettings& search) {
  const double rounds = static_cast<double>(search.rounds);
  const double all = points * rounds;
  const double searched = 2.0 * starts + kNeighbourSamples + kFinalists * rounds;
  const double found = search.strategy == tune::Strategy::exhaustive ? all : std::min(all, searched);
  return found + tune::kGainRounds * (std::min(points, kKnownDeciding) + std::min(points, kKnownPlans));
}

double seconds_of(double samples, const Problem& problem, const DeviceInfo& device, CacheMode cache) {
  const bool cpu = device.kind == BackendKind::cpu;
  const double bytes = static_cast<double>(problem.logical_bytes());
  const double read = cpu ? kCpuBytesPerS : device.bandwidth_datasheet.value_or(kGpuBytesPerS);
  const double flushed =
      cache == CacheMode::cold ? kFlushedCaches * static_cast<double>(device.l2_bytes) : 0.0;
  // A GPU's sample follows an untimed launch of its own, and most points are not the fastest.
  const double sample_s =
      kSampleSeconds + (cpu ? 1.0 : 3.0) * bytes / read + flushed / (cpu ? kCpuFlushBytesPerS : read);
  const double worker_s = cpu ? kCpuWorkerSeconds + bytes / kCpuOracleBytesPerS : kGpuWorkerSeconds;
  return worker_s + samples * sample_s;
}

}  // namespace

TuneEstimate estimate_tuning(const tune::SearchSpace& space, const DeviceInfo& device, CacheMode cache,
                             const tune::SearchSettings& search) {
  TuneEstimate estimate;
  estimate.samples =
      samples_of(static_cast<double>(space.points.size()), static_cast<double>(space.starts.size()), search);
  estimate.seconds = seconds_of(estimate.samples, space.problem, device, cache);
  return estimate;
}

double expected_seconds(const Problem& problem, const DeviceInfo& device, CacheMode cache,
                        const tune::SearchSettings& search) {
  return seconds_of(samples_of(kUsualPoints, kUsualStarts, search), problem, device, cache);
}

}  // namespace fdbench::cli
