// Clusters: CTAs that run at the same time and reach each other's shared memory (sm_90 and later).
#pragma once

#include <cstdint>

#include "mbarrier.cuh"
#include "shared_address.cuh"

namespace fdbench::ptx {

// This CTA's number in its cluster.
__device__ __forceinline__ std::uint32_t cluster_ctarank() {
  std::uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// Every thread of the cluster arrives once, then may wait until all have. Ordering: what a thread did before
// it arrived is visible, in the whole cluster, after the wait.
__device__ __forceinline__ void barrier_cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
// The same without ordering, for mbarriers that fence_mbarrier_init has released already: an arrival that
// releases waits for all of the thread's memory accesses, some 500 cycles on an H200.
__device__ __forceinline__ void barrier_cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void barrier_cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// True in one lane of the warp, the same one each time. All 32 lanes must call. What that lane does alone
// needs no loop over lanes where an instruction takes uniform registers.
__device__ __forceinline__ bool elect_one() {
  std::uint32_t elected;
  asm volatile(
      "{\n"
      ".reg .pred chosen;\n"
      "elect.sync _|chosen, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, chosen;\n"
      "}\n"
      : "=r"(elected));
  return elected != 0;
}

// The address that reaches, in CTA `rank` of the cluster, what `address` (shared_address.cuh) names in this
// one.
__device__ __forceinline__ std::uint32_t mapa(std::uint32_t address, std::uint32_t rank) {
  std::uint32_t mapped;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}

// Stores into the shared memory of the CTA that the addresses (from mapa) are in, and counts 16 or 8 bytes
// on its barrier. Ordering: asynchronous; visible to whoever has waited on the barrier's phase with
// mbarrier_wait_parity_cluster. That CTA must have started and must not have ended.
__device__ __forceinline__ void st_async_v4(std::uint32_t address, float4 value, std::uint32_t barrier) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
          address),
      "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w), "r"(barrier)
      : "memory");
}
__device__ __forceinline__ void st_async_v2(std::uint32_t address, float2 value, std::uint32_t barrier) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(
          address),
      "f"(value.x), "f"(value.y), "r"(barrier)
      : "memory");
}

// mbarrier_wait_parity with acquire at cluster scope: what other CTAs stored is visible too.
__device__ __forceinline__ void mbarrier_wait_parity_cluster(Mbarrier* barrier, std::uint32_t parity) {
  std::uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{\n"
        ".reg .pred complete;\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 complete, [%1], %2;\n"
        "selp.u32 %0, 1, 0, complete;\n"
        "}\n"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  }
}

}  // namespace fdbench::ptx
