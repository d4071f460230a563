// Attention of up to 8 query heads over a tile of 16 * kTokenTiles tokens, by one warp, on tensor cores.
//
// All query heads of a block share its tokens. Products are taken transposed: S^T = K q^T has the tokens as
// rows and the heads as columns, so that 8 heads cost one m16n8k16 for 16 tokens and 16 dimensions, where
// heads as rows would leave half of each product empty. P^T goes from accumulator to operand through
// movmatrix, and O^T = V^T P^T adds up with the dimensions as rows.
//
// Lane 4 * g + q holds of S^T: tokens g and g + 8, heads 2q and 2q + 1. Softmax is online and in base 2
// (softmax_state.cuh); a state belongs to a warp.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "flash_tile.cuh"
#include "ldmatrix.cuh"
#include "mma.cuh"
#include "softmax_state.cuh"

namespace fdbench::device {

template <int kDim, int kTokenTiles>
struct TokensAsRows {
  static constexpr int kHeads = 8;
  // Floats from head to head of a stored result; the 4 keep lanes in different banks.
  static constexpr int kPartialPitch = kDim + 4;

  using Fragments = TileFragments<kDim, kTokenTiles>;
  using Scores = float[kTokenTiles][4];
  using Weights = std::uint32_t[kTokenTiles][2];  // P^T as second operand

  // q^T as second operand: of head g, for each 16 dimensions, two registers of two elements.
  struct Query {
    std::uint32_t b[kDim / 16][2];
  };

  // O^T; value i of an accumulator is of head 2q + i % 2.
  using State = FlashState<kDim / 16>;

  // Of `heads` query heads; absent ones repeat the last. Dimensions in the order that ldmatrix gives K's.
  static __device__ __forceinline__ void load_query(Query& query, const __nv_bfloat16* q,
                                                    std::int64_t head_stride, int heads, int lane) {
    const int head = min(lane / 4, heads - 1);
    const std::uint32_t* const row =
        reinterpret_cast<const std::uint32_t*>(q + head * head_stride) + lane % 4;
#pragma unroll
    for (int k = 0; k < kDim / 16; ++k) {
      query.b[k][0] = __ldg(row + k * 8);
      query.b[k][1] = __ldg(row + k * 8 + 4);
    }
  }

  static __device__ __forceinline__ void load_keys(Fragments& k, std::uint32_t tile, int lane) {
    load_tile<Matrices::tokens_first, false, kDim, kTokenTiles>(k, tile, lane);
  }
  static __device__ __forceinline__ void load_values(Fragments& v, std::uint32_t tile, int lane) {
    load_tile<Matrices::dims_first, true, kDim, kTokenTiles>(v, tile, lane);
  }

  static __device__ __forceinline__ void score(Scores& s, const Fragments& k, const Query& query) {
    float part[kTokenTiles][2][4] = {};  // two chains of products each: half the latency
#pragma unroll
    for (int d = 0; d < kDim / 16; ++d) {
#pragma unroll
      for (int t = 0; t < kTokenTiles; ++t) {
        ptx::mma_m16n8k16_bf16(part[t][d % 2], k[t][d], query.b[d][0], query.b[d][1]);
      }
    }
#pragma unroll
    for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
      for (int i = 0; i < 4; ++i) s[t][i] = part[t][0][i] + part[t][1][i];
    }
  }

  // Scales, and masks the tile's tokens from `valid` on.
  static __device__ __forceinline__ void scale_and_mask(Scores& s, float scale_log2, int valid, int lane) {
#pragma unroll
    for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
      for (int i = 0; i < 4; ++i) s[t][i] *= scale_log2;
    }
    if (valid >= kTokenTiles * kTokensPerTile) return;
#pragma unroll
    for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (t * kTokensPerTile + lane / 4 + i / 2 * 8 >= valid) s[t][i] = minus_infinity();
      }
    }
  }

  // Scores (scaled, masked ones -inf) to weights; moves the state's maxima, and rescales it, where a score is
  // more than kSlack above. `first`: the state is clear.
  static __device__ __forceinline__ void weigh(Weights& p, const Scores& s, State& state, bool first) {
    float top[2];
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      top[c] = fmaxf(s[0][c], s[0][c + 2]);
#pragma unroll
      for (int t = 1; t < kTokenTiles; ++t) top[c] = fmaxf(top[c], fmaxf(s[t][c], s[t][c + 2]));
    }
    state.template raise_maxima<4, 32, 1>(top, first);
    constexpr std::uint32_t ones[4] = {kOnes, kOnes, kOnes, kOnes};
    const float m0 = subtrahend(state.m[0]);
    const float m1 = subtrahend(state.m[1]);
#pragma unroll
    for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        p[t][half] = ptx::movmatrix_trans(
            pack_bf16(ex2_approx(s[t][2 * half] - m0), ex2_approx(s[t][2 * half + 1] - m1)));
      }
      ptx::mma_m16n8k16_bf16(state.l, ones, p[t][0], p[t][1]);
    }
  }

  static __device__ __forceinline__ void accumulate(State& state, const Fragments& v, const Weights& p) {
#pragma unroll
    for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
      for (int d = 0; d < kDim / 16; ++d) ptx::mma_m16n8k16_bf16(state.o[d], v[t][d], p[t][0], p[t][1]);
    }
  }

  // As the merge takes it: a row a head, and (m, l) for each.
  static __device__ __forceinline__ void store_partial(float* o, float2* ml, const State& state, int heads,
                                                       int lane) {
    const int g = lane / 4;
    const int q = lane % 4;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int head = 2 * q + c;
      if (head < heads) {
        float* const row = o + head * kPartialPitch + g;
#pragma unroll
        for (int d = 0; d < kDim / 16; ++d) {
          row[d * 16] = state.o[d][c];
          row[d * 16 + 8] = state.o[d][c + 2];
        }
        if (g == 0) ml[head] = make_float2(state.m[c], state.l[c]);
      }
    }
  }
};

}  // namespace fdbench::device
