// How long a search will take, before anything is measured: for --dry-run and the time left.
#pragma once

#include "core/device_info.h"
#include "core/measurement.h"
#include "core/problem.h"
#include "tune/search.h"
#include "tune/search_space.h"

namespace fdbench::cli {

struct TuneEstimate {
  double samples = 0.0;
  double seconds = 0.0;  // of the shape, worker and checks included
};

// From constants that held within a factor of two on an H200 and on two cores of a server (docs/tuning.md,
// "Long work"); a device that does not say its bandwidth is taken for one of those.
TuneEstimate estimate_tuning(const tune::SearchSpace& space, const DeviceInfo& device, CacheMode cache,
                             const tune::SearchSettings& search);

// The time left of several shapes, from what those that are done took: as estimate_tuning of spaces alike.
double expected_seconds(const Problem& problem, const DeviceInfo& device, CacheMode cache,
                        const tune::SearchSettings& search);

}  // namespace fdbench::cli
