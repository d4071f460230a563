// Every CUDA call is checked: what failed, where, and the error's own name.
#pragma once

#include <cuda_runtime_api.h>

namespace fdbench::cuda {

// Throws Error(Exit::failed): "<expression> failed at <file>:<line>: <error name> (<description>)". Clears
// the runtime's last error, so that a failure that leaves the device usable is reported once only.
[[noreturn]] void fail(cudaError_t error, const char* expression, const char* file, int line);

inline void check(cudaError_t error, const char* expression, const char* file, int line) {
  if (error != cudaSuccess) fail(error, expression, file, line);
}

// The file's path from src/, kernels/ or tests/ on, whatever the build's working directory was.
const char* short_path(const char* file);

}  // namespace fdbench::cuda

#define FDBENCH_CUDA_CHECK(expression) ::fdbench::cuda::check((expression), #expression, __FILE__, __LINE__)

// After kernel<<<...>>>(...): did the launch itself go through?
#define FDBENCH_CUDA_CHECK_LAUNCH(kernel) \
  ::fdbench::cuda::check(cudaGetLastError(), "launch of " #kernel, __FILE__, __LINE__)
