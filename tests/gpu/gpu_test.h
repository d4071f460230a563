// What the tests of tests/gpu share: a backend, or a reason to skip.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/cuda_backend.h"
#include "bench/buffers.h"
#include "bench/validation.h"
#include "cli/variant_table.h"

namespace fdbench {

// Why GPU tests can't run here; empty when they can. FDBENCH_REQUIRE_GPU=1 makes that a failure.
inline std::string no_gpu() {
  const CudaDeviceCount devices = cuda_device_count();
  return devices.count > 0 ? std::string() : "no CUDA device: " + devices.why_none;
}

inline bool gpu_required() {
  const char* value = std::getenv("FDBENCH_REQUIRE_GPU");
  return value != nullptr && std::string(value) == "1";
}

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = no_gpu();
    if (!why.empty()) {
      if (gpu_required()) FAIL() << "FDBENCH_REQUIRE_GPU=1 but there is " << why;
      GTEST_SKIP() << "skipped: " << why;
    }
    backend_ = make_cuda_backend(0);
  }

  Backend& backend() { return *backend_; }
  const DeviceInfo& device() { return backend_->device(); }

  std::unique_ptr<Backend> backend_;
};

inline const Variant& cuda_oracle() {
  return *find_role(variant_table(), BackendKind::cuda, Role::oracle);
}

// The CUDA variants that compute attention.
inline std::vector<const Variant*> attention_variants() {
  std::vector<const Variant*> found;
  for (const Variant* variant : variant_table()) {
    if (variant->backend == BackendKind::cuda &&
        (variant->role == Role::candidate || variant->role == Role::reference)) {
      found.push_back(variant);
    }
  }
  return found;
}

template <class T>
std::vector<T> downloaded(Backend& backend, const void* from, std::int64_t count) {
  std::vector<T> host(static_cast<std::size_t>(count));
  backend.download(host.data(), from, count * static_cast<std::int64_t>(sizeof(T)));
  return host;
}

inline Problem problem_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t seq, std::int64_t dim = 128,
                          Dtype dtype = Dtype::bf16) {
  Problem problem;
  problem.seq = seq;
  problem.heads = heads;
  problem.kv_heads = kv_heads;
  problem.dim = dim;
  problem.dtype = dtype;
  return problem;
}

}  // namespace fdbench
