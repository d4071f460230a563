// The host's half of the kernels that share seed_plan.h: tensor maps and attributes once, then two kernels a
// launch.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>

#include "combine.cuh"
#include "core/error.h"
#include "core/variant.h"
#include "cuda/check.h"
#include "cuda/tensor_map.h"
#include "seed_plan.h"
#include "seed_tile.cuh"

namespace fdbench::seed {

// Checked, because the kernels load 16 bytes at a time.
inline void require_aligned(const char* what, const void* base, std::int64_t stride) {
  if (reinterpret_cast<std::uintptr_t>(base) % 16 != 0 || stride % 8 != 0) {
    throw Error(Exit::failed, std::string(what) + " must lie on multiples of 16 bytes, strides included");
  }
}

inline Params decode_params(const DecodeArgs& args, const LaunchPlan& plan) {
  require_aligned("q", args.q, args.q_head_stride);
  const std::int64_t items = args.heads * plan.splits;
  Params params{};
  params.q = static_cast<const __nv_bfloat16*>(args.q);
  params.partial_o = static_cast<float*>(args.scratch);
  params.partial_lse2 = params.partial_o + items * args.dim;
  params.q_head_stride = args.q_head_stride;
  params.items = static_cast<std::uint32_t>(items);
  params.splits = static_cast<std::uint32_t>(plan.splits);
  params.group = static_cast<std::uint32_t>(args.heads / args.kv_heads);
  params.seq = static_cast<std::int32_t>(args.seq);
  params.chunk = static_cast<std::int32_t>(plan.chunk);
  params.scale_log2 = args.scale * device::kLog2E;
  return params;
}

// The merging kernel, ready: one CTA a head. Of an empty cache it merges nothing, and no other kernel runs.
class Combine {
 public:
  Combine(const DecodeArgs& args, const LaunchPlan& plan, const Params& params)
      : kernel_(args.dim == 64 ? device::combine_partials_kernel<64> : device::combine_partials_kernel<128>),
        heads_(static_cast<unsigned>(args.heads)) {
    params_.partial_o = params.partial_o;
    params_.partial_lse2 = params.partial_lse2;
    params_.o = static_cast<__nv_bfloat16*>(args.o);
    params_.lse = args.lse;
    params_.o_head_stride = args.o_head_stride;
    params_.splits = args.seq > 0 ? static_cast<int>(plan.splits) : 0;
  }

  void launch(cudaStream_t stream) const {
    kernel_<<<heads_, device::kCombineThreads, 0, stream>>>(params_);
    FDBENCH_CUDA_CHECK_LAUNCH(combine_partials_kernel);
  }

 private:
  void (*kernel_)(device::CombineParams);
  unsigned heads_;
  device::CombineParams params_{};
};

// Lets `kernel` have `bytes` of dynamic shared memory, and prefers shared memory to L1.
template <class Kernel>
void allow_smem(Kernel* kernel, std::int64_t bytes) {
  FDBENCH_CUDA_CHECK(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
  FDBENCH_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                          cudaSharedmemCarveoutMaxShared));
}

inline dim3 grid_of(const LaunchPlan& plan) {
  return {static_cast<unsigned>(plan.grid.x), static_cast<unsigned>(plan.grid.y)};
}

using TmaKernel = void (*)(CUtensorMap, CUtensorMap, Params);

class PreparedTma final : public Prepared {
 public:
  // `kernel`: of the args' head dimension.
  PreparedTma(TmaKernel kernel, const DecodeArgs& args, const LaunchPlan& plan)
      : kernel_(kernel),
        params_(decode_params(args, plan)),
        combine_(args, plan, params_),
        grid_(grid_of(plan)),
        smem_(static_cast<std::size_t>(plan.dynamic_smem)) {
    if (params_.seq == 0) return;  // which no tensor map can describe
    const int dims = static_cast<int>(args.dim);
    k_map_ = cuda::encode_kv_map(cuda::k_of(args), dims, kTile, cuda::Swizzle::none);
    v_map_ = cuda::encode_kv_map(cuda::v_of(args), dims, kTile, cuda::Swizzle::none);
    allow_smem(kernel_, plan.dynamic_smem);
  }

  void launch(const LaunchContext& context) override {
    const cudaStream_t stream = static_cast<cudaStream_t>(context.stream);
    if (params_.seq > 0) {
      kernel_<<<grid_, kThreads, smem_, stream>>>(k_map_, v_map_, params_);
      FDBENCH_CUDA_CHECK_LAUNCH(the decode kernel);
    }
    combine_.launch(stream);
  }

 private:
  CUtensorMap k_map_{};
  CUtensorMap v_map_{};
  TmaKernel kernel_;
  Params params_;
  Combine combine_;
  dim3 grid_;
  std::size_t smem_;
};

}  // namespace fdbench::seed
