// How partial results meet: over the warps of a CTA, then over the CTAs of a head. Always in the order of
// warps and splits, whoever arrives last, so that the same plan gives the same bits.
//
// The quads of a block (split_params.h) are dealt out to owners, in pieces. Each CTA brings its partial
// results to every owner's slots; each owner adds its slots up and writes its piece of the output.
//   last_cta  One owner: the CTA that arrives last (atom_inc_acq_rel; the counter wraps to zero by itself).
//   shared    Every CTA owns a piece, slots lie in global memory. A slot says by itself that it was written:
//   no
//             word of it is ever zero bits, and all are zero before. So words travel without fence or
//             counter, in one trip, and their only reader puts the zeros back.
//   cluster   Every CTA owns a piece, slots lie in its shared memory; the others fill them with st.async,
//   which
//             counts the bytes on the owner's mbarrier.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "atomics.cuh"
#include "cluster.cuh"
#include "flash_tile.cuh"
#include "mbarrier.cuh"
#include "shared_address.cuh"
#include "softmax_state.cuh"
#include "split_params.h"

namespace fdbench::split {

// What a CTA is responsible for.
struct Block {
  int first_head;  // query head of row 0
  int rows;        // query heads
  int split;
  std::int64_t index;  // over all KV heads
};

__device__ __forceinline__ Block this_block(const Params& params, int max_rows) {
  const int part = static_cast<int>(blockIdx.z) * max_rows;
  Block block;
  block.first_head = static_cast<int>(blockIdx.y) * params.group + part;
  block.rows = min(params.group - part, max_rows);
  block.split = static_cast<int>(blockIdx.x);
  block.index = std::int64_t{blockIdx.y} * gridDim.z + blockIdx.z;
  return block;
}

// Slots of one owner: [split, quad of the piece] and [split, row of the piece], so that what one split writes
// for one owner lies together.
struct Slots {
  float4* o;
  float2* ml;
};

template <int kDim>
__device__ __forceinline__ int rows_of_piece(const Params& params) {
  return max(1, (1 << params.piece_log2) / (kDim / 4));
}

// How many of the block's `quads` this owner finishes.
__device__ __forceinline__ int piece_of(const Params& params, int owner, int quads) {
  return max(0, min(1 << params.piece_log2, quads - (owner << params.piece_log2)));
}

template <int kDim, Merge kMerge>
__device__ __forceinline__ Slots global_slots(const Params& params, const Block& block, int owner) {
  const std::int64_t place =
      (kMerge == Merge::last_cta ? block.index : block.index * params.splits + owner) * params.splits;
  return {static_cast<float4*>(params.slot_o) + (place << params.piece_log2),
          static_cast<float2*>(params.slot_ml) + place * rows_of_piece<kDim>(params)};
}

// Called when the kernel starts.
//
// One thread opens a cluster's inbox, before barrier_cluster_arrive_relaxed.
template <int kDim>
__device__ __forceinline__ void open_inbox(ptx::Mbarrier* barrier, const Params& params, const Block& block) {
  constexpr int kQuads = kDim / 4;
  const int quads = piece_of(params, block.split, block.rows * kQuads);
  const int rows = (quads + kQuads - 1) / kQuads;
  ptx::mbarrier_init(barrier, 1);
  ptx::fence_mbarrier_init();
  ptx::mbarrier_arrive_expect_tx(barrier,
                                 static_cast<std::uint32_t>((quads * 16 + rows * 8) * params.splits));
}

// All threads: slots that this CTA will read, on their way into L2 while the tokens still come. Zeroed slots
// lie in memory otherwise, and the first look at one would wait for it.
template <int kDim, Merge kMerge>
__device__ __forceinline__ void prefetch_slots(const Params& params, const Block& block) {
  const Slots slots = global_slots<kDim, kMerge>(params, block, block.split);
  const int step = static_cast<int>(blockDim.x) * 128;
  const int o_bytes = params.splits << (params.piece_log2 + 4);
  for (int at = static_cast<int>(threadIdx.x) * 128; at < o_bytes; at += step) {
    ptx::prefetch_l2(reinterpret_cast<const char*>(slots.o) + at);
  }
  const int ml_bytes = params.splits * rows_of_piece<kDim>(params) * 8;
  for (int at = static_cast<int>(threadIdx.x) * 128; at < ml_bytes; at += step) {
    ptx::prefetch_l2(reinterpret_cast<const char*>(slots.ml) + at);
  }
}

// Brings what the merge needs of `params` into the constant cache, while tokens are on their way.
__device__ __forceinline__ void touch_constants(const Params& params) {
  asm volatile("" ::"l"(params.o), "l"(params.lse), "l"(params.slot_ml), "l"(params.arrivals));
}

// Four sums of weight * v, relative to maximum m, and the weights' sum l.
struct Partial {
  float4 o = {0.0f, 0.0f, 0.0f, 0.0f};
  float m = device::minus_infinity();
  float l = 0.0f;
};

__device__ __forceinline__ void add_weighted(Partial& sum, float4 o, float l, float weight) {
  sum.o.x += o.x * weight;
  sum.o.y += o.y * weight;
  sum.o.z += o.z * weight;
  sum.o.w += o.w * weight;
  sum.l += l * weight;
}

// kCount partial results, absent ones empty, into `sum`.
template <int kCount>
__device__ __forceinline__ void merge_into(Partial& sum, const float4 (&o)[kCount],
                                           const float2 (&ml)[kCount]) {
  Partial merged;
  merged.m = sum.m;
#pragma unroll
  for (int i = 0; i < kCount; ++i) merged.m = fmaxf(merged.m, ml[i].x);
  const float base = device::subtrahend(merged.m);
  add_weighted(merged, sum.o, sum.l, device::ex2_approx(sum.m - base));
#pragma unroll
  for (int i = 0; i < kCount; ++i) add_weighted(merged, o[i], ml[i].y, device::ex2_approx(ml[i].x - base));
  sum = merged;
}

// Over the lanes whose numbers differ in bits `first` to 16; all get the result.
__device__ __forceinline__ void merge_lanes(Partial& part, int first) {
  float m = part.m;
  for (int step = first; step < 32; step *= 2) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, step));
  const float weight = device::ex2_approx(part.m - device::subtrahend(m));
  part.o.x *= weight;
  part.o.y *= weight;
  part.o.z *= weight;
  part.o.w *= weight;
  part.l *= weight;
  part.m = m;
  for (int step = first; step < 32; step *= 2) {
    part.o.x += __shfl_xor_sync(0xffffffffu, part.o.x, step);
    part.o.y += __shfl_xor_sync(0xffffffffu, part.o.y, step);
    part.o.z += __shfl_xor_sync(0xffffffffu, part.o.z, step);
    part.o.w += __shfl_xor_sync(0xffffffffu, part.o.w, step);
    part.l += __shfl_xor_sync(0xffffffffu, part.l, step);
  }
}

