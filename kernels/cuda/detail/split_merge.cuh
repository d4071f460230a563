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
//
// An owner's slots: [part, quad of the piece] and [part, row of the piece], so that what one part brings to
// one owner lies together. Outside a cluster owners follow each other: [block, owner].
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

struct Slots {
  float4* o;
  float2* ml;
};

template <int kDim>
__device__ __forceinline__ int rows_of_piece(const Meeting& meeting) {
  return max(1, (1 << meeting.piece_log2) / (kDim / 4));
}

// How many of `quads` this owner finishes.
__device__ __forceinline__ int piece_of(const Meeting& meeting, int owner, int quads) {
  return max(0, min(1 << meeting.piece_log2, quads - (owner << meeting.piece_log2)));
}

// Outside a cluster: of the `place`-th owner.
template <int kDim>
__device__ __forceinline__ Slots slots_at(const Params& params, const Meeting& meeting, std::int64_t place) {
  const std::int64_t first = place * meeting.parts;
  return {static_cast<float4*>(params.slot_o) + (first << meeting.piece_log2),
          static_cast<float2*>(params.slot_ml) + first * rows_of_piece<kDim>(meeting)};
}

// The first of a block's owners.
template <Merge kMerge>
__device__ __forceinline__ std::int64_t first_place(const Params& params, const Block& block) {
  return kMerge == Merge::last_cta ? block.index : block.index * params.meeting.parts;
}

// Called when the kernel starts.
//
// One thread opens a cluster's inbox, before barrier_cluster_arrive_relaxed.
template <int kDim>
__device__ __forceinline__ void open_inbox(ptx::Mbarrier* barrier, const Params& params, const Block& block) {
  constexpr int kQuads = kDim / 4;
  const int quads = piece_of(params.meeting, block.split, block.rows * kQuads);
  const int rows = (quads + kQuads - 1) / kQuads;
  ptx::mbarrier_init(barrier, 1);
  ptx::fence_mbarrier_init();
  ptx::mbarrier_arrive_expect_tx(barrier,
                                 static_cast<std::uint32_t>((quads * 16 + rows * 8) * params.meeting.parts));
}

// All threads: slots that this CTA will read, on their way into L2 while the tokens still come. Zeroed slots
// lie in memory otherwise, and the first look at one would wait for it.
template <int kDim, Merge kMerge>
__device__ __forceinline__ void prefetch_slots(const Params& params, const Block& block) {
  const Meeting& meeting = params.meeting;
  const int owner = kMerge == Merge::shared ? block.split : 0;
  const Slots slots = slots_at<kDim>(params, meeting, first_place<kMerge>(params, block) + owner);
  const int step = static_cast<int>(blockDim.x) * 128;
  const int o_bytes = meeting.parts << (meeting.piece_log2 + 4);
  for (int at = static_cast<int>(threadIdx.x) * 128; at < o_bytes; at += step) {
    ptx::prefetch_l2(reinterpret_cast<const char*>(slots.o) + at);
  }
  const int ml_bytes = meeting.parts * rows_of_piece<kDim>(meeting) * 8;
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

// Puts part `part`'s result for quad `local` of an owner's piece into its slots in global memory.
template <int kDim>
__device__ __forceinline__ void put(const Slots& slots, const Meeting& meeting, int part, int local,
                                    const Partial& result) {
  constexpr int kQuads = kDim / 4;
  ptx::st_relaxed_v4(slots.o + (part << meeting.piece_log2) + local,
                     make_float4(never_zero(result.o.x), never_zero(result.o.y), never_zero(result.o.z),
                                 never_zero(result.o.w)));
  if (local % kQuads == 0) {
    ptx::st_relaxed_v2(slots.ml + part * rows_of_piece<kDim>(meeting) + local / kQuads,
                       make_float2(never_zero(result.m), never_zero(result.l)));
  }
}

// The same in the inbox of the cluster's CTA `owner`.
template <int kDim>
__device__ __forceinline__ void send(const Slots& inbox, ptx::Mbarrier* inbox_barrier, const Meeting& meeting,
                                     int owner, int part, int local, const Partial& result) {
  constexpr int kQuads = kDim / 4;
  const std::uint32_t rank = static_cast<std::uint32_t>(owner);
  const std::uint32_t barrier = ptx::mapa(ptx::shared_address(inbox_barrier), rank);
  ptx::st_async_v4(ptx::mapa(ptx::shared_address(inbox.o + (part << meeting.piece_log2) + local), rank),
                   result.o, barrier);
  if (local % kQuads == 0) {
    float2* const at = inbox.ml + part * rows_of_piece<kDim>(meeting) + local / kQuads;
    ptx::st_async_v2(ptx::mapa(ptx::shared_address(at), rank), make_float2(result.m, result.l), barrier);
  }
}

// Adds up `mine` quads of one owner's slots and hands each to `emit(local, sum)`, in one lane. A warp takes
// 32 >> lanes_log2 neighbouring quads. kShared: in shared memory and all there; else in global memory, and
// kWaits: until they are written.
template <int kDim, int kWarps, bool kShared, bool kWaits, class Emit>
__device__ __forceinline__ void add_up(const Slots& slots, const Meeting& meeting, int mine, Emit emit) {
  constexpr int kQuads = kDim / 4;
  constexpr int kAtOnce = 4;  // slots a lane loads before it uses the first
  const int thread = static_cast<int>(threadIdx.x);
  const int rows = rows_of_piece<kDim>(meeting);
  const int lanes = 1 << meeting.lanes_log2;
  const int first_bit = 32 >> meeting.lanes_log2;
  const int lane_part = thread % 32 >> (5 - meeting.lanes_log2);
  // Whole warps leave together: the shuffles need all lanes.
#pragma unroll 1
  for (int base = thread / 32 * first_bit; base < mine; base += kWarps * first_bit) {
    const int local = base + (thread & (first_bit - 1));
    Partial sum;
#pragma unroll 1
    for (int from = lane_part; from < meeting.parts && local < mine; from += lanes * kAtOnce) {
      float4 o[kAtOnce];
      float2 ml[kAtOnce];
      bool ready;
      do {
        ready = true;
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const int part = from + i * lanes;
          o[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
          ml[i] = make_float2(device::minus_infinity(), 0.0f);
          if (part < meeting.parts) {
            const float4* const at = slots.o + (part << meeting.piece_log2) + local;
            const float2* const ml_at = slots.ml + part * rows + local / kQuads;
            o[i] = kShared ? *at : ptx::ld_relaxed_v4(at);
            ml[i] = kShared ? *ml_at : ptx::ld_relaxed_v2(ml_at);
          }
        }
        if constexpr (kWaits) {
#pragma unroll
          for (int i = 0; i < kAtOnce; ++i) {
            ready = ready && (from + i * lanes >= meeting.parts || written(o[i], ml[i]));
          }
        }
      } while (!ready);
      merge_into(sum, o, ml);
    }
    merge_lanes(sum, first_bit);
    if (local < mine && lane_part == 0) emit(local, sum);
  }
}

// Zero again for the next launch, once all threads have read.
template <int kDim, int kWarps>
__device__ __forceinline__ void clear_slots(const Slots& slots, const Meeting& meeting, int mine) {
  constexpr int kQuads = kDim / 4;
  const int rows = rows_of_piece<kDim>(meeting);
  const int piece = 1 << meeting.piece_log2;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < meeting.parts * piece; i += kWarps * 32) {
    if ((i & (piece - 1)) < mine) ptx::st_relaxed_v4(slots.o + i, make_float4(0.0f, 0.0f, 0.0f, 0.0f));
  }
  for (int i = static_cast<int>(threadIdx.x); i < meeting.parts * rows; i += kWarps * 32) {
    if (i % rows * kQuads < mine) ptx::st_relaxed_v2(slots.ml + i, make_float2(0.0f, 0.0f));
  }
}

