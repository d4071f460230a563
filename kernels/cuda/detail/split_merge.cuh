// How partial results meet: over the warps of a CTA, then over the CTAs of a head. Always in the order of
// warps and splits, whoever arrives last, so that the same plan gives the same bits.
//
// The quads of a block (split_params.h) are dealt out to owners, in pieces. Each CTA brings its partial
// results to every owner's slots; each owner adds its slots up and writes its piece of the output.
//   last_cta  One owner: the CTA that arrives last (atom_inc_acq_rel; the counter wraps to zero by itself).
//   shared    Every CTA owns a piece, slots lie in global memory. A slot says by itself that it was
//             written: no word of it is ever zero bits, and all are zero before. So words travel without
//             fence or counter, in one trip, and their only reader puts the zeros back. It asks again only
//             for what is missing: whoever comes early must not take the memory from those still reading.
//   cluster   Every CTA owns a piece, slots lie in its shared memory; the others fill them with st.async,
//             which counts the bytes on the owner's mbarrier.
//
// An owner's slots: [part, quad of the piece], so that what one part brings to one owner lies together. In
// global memory each holds its own (m, l); in a cluster these are [part, row of the piece]. Outside a cluster
// owners follow each other: [block, owner].
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "atomics.cuh"
#include "cluster.cuh"
#include "mbarrier.cuh"
#include "shared_address.cuh"
#include "softmax_state.cuh"
#include "split_layout.h"
#include "split_params.h"

namespace fdbench::split {

// What a CTA is responsible for.
struct Block {
  int first_head;  // query head of row 0
  int rows;        // query heads
  int split;
  std::int64_t index;  // over all KV heads
};

__device__ __forceinline__ Block this_block(const Params& params) {
  const int part = static_cast<int>(blockIdx.z) * params.rows;
  Block block;
  block.first_head = static_cast<int>(blockIdx.y) * params.group + part;
  block.rows = min(params.group - part, params.rows);
  block.split = static_cast<int>(blockIdx.x);
  block.index = std::int64_t{blockIdx.y} * gridDim.z + blockIdx.z;
  return block;
}

struct Slots {
  float4* o;
  float2* ml;
  __device__ __forceinline__ Slots operator+(int slots) const { return {o + slots, ml + slots}; }
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
  const std::int64_t first = (place * meeting.parts) << meeting.piece_log2;
  return {static_cast<float4*>(params.slot_o) + first, static_cast<float2*>(params.slot_ml) + first};
}

// The first of a block's owners.
template <Merge kMerge>
__device__ __forceinline__ std::int64_t first_place(const Params& params, const Block& block) {
  return kMerge == Merge::last_cta ? block.index : block.index * params.meeting.parts;
}

// Called when the kernel starts.
//
// The first warp opens a cluster's inbox, before barrier_cluster_arrive_relaxed.
template <int kDim>
__device__ __forceinline__ void open_inbox(ptx::Mbarrier* barrier, const Params& params, const Block& block) {
  constexpr int kQuads = kDim / 4;
  const int quads = piece_of(params.meeting, block.split, block.rows * kQuads);
  const int rows = (quads + kQuads - 1) / kQuads;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(barrier, 1);
    ptx::fence_mbarrier_init();
  }
  // For racecheck: it takes a uniform instruction, as this mbarrier.init may become, for lane 31's.
  __syncwarp();
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(
        barrier, static_cast<std::uint32_t>((quads * 16 + rows * 8) * params.meeting.parts));
  }
}

