// What `fdbench doctor` finds, as it is written to disk (io/doctor_file.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/comparison.h"
#include "core/result_record.h"

namespace fdbench {

struct MachineFact {
  std::string name;   // "CPU governor"
  std::string value;  // "performance", "not known"
  std::string worry;  // why figures may suffer from it; empty when they don't
};

struct RoofPoint {
  std::int64_t bytes = 0;  // logical: Q + K + V + O
  double ns = 0.0;         // median
  double bytes_per_s = 0.0;
};

struct MachineReport {
  RunInfo run;
  std::vector<MachineFact> facts;
  std::vector<RoofPoint> roof;  // by size
  std::vector<RowNoise> noise;
};

}  // namespace fdbench
