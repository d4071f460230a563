// bf16 and fp16 as bit patterns, with integer arithmetic only: CPU and GPU agree bit for bit, and neither
// needs the other's headers.
#pragma once

#include <cstdint>

#include "core/host_device.h"

namespace fdbench {

// Builtins rather than std::bit_cast: nvcc takes them in device code without extra flags.
FDBENCH_HOST_DEVICE constexpr std::uint32_t float_bits(float value) {
  return __builtin_bit_cast(std::uint32_t, value);
}
FDBENCH_HOST_DEVICE constexpr float bits_float(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

FDBENCH_HOST_DEVICE constexpr float bf16_to_float(std::uint16_t bits) {
  return bits_float(static_cast<std::uint32_t>(bits) << 16);
}

// Round to nearest even; NaN stays NaN (quiet).
FDBENCH_HOST_DEVICE constexpr std::uint16_t float_to_bf16(float value) {
  const std::uint32_t bits = float_bits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

FDBENCH_HOST_DEVICE constexpr float fp16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1fu) return bits_float(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return bits_float(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  // Subnormal: mantissa * 2^-24, exact in float.
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return bits_float(sign | float_bits(magnitude));
}

// Round to nearest even; overflow to infinity; NaN stays NaN (quiet).
FDBENCH_HOST_DEVICE constexpr std::uint16_t float_to_fp16(float value) {
  const std::uint32_t bits = float_bits(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // 65520 and above
  if (magnitude >= 0x38800000u) {                                                   // normal: at least 2^-14
    const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
  }
  if (magnitude < 0x33000000u) return static_cast<std::uint16_t>(sign);  // below 2^-25: zero
  const std::uint32_t shift = 126u - (magnitude >> 23);  // 14 for 2^-14's neighbour, 24 for 2^-25
  const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  const std::uint32_t half = 1u << (shift - 1);
  std::uint32_t result = mantissa >> shift;
  const std::uint32_t rest = mantissa & ((1u << shift) - 1u);
  if (rest > half || (rest == half && (result & 1u))) ++result;
  return static_cast<std::uint16_t>(sign | result);
}

inline constexpr std::uint16_t kQuietNan16 = 0x7fffu;  // a quiet NaN read as bf16 and as fp16

}  // namespace fdbench
