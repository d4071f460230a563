// Sweeps over a variant's splits out of result files: what rules and explain work on.
#pragma once

#include <string>
#include <vector>

#include "core/result_record.h"
#include "tune/split_sweep.h"

namespace fdbench::cli {

struct SweepFiles {
  std::vector<ResultFile> files;
  std::string names;  // of the files, as given
  std::string variant;
  DeviceInfo device;
  std::vector<tune::SplitSweep> sweeps;  // at least one
};

// Of `variant`, or, where that is empty, of the only variant that was swept. Throws Error: usage for a file
// that can't be read, several variants to choose from, or no sweep; not_comparable for files of different
// devices, cache modes or timers.
SweepFiles read_sweeps(const std::vector<std::string>& paths, const std::string& variant);

}  // namespace fdbench::cli
