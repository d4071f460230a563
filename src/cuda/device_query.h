// What CUDA devices there are. Free of CUDA headers.
#pragma once

#include <string>

#include "core/device_info.h"

namespace fdbench {

struct CudaDeviceCount {
  int count = 0;
  std::string why_none;  // what was looked for, to follow "no CUDA device: "; empty where count > 0
};

// Never throws, and needs no driver: a machine that has none is an answer.
CudaDeviceCount cuda_device_count();

// Everything in DeviceInfo, read from device `index`, which needs a context on it; the current device is left
// as it was. `bandwidth_datasheet` is peak memory clock x bus width x 2 (double data rate), where the driver
// gives both. Throws Error: Exit::no_device where there is no such device.
DeviceInfo query_cuda_device(int index);

}  // namespace fdbench