// All threads: slots that this CTA will read, on their way into L2 while the tokens still come. Zeroed slots
// lie in memory otherwise, and the first look at one would wait for it.
template <int kDim, Merge kMerge>
__device__ __forceinline__ void prefetch_slots(const Params& params, const Block& block) {
  const Meeting& meeting = params.meeting;
  const int owner = kMerge == Merge::shared ? block.split : 0;
  const Slots slots = slots_at<kDim>(params, meeting, first_place<kMerge>(params, block) + owner);
  // Not kThreads: with a constant the compiler unrolls both loops.
  const int step = static_cast<int>(blockDim.x) * 128;
  const int o_bytes = meeting.parts << (meeting.piece_log2 + 4);
  for (int at = static_cast<int>(threadIdx.x) * 128; at < o_bytes; at += step) {
    ptx::prefetch_l2(reinterpret_cast<const char*>(slots.o) + at);
  }
  const int ml_bytes = meeting.parts << (meeting.piece_log2 + 3);
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

// Order of integers for order of floats, both ways.
__device__ __forceinline__ int ordered(int bits) {
  return bits ^ (bits >> 31 & 0x7fffffff);
}

// Over the lanes whose numbers differ in bits `first` to 16; all get the sums. The warp's parts are of one
// row, so that one maximum serves them all. Unrolled: each step is 5 independent shuffles.
__device__ __forceinline__ void merge_lanes(Partial& part, int first) {
  if (first == 32) return;
  const float m = __int_as_float(ordered(__reduce_max_sync(0xffffffffu, ordered(__float_as_int(part.m)))));
  const float weight = device::ex2_approx(part.m - device::subtrahend(m));
  part.o.x *= weight;
  part.o.y *= weight;
  part.o.z *= weight;
  part.o.w *= weight;
  part.l *= weight;
  part.m = m;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    if (step < first) break;
    const float x = __shfl_xor_sync(0xffffffffu, part.o.x, step);
    const float y = __shfl_xor_sync(0xffffffffu, part.o.y, step);
    const float z = __shfl_xor_sync(0xffffffffu, part.o.z, step);
    const float w = __shfl_xor_sync(0xffffffffu, part.o.w, step);
    const float l = __shfl_xor_sync(0xffffffffu, part.l, step);
    part.o.x += x;
    part.o.y += y;
    part.o.z += z;
    part.o.w += w;
    part.l += l;
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

// This CTA's results, by warp: a row of kDim floats and (m, l) for each of kMaxRows query heads.
struct WarpResults {
  const float* o;
  int warp_pitch;  // floats from warp to warp
  int row_pitch;   // floats from row to row
  const float2* ml;
};

// Which slots of an owner a thread adds up: parts `part`, + lanes, ... of quad `local`, then of the quad
// kThreads / lanes further on.
struct Turn {
  int part;
  int lanes;
  int local;
  int first_bit;
};

__device__ __forceinline__ Turn first_turn(const Meeting& meeting) {
  const int thread = static_cast<int>(threadIdx.x);
  const int first_bit = 32 >> meeting.lanes_log2;
  return {thread % 32 >> (5 - meeting.lanes_log2), 1 << meeting.lanes_log2,
          thread / 32 * first_bit + (thread & (first_bit - 1)), first_bit};
}

// Where a thread's results go, and the slots that it adds up: worked out while tokens are on their way.
template <int kDim, int kMaxRows, Merge kMerge>
struct Routes {
  static constexpr int kQuads = kDim / 4;
  static constexpr int kEach = (kMaxRows * kQuads + kThreads - 1) / kThreads;  // quads a thread brings

  // In global memory: of its first quad, and of the first part that it adds up.
  Slots to;
  Slots from;
  // In the cluster: shared addresses of each quad's owner.
  std::uint32_t o[kEach];
  std::uint32_t ml[kEach];
  std::uint32_t barrier[kEach];

  __device__ __forceinline__ static int quad(int i) { return static_cast<int>(threadIdx.x) + i * kThreads; }

  __device__ __forceinline__ void work_out(const Params& params, const Block& block, const Slots& inbox,
                                           const ptx::Mbarrier* inbox_barrier) {
    const Meeting& meeting = params.meeting;
    if constexpr (kMerge == Merge::cluster) {
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        // The block's last rows may be missing, and their quads have no owner.
        const std::uint32_t owner =
            static_cast<std::uint32_t>(min(quad(i) >> meeting.piece_log2, meeting.parts - 1));
        const int local = quad(i) & ((1 << meeting.piece_log2) - 1);
        const int row = block.split * rows_of_piece<kDim>(meeting) + local / kQuads;
        o[i] = ptx::mapa(ptx::shared_address(inbox.o + (block.split << meeting.piece_log2) + local), owner);
        ml[i] = ptx::mapa(ptx::shared_address(inbox.ml + row), owner);
        barrier[i] = ptx::mapa(ptx::shared_address(inbox_barrier), owner);
        asm volatile("" : "+r"(o[i]), "+r"(ml[i]), "+r"(barrier[i]));
      }
    } else if constexpr (kMerge != Merge::none) {
      const Slots slots = slots_at<kDim>(params, meeting, first_place<kMerge>(params, block));
      to = slots + meeting.slot(quad(0), block.split);
      const Turn turn = first_turn(meeting);
      const int first = kMerge == Merge::shared ? block.split * meeting.parts : 0;
      from = slots + (((first + turn.part) << meeting.piece_log2) + turn.local);
      asm volatile("" : "+l"(to.o), "+l"(to.ml), "+l"(from.o), "+l"(from.ml));
    }
  }

  // Slots from quad(0)'s to quad(i)'s, whatever quad(0), which is below kThreads: nothing carries.
  __device__ __forceinline__ static int step(const Meeting& meeting, int i) {
    return meeting.slot(i * kThreads, 0);
  }
};

// Puts a result into its slot in global memory.
__device__ __forceinline__ void put(const Slots& slot, const Partial& result) {
  ptx::st_relaxed_v4(slot.o, make_float4(never_zero(result.o.x), never_zero(result.o.y),
                                         never_zero(result.o.z), never_zero(result.o.w)));
  ptx::st_relaxed_v2(slot.ml, make_float2(never_zero(result.m), never_zero(result.l)));
}

// Adds up `mine` quads of one owner's slots, from a thread's first on, and hands each to `emit(local, sum)`,
// in one lane. A warp takes 32 >> lanes_log2 neighbouring quads. kInbox: in shared memory and all there. Else
// in global memory; kWaits: until they are written, and puts the zeros back.
template <int kDim, bool kInbox, bool kWaits, class Emit>
__device__ __forceinline__ void add_up(Slots slots, const Meeting& meeting, int mine, Emit emit) {
  constexpr int kQuads = kDim / 4;
  constexpr int kAtOnce = 4;  // slots a lane loads before it uses the first
  const int parts = meeting.parts;
  const int rows = rows_of_piece<kDim>(meeting);
  const int next_local = kThreads >> meeting.lanes_log2;
  Turn turn = first_turn(meeting);
  // Whole warps leave together: the shuffles need all lanes.
#pragma unroll 1
  for (int base = static_cast<int>(threadIdx.x) / 32 * turn.first_bit; base < mine; base += next_local) {
    Partial sum;
    const int end = turn.local < mine ? parts : 0;
#pragma unroll 1
    for (int part = turn.part; part < end; part += turn.lanes * kAtOnce) {
      float4 o[kAtOnce];
      float2 ml[kAtOnce];
      bool missing[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        o[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        ml[i] = make_float2(device::minus_infinity(), 0.0f);
        missing[i] = part + i * turn.lanes < parts;
      }
      bool wait;
      do {
        wait = false;
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const int slot = (part - turn.part + i * turn.lanes) << meeting.piece_log2;
          if (!missing[i]) continue;
          if constexpr (kInbox) {
            o[i] = slots.o[slot];
            ml[i] = slots.ml[(part + i * turn.lanes) * rows + turn.local / kQuads];
          } else {
            o[i] = ptx::ld_relaxed_v4(slots.o + slot);
            ml[i] = ptx::ld_relaxed_v2(slots.ml + slot);
          }
        }
        if constexpr (kWaits) {
#pragma unroll
          for (int i = 0; i < kAtOnce; ++i) {
            missing[i] = missing[i] && !written(o[i], ml[i]);
            wait |= missing[i];
          }
        }
      } while (wait);
      // Zeros before the sums: the kernel's end waits for these stores.
      if constexpr (kWaits) {
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          if (part + i * turn.lanes >= parts) break;
          const int slot = (part - turn.part + i * turn.lanes) << meeting.piece_log2;
          ptx::st_relaxed_v4(slots.o + slot, make_float4(0.0f, 0.0f, 0.0f, 0.0f));
          ptx::st_relaxed_v2(slots.ml + slot, make_float2(0.0f, 0.0f));
        }
      }
      merge_into(sum, o, ml);
    }
    merge_lanes(sum, turn.first_bit);
    if (turn.local < mine && turn.part == 0) emit(turn.local, sum);
    turn.local += next_local;
    slots.o += next_local;
    if constexpr (!kInbox) slots.ml += next_local;
  }
}

