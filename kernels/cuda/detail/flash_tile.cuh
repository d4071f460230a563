// Tiles of K and V as the tensor-core kernels read them: from shared memory into registers, and what both
// ways of multiplying them (tokens_as_rows.cuh, heads_as_rows.cuh) share.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "ldmatrix.cuh"
#include "softmax_state.cuh"

namespace fdbench::device {

inline constexpr int kTokensPerTile = 16;

// A maximum may be stale by 2^kSlack before everything is rescaled: weights then reach 2^kSlack, far from
// where float or bf16 lose anything, and almost no tile but the first rescales.
inline constexpr float kSlack = 8.0f;

// What a warp has added up: kTiles accumulators of a product, not normalised, and for the two query heads
// that a lane holds part of (value i of each accumulator is of head i % 2 or i / 2, as the product lies) the
// sum of weights and the maximum that these are relative to, the same in all lanes of a head.
template <int kTiles>
struct FlashState {
  float o[kTiles][4];
  float l[4];
  float m[2];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      l[i] = 0.0f;
#pragma unroll
      for (int d = 0; d < kTiles; ++d) o[d][i] = 0.0f;
    }
    m[0] = m[1] = minus_infinity();
  }

  // `top`: a lane's greatest scores. Where one is more than kSlack above, moves the maxima, each over the
  // lanes whose numbers differ in the bits from kFirstLane to below kEndLane, and rescales. kApart: i /
  // kApart % 2 is the head of value i. `first`: the state is clear.
  template <int kFirstLane, int kEndLane, int kApart>
  __device__ __forceinline__ void raise_maxima(const float (&top)[2], bool first) {
    if (!__any_sync(0xffffffffu, (top[0] > m[0] + kSlack) | (top[1] > m[1] + kSlack))) return;
    float factor[2];
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      float greatest = fmaxf(top[c], m[c]);
#pragma unroll
      for (int step = kFirstLane; step < kEndLane; step *= 2)
        greatest = fmaxf(greatest, __shfl_xor_sync(0xffffffffu, greatest, step));
      factor[c] = ex2_approx(m[c] - subtrahend(greatest));
      m[c] = greatest;
    }
    if (first) return;  // nothing to rescale
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      l[i] *= factor[i / kApart % 2];
#pragma unroll
      for (int d = 0; d < kTiles; ++d) o[d][i] *= factor[i / kApart % 2];
    }
  }
};

// Two elements of bf16, 1.0 each. Weights are summed as they are rounded to bf16, by a product with ones, so
// that they add up to exactly what multiplies V.
inline constexpr std::uint32_t kOnes = 0x3f803f80u;

__device__ __forceinline__ std::uint32_t pack_bf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const std::uint32_t&>(pair);
}

// Tiles in shared memory: of 16 * kTokenTiles tokens, each 64 dimensions apart as rows of 128 bytes, the
// 16-byte pieces of a row exchanged by token modulo 8 (TMA's 128-byte swizzle; 1,024-byte aligned). ldmatrix
// then meets no bank conflict.
template <int kTokenTiles>
__device__ __forceinline__ constexpr std::uint32_t half_bytes() {
  return kTokenTiles * kTokensPerTile * 128;
}

// Where a lane finds piece `side` (0 or 1: 8 dimensions) of `token` (below 16), and from there piece 2 * d +
// side of token 16 * t + token: bits 5 and 6 of an address are exchanged with those of d alone.
__device__ __forceinline__ std::uint32_t lane_row(std::uint32_t tile, std::uint32_t token,
                                                  std::uint32_t side) {
  return tile + token * 128 + ((side ^ (token % 8)) * 16);
}
template <int kTokenTiles>
__device__ __forceinline__ std::uint32_t piece_of_row(std::uint32_t row, int t, int d) {
  return (row ^ static_cast<std::uint32_t>(d % 4 * 32)) +
         static_cast<std::uint32_t>(d / 4) * half_bytes<kTokenTiles>() +
         static_cast<std::uint32_t>(t * kTokensPerTile * 128);
}

// Where 16-byte piece `piece` (8 dimensions) of `token` lies, from the tile's start.
template <int kTokenTiles>
__device__ __forceinline__ std::uint32_t swizzled(std::uint32_t token, std::uint32_t piece) {
  return (piece / 8) * half_bytes<kTokenTiles>() + token * 128 + (((piece % 8) ^ (token % 8)) * 16);
}

// A tile in registers, whole before the first product: with one warp a scheduler nothing else hides what a
// load takes, and once all lanes have it the next tile can be asked for.
template <int kDim, int kTokenTiles>
using TileFragments = std::uint32_t[kTokenTiles][kDim / 16][4];

// In which order an ldmatrix takes its four matrices of 8 tokens by 8 dimensions: those whose registers a
// product wants side by side come side by side, or each product would cost two moves.
enum class Matrices {
  tokens_first,  // tokens 0-7, tokens 8-15, then the same of the next 8 dimensions
  dims_first,    // dimensions 0-7, dimensions 8-15, then the same of the next 8 tokens
};

// kTransposed: each matrix with dimensions as rows.
template <Matrices kOrder, bool kTransposed, int kDim, int kTokenTiles>
__device__ __forceinline__ void load_tile(TileFragments<kDim, kTokenTiles>& to, std::uint32_t tile,
                                          int lane) {
  const std::uint32_t of = static_cast<std::uint32_t>(lane);
  const std::uint32_t row = kOrder == Matrices::tokens_first
                                ? lane_row(tile, of % 16, of / 16)
                                : lane_row(tile, of % 8 + of / 16 * 8, of / 8 % 2);
#pragma unroll
  for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
    for (int d = 0; d < kDim / 16; ++d) {
      const std::uint32_t from = piece_of_row<kTokenTiles>(row, t, d);
      if constexpr (kTransposed) {
        ptx::ldmatrix_x4_trans(to[t][d], from);
      } else {
        ptx::ldmatrix_x4(to[t][d], from);
      }
    }
  }
}

}  // namespace fdbench::device