template <int kDim>
__device__ __forceinline__ void write_output(const Params& params, const Block& block, int quad,
                                             const Partial& part) {
  constexpr int kQuads = kDim / 4;  // of a row
  const int head = block.first_head + quad / kQuads;
  const int dim = quad % kQuads * 4;
  const float scale = part.l == 0.0f ? 0.0f : device::rcp_approx(part.l);
  union {
    __nv_bfloat162 pair[2];
    uint2 bits;
  } out;
  out.pair[0] = __floats2bfloat162_rn(part.o.x * scale, part.o.y * scale);
  out.pair[1] = __floats2bfloat162_rn(part.o.z * scale, part.o.w * scale);
  *reinterpret_cast<uint2*>(static_cast<__nv_bfloat16*>(params.o) + head * params.o_head_stride + dim) =
      out.bits;
  if (dim == 0 && params.lse != nullptr) {
    params.lse[head] = (part.m + __log2f(part.l)) * device::kLn2;  // empty: -inf
  }
}

__device__ __forceinline__ float never_zero(float value) {
  return value == 0.0f ? -0.0f : value;
}
__device__ __forceinline__ bool written(float4 o, float2 ml) {
  const unsigned low =
      min(min(__float_as_uint(o.x), __float_as_uint(o.y)), min(__float_as_uint(o.z), __float_as_uint(o.w)));
  return min(low, min(__float_as_uint(ml.x), __float_as_uint(ml.y))) != 0;
}

