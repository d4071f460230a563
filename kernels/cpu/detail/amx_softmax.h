// Softmax between the two products of cpu_split_kv on matrix tiles (split_kv_amx.cpp): scores as one stores
// them, weights as the other loads them.
#pragma once

#include "cpu/detail/split_kv_amx.h"

#if FDBENCH_CPU_AMX

#include <immintrin.h>

#include <cstdint>
#include <limits>

#include "cpu/detail/power_of_two.h"
#include "cpu/detail/touch.h"

#define FDBENCH_AMX_CODE __attribute__((target("avx512f,avx512bw,amx-tile,amx-bf16")))

namespace fdbench::cpu {

inline constexpr std::int64_t kMostHeads = kTileHeads;  // lanes of a vector
inline constexpr std::int64_t kTileRowBytes = 64, kTileBytes = kVisitRows * kTileRowBytes;

// Tokens side by side in a vector of `width` heads, and those of 16 such vectors.
constexpr std::int64_t columns_of(std::int64_t width) {
  return kMostHeads / width;
}
constexpr std::int64_t unit_of(std::int64_t width) {
  return kVisitRows * columns_of(width);
}

constexpr std::int64_t weight_bytes(std::int64_t heads) {
  return 2 * heads * kTileRowBytes;
}

// 2^x for x <= 0, at least 2^-100, to 5e-6: weights are rounded to 8 bits. Otherwise as power_of_two
// (power_of_two.h).
FDBENCH_AMX_CODE inline __m512 powers_of_two(__m512 x) {
  constexpr float kSeries[4] = {0.69312419f, 0.24024099f, 0.055906425f, 0.0095828529f};
  const __m512 magic = _mm512_set1_ps(kRoundMagic);
  // Of a NaN, max gives its second operand: NaN scores make NaN weights.
  const __m512 clamped = _mm512_max_ps(_mm512_set1_ps(kLeastPower), x);
  const __m512 shifted = _mm512_add_ps(clamped, magic);
  const __m512 f = _mm512_sub_ps(clamped, _mm512_sub_ps(shifted, magic));
  __m512 p = _mm512_set1_ps(kSeries[3]);
  for (int i = 2; i >= 0; --i) p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(kSeries[i]));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f));
  const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), exponent));
}

// As subtrahend (power_of_two.h).
FDBENCH_AMX_CODE inline __m512 subtrahends(__m512 max) {
  const __m512 nothing = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(max, nothing, _CMP_NEQ_UQ), max);
}

