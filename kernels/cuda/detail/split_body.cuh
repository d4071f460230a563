// The body that the split_kv kernels share; they differ in how tokens get into shared memory.
//
// A warp is on its own until the end: it loads its units into stages of its own, waits for nobody else's, and
// keeps a softmax state of its own. Then the warps' results meet, then the CTAs' (split_merge.cuh).
//
// Shared memory, in this order: each warp's stages (its partial result later), the loader's barriers, the
// warps' (m, l), the cluster's inbox and its barrier.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <type_traits>

#include "heads_as_rows.cuh"
#include "split_layout.h"
#include "split_merge.cuh"
#include "tokens_as_rows.cuh"

namespace fdbench::split {

// This warp's units of its split. In turn: neighbouring units go to neighbouring CTAs, and all CTAs read one
// stretch together. Else a split's units lie together, and its warps take them in turn.
template <int kDim>
struct WarpUnits {
  int first;
  int step;
  int count;
  __device__ __forceinline__ int token(int i) const { return (first + i * step) * unit_tokens(kDim); }
};

template <int kDim>
__device__ __forceinline__ WarpUnits<kDim> warp_units(const Params& params, int split, int warp) {
  if (params.in_turn != 0) {
    const int first = warp * params.splits + split;
    return {first, kWarps * params.splits, params.each + (first < params.rest ? 1 : 0)};
  }
  const int units = params.each + (split < params.rest ? 1 : 0);
  return {split * params.each + min(split, params.rest) + warp, kWarps, (units - warp + kWarps - 1) / kWarps};
}

// The same in all lanes, and the shuffle tells the compiler so.
__device__ __forceinline__ int warp_index() {
  return __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
}

// How a kernel made for kMaxRows query heads multiplies.
template <int kDim>
inline constexpr int kTokenTiles = unit_tokens(kDim) / device::kTokensPerTile;
template <int kDim, int kMaxRows>
using TileOf = std::conditional_t<kMaxRows == 8, device::TokensAsRows<kDim, kTokenTiles<kDim>>,
                                  device::HeadsAsRows<kDim, kTokenTiles<kDim>>>;

// `Loader`, a warp's:
//   start()                  every stage that has a unit on its way; called first
//   wait(stage, which)       until tile `which` (0 K, 1 V) of the stage is there, for all lanes
//   refill(unit, stage, which)  unit's tile into the stage, which all lanes are done with
//   turn()                   the stages once more
template <int kDim, int kMaxRows, Merge kMerge, class Loader>
__device__ __forceinline__ void decode(const Params& params, unsigned char* smem,
                                       const WarpUnits<kDim>& units, int warp, Loader& loader) {
  using Tile = TileOf<kDim, kMaxRows>;
  static_assert(Tile::kHeads == kMaxRows);
  static_assert(kMaxRows * Tile::kPartialPitch * 4 <= 2 * kTileBytes);  // where the warp's stages were
  static_assert(Tile::kPartialPitch % 4 == 0);                          // the merge reads float4
  const int lane = static_cast<int>(threadIdx.x) % 32;
  unsigned char* const ring = smem + warp * params.stages * 2 * kTileBytes;
  float2* const partial_ml =
      reinterpret_cast<float2*>(smem + kWarps * params.stages * (2 * kTileBytes + kStageBarriers * 8));
  Slots inbox;
  inbox.o = reinterpret_cast<float4*>(partial_ml + kWarps * kMaxRows);
  inbox.ml = reinterpret_cast<float2*>(inbox.o + (params.meeting.parts << params.meeting.piece_log2));
  ptx::Mbarrier* const inbox_barrier =
      reinterpret_cast<ptx::Mbarrier*>(inbox.ml + params.meeting.parts * rows_of_piece<kDim>(params.meeting));

  typename Tile::Query query;
  loader.start();
  const Block block = this_block(params);
  Tile::load_query(query,
                   static_cast<const __nv_bfloat16*>(params.q) + block.first_head * params.q_head_stride,
                   params.q_head_stride, block.rows, lane);
  __syncwarp();  // the loader's barriers are there for all lanes
  if constexpr (kMerge == Merge::cluster) {
    if (threadIdx.x < 32) open_inbox<kDim>(inbox_barrier, params, block);
    __syncwarp();
    ptx::barrier_cluster_arrive_relaxed();
  } else if constexpr (kMerge != Merge::none) {
    prefetch_slots<kDim, kMerge>(params, block);
  }
  typename Tile::State state;
  state.clear();
  touch_constants(params);
  Routes<kDim, kMaxRows, kMerge> routes;
  routes.work_out(params, block, inbox, inbox_barrier);
  // Every CTA of the cluster has started, long before its inbox is written to.
  if constexpr (kMerge == Merge::cluster) ptx::barrier_cluster_wait();

  int stage = 0;
#pragma unroll 1
  for (int i = 0; i < units.count; ++i) {
    const std::uint32_t k_tile =
        ptx::shared_address(ring) + static_cast<std::uint32_t>(stage * 2 * kTileBytes);
    loader.wait(stage, 0);
    typename Tile::Fragments k;
    Tile::load_keys(k, k_tile, lane);
    // Without a refill nothing overwrites the tiles before the end.
    const bool refills = i + params.stages < units.count;
    if (refills) __syncwarp();  // K is free
    loader.refill(i + params.stages, stage, 0);
    typename Tile::Scores s;
    Tile::score(s, k, query);
    Tile::scale_and_mask(s, params.scale_log2, params.seq - units.token(i), lane);
    typename Tile::Weights p;
    Tile::weigh(p, s, state, i == 0);

    loader.wait(stage, 1);
    typename Tile::Fragments v;
    Tile::load_values(v, k_tile + kTileBytes, lane);
    if (refills) __syncwarp();  // V is free
    loader.refill(i + params.stages, stage, 1);
    Tile::accumulate(state, v, p);
    if (++stage == params.stages) {
      stage = 0;
      loader.turn();
    }
  }

  // Each warp's result goes where its stages were.
  __syncwarp();
  Tile::store_partial(reinterpret_cast<float*>(ring), partial_ml + warp * kMaxRows, state, block.rows, lane);
  __syncthreads();
  const WarpResults results = {reinterpret_cast<const float*>(smem), params.stages * 2 * kTileBytes / 4,
                               Tile::kPartialPitch, partial_ml};
  merge_block<kDim, kMaxRows, kMerge>(params, block, results, routes, inbox, inbox_barrier);
}

}  // namespace fdbench::split