// This CTA's results, by warp: rows of device::kPartialPitch<kDim> floats and (m, l) of kMaxRows rows.
struct WarpResults {
  const float* o;
  int o_pitch;  // floats from warp to warp
  const float2* ml;
};

// Brings this CTA's result for each quad to the quad's owner; writes the output where there is no other CTA.
template <int kDim, int kWarps, int kMaxRows, Merge kMerge>
__device__ __forceinline__ void bring(const Params& params, const Block& block, const WarpResults& warps,
                                      const Slots& inbox, ptx::Mbarrier* inbox_barrier) {
  constexpr int kQuads = kDim / 4;
  const int quads = block.rows * kQuads;
  const int piece = 1 << params.piece_log2;
  const int rows = rows_of_piece<kDim>(params);
#pragma unroll 1
  for (int quad = static_cast<int>(threadIdx.x); quad < quads; quad += kWarps * 32) {
    const int row = quad / kQuads;
    float4 o[kWarps];
    float2 ml[kWarps];
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      ml[w] = warps.ml[w * kMaxRows + row];
      o[w] = *reinterpret_cast<const float4*>(warps.o + w * warps.o_pitch +
                                              row * device::kPartialPitch<kDim> + quad % kQuads * 4);
    }
    Partial part;
    merge_into(part, o, ml);
    if constexpr (kMerge == Merge::none) {
      write_output<kDim>(params, block, quad, part);
    } else {
      const int owner = quad >> params.piece_log2;
      const int local = quad & (piece - 1);
      const int slot = block.split * piece + local;
      const int ml_slot = block.split * rows + local / kQuads;
      const bool brings_ml = local % kQuads == 0;
      if constexpr (kMerge == Merge::cluster) {
        const std::uint32_t rank = static_cast<std::uint32_t>(owner);
        const std::uint32_t barrier = ptx::mapa(ptx::shared_address(inbox_barrier), rank);
        ptx::st_async_v4(ptx::mapa(ptx::shared_address(inbox.o + slot), rank), part.o, barrier);
        if (brings_ml) {
          ptx::st_async_v2(ptx::mapa(ptx::shared_address(inbox.ml + ml_slot), rank),
                           make_float2(part.m, part.l), barrier);
        }
      } else {
        const Slots slots = global_slots<kDim, kMerge>(params, block, owner);
        ptx::st_relaxed_v4(slots.o + slot, make_float4(never_zero(part.o.x), never_zero(part.o.y),
                                                       never_zero(part.o.z), never_zero(part.o.w)));
        if (brings_ml) {
          ptx::st_relaxed_v2(slots.ml + ml_slot, make_float2(never_zero(part.m), never_zero(part.l)));
        }
      }
    }
  }
}

