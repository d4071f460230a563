// How many CTAs of a kernel a multiprocessor holds at once, and which resource says so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/device_info.h"

namespace fdbench {
struct KernelResources;
}

namespace fdbench::rules {

// What one multiprocessor has to give. Bytes, registers of 32 bits, threads.
// Source: the "compute capabilities" table of the CUDA programming guide; the toolkit's cuda_occupancy.h;
// CCCL's arch_traits.h.
struct SmLimits {
  int cc = 0;  // compute capability x10; 0 when not known
  int threads_per_sm = 0;
  int ctas_per_sm = 0;
  int regs_per_sm = 65536;
  int regs_per_thread = 255;
  int threads_per_cta = 1024;
  std::int64_t smem_per_sm = 0;
  std::int64_t smem_per_cta = 0;              // the opt-in maximum of static + dynamic
  std::int64_t smem_reserved_per_cta = 1024;  // the system's own, on top of what the kernel asks for
};

// The limits of sm_80, 86, 89, 90, 100 or 120 (cc x10); nothing for any other.
std::optional<SmLimits> sm_limits(int cc);

// The limits that a device reports of itself. All zero for a CPU: occupancy() then says so.
SmLimits sm_limits(const DeviceInfo& device);

// What one CTA takes.
struct CtaResources {
  int regs_per_thread = 0;        // 0: not known, then registers limit nothing
  int threads = 0;                // a CTA; a part of a warp counts as a whole one
  std::int64_t static_smem = 0;   // bytes
  std::int64_t dynamic_smem = 0;  // bytes
};

// What a CTA takes of the most that a variant declares for an architecture.
CtaResources cta_resources(const KernelResources& declared);

enum class OccupancyLimit { ctas, threads, registers, shared_memory };

std::string_view to_string(OccupancyLimit limit);

struct Occupancy {
  int ctas_per_sm = 0;                          // the least of the four below; 0 when the kernel does not fit
  OccupancyLimit limit = OccupancyLimit::ctas;  // the first of those that give the least, in the enum's order

  int by_ctas = 0;
  int by_threads = 0;
  int by_registers = 0;  // by_ctas when the registers are not known
  int by_shared_memory = 0;

  int warps_per_sm = 0;
  double warp_share = 0;  // of the warps that a multiprocessor can hold, 0 to 1

  // Why ctas_per_sm is 0: a sentence with what was needed and what there is. Empty otherwise.
  std::string reason;
};

// CTAs by
//   threads:       floor(threads_per_sm / 32 / warps), warps = ceil(threads / 32)
//   registers:     floor(4 * floor(regs_per_sm / 4 / roundup(32 * regs, 256)) / warps): given out by 256 a
//   warp, within a quarter shared memory: floor(smem_per_sm / roundup(static + dynamic + reserved, 128))
// Nonsense (no threads, negative sizes, a device without limits) is an answer of 0 with its reason.
Occupancy occupancy(const CtaResources& kernel, const SmLimits& limits);
Occupancy occupancy(const CtaResources& kernel, const DeviceInfo& device);

}  // namespace fdbench::rules
