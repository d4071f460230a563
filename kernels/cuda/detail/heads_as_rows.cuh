// Attention of up to 16 query heads over a tile of 16 * kTokenTiles tokens, by one warp, on tensor cores: the
// same interface as TokensAsRows (tokens_as_rows.cuh).
//
// S = q K^T has the heads as rows and 8 tokens as columns; P goes from accumulator to operand as it is, and
// O = P V adds up with the heads as rows. K and V come out of shared memory exactly once, which matters: two
// warps of 8 heads each would read them twice, and reading is then as slow as the memory (docs/kernels.md).
//
// Lane 4 * g + q holds of S: heads g and g + 8, tokens 2q and 2q + 1 of each 8.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "flash_tile.cuh"
#include "mma.cuh"
#include "softmax_state.cuh"

namespace fdbench::device {

template <int kDim, int kTokenTiles>
struct HeadsAsRows {
  static constexpr int kHeads = 16;
  // The 8 keep the lanes of half a warp, which store 8 bytes each, in different banks.
  static constexpr int kPartialPitch = kDim + 8;

  using Fragments = TileFragments<kDim, kTokenTiles>;
  using Scores = float[2 * kTokenTiles][4];
  using Weights = std::uint32_t[kTokenTiles][4];  // P as first operand

  // q as first operand: of heads g and g + 8.
  struct Query {
    std::uint32_t a[kDim / 16][4];
  };

  // O; values 0 and 1 of an accumulator are of head g, 2 and 3 of head g + 8.
  using State = FlashState<kDim / 8>;

  static __device__ __forceinline__ void load_query(Query& query, const __nv_bfloat16* q,
                                                    std::int64_t head_stride, int heads, int lane) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int head = min(lane / 4 + 8 * c, heads - 1);
      const std::uint32_t* const row =
          reinterpret_cast<const std::uint32_t*>(q + head * head_stride) + lane % 4;
#pragma unroll
      for (int k = 0; k < kDim / 16; ++k) {
        query.a[k][c] = __ldg(row + k * 8);
        query.a[k][c + 2] = __ldg(row + k * 8 + 4);
      }
    }
  }

  static __device__ __forceinline__ void load_keys(Fragments& k, std::uint32_t tile, int lane) {
    load_tile<Matrices::dims_first, false, kDim, kTokenTiles>(k, tile, lane);
  }
  static __device__ __forceinline__ void load_values(Fragments& v, std::uint32_t tile, int lane) {
    load_tile<Matrices::tokens_first, true, kDim, kTokenTiles>(v, tile, lane);
  }

  static __device__ __forceinline__ void score(Scores& s, const Fragments& k, const Query& query) {
#pragma unroll
    for (int n = 0; n < 2 * kTokenTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) s[n][i] = 0.0f;
    }
#pragma unroll
    for (int d = 0; d < kDim / 16; ++d) {
#pragma unroll
      for (int n = 0; n < 2 * kTokenTiles; ++n) {
        ptx::mma_m16n8k16_bf16(s[n], query.a[d], k[n / 2][d][n % 2 * 2], k[n / 2][d][n % 2 * 2 + 1]);
      }
    }
  }

  static __device__ __forceinline__ void scale_and_mask(Scores& s, float scale_log2, int valid, int lane) {
#pragma unroll
    for (int n = 0; n < 2 * kTokenTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) s[n][i] *= scale_log2;
    }
    if (valid >= kTokenTiles * kTokensPerTile) return;
#pragma unroll
    for (int n = 0; n < 2 * kTokenTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (n * 8 + lane % 4 * 2 + i % 2 >= valid) s[n][i] = minus_infinity();
      }
    }
  }

  static __device__ __forceinline__ void weigh(Weights& p, const Scores& s, State& state, bool first) {
    float top[2];
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      top[c] = fmaxf(s[0][2 * c], s[0][2 * c + 1]);
#pragma unroll
      for (int n = 1; n < 2 * kTokenTiles; ++n) top[c] = fmaxf(top[c], fmaxf(s[n][2 * c], s[n][2 * c + 1]));
    }
    state.template raise_maxima<1, 4, 2>(top, first);
    const float base[2] = {subtrahend(state.m[0]), subtrahend(state.m[1])};
#pragma unroll
    for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {  // heads g and g + 8 of 8 tokens, then of the next 8
        const float(&from)[4] = s[2 * t + i / 2];
        const int c = i % 2;
        p[t][i] = pack_bf16(ex2_approx(from[2 * c] - base[c]), ex2_approx(from[2 * c + 1] - base[c]));
      }
      ptx::mma_m16n8k16_bf16(state.l, p[t], kOnes, kOnes);
    }
  }

  static __device__ __forceinline__ void accumulate(State& state, const Fragments& v, const Weights& p) {
#pragma unroll
    for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
      for (int d = 0; d < kDim / 8; ++d) {
        ptx::mma_m16n8k16_bf16(state.o[d], p[t], v[t][d / 2][d % 2 * 2], v[t][d / 2][d % 2 * 2 + 1]);
      }
    }
  }

  static __device__ __forceinline__ void store_partial(float* o, float2* ml, const State& state, int heads,
                                                       int lane) {
    const int g = lane / 4;
    const int q = lane % 4;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int head = g + 8 * c;
      if (head < heads) {
        float* const row = o + head * kPartialPitch + 2 * q;
#pragma unroll
        for (int d = 0; d < kDim / 8; ++d) {
          *reinterpret_cast<float2*>(row + d * 8) = make_float2(state.o[d][2 * c], state.o[d][2 * c + 1]);
        }
        if (q == 0) ml[head] = make_float2(state.m[c], state.l[2 * c]);
      }
    }
  }
};

}  // namespace fdbench::device
