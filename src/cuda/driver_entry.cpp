#include "cuda/driver_entry.h"

#include <cuda_runtime_api.h>

#include <string>

#include "core/error.h"
#include "cuda/check.h"

namespace fdbench::cuda {

void* driver_entry(const char* name, unsigned version) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  FDBENCH_CUDA_CHECK(cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found));
#else
  (void)version;
  FDBENCH_CUDA_CHECK(cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found));
#endif
  if (found != cudaDriverEntryPointSuccess || !function) {
    throw Error(Exit::failed, "the NVIDIA driver has no function " + std::string(name) +
                                  (found == cudaDriverEntryPointVersionNotSufficent
                                       ? ": it is older than CUDA " + std::to_string(version / 1000) + "." +
                                             std::to_string(version % 1000 / 10)
                                       : std::string()));
  }
  return function;
}

}  // namespace fdbench::cuda
