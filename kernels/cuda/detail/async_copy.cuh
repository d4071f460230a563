// cp.async: copies from global to shared memory that a thread issues and awaits itself (sm_80 and later).
#pragma once

#include <cstdint>

#include "shared_address.cuh"

namespace fdbench::ptx {

// 16 bytes past L1; `to` and `from` 16-byte aligned. Ordering: none until cp_async_wait_group.
__device__ __forceinline__ void cp_async_cg_16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)),
               "l"(__cvta_generic_to_global(from))
               : "memory");
}

// The same, reading only the first `valid` bytes (0 to 16) and writing zeros for the rest; with 0, `from` is
// not read. `to` may be a pointer or a shared address.
__device__ __forceinline__ void cp_async_cg_16_zfill(std::uint32_t to, const void* from,
                                                     std::uint32_t valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)),
               "r"(valid)
               : "memory");
}
__device__ __forceinline__ void cp_async_cg_16_zfill(void* to, const void* from, std::uint32_t valid) {
  cp_async_cg_16_zfill(shared_address(to), from, valid);
}

// Closes a group of this thread's copies so far; it may be empty. Ordering: none.
__device__ __forceinline__ void cp_async_commit_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most kPending of this thread's groups are unfinished. Ordering: finished groups are visible
// to this thread; others need a barrier after it.
template <int kPending>
__device__ __forceinline__ void cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace fdbench::ptx
