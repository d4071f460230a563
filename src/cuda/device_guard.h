// Makes a device current and, on leaving, the one that was current before.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/check.h"

namespace fdbench::cuda {

class DeviceGuard {
 public:
  explicit DeviceGuard(int device) {
    FDBENCH_CUDA_CHECK(cudaGetDevice(&previous_));
    if (device != previous_) FDBENCH_CUDA_CHECK(cudaSetDevice(device));
    changed_ = device != previous_;
  }
  ~DeviceGuard() {
    if (changed_) (void)cudaSetDevice(previous_);
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int previous_ = 0;
  bool changed_ = false;
};

}  // namespace fdbench::cuda
