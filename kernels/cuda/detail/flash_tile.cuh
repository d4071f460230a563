// Attention of up to 8 * kHeadTiles query heads over 16 tokens at a time, by one warp, on tensor cores.
//
// All query heads of a KV head share its tokens. Products are taken transposed: S^T = K q^T has the tokens as
// rows and the heads as columns, so that a group of up to 8 heads costs one m16n8k16 for 16 tokens and 16
// dimensions, where heads as rows would leave half of each product empty. P^T goes from accumulator to
// operand through movmatrix, and O^T = V^T P^T adds up with the dimensions as rows.
//
// Lane 4 * g + q holds of S^T: tokens g and g + 8, heads 2q and 2q + 1. Softmax is online and in base 2
// (softmax_state.cuh); a state belongs to a warp. Weights are summed as they are rounded to bf16, by the
// tensor cores (a row of ones), so that they add up to exactly what multiplies V.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "ldmatrix.cuh"
#include "mma.cuh"
#include "softmax_state.cuh"

namespace fdbench::device {

inline constexpr int kTokensPerTile = 16;
inline constexpr int kHeadsPerTile = 8;

// q^T as second operand: of head 8 * n + g, for each 16 dimensions, two registers of two elements.
template <int kDim, int kHeadTiles>
struct QueryFragments {
  std::uint32_t b[kHeadTiles][kDim / 16][2];
};

// Heads `first` on of `heads`; those beyond repeat the last one. Dimensions in the order that ldmatrix gives
// K's.
template <int kDim, int kHeadTiles>
__device__ __forceinline__ void load_query(QueryFragments<kDim, kHeadTiles>& query, const __nv_bfloat16* q,
                                           std::int64_t head_stride, int first, int heads, int lane) {
#pragma unroll
  for (int n = 0; n < kHeadTiles; ++n) {
    const int head = min(first + n * kHeadsPerTile + lane / 4, heads - 1);
    const std::uint32_t* const row =
        reinterpret_cast<const std::uint32_t*>(q + head * head_stride) + lane % 4;
#pragma unroll
    for (int k = 0; k < kDim / 16; ++k) {
      query.b[n][k][0] = __ldg(row + k * 8);
      query.b[n][k][1] = __ldg(row + k * 8 + 4);
    }
  }
}

template <int kDim, int kHeadTiles>
struct FlashState {
  float o[kDim / 16][kHeadTiles][4];  // O^T, not normalised
  float l[kHeadTiles][4];             // sums of weights: [0] of head 2q, [1] of head 2q + 1
  float m[kHeadTiles][2];             // what the weights are relative to, the same in all lanes of one q

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int n = 0; n < kHeadTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        l[n][i] = 0.0f;
#pragma unroll
        for (int d = 0; d < kDim / 16; ++d) o[d][n][i] = 0.0f;
      }
      m[n][0] = m[n][1] = minus_infinity();
    }
  }
};

template <int kTokenTiles, int kHeadTiles>
using Scores = float[kTokenTiles][kHeadTiles][4];
template <int kTokenTiles, int kHeadTiles>
using Weights = std::uint32_t[kTokenTiles][kHeadTiles][2];  // P^T as second operand

// A maximum may be stale by 2^kSlack before everything is rescaled: weights then reach 2^kSlack, far from
// where float or bf16 lose anything, and almost no tile but the first rescales.
inline constexpr float kSlack = 8.0f;

// Scores (already scaled by scale * log2 e, masked ones -inf) to weights; moves the state's maxima, and
// rescales it, where a score is more than kSlack above. `first`: the state is clear.
template <int kDim, int kTokenTiles, int kHeadTiles>
__device__ __forceinline__ void weigh(Weights<kTokenTiles, kHeadTiles>& p,
                                      const Scores<kTokenTiles, kHeadTiles>& s,
                                      FlashState<kDim, kHeadTiles>& state, bool first) {
  float top[kHeadTiles][2];
  bool stale = false;
#pragma unroll
  for (int n = 0; n < kHeadTiles; ++n) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      top[n][c] = fmaxf(s[0][n][c], s[0][n][c + 2]);
#pragma unroll
      for (int t = 1; t < kTokenTiles; ++t) top[n][c] = fmaxf(top[n][c], fmaxf(s[t][n][c], s[t][n][c + 2]));
      stale |= top[n][c] > state.m[n][c] + kSlack;
    }
  }
  if (__any_sync(0xffffffffu, stale)) {
#pragma unroll
    for (int n = 0; n < kHeadTiles; ++n) {
      float factor[2];
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float m = fmaxf(top[n][c], state.m[n][c]);
#pragma unroll
        for (int step = 4; step < 32; step *= 2) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, step));
        factor[c] = ex2_approx(state.m[n][c] - subtrahend(m));
        state.m[n][c] = m;
      }
      if (first) continue;  // nothing to rescale
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        state.l[n][i] *= factor[i % 2];
#pragma unroll
        for (int d = 0; d < kDim / 16; ++d) state.o[d][n][i] *= factor[i % 2];
      }
    }
  }
  constexpr std::uint32_t ones[4] = {0x3f803f80u, 0x3f803f80u, 0x3f803f80u, 0x3f803f80u};
