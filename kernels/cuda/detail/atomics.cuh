// Global memory that CTAs of one launch share.
#pragma once

#include <cstdint>

namespace fdbench::ptx {

// Returns the old value and adds one, wrapping to zero from `last`. Ordering: acquire and release at device
// scope, for this thread; a CTA that publishes through it needs a barrier before, one that reads what others
// published a barrier after.
__device__ __forceinline__ std::uint32_t atom_inc_acq_rel(std::uint32_t* address, std::uint32_t last) {
  std::uint32_t old;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(__cvta_generic_to_global(address)), "r"(last)
               : "memory");
  return old;
}

// Each word by itself is never torn and never stale for ever; no order among words, nor against others.
__device__ __forceinline__ float4 ld_relaxed_v4(const float4* address) {
  float4 value;
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "l"(__cvta_generic_to_global(address))
               : "memory");
  return value;
}
__device__ __forceinline__ float2 ld_relaxed_v2(const float2* address) {
  float2 value;
  asm volatile("ld.relaxed.gpu.global.v2.f32 {%0, %1}, [%2];"
               : "=f"(value.x), "=f"(value.y)
               : "l"(__cvta_generic_to_global(address))
               : "memory");
  return value;
}
__device__ __forceinline__ void st_relaxed_v4(float4* address, float4 value) {
  asm volatile(
      "st.relaxed.gpu.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(address)),
      "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w)
      : "memory");
}
__device__ __forceinline__ void st_relaxed_v2(float2* address, float2 value) {
  asm volatile("st.relaxed.gpu.global.v2.f32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(address)),
               "f"(value.x), "f"(value.y)
               : "memory");
}

// Brings the 128-byte line of `address` into L2. Ordering: none, a hint.
__device__ __forceinline__ void prefetch_l2(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(address)));
}

}  // namespace fdbench::ptx
