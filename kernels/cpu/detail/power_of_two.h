// 2^x for the softmax weights, x <= 0, in single precision: the Taylor series of exp(f ln 2) to the sixth
// power for f in [-1/2, 1/2] (relative error below 1.3e-7, exactly 1 at 0), times a power of two made in the
// exponent bits. Below -100 the weight is 0: it could not change a float sum that holds a 1, and subnormal
// products would cost a microcode trap each.
#pragma once

#include <limits>

#include "core/half.h"

namespace fdbench::cpu {

inline constexpr float kLog2E = 1.44269504088896340736f;
inline constexpr float kLn2 = 0.69314718055994530942f;
inline constexpr float kLeastPower = -100.0f;

// (ln 2)^k / k!, k = 1 ... 6.
inline constexpr float kPowerSeries[6] = {0.6931471805599453f,    0.2402265069591007f,
                                          0.05550410866482158f,   0.009618129107628477f,
                                          0.0013333558146428443f, 0.00015403530393381608f};

// Adding and subtracting this rounds a float of magnitude below 2^22 to the nearest integer.
inline constexpr float kRoundMagic = 12582912.0f;  // 1.5 * 2^23

inline float power_of_two(float x) {
  const float clamped = x < kLeastPower ? kLeastPower : x;
  const float shifted = clamped + kRoundMagic;
  const float whole = shifted - kRoundMagic;
  const float f = clamped - whole;
  float p = kPowerSeries[5];
  for (int k = 4; k >= 0; --k) p = p * f + kPowerSeries[k];
  p = p * f + 1.0f;
  // The low bits of `shifted` hold the integer in two's complement.
  const float scaled = bits_float(float_bits(p) + (float_bits(shifted) << 23));
  return x < kLeastPower ? 0.0f : scaled;
}

// What to subtract from scores whose maximum is max: 0 where no score is finite, so that -inf - max stays
// -inf.
inline float subtrahend(float max) {
  return max == -std::numeric_limits<float>::infinity() ? 0.0f : max;
}

}  // namespace fdbench::cpu
