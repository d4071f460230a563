// The host's half of the seed kernels: tensor maps and attributes once, then two kernels a launch.
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

using DecodeKernel = void (*)(CUtensorMap, CUtensorMap, Params);
using CombineKernel = void (*)(device::CombineParams);

// Both kernels for one head dimension.
struct Kernels {
  DecodeKernel decode = nullptr;
  CombineKernel combine = nullptr;
};

class PreparedSeed final : public Prepared {
 public:
  PreparedSeed(const Kernels& kernels, const DecodeArgs& args, const LaunchPlan& plan)
      : kernels_(kernels),
        grid_(static_cast<unsigned>(plan.grid.x), static_cast<unsigned>(plan.grid.y)),
        heads_(static_cast<unsigned>(args.heads)),
        smem_(static_cast<std::size_t>(plan.dynamic_smem)),
        has_tokens_(args.seq > 0) {
    const std::int64_t items = args.heads * plan.splits;
    params_.q = static_cast<const __nv_bfloat16*>(args.q);
    params_.partial_o = static_cast<float*>(args.scratch);
    params_.partial_lse2 = params_.partial_o + items * args.dim;
    params_.q_head_stride = args.q_head_stride;
    params_.items = static_cast<std::uint32_t>(items);
    params_.splits = static_cast<std::uint32_t>(plan.splits);
    params_.group = static_cast<std::uint32_t>(args.heads / args.kv_heads);
    params_.seq = static_cast<std::int32_t>(args.seq);
    params_.chunk = static_cast<std::int32_t>(plan.chunk);
    params_.scale_log2 = args.scale * 1.4426950408889634f;

    combine_.partial_o = params_.partial_o;
    combine_.partial_lse2 = params_.partial_lse2;
    combine_.o = static_cast<__nv_bfloat16*>(args.o);
    combine_.lse = args.lse;
    combine_.o_head_stride = args.o_head_stride;
    combine_.splits = has_tokens_ ? static_cast<int>(plan.splits) : 0;

    // No tensor map describes an empty cache: the merge of nothing is all there is to launch.
    if (!has_tokens_) return;
    const auto map = [&](const void* base, std::int64_t seq_stride, std::int64_t head_stride) {
      return cuda::encode_kv_map({.base = base,
                                  .dtype = args.dtype,
                                  .seq = args.seq,
                                  .kv_heads = args.kv_heads,
                                  .dim = args.dim,
                                  .seq_stride = seq_stride,
                                  .head_stride = head_stride},
                                 static_cast<int>(args.dim), kTile, cuda::Swizzle::none);
    };
    k_map_ = map(args.k, args.k_seq_stride, args.k_head_stride);
    v_map_ = map(args.v, args.v_seq_stride, args.v_head_stride);
    FDBENCH_CUDA_CHECK(cudaFuncSetAttribute(kernels_.decode, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(plan.dynamic_smem)));
    FDBENCH_CUDA_CHECK(cudaFuncSetAttribute(kernels_.decode, cudaFuncAttributePreferredSharedMemoryCarveout,
                                            cudaSharedmemCarveoutMaxShared));
  }

  void launch(const LaunchContext& context) override {
    const cudaStream_t stream = static_cast<cudaStream_t>(context.stream);
    if (has_tokens_) {
      kernels_.decode<<<grid_, kThreads, smem_, stream>>>(k_map_, v_map_, params_);
      FDBENCH_CUDA_CHECK_LAUNCH(the seed kernel);
    }
    kernels_.combine<<<heads_, device::kCombineThreads, 0, stream>>>(combine_);
    FDBENCH_CUDA_CHECK_LAUNCH(combine_partials_kernel);
  }

 private:
  CUtensorMap k_map_{};
  CUtensorMap v_map_{};
  Params params_{};
  device::CombineParams combine_{};
  Kernels kernels_;
  dim3 grid_;
  unsigned heads_;
  std::size_t smem_;
  bool has_tokens_;
};

// `dim64` and `dim128`: the kernels for those head dimensions.
inline std::unique_ptr<Prepared> prepare(const DecodeArgs& args, const LaunchPlan& plan, DecodeKernel dim64,
                                         DecodeKernel dim128) {
  if (reinterpret_cast<std::uintptr_t>(args.q) % 16 != 0 || args.q_head_stride % 8 != 0) {
    throw Error(Exit::failed, "q and each of its heads must start at a multiple of 16 bytes");
  }
  const Kernels kernels = args.dim == 64 ? Kernels{dim64, device::combine_partials_kernel<64>}
                                         : Kernels{dim128, device::combine_partials_kernel<128>};
  return std::make_unique<PreparedSeed>(kernels, args, plan);
}

}  // namespace fdbench::seed
