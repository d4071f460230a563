// The NVIDIA management library, loaded at run time where there is one. It is read, never written. Free of
// its headers and of CUDA's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fdbench::cuda {

// Fields that the device does not give are absent.
struct NvmlReading {
  std::string driver;                   // "580.159.04"
  std::optional<double> power_limit_w;  // the limit in force
  std::optional<double> power_w;        // drawn now
  std::optional<double> sm_mhz;         // now
  std::optional<double> sm_max_mhz;
  std::optional<double> memory_mhz;  // now
  std::optional<double> temperature_c;
  std::optional<bool> ecc;                // memory errors are corrected
  std::optional<int> processes;           // computing on it now
  std::optional<bool> mig;                // partitioned into instances
  std::optional<std::uint64_t> throttle;  // bits, why the clocks are not higher; see throttle_reasons
};

// The device of that UUID ("GPU-..." or "MIG-..."); nothing where the library or the device is not found.
std::optional<NvmlReading> read_nvml(const std::string& uuid);

// The set bits of NvmlReading::throttle in words ("power cap", "thermal, hardware", ...), idling left out.
std::vector<std::string> throttle_reasons(std::uint64_t bits);

}  // namespace fdbench::cuda