#pragma unroll
  for (int n = 0; n < kHeadTiles; ++n) {
    const float m0 = subtrahend(state.m[n][0]);
    const float m1 = subtrahend(state.m[n][1]);
#pragma unroll
    for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const __nv_bfloat162 pair =
            __floats2bfloat162_rn(ex2_approx(s[t][n][2 * half] - m0), ex2_approx(s[t][n][2 * half + 1] - m1));
        p[t][n][half] = ptx::movmatrix_trans(reinterpret_cast<const std::uint32_t&>(pair));
      }
      ptx::mma_m16n8k16_bf16(state.l[n], ones, p[t][n][0], p[t][n][1]);
    }
  }
}

// Scales, and masks the tokens of a unit from `valid` on.
template <int kTokenTiles, int kHeadTiles>
__device__ __forceinline__ void scale_and_mask(Scores<kTokenTiles, kHeadTiles>& s, float scale_log2,
                                               int valid, int lane) {
#pragma unroll
  for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
    for (int n = 0; n < kHeadTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) s[t][n][i] *= scale_log2;
    }
  }
  if (valid >= kTokenTiles * kTokensPerTile) return;
#pragma unroll
  for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
    for (int n = 0; n < kHeadTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (t * kTokensPerTile + lane / 4 + (i / 2) * 8 >= valid) s[t][n][i] = minus_infinity();
      }
    }
  }
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

template <int kDim, int kTokenTiles>
__device__ __forceinline__ void load_keys(TileFragments<kDim, kTokenTiles>& a, std::uint32_t k_tile,
                                          int lane) {
  // Matrices 0 to 3: tokens 0-7, tokens 8-15, then the same of the next 8 dimensions.
  const std::uint32_t row =
      lane_row(k_tile, static_cast<std::uint32_t>(lane) % 16, static_cast<std::uint32_t>(lane) / 16);
#pragma unroll
  for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
    for (int k = 0; k < kDim / 16; ++k) {
      ptx::ldmatrix_x4(a[t][k], piece_of_row<kTokenTiles>(row, t, k));
    }
  }
}

template <int kDim, int kTokenTiles>
__device__ __forceinline__ void load_values(TileFragments<kDim, kTokenTiles>& a, std::uint32_t v_tile,
                                            int lane) {
  // Transposed matrices 0 to 3: dimensions 0-7, dimensions 8-15, then the same of the next 8 tokens.
  const std::uint32_t row =
      lane_row(v_tile, static_cast<std::uint32_t>(lane) % 8 + static_cast<std::uint32_t>(lane) / 16 * 8,
               static_cast<std::uint32_t>(lane) / 8 % 2);
#pragma unroll
  for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
    for (int d = 0; d < kDim / 16; ++d) {
      ptx::ldmatrix_x4_trans(a[t][d], piece_of_row<kTokenTiles>(row, t, d));
    }
  }
}

template <int kDim, int kTokenTiles, int kHeadTiles>
__device__ __forceinline__ void score_tile(Scores<kTokenTiles, kHeadTiles>& s,
                                           const TileFragments<kDim, kTokenTiles>& a,
                                           const QueryFragments<kDim, kHeadTiles>& query) {
  float part[kTokenTiles][2][kHeadTiles][4] = {};  // two chains of products each: half the latency
#pragma unroll
  for (int k = 0; k < kDim / 16; ++k) {
#pragma unroll
    for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
      for (int n = 0; n < kHeadTiles; ++n) {
        ptx::mma_m16n8k16_bf16(part[t][k % 2][n], a[t][k], query.b[n][k][0], query.b[n][k][1]);
      }
    }
  }
#pragma unroll
  for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
    for (int n = 0; n < kHeadTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) s[t][n][i] = part[t][0][n][i] + part[t][1][n][i];
    }
  }
}

template <int kDim, int kTokenTiles, int kHeadTiles>
__device__ __forceinline__ void accumulate_tile(FlashState<kDim, kHeadTiles>& state,
                                                const TileFragments<kDim, kTokenTiles>& a,
                                                const Weights<kTokenTiles, kHeadTiles>& p) {
#pragma unroll
  for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
    for (int d = 0; d < kDim / 16; ++d) {
#pragma unroll
      for (int n = 0; n < kHeadTiles; ++n) {
        ptx::mma_m16n8k16_bf16(state.o[d][n], a[t][d], p[t][n][0], p[t][n][1]);
      }
    }
  }
}

// A warp's result as the merge takes it: rows of kDim + 4 floats (the 4 keep lanes in different banks), a
// row a head, and (m, l) for each.
template <int kDim>
inline constexpr int kPartialPitch = kDim + 4;

template <int kDim, int kHeadTiles>
__device__ __forceinline__ void store_partial(float* o, float2* ml, const FlashState<kDim, kHeadTiles>& state,
                                              int heads, int lane) {
  const int g = lane / 4;
  const int q = lane % 4;
#pragma unroll
  for (int n = 0; n < kHeadTiles; ++n) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int head = n * kHeadsPerTile + 2 * q + c;
      if (head < heads) {
        float* const row = o + head * kPartialPitch<kDim> + g;
#pragma unroll
        for (int d = 0; d < kDim / 16; ++d) {
          row[d * 16] = state.o[d][n][c];
          row[d * 16 + 8] = state.o[d][n][c + 2];
        }
        if (g == 0) ml[head] = make_float2(state.m[n][c], state.l[n][c]);
      }
    }
  }
}

}  // namespace fdbench::device