// From the warps' results, visible to all threads (after __syncthreads), to the output. Called by all
// threads; in a cluster after barrier_cluster_wait.
template <int kDim, int kMaxRows, Merge kMerge>
__device__ __forceinline__ void merge_block(const Params& params, const Block& block,
                                            const WarpResults& warps,
                                            const Routes<kDim, kMaxRows, kMerge>& routes, const Slots& inbox,
                                            ptx::Mbarrier* inbox_barrier) {
  constexpr int kQuads = kDim / 4;
  constexpr int kEach = Routes<kDim, kMaxRows, kMerge>::kEach;
  const Meeting& meeting = params.meeting;
  const int quads = block.rows * kQuads;

  // The warps' results, to each quad's owner. All of a thread's are loaded, and merged, before the first is
  // used; past the last row the last one again.
  float4 o[kEach][kWarps];
  float2 ml[kEach][kWarps];
  Partial merged[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int quad = routes.quad(i);
    const int row = min(quad / kQuads, block.rows - 1);
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      ml[i][w] = warps.ml[w * kMaxRows + row];
      o[i][w] = *reinterpret_cast<const float4*>(warps.o + w * warps.warp_pitch + row * warps.row_pitch +
                                                 quad % kQuads * 4);
    }
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) merge_into(merged[i], o[i], ml[i]);
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int quad = routes.quad(i);
    if (quad >= quads) break;
    const Partial& part = merged[i];
    if constexpr (kMerge == Merge::none) {
      write_output<kDim>(params, block, quad, part);
    } else if constexpr (kMerge == Merge::cluster) {
      ptx::st_async_v4(routes.o[i], part.o, routes.barrier[i]);
      // quads of a row and of its owner's piece: one of them brings the row's (m, l)
      if ((quad & ((1 << meeting.piece_log2) - 1)) % kQuads == 0) {
        ptx::st_async_v2(routes.ml[i], make_float2(part.m, part.l), routes.barrier[i]);
      }
    } else {
      put(routes.to + routes.step(meeting, i), part);
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
    add_up<kDim, false, false>(routes.from, meeting, quads, [&](int quad, const Partial& sum) {
      write_output<kDim>(params, block, quad, sum);
    });
  } else if constexpr (kMerge != Merge::none) {
    const int mine = piece_of(meeting, block.split, quads);
    const int first = block.split << meeting.piece_log2;
    const auto write = [&](int local, const Partial& sum) {
      write_output<kDim>(params, block, first + local, sum);
    };
    if constexpr (kMerge == Merge::shared) {
      add_up<kDim, false, true>(routes.from, meeting, mine, write);
    } else {
      const Turn turn = first_turn(meeting);
      ptx::mbarrier_wait_parity_cluster(inbox_barrier, 0);
      add_up<kDim, true, false>({inbox.o + (turn.part << meeting.piece_log2) + turn.local, inbox.ml}, meeting,
                                mine, write);
    }
  }
}

}  // namespace fdbench::split