// 16 x 16 words, in place.
FDBENCH_AMX_CODE inline void transpose(__m512i (&r)[16]) {
  __m512i s[16];
  for (int i = 0; i < 16; i += 2) {
    s[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    s[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(s[i], s[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(s[i], s[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(s[i + 1], s[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(s[i + 1], s[i + 3]);
  }
  // r[4 * i + j]: 128-bit block b holds column 4 * b + j of rows 4 * i ... 4 * i + 3.
  for (int j = 0; j < 4; ++j) {
    const __m512i a = _mm512_shuffle_i32x4(r[j], r[4 + j], 0x88),
                  b = _mm512_shuffle_i32x4(r[j], r[4 + j], 0xdd);
    const __m512i c = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0x88),
                  d = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0xdd);
    s[j] = _mm512_shuffle_i32x4(a, c, 0x88);
    s[8 + j] = _mm512_shuffle_i32x4(a, c, 0xdd);
    s[4 + j] = _mm512_shuffle_i32x4(b, d, 0x88);
    s[12 + j] = _mm512_shuffle_i32x4(b, d, 0xdd);
  }
  for (int i = 0; i < 16; ++i) r[i] = s[i];
}

template <int width>
FDBENCH_AMX_CODE inline __m512 max_of_columns(__m512 x) {
  if constexpr (width <= 8) x = _mm512_max_ps(x, _mm512_shuffle_f32x4(x, x, 0x4e));
  if constexpr (width <= 4) x = _mm512_max_ps(x, _mm512_shuffle_f32x4(x, x, 0xb1));
  return x;
}

// Where a block of heads keeps its softmax and its output.
struct Lanes {
  float* max;
  float* sum;
  float* acc;  // [even dims and odd dims, heads, dim / 2]
};

// Raises the maxima to those of `units` x 16 vectors of scores, heads as lanes; what was summed before is
// rescaled where one grew.
template <int width>
FDBENCH_AMX_CODE void raise_max(const float* scores, std::int64_t units, float scale, std::int64_t heads,
                                std::int64_t dim, const Lanes& lanes) {
  // NaN scores are passed over (see powers_of_two); their weights tell.
  __m512 greatest = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  __m512 greatest_odd = greatest;
  const __m512 by = _mm512_set1_ps(scale);  // before the maximum: it may be negative
  for (std::int64_t i = 0; i < units * kVisitRows; i += 2) {
    greatest = _mm512_max_ps(_mm512_mul_ps(_mm512_loadu_ps(scores + i * kMostHeads), by), greatest);
    greatest_odd =
        _mm512_max_ps(_mm512_mul_ps(_mm512_loadu_ps(scores + (i + 1) * kMostHeads), by), greatest_odd);
  }
  greatest = max_of_columns<width>(_mm512_max_ps(greatest, greatest_odd));
  const __m512 old_max = _mm512_loadu_ps(lanes.max);
  const __m512 new_max = _mm512_max_ps(old_max, greatest);
  if (!_mm512_cmp_ps_mask(new_max, old_max, _CMP_GT_OQ)) return;
  const __m512 factor = powers_of_two(_mm512_sub_ps(old_max, subtrahends(new_max)));
  float factors[kMostHeads];
  _mm512_storeu_ps(factors, factor);
  _mm512_storeu_ps(lanes.sum, _mm512_mul_ps(_mm512_loadu_ps(lanes.sum), factor));
  for (std::int64_t row = 0; row < 2 * heads; ++row) {
    const float by_row = factors[row < heads ? row : row - heads];
    if (by_row == 1.0f) continue;
    const __m512 f = _mm512_set1_ps(by_row);
    for (float* at = lanes.acc + row * dim / 2; at < lanes.acc + (row + 1) * dim / 2; at += 16)
      _mm512_storeu_ps(at, _mm512_mul_ps(_mm512_loadu_ps(at), f));
  }
  _mm512_storeu_ps(lanes.max, new_max);
}

// Weights of a unit of scores, relative to the maxima. Those of 16 tokens become a tile of 2 * heads rows:
// for the even dims, then for the odd ones.
template <int width>
FDBENCH_AMX_CODE void weigh(const float* scores, float scale, std::int64_t heads, const Lanes& lanes,
                            char* weights) {
  constexpr int columns = static_cast<int>(columns_of(width));
  const __m512 by = _mm512_set1_ps(scale), max = subtrahends(_mm512_loadu_ps(lanes.max));
  const __m512i half = _mm512_set1_epi32(0x8000), high = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  __m512 total = _mm512_loadu_ps(lanes.sum);
  __m512i words[16];
  for (int i = 0; i < 16; ++i) {
    const __m512 power = powers_of_two(_mm512_fmsub_ps(_mm512_loadu_ps(scores + i * kMostHeads), by, max));
    // To the nearest bf16.
    words[i] = _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(power), half), high);
    total = _mm512_add_ps(total, _mm512_castsi512_ps(words[i]));
  }
  transpose(words);
  for (int c = 0; c < columns; ++c, weights += weight_bytes(heads)) {
    for (int h = 0; h < heads; ++h) {
      const __m512i word = words[c * width + h];
      _mm512_storeu_si512(weights + h * kTileRowBytes, _mm512_srli_epi32(word, 16));
      _mm512_storeu_si512(weights + (heads + h) * kTileRowBytes, word);
    }
  }
  _mm512_storeu_ps(lanes.sum, total);
}

}  // namespace fdbench::cpu

#endif
