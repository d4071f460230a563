// Bulk copies from global to this CTA's shared memory by the copy engine (sm_90 and later).
//
// All are asynchronous and belong to the async proxy. Ordering, the same for each: the bytes are visible to a
// thread once its wait on `barrier` (mbarrier.cuh) for the phase that expected them has returned; the
// destination must have been released first: its readers through a barrier, its ordinary writers through
// fence_proxy_async and a barrier.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "mbarrier.cuh"
#include "shared_address.cuh"

namespace fdbench::ptx {

// An L2 eviction policy, as the copies' cache hint takes it.
using CachePolicy = std::uint64_t;

// Ordering: none, touches no memory.
__device__ __forceinline__ CachePolicy createpolicy_evict_first() {
  CachePolicy policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// `bytes` contiguous bytes, a multiple of 16; `to` and `from` 16-byte aligned.
__device__ __forceinline__ void cp_async_bulk(void* to, const void* from, std::uint32_t bytes,
                                              Mbarrier* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(to)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

// The same with a cache hint.
__device__ __forceinline__ void cp_async_bulk(void* to, const void* from, std::uint32_t bytes,
                                              Mbarrier* barrier, CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, "
      "[%3], %4;" ::"r"(shared_address(to)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(barrier)), "l"(policy)
      : "memory");
}

// One box of the 3-D tensor `map` (a __grid_constant__ parameter) whose first element is (x, y, z), x
// innermost. What lies outside the tensor is written as zeros and counts as bytes all the same. `to` is
// 128-byte aligned (1,024 with the 128-byte swizzle).
__device__ __forceinline__ void cp_async_bulk_tensor_3d(void* to, const CUtensorMap* map, std::int32_t x,
                                                        std::int32_t y, std::int32_t z, Mbarrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
      "%4}], [%5];" ::"r"(shared_address(to)),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(shared_address(barrier))
      : "memory");
}

// The same with a cache hint.
__device__ __forceinline__ void cp_async_bulk_tensor_3d(void* to, const CUtensorMap* map, std::int32_t x,
                                                        std::int32_t y, std::int32_t z, Mbarrier* barrier,
                                                        CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
      "[%1, {%2, %3, %4}], [%5], %6;" ::"r"(shared_address(to)),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(shared_address(barrier)), "l"(policy)
      : "memory");
}

// The same of a 4-D tensor, with a cache hint.
__device__ __forceinline__ void cp_async_bulk_tensor_4d(void* to, const CUtensorMap* map, std::int32_t x,
                                                        std::int32_t y, std::int32_t z, std::int32_t w,
                                                        Mbarrier* barrier, CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
      "[%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(shared_address(to)),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(shared_address(barrier)), "l"(policy)
      : "memory");
}

// Brings the descriptor into its cache. Ordering: none, a hint.
__device__ __forceinline__ void prefetch_tensormap(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

}  // namespace fdbench::ptx
