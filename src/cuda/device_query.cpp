#include "cuda/device_query.h"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/error.h"
#include "cuda/check.h"
#include "cuda/cublas.h"
#include "cuda/device_guard.h"
#include "cuda/nvml.h"

namespace fdbench {
namespace {

// 13000 -> "13.0"
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string uuid_text(const cudaUUID_t& uuid, const char* prefix) {
  std::string text = prefix;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char hex[3];
    std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
    text += hex;
  }
  return text;
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  FDBENCH_CUDA_CHECK(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

}  // namespace

CudaDeviceCount cuda_device_count() {
  CudaDeviceCount found;
  const cudaError_t error = cudaGetDeviceCount(&found.count);
  if (error == cudaSuccess && found.count > 0) return found;
  (void)cudaGetLastError();
  found.count = 0;

  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) {
    (void)cudaGetLastError();
    driver = 0;
  }
  const std::string hidden_by = [] {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    return visible ? " with CUDA_VISIBLE_DEVICES='" + std::string(visible) + "'" : std::string();
  }();
  if (driver == 0) {
    found.why_none = "no NVIDIA driver was found (looked for libcuda.so.1)";
  } else if (error == cudaErrorInsufficientDriver) {
    found.why_none = "the NVIDIA driver supports CUDA " + version_text(driver) +
                     " and this build needs CUDA " + version_text(CUDART_VERSION);
  } else if (error == cudaErrorNoDevice || error == cudaSuccess) {
    found.why_none = "the NVIDIA driver lists none" + hidden_by;
  } else {
    found.why_none = std::string("asking the NVIDIA driver") + hidden_by + " gave " +
                     cudaGetErrorName(error) + " (" + cudaGetErrorString(error) + ")";
  }
  return found;
}

DeviceInfo query_cuda_device(int index) {
  const CudaDeviceCount devices = cuda_device_count();
  if (index < 0 || index >= devices.count) {
    throw Error(Exit::no_device, devices.count == 0 ? "no CUDA device: " + devices.why_none
                                                    : "cuda:" + std::to_string(index) +
                                                          " does not exist: the last one is cuda:" +
                                                          std::to_string(devices.count - 1));
  }

  cudaDeviceProp properties{};
  FDBENCH_CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
  DeviceInfo info;
  info.kind = BackendKind::cuda;
  info.index = index;
  info.name = properties.name;
  info.uuid = uuid_text(properties.uuid, "GPU-");
  info.cc = 10 * properties.major + properties.minor;
  info.sms = properties.multiProcessorCount;
  info.l2_bytes = properties.l2CacheSize;
  info.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  info.smem_per_sm = static_cast<std::int64_t>(properties.sharedMemPerMultiprocessor);
  info.smem_per_block = static_cast<std::int64_t>(properties.sharedMemPerBlockOptin);
  info.regs_per_sm = properties.regsPerMultiprocessor;
  info.threads_per_sm = properties.maxThreadsPerMultiProcessor;
  info.ctas_per_sm = properties.maxBlocksPerMultiProcessor;
  info.cooperative_launch = attribute(cudaDevAttrCooperativeLaunch, index) != 0;

  const std::int64_t clock_khz = attribute(cudaDevAttrMemoryClockRate, index);
  const std::int64_t bus_bits = attribute(cudaDevAttrGlobalMemoryBusWidth, index);
  if (clock_khz > 0 && bus_bits > 0) {
    info.bandwidth_datasheet =
        2.0 * static_cast<double>(clock_khz) * 1e3 * static_cast<double>(bus_bits) / 8.0;
  }

  {
    const cuda::DeviceGuard guard(index);
    std::size_t available = 0;
    std::size_t total = 0;
    FDBENCH_CUDA_CHECK(cudaMemGetInfo(&available, &total));
    info.memory_available_bytes = static_cast<std::int64_t>(available);
  }

  int driver = 0;
  FDBENCH_CUDA_CHECK(cudaDriverGetVersion(&driver));
  info.driver = "CUDA " + version_text(driver);
  auto nvml = cuda::read_nvml(info.uuid);
  if (!nvml) {
    // A slice of a partitioned GPU goes by another name.
    const std::string slice = uuid_text(properties.uuid, "MIG-");
    nvml = cuda::read_nvml(slice);
    if (nvml) {
      info.uuid = slice;
      info.mig = true;
    }
  }
  if (nvml) {
    if (!nvml->driver.empty()) info.driver = nvml->driver;
    info.power_limit_w = nvml->power_limit_w;
    if (!info.mig) info.mig = nvml->mig;
  }
  info.cublas = cuda::cublas_version();
  return info;
}

}  // namespace fdbench
