// What the seed kernels do with a tile once it lies in shared memory, on CUDA cores.
//
// 128 threads; kDim / 8 of them share a row (a token), 8 dimensions each, so that a warp reads whole
// consecutive 16-byte lines and no two lanes meet in a bank. Each such group of threads has a softmax state
// of its own over the rows that it saw; they meet at the end of an item.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "bulk_copy.cuh"
#include "mbarrier.cuh"
#include "reduce.cuh"
#include "seed_plan.h"
#include "softmax_state.cuh"

namespace fdbench::seed {

struct Params {
  const __nv_bfloat16* q;  // [heads, dim]
  float* partial_o;        // [heads, splits, dim], normalised
  float* partial_lse2;     // [heads, splits], log2 of the sum of 2^(scale * score * log2 e)
  std::int64_t q_head_stride;
  std::uint32_t items;   // heads * splits, below 2^31
  std::uint32_t splits;  // a head
  std::uint32_t group;   // query heads a KV head
  std::int32_t seq;
  std::int32_t chunk;
  float scale_log2;  // softmax scale * log2 e
};

// The tiles of a CTA's items, in order. Item i is chunk i % splits of head i / splits; the CTA takes every
// gridDim-th. Uniform over the CTA.
class TileCursor {
 public:
  __device__ __forceinline__ explicit TileCursor(const Params& params)
      : item_(blockIdx.y * gridDim.x + blockIdx.x) {
    open(params);
  }

  __device__ __forceinline__ bool done(const Params& params) const { return item_ >= params.items; }
  __device__ __forceinline__ std::uint32_t item() const { return item_; }
  __device__ __forceinline__ int kv_head() const { return kv_head_; }
  __device__ __forceinline__ int row() const { return row_; }
  // Rows of the tile that are the item's; more than kTile when all are and others follow.
  __device__ __forceinline__ int rows() const { return end_ - row_; }

  __device__ __forceinline__ void advance(const Params& params) {
    row_ += kTile;
    if (row_ < end_) return;
    item_ += gridDim.x * gridDim.y;  // at most `items`, so no more than 2^32
    open(params);
  }

 private:
  __device__ __forceinline__ void open(const Params& params) {
    if (done(params)) {
      row_ = end_ = 0;
      return;
    }
    const std::uint32_t head = item_ / params.splits;
    row_ = static_cast<std::int32_t>(item_ - head * params.splits) * params.chunk;
    end_ = params.chunk < params.seq - row_ ? row_ + params.chunk : params.seq;
    kv_head_ = static_cast<std::int32_t>(head / params.group);
  }

  std::uint32_t item_;
  std::int32_t kv_head_ = 0;
  std::int32_t row_;
  std::int32_t end_;
};

// Starts the copy of the cursor's K or V tile [kTile, kDim]. One thread calls; the tile must be free.
template <int kDim>
__device__ __forceinline__ void load_tile(__nv_bfloat16* tile, const CUtensorMap* map,
                                          const TileCursor& cursor, ptx::Mbarrier* full) {
  constexpr std::uint32_t kBytes = tile_bytes(kDim);
  ptx::mbarrier_arrive_expect_tx(full, kBytes);
  ptx::cp_async_bulk_tensor_3d(tile, map, 0, cursor.kv_head(), cursor.row(), full);
}

template <int kDim>
struct Layout {
  static constexpr int kVector = 8;  // dimensions a thread
  static constexpr int kLanes = kDim / kVector;
  static constexpr int kRowsAtOnce = kThreads / kLanes;
  static constexpr int kRows = kTile / kRowsAtOnce;  // a thread, of a tile
  static_assert(kDim % kVector == 0 && 32 % kLanes == 0 && kTile % kRowsAtOnce == 0);
};

struct Vector8 {
  float x[8];
};

__device__ __forceinline__ Vector8 load8(const __nv_bfloat16* from) {
  const uint4 words = *reinterpret_cast<const uint4*>(from);
  const std::uint32_t word[4] = {words.x, words.y, words.z, words.w};
  Vector8 out;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    out.x[2 * i] = __uint_as_float(word[i] << 16);
    out.x[2 * i + 1] = __uint_as_float(word[i] & 0xffff0000u);
  }
  return out;
}

// One thread's share of an item.
template <int kDim>
class Attention {
 public:
  using L = Layout<kDim>;

  // Takes 8 dimensions of the item's query, scaled so that scores are exponents of 2.
  __device__ __forceinline__ void begin(const Params& params, std::uint32_t item) {
    const std::int64_t head = item / params.splits;
    const Vector8 q = load8(params.q + head * params.q_head_stride + lane() * L::kVector);
#pragma unroll
    for (int i = 0; i < L::kVector; ++i) {
      q_.x[i] = q.x[i] * params.scale_log2;
      sum_.x[i] = 0.0f;
    }
    state_ = device::empty_state();
  }

