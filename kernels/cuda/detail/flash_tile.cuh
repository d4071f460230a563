// Tiles of K and V as the tensor-core kernels read them: from shared memory into registers, and what both
// ways of multiplying them (tokens_as_rows.cuh, heads_as_rows.cuh) share.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "ldmatrix.cuh"

namespace fdbench::device {

inline constexpr int kTokensPerTile = 16;

// A maximum may be stale by 2^kSlack before everything is rescaled: weights then reach 2^kSlack, far from
// where float or bf16 lose anything, and almost no tile but the first rescales.
inline constexpr float kSlack = 8.0f;

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
