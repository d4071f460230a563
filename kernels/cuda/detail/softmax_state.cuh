// Online softmax in base 2 (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).
//
// Scores are score * scale * log2(e), so that a weight is 2^(score - m). Nothing seen yet, or nothing but
// masked scores (-inf), is m = -inf and l = 0: it weighs nothing against anything and makes no NaN.
#pragma once

namespace fdbench::device {

inline constexpr float kLog2E = 1.4426950408889634f;
inline constexpr float kLn2 = 0.6931471805599453f;

__device__ __forceinline__ float minus_infinity() {
  return __int_as_float(static_cast<int>(0xff800000u));
}

// 2^x to about 2^-22, relative; 2^-inf = 0, results below 2^-126 are 0.
__device__ __forceinline__ float ex2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// 1 / x to about 2^-23, relative; exact for powers of two.
__device__ __forceinline__ float rcp_approx(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// What to subtract from scores whose maximum is m: m itself, or 0 where there is no score, so that -inf - m
// stays -inf.
__device__ __forceinline__ float subtrahend(float m) {
  return m == minus_infinity() ? 0.0f : m;
}

struct SoftmaxState {
  float m;  // largest score
  float l;  // sum of 2^(score - m)
};

__device__ __forceinline__ SoftmaxState empty_state() {
  return {minus_infinity(), 0.0f};
}

// What states a and b count for in their union: a's sums times `a` plus b's times `b`.
struct MergeWeights {
  float a, b;
};

// Puts b into a.
__device__ __forceinline__ MergeWeights merge(SoftmaxState& a, const SoftmaxState& b) {
  const float m = fmaxf(a.m, b.m);
  const float base = subtrahend(m);
  const MergeWeights weights{ex2_approx(a.m - base), ex2_approx(b.m - base)};
  a.m = m;
  a.l = a.l * weights.a + b.l * weights.b;
  return weights;
}

// What turns a sum of 2^(score - m) * v into the mean; 0 for an empty state.
__device__ __forceinline__ float normaliser(const SoftmaxState& state) {
  return state.l == 0.0f ? 0.0f : 1.0f / state.l;
}

// log2 of the sum of 2^score; -inf for an empty state. Times ln 2 it is the natural log-sum-exp.
__device__ __forceinline__ float log2_sum(const SoftmaxState& state) {
  return state.m + log2f(state.l);
}

}  // namespace fdbench::device