// Adds up `mine` quads from `slots` and writes them. A warp takes 32 >> lanes_log2 neighbouring quads, 1 <<
// lanes_log2 lanes each.
template <int kDim, int kWarps, Merge kMerge>
__device__ __forceinline__ void finish(const Params& params, const Block& block, const Slots& slots,
                                       int owner, int mine) {
  constexpr int kQuads = kDim / 4;
  constexpr int kAtOnce = 4;  // slots a lane loads before it uses the first
  const int thread = static_cast<int>(threadIdx.x);
  const int piece = 1 << params.piece_log2;
  const int rows = rows_of_piece<kDim>(params);
  const int lanes = 1 << params.lanes_log2;
  const int first_bit = 32 >> params.lanes_log2;
  const int lane_split = thread % 32 >> (5 - params.lanes_log2);
  // Whole warps leave together: the shuffles need all lanes.
#pragma unroll 1
  for (int base = thread / 32 * first_bit; base < mine; base += kWarps * first_bit) {
    const int local = base + (thread & (first_bit - 1));
    Partial sum;
#pragma unroll 1
    for (int from = lane_split; from < params.splits && local < mine; from += lanes * kAtOnce) {
      float4 o[kAtOnce];
      float2 ml[kAtOnce];
      bool ready;
      do {
        ready = true;
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const int split = from + i * lanes;
          o[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
          ml[i] = make_float2(device::minus_infinity(), 0.0f);
          if (split < params.splits) {
            const float4* const at = slots.o + split * piece + local;
            const float2* const ml_at = slots.ml + split * rows + local / kQuads;
            o[i] = kMerge == Merge::cluster ? *at : ptx::ld_relaxed_v4(at);
            ml[i] = kMerge == Merge::cluster ? *ml_at : ptx::ld_relaxed_v2(ml_at);
          }
        }
        if constexpr (kMerge == Merge::shared) {
#pragma unroll
          for (int i = 0; i < kAtOnce; ++i) {
            ready = ready && (from + i * lanes >= params.splits || written(o[i], ml[i]));
          }
        }
      } while (!ready);
      merge_into(sum, o, ml);
    }
    merge_lanes(sum, first_bit);
    if (local < mine && lane_split == 0) {
      write_output<kDim>(params, block, (owner << params.piece_log2) + local, sum);
    }
  }
  if constexpr (kMerge == Merge::shared) {
    __syncthreads();  // every slot has been read
    for (int i = thread; i < params.splits * piece; i += kWarps * 32) {
      if ((i & (piece - 1)) < mine) ptx::st_relaxed_v4(slots.o + i, make_float4(0.0f, 0.0f, 0.0f, 0.0f));
    }
    for (int i = thread; i < params.splits * rows; i += kWarps * 32) {
      if (i % rows * kQuads < mine) ptx::st_relaxed_v2(slots.ml + i, make_float2(0.0f, 0.0f));
    }
  }
}

// From the warps' results, visible to all threads (after __syncthreads), to the output. Called by all
// threads; in a cluster after barrier_cluster_wait.
template <int kDim, int kWarps, int kMaxRows, Merge kMerge>
__device__ __forceinline__ void merge_block(const Params& params, const Block& block,
                                            const WarpResults& warps, const Slots& inbox,
                                            ptx::Mbarrier* inbox_barrier) {
  bring<kDim, kWarps, kMaxRows, kMerge>(params, block, warps, inbox, inbox_barrier);
  if constexpr (kMerge != Merge::none) {
    const int quads = block.rows * (kDim / 4);
    Slots slots = inbox;
    int owner = block.split;
    if constexpr (kMerge == Merge::cluster) {
      ptx::mbarrier_wait_parity_cluster(inbox_barrier, 0);
    } else {
      if constexpr (kMerge == Merge::last_cta) {
        __syncthreads();
        bool last = false;
        if (threadIdx.x == 0) {
          const std::uint32_t final_arrival = static_cast<std::uint32_t>(params.splits) - 1;
          last = ptx::atom_inc_acq_rel(params.arrivals + block.index, final_arrival) == final_arrival;
        }
        if (!__syncthreads_or(last)) return;
        owner = 0;
      }
      slots = global_slots<kDim, kMerge>(params, block, owner);
    }
    finish<kDim, kWarps, kMerge>(params, block, slots, owner, piece_of(params, owner, quads));
  }
}

}  // namespace fdbench::split
