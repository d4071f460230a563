// What the CPU kernels share: element conversion that a compiler can vectorise, shares of work, and what the
// variants support.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "core/device_info.h"
#include "core/half.h"
#include "core/problem.h"

namespace fdbench::cpu {

// As fp16_to_float (core/half.h), without branches. The shifted bits read as a float are the value times
// 2^-112, subnormals included, so one exact product remains; infinity and NaN get their exponent back.
inline float fp16_value(std::uint16_t bits) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffu) << 13;
  const std::uint32_t scaled = float_bits(bits_float(magnitude) * 0x1p112f);
  const std::uint32_t special = magnitude >= (0x7c00u << 13) ? 0x7f800000u : 0u;
  return bits_float(scaled | special | (static_cast<std::uint32_t>(bits & 0x8000u) << 16));
}

template <Dtype dtype>
inline float element_value(std::uint16_t bits) {
  if constexpr (dtype == Dtype::bf16) return bf16_to_float(bits);
  return fp16_value(bits);
}

inline std::uint16_t round_element(Dtype dtype, float value) {
  return dtype == Dtype::bf16 ? float_to_bf16(value) : float_to_fp16(value);
}

struct Range {
  std::int64_t begin = 0, end = 0;
};

// Part `index` of `parts` nearly equal parts of 0 ... count - 1.
inline Range part_of(std::int64_t count, std::int64_t index, std::int64_t parts) {
  return {count * index / parts, count * (index + 1) / parts};
}

inline constexpr std::int64_t kLanes = 16;  // of the plain loops' explicit accumulators
inline constexpr std::int64_t kLine = 64;   // bytes

inline std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// The dims that the CPU's attention kernels take: their loops step 32 elements.
inline std::optional<std::string> unsupported_dim(const Problem& problem, const DeviceInfo&) {
  if (problem.dim == 64 || problem.dim == 96 || problem.dim == 128 || problem.dim == 192 ||
      problem.dim == 256) {
    return std::nullopt;
  }
  return "dim must be 64, 96, 128, 192 or 256, not " + std::to_string(problem.dim);
}

}  // namespace fdbench::cpu