  // Scores of this thread's rows of a K tile [kTile, kDim]; -inf from row `rows` on. The same for all lanes
  // of a row.
  __device__ __forceinline__ void score(const __nv_bfloat16* k, int rows) {
#pragma unroll
    for (int i = 0; i < L::kRows; ++i) {
      const Vector8 key = load8(k + offset(i));
      float dot = q_.x[0] * key.x[0];
#pragma unroll
      for (int j = 1; j < L::kVector; ++j) dot = fmaf(q_.x[j], key.x[j], dot);
      score_[i] = dot;
    }
#pragma unroll
    for (int i = 0; i < L::kRows; ++i) score_[i] = device::lanes_sum<L::kLanes>(score_[i]);
    if (rows < kTile) {
#pragma unroll
      for (int i = 0; i < L::kRows; ++i) {
        if (row_of(i) >= rows) score_[i] = device::minus_infinity();
      }
    }
  }

  // Adds the V tile [kTile, kDim] of the rows just scored. Rows from `rows` on are not read: a weight of zero
  // would not undo a NaN.
  __device__ __forceinline__ void accumulate(const __nv_bfloat16* v, int rows) {
    float m = state_.m;
#pragma unroll
    for (int i = 0; i < L::kRows; ++i) m = fmaxf(m, score_[i]);
    const float from = device::subtrahend(m);
    const float old = device::ex2_approx(state_.m - from);
    state_.m = m;
    state_.l *= old;
#pragma unroll
    for (int i = 0; i < L::kRows; ++i) {
      score_[i] = device::ex2_approx(score_[i] - from);
      state_.l += score_[i];
    }
#pragma unroll
    for (int j = 0; j < L::kVector; ++j) sum_.x[j] *= old;
    if (rows >= kTile) {
#pragma unroll
      for (int i = 0; i < L::kRows; ++i) add(load8(v + offset(i)), score_[i]);
    } else {
#pragma unroll
      for (int i = 0; i < L::kRows; ++i) {
        if (row_of(i) < rows) add(load8(v + offset(i)), score_[i]);
      }
    }
  }

  // Merges the CTA's threads and writes the item's partial output. All threads call. `scratch`: kMergeFloats
  // of shared memory that no thread reads any more; they may be used anew after the next barrier.
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kMergeFloats = kWarps * (kDim + 2);
  __device__ __forceinline__ void finish(const Params& params, std::uint32_t item, float* scratch) {
#pragma unroll
    for (int step = L::kLanes; step < 32; step *= 2) {  // the other rows of this warp
      const device::SoftmaxState other = {__shfl_xor_sync(device::kAllLanes, state_.m, step),
                                          __shfl_xor_sync(device::kAllLanes, state_.l, step)};
      const device::MergeWeights weights = device::merge(state_, other);
#pragma unroll
      for (int j = 0; j < L::kVector; ++j) {
        const float there = __shfl_xor_sync(device::kAllLanes, sum_.x[j], step);
        sum_.x[j] = sum_.x[j] * weights.a + there * weights.b;
      }
    }
    const int warp = static_cast<int>(threadIdx.x) / 32;
    float* const sums = scratch;                    // [kWarps, kDim]
    float* const states = scratch + kWarps * kDim;  // [kWarps, 2]
    if (static_cast<int>(threadIdx.x) % 32 < L::kLanes) {
      float4* const to = reinterpret_cast<float4*>(sums + warp * kDim + lane() * L::kVector);
      to[0] = {sum_.x[0], sum_.x[1], sum_.x[2], sum_.x[3]};
      to[1] = {sum_.x[4], sum_.x[5], sum_.x[6], sum_.x[7]};
    }
    if (static_cast<int>(threadIdx.x) % 32 == 0) {
      states[2 * warp] = state_.m;
      states[2 * warp + 1] = state_.l;
    }
    __syncthreads();
    const int d = static_cast<int>(threadIdx.x);
    if (d >= kDim) return;
    device::SoftmaxState total = device::empty_state();
    float o = 0.0f;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const device::MergeWeights weights =
          device::merge(total, device::SoftmaxState{states[2 * w], states[2 * w + 1]});
      o = o * weights.a + sums[w * kDim + d] * weights.b;
    }
    params.partial_o[std::int64_t{item} * kDim + d] = o * device::normaliser(total);
    if (d == 0) params.partial_lse2[item] = device::log2_sum(total);
  }

 private:
  static __device__ __forceinline__ int lane() {
    return static_cast<int>(threadIdx.x) % L::kLanes;
  }
  static __device__ __forceinline__ int row_of(int i) {
    return i * L::kRowsAtOnce + static_cast<int>(threadIdx.x) / L::kLanes;
  }
  static __device__ __forceinline__ int offset(int i) {
    return row_of(i) * kDim + lane() * L::kVector;
  }

  __device__ __forceinline__ void add(const Vector8& value, float weight) {
#pragma unroll
    for (int j = 0; j < L::kVector; ++j) sum_.x[j] = fmaf(weight, value.x[j], sum_.x[j]);
  }

  Vector8 q_;
  Vector8 sum_;  // of 2^(score - m) * v
  float score_[L::kRows];
  device::SoftmaxState state_;
};

}  // namespace fdbench::seed