// From the warps' results, visible to all threads (after __syncthreads), to the output. Called by all
// threads; in a cluster after barrier_cluster_wait.
template <int kDim, int kWarps, int kMaxRows, Merge kMerge>
__device__ __forceinline__ void merge_block(const Params& params, const Block& block,
                                            const WarpResults& warps, const Slots& inbox,
                                            ptx::Mbarrier* inbox_barrier) {
  constexpr int kQuads = kDim / 4;
  const Meeting& meeting = params.meeting;
  const int quads = block.rows * kQuads;
  const std::int64_t place = first_place<kMerge>(params, block);

  // The warps' results, to each quad's owner.
#pragma unroll 1
  for (int quad = static_cast<int>(threadIdx.x); quad < quads; quad += kWarps * 32) {
    float4 o[kWarps];
    float2 ml[kWarps];
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      ml[w] = warps.ml[w * kMaxRows + quad / kQuads];
      o[w] = *reinterpret_cast<const float4*>(
          warps.o + w * warps.o_pitch + quad / kQuads * device::kPartialPitch<kDim> + quad % kQuads * 4);
    }
    Partial part;
    merge_into(part, o, ml);
    const int owner = quad >> meeting.piece_log2;
    const int local = quad & ((1 << meeting.piece_log2) - 1);
    if constexpr (kMerge == Merge::none) {
      write_output<kDim>(params, block, quad, part);
    } else if constexpr (kMerge == Merge::cluster) {
      send<kDim>(inbox, inbox_barrier, meeting, owner, block.split, local, part);
    } else {
      put<kDim>(slots_at<kDim>(params, meeting, place + owner), meeting, block.split, local, part);
    }
  }

  if constexpr (kMerge == Merge::last_cta) {
    __syncthreads();
    bool last = false;
    if (threadIdx.x == 0) {
      const std::uint32_t final_arrival = static_cast<std::uint32_t>(params.splits) - 1;
      last = ptx::atom_inc_acq_rel(params.arrivals + block.index, final_arrival) == final_arrival;
    }
    if (!__syncthreads_or(last)) return;
    add_up<kDim, kWarps, false, false>(
        slots_at<kDim>(params, meeting, place), meeting, quads,
        [&](int quad, const Partial& sum) { write_output<kDim>(params, block, quad, sum); });
  } else if constexpr (kMerge != Merge::none) {
    const int mine = piece_of(meeting, block.split, quads);
    const int first = block.split << meeting.piece_log2;
    const auto write = [&](int local, const Partial& sum) {
      write_output<kDim>(params, block, first + local, sum);
    };
    if constexpr (kMerge == Merge::shared) {
      const Slots slots = slots_at<kDim>(params, meeting, place + block.split);
      add_up<kDim, kWarps, false, true>(slots, meeting, mine, write);
      clear_slots<kDim, kWarps>(slots, meeting, mine);
    } else {
      ptx::mbarrier_wait_parity_cluster(inbox_barrier, 0);
      add_up<kDim, kWarps, true, false>(inbox, meeting, mine, write);
    }
  }
}

}  // namespace fdbench::split
