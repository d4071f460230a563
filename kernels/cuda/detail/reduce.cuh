// Reductions over a warp, or over aligned groups of kWidth of its lanes. All 32 lanes must call; every lane
// gets its group's result. Shuffles order no memory.
#pragma once

namespace fdbench::device {

inline constexpr unsigned kAllLanes = 0xffffffffu;

template <int kWidth = 32>
__device__ __forceinline__ float lanes_sum(float value) {
  static_assert(kWidth >= 1 && kWidth <= 32 && (kWidth & (kWidth - 1)) == 0);
#pragma unroll
  for (int step = kWidth / 2; step > 0; step /= 2) value += __shfl_xor_sync(kAllLanes, value, step);
  return value;
}

// A NaN loses against a number.
template <int kWidth = 32>
__device__ __forceinline__ float lanes_max(float value) {
  static_assert(kWidth >= 1 && kWidth <= 32 && (kWidth & (kWidth - 1)) == 0);
#pragma unroll
  for (int step = kWidth / 2; step > 0; step /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, step));
  }
  return value;
}

}  // namespace fdbench::device
