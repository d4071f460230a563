// mbarrier instructions on this CTA's shared memory (sm_90 and later; those without a transaction count also
// sm_80). A barrier is 8 bytes, 8-byte aligned. Its phase starts at 0; a wait on
// parity p returns once the phase of that parity has completed, so the n-th use of a barrier waits on n & 1.
#pragma once

#include <cstdint>

#include "shared_address.cuh"

namespace fdbench::ptx {

using Mbarrier = std::uint64_t;

// Sets the phase to 0, awaiting `arrivals` a phase. Ordering: none by itself; other threads need a barrier
// after it, the copy engine a fence (below) in the same thread.
__device__ __forceinline__ void mbarrier_init(Mbarrier* barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
               : "memory");
}

// The barrier's memory may serve something else afterwards. Ordering: no thread may still be waiting on it.
__device__ __forceinline__ void mbarrier_inval(Mbarrier* barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Ordering: releases this thread's earlier mbarrier.init to the whole cluster, the copy engine included.
__device__ __forceinline__ void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Ordering: this thread's earlier ordinary accesses to shared memory come before later ones of the async
// proxy (bulk copies, wgmma) that it issues, or that a barrier orders after this fence.
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Ordering: release at CTA scope.
__device__ __forceinline__ void mbarrier_arrive(Mbarrier* barrier) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}

// Arrives, and makes the current phase await `bytes` more of bulk copies. Ordering: release at CTA scope; to
// be called before the copies it accounts for.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(Mbarrier* barrier, std::uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}

// True once the phase of `parity` has completed; may suspend the thread for a time that the system bounds.
// Ordering: when true, acquire at CTA scope, and bulk-copied bytes are visible to this thread.
__device__ __forceinline__ bool mbarrier_try_wait_parity(Mbarrier* barrier, std::uint32_t parity) {
  std::uint32_t done;
  asm volatile(
      "{\n"
      ".reg .pred complete;\n"
      "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 complete, [%1], %2;\n"
      "selp.u32 %0, 1, 0, complete;\n"
      "}\n"
      : "=r"(done)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return done != 0;
}

// try_wait until it is true; its ordering.
__device__ __forceinline__ void mbarrier_wait_parity(Mbarrier* barrier, std::uint32_t parity) {
  while (!mbarrier_try_wait_parity(barrier, parity)) {
  }
}

}  // namespace fdbench::ptx
