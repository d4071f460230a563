// The body that the split_kv kernels share; they differ in how tokens get into shared memory.
//
// A warp is on its own until the end: it loads its units into stages of its own, waits for nobody else's, and
// keeps a softmax state of its own. With more than 8 query heads each has a partner that shares its stages
// and takes heads 8 to 15. Then the warps' results meet, then the CTAs' (split_merge.cuh).
//
// Shared memory, in this order: each warp's stages (its partial result later), the loader's barriers, the
// warps' (m, l), the cluster's inbox and its barrier.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "flash_tile.cuh"
#include "split_layout.h"
#include "split_merge.cuh"

namespace fdbench::split {

// This warp's units of its split. In turn: neighbouring units go to neighbouring CTAs, and all CTAs read one
// stretch together. Else a split's units lie together, and its warps take them in turn.
struct WarpUnits {
  int first;
  int step;
  int count;
  int most;  // units that a warp of this CTA takes: count or one more
  __device__ __forceinline__ int token(int i) const { return (first + i * step) * kUnitTokens; }
};

__device__ __forceinline__ WarpUnits warp_units(const Params& params, int split, int warp) {
  if (params.in_turn != 0) {
    const int first = warp * params.splits + split;
    return {first, kWarps * params.splits, params.each + (first < params.rest ? 1 : 0),
            params.each + (split < params.rest ? 1 : 0)};
  }
  const int units = params.each + (split < params.rest ? 1 : 0);
  return {split * params.each + min(split, params.rest) + warp, kWarps, (units - warp + kWarps - 1) / kWarps,
          (units + kWarps - 1) / kWarps};
}

// What a warp does: `warp` of kWarps by units, and the query heads from row `first_row` of the block on.
struct WarpRole {
  int warp;
  int first_row;
};

__device__ __forceinline__ WarpRole warp_role() {
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
  return {warp % kWarps, warp / kWarps * device::kHeadsPerTile};
}

// All lanes of the warps that share a unit: 1 or 2 warps.
template <int kPartners>
__device__ __forceinline__ void sync_partners(int warp) {
  if constexpr (kPartners == 1) {
    __syncwarp();
  } else {
    __syncwarp();
    ptx::barrier_sync(1 + warp, kPartners * 32);
  }
}

// `Loader`, a warp's:
//   start()                  every stage that has a unit on its way; called first
//   wait(stage, which)       until tile `which` (0 K, 1 V) of the stage is there, for all lanes
//   refill(unit, stage, which)  unit's tile into the stage, which all lanes are done with
//   turn()                   the stages once more
//   kMeetsToWait             whether wait() is a meeting of partners
template <int kDim, int kMaxRows, Merge kMerge, class Loader>
__device__ __forceinline__ void decode(const Params& params, unsigned char* smem, const WarpUnits& units,
                                       const WarpRole& role, Loader& loader) {
  constexpr int kPartners = kMaxRows / device::kHeadsPerTile;
  constexpr int kTile = tile_bytes(kDim);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  unsigned char* const ring = smem + role.warp * params.stages * 2 * kTile;
  float2* const partial_ml =
      reinterpret_cast<float2*>(smem + kWarps * params.stages * (2 * kTile + kStageBarriers * 8));
  Slots inbox;
  inbox.o = reinterpret_cast<float4*>(partial_ml + kWarps * kMaxRows);
  inbox.ml = reinterpret_cast<float2*>(inbox.o + (params.meeting.parts << params.meeting.piece_log2));
  ptx::Mbarrier* const inbox_barrier =
      reinterpret_cast<ptx::Mbarrier*>(inbox.ml + params.meeting.parts * rows_of_piece<kDim>(params.meeting));

  device::QueryFragments<kDim, 1> query;
  loader.start();
  const Block block = this_block(params);
  device::load_query(query,
                     static_cast<const __nv_bfloat16*>(params.q) + block.first_head * params.q_head_stride,
                     params.q_head_stride, role.first_row, block.rows, lane);
  sync_partners<kPartners>(role.warp);  // the loader's barriers are there for both
  if constexpr (kMerge == Merge::cluster) {
    if (threadIdx.x < 32) open_inbox<kDim>(inbox_barrier, params, block);
    __syncwarp();
    ptx::barrier_cluster_arrive_relaxed();
  } else if constexpr (kMerge != Merge::none) {
    prefetch_slots<kDim, kMerge>(params, block);
  }
  device::FlashState<kDim, 1> state;
  state.clear();
  touch_constants(params);
  Routes<kDim, kMaxRows, kMerge> routes;
  routes.work_out(params, block, inbox, inbox_barrier);
  // Every CTA of the cluster has started, long before its inbox is written to.
  if constexpr (kMerge == Merge::cluster) ptx::barrier_cluster_wait();

  int stage = 0;
#pragma unroll 1
  for (int i = 0; i < units.count; ++i) {
    const std::uint32_t k_tile = ptx::shared_address(ring) + static_cast<std::uint32_t>(stage * 2 * kTile);
    device::Scores<kTokenTiles, 1> s;
    loader.wait(stage, 0);
    device::TileFragments<kDim, kTokenTiles> k;
    device::load_keys<kDim, kTokenTiles>(k, k_tile, lane);
    // Without a refill nothing overwrites the tiles before the end. All warps agree on whether there is one:
    // racecheck takes what __syncthreads orders for races where pairs of warps met unequally often before.
    const bool refills = i + params.stages < units.most;
    if (refills) sync_partners<kPartners>(role.warp);  // K is free
    loader.refill(i + params.stages, stage, 0);
    device::score_tile<kDim, kTokenTiles, 1>(s, k, query);

    device::scale_and_mask<kTokenTiles, 1>(s, params.scale_log2, params.seq - units.token(i), lane);
    device::Weights<kTokenTiles, 1> p;
    device::weigh<kDim, kTokenTiles, 1>(p, s, state, i == 0);

    loader.wait(stage, 1);
    device::TileFragments<kDim, kTokenTiles> v;
    device::load_values<kDim, kTokenTiles>(v, k_tile + kTile, lane);
    if (refills) sync_partners<kPartners>(role.warp);  // V is free
    loader.refill(i + params.stages, stage, 1);
    device::accumulate_tile<kDim, kTokenTiles, 1>(state, v, p);
    if (++stage == params.stages) {
      stage = 0;
      loader.turn();
    }
  }

  if constexpr (kPartners > 1 && Loader::kMeetsToWait) {
    if (units.count < units.most) {  // as often as the others
      sync_partners<kPartners>(role.warp);
      sync_partners<kPartners>(role.warp);
    }
  }

  // Each warp's result goes where its stages were, once its partner has read them, too.
  if constexpr (kPartners == 1) {
    __syncwarp();
  } else {
    __syncthreads();
  }
  device::store_partial<kDim, 1>(
      reinterpret_cast<float*>(ring) + role.first_row * device::kPartialPitch<kDim>,
      partial_ml + role.warp * kMaxRows + role.first_row, state, block.rows - role.first_row, lane);
  __syncthreads();
  const WarpResults results = {reinterpret_cast<const float*>(smem), params.stages * 2 * kTile / 4,
                               partial_ml};
  merge_block<kDim, kMaxRows, kMerge>(params, block, results, routes, inbox, inbox_barrier);
}

}  // namespace fdbench::split
