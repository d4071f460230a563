// Merges the partial outputs that the CTAs of a split kernel left in scratch: the second kernel of those that
// launch one.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "core/variant.h"
#include "softmax_state.cuh"

namespace fdbench::device {

struct CombineParams {
  const float* partial_o;     // [heads, splits, dim], each normalised; undefined where its log2-sum is -inf
  const float* partial_lse2;  // [heads, splits], log2 of the sum of 2^(score * log2 e); -inf: empty
  __nv_bfloat16* o;           // [heads, dim]
  float* lse;                 // [heads], natural log; null when not asked for
  std::int64_t o_head_stride;
  int splits;  // 0 is legal
};

inline constexpr int kCombineThreads = 256;

// What a variant that launches combine_partials_kernel declares for it.
constexpr KernelResources combine_resources(int cc) {
  return {.kernel = "combine_partials_kernel",
          .cc = cc,
          .registers = 48,
          .static_smem = 4224,
          .threads = kCombineThreads,
          .ctas_per_sm = 5};
}

// One CTA of kCombineThreads a head. A row of kDim / 4 threads, four dimensions each, takes every kRows-th
// split; the rows meet in shared memory. A head whose splits are all empty, or that has none, gets o = 0 and
// lse = -inf.
template <int kDim>
__global__ void __launch_bounds__(kCombineThreads) combine_partials_kernel(const CombineParams params) {
  constexpr int kLanes = kDim / 4;
  constexpr int kRows = kCombineThreads / kLanes;
  constexpr int kAtOnce = 4;  // splits a row loads before it uses the first
  static_assert(kDim <= kCombineThreads);
  __shared__ SoftmaxState states[kRows];
  __shared__ float4 sums[kRows][kLanes];

  const int head = static_cast<int>(blockIdx.x);
  const int row = static_cast<int>(threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t first_item = std::int64_t{head} * params.splits;
  const float* const head_lse2 = params.partial_lse2 + first_item;
  const float4* const head_o = reinterpret_cast<const float4*>(params.partial_o) + first_item * kLanes;

  SoftmaxState state = empty_state();
  float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
  for (int base = row; base < params.splits; base += kRows * kAtOnce) {
    float lse2[kAtOnce];
    float4 part[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int split = base + i * kRows;
      lse2[i] = minus_infinity();
      part[i] = {0.0f, 0.0f, 0.0f, 0.0f};
      if (split < params.splits) {
        lse2[i] = head_lse2[split];
        part[i] = head_o[std::int64_t{split} * kLanes + lane];
      }
    }
    float m = state.m;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) m = fmaxf(m, lse2[i]);
    const float from = subtrahend(m);
    const float old = ex2_approx(state.m - from);
    state.m = m;
    state.l *= old;
    sum.x *= old, sum.y *= old, sum.z *= old, sum.w *= old;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (lse2[i] == minus_infinity()) continue;  // what lies there may be NaN
      const float weight = ex2_approx(lse2[i] - from);
      state.l += weight;
      sum.x += weight * part[i].x;
      sum.y += weight * part[i].y;
      sum.z += weight * part[i].z;
      sum.w += weight * part[i].w;
    }
  }

  if (lane == 0) states[row] = state;
  sums[row][lane] = sum;
  __syncthreads();
  const int d = static_cast<int>(threadIdx.x);
  if (d >= kDim) return;
  SoftmaxState total = empty_state();
  float o = 0.0f;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const MergeWeights weights = merge(total, states[r]);
    o = o * weights.a + reinterpret_cast<const float*>(sums[r])[d] * weights.b;
  }
  params.o[std::int64_t{head} * params.o_head_stride + d] = __float2bfloat16_rn(o * normaliser(total));
  if (d == 0 && params.lse != nullptr) params.lse[head] = log2_sum(total) * kLn2;
}

}  // namespace fdbench::device
