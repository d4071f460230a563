// The host's half of the split_kv kernels: parameters and attributes once, then one launch.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "core/error.h"
#include "core/variant.h"
#include "cuda/check.h"
#include "split_params.h"
#include "split_plan.h"

namespace fdbench::split {

inline Cut cut_of(const LaunchPlan& plan, Merge merge) {
  return {plan.splits, merge, plan.grid.z};
}

inline Params make_params(const DecodeArgs& args, const LaunchPlan& plan, Merge merge) {
  const std::int64_t group = args.heads / args.kv_heads;
  const Pieces made = pieces(args.kv_heads, group, args.dim, cut_of(plan, merge));
  const std::int64_t units = ceil_div(args.seq, unit_tokens(args.dim));
  Params params;
  const bool in_turn = deals_in_turn(args.kv_heads);
  const std::int64_t takers = plan.splits * (in_turn ? kWarps : 1);
  params.each = static_cast<std::int32_t>(units / takers);
  params.rest = static_cast<std::int32_t>(units % takers);
  params.in_turn = in_turn ? 1 : 0;
  params.stages = static_cast<std::int32_t>(plan.stages);
  params.group = static_cast<std::int32_t>(group);
  params.rows = made.rows;
  params.seq = static_cast<std::int32_t>(args.seq);
  params.splits = static_cast<std::int32_t>(plan.splits);
  params.meeting = made.meeting;
  params.scale_log2 = args.scale * 1.4426950408889634f;
  params.q = args.q;
  params.q_head_stride = args.q_head_stride;
  params.o = args.o;
  params.o_head_stride = args.o_head_stride;
  params.lse = args.lse;
  char* const slots = static_cast<char*>(plan.cooperative ? args.zeroed : args.scratch);
  if (made.slots > 0) {
    params.slot_o = slots;
    params.slot_ml = slots + made.slots * 16;
  }
  if (merge == Merge::last_cta) params.arrivals = static_cast<std::uint32_t*>(args.zeroed);
  params.k = args.k;
  params.v = args.v;
  params.k_seq_stride = args.k_seq_stride;
  params.k_head_stride = args.k_head_stride;
  params.v_seq_stride = args.v_seq_stride;
  params.v_head_stride = args.v_head_stride;
  return params;
}

// What the kernels read and write by words of several elements.
inline void check_alignment(const DecodeArgs& args) {
  const auto address = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
  if (address(args.q) % 4 != 0 || args.q_head_stride % 2 != 0) {
    throw Error(Exit::failed, "q and each of its heads must start at a multiple of 4 bytes");
  }
  if (address(args.o) % 8 != 0 || args.o_head_stride % 4 != 0) {
    throw Error(Exit::failed, "o and each of its heads must start at a multiple of 8 bytes");
  }
}

// One launch of one kernel, with its attributes.
class SplitLaunch {
 public:
  SplitLaunch(const void* kernel, const LaunchPlan& plan, const DeviceInfo& device) : kernel_(kernel) {
    // The most there is: plans that use the same kernel with less must not take it from those with more.
    FDBENCH_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(device.smem_per_block)));
    FDBENCH_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                            cudaSharedmemCarveoutMaxShared));
    config_.gridDim = dim3(static_cast<unsigned>(plan.grid.x), static_cast<unsigned>(plan.grid.y),
                           static_cast<unsigned>(plan.grid.z));
    config_.blockDim = dim3(static_cast<unsigned>(plan.block.x));
    config_.dynamicSmemBytes = static_cast<std::size_t>(plan.dynamic_smem);
    if (plan.cluster.x > 1) {
      if (plan.cluster.x > 8) {
        FDBENCH_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
      }
      cudaLaunchAttribute& cluster = attributes_[config_.numAttrs++];
      cluster.id = cudaLaunchAttributeClusterDimension;
      cluster.val.clusterDim = {static_cast<unsigned>(plan.cluster.x), 1, 1};
    }
    if (plan.cooperative) {
      cudaLaunchAttribute& cooperative = attributes_[config_.numAttrs++];
      cooperative.id = cudaLaunchAttributeCooperative;
      cooperative.val.cooperative = 1;
    }
  }

  template <std::size_t kArguments>
  void run(std::array<void*, kArguments> arguments, void* stream) {
    config_.attrs = attributes_.data();
    config_.stream = static_cast<cudaStream_t>(stream);
    FDBENCH_CUDA_CHECK(cudaLaunchKernelExC(&config_, kernel_, arguments.data()));
  }

 private:
  const void* kernel_;
  cudaLaunchConfig_t config_{};
  std::array<cudaLaunchAttribute, 2> attributes_{};
};

}  // namespace fdbench::split
