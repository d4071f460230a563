#include "rules/occupancy.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/variant.h"
#include "rules/int_math.h"

namespace fdbench::rules {
namespace {

constexpr std::int64_t kKiB = 1024;
constexpr int kWarp = 32;
constexpr int kSubPartitions = 4;
constexpr std::int64_t kRegisterGrain = 256;  // registers, a warp
constexpr std::int64_t kSmemGrain = 128;

constexpr SmLimits row(int cc, int threads, int ctas, std::int64_t smem_kib) {
  SmLimits limits;
  limits.cc = cc;
  limits.threads_per_sm = threads;
  limits.ctas_per_sm = ctas;
  limits.smem_per_sm = smem_kib * kKiB;
  limits.smem_per_cta = (smem_kib - 1) * kKiB;
  return limits;
}

constexpr std::array kTable = {
    row(80, 2048, 32, 164), row(86, 1536, 16, 100),  row(89, 1536, 24, 100),
    row(90, 2048, 32, 228), row(100, 2048, 32, 228), row(120, 1536, 24, 100),
};

std::string misfit(std::int64_t needed, const char* what, const char* whose, std::int64_t had) {
  return "a CTA needs " + std::to_string(needed) + " " + what + ", and " + whose + " " + std::to_string(had);
}

// Why no CTA can run whatever else is on the multiprocessor; empty when one can.
std::string misfit_reason(const CtaResources& kernel, const SmLimits& limits) {
  if (limits.threads_per_sm < kWarp || limits.ctas_per_sm <= 0 || limits.regs_per_sm <= 0 ||
      limits.smem_per_sm <= 0) {
    return "the device states no multiprocessor limits";
  }
  if (kernel.threads <= 0) return "a CTA of " + std::to_string(kernel.threads) + " threads is none";
  if (kernel.regs_per_thread < 0 || kernel.static_smem < 0 || kernel.dynamic_smem < 0) {
    return "a kernel's registers and shared memory cannot be negative";
  }
  if (kernel.threads > limits.threads_per_cta) {
    return misfit(kernel.threads, "threads", "it can have at most", limits.threads_per_cta);
  }
  if (kernel.regs_per_thread > limits.regs_per_thread) {
    return misfit(kernel.regs_per_thread, "registers a thread", "it can have at most",
                  limits.regs_per_thread);
  }
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() / 4;
  if (kernel.static_smem > most || kernel.dynamic_smem > most ||
      kernel.static_smem + kernel.dynamic_smem > limits.smem_per_cta) {
    const std::int64_t needed = std::min(kernel.static_smem, most) + std::min(kernel.dynamic_smem, most);
    return misfit(needed, "bytes of shared memory", "it can have at most", limits.smem_per_cta);
  }
  return {};
}

}  // namespace

std::optional<SmLimits> sm_limits(int cc) {
  const auto found =
      std::find_if(kTable.begin(), kTable.end(), [cc](const SmLimits& l) { return l.cc == cc; });
  if (found == kTable.end()) return std::nullopt;
  return *found;
}

SmLimits sm_limits(const DeviceInfo& device) {
  SmLimits limits;
  limits.cc = device.cc;
  limits.threads_per_sm = device.threads_per_sm;
  limits.ctas_per_sm = device.ctas_per_sm;
  limits.regs_per_sm = device.regs_per_sm;
  limits.smem_per_sm = device.smem_per_sm;
  limits.smem_per_cta = device.smem_per_block;
  return limits;
}

CtaResources cta_resources(const KernelResources& declared) {
  return {.regs_per_thread = declared.registers,
          .threads = declared.threads,
          .static_smem = declared.static_smem,
          .dynamic_smem = declared.dynamic_smem};
}

std::string_view to_string(OccupancyLimit limit) {
  switch (limit) {
    case OccupancyLimit::ctas:
      return "ctas";
    case OccupancyLimit::threads:
      return "threads";
    case OccupancyLimit::registers:
      return "registers";
    case OccupancyLimit::shared_memory:
      return "shared memory";
  }
  return "?";
}

Occupancy occupancy(const CtaResources& kernel, const SmLimits& limits) {
  Occupancy result;
  result.reason = misfit_reason(kernel, limits);
  if (!result.reason.empty()) return result;

  const int warps = (kernel.threads + kWarp - 1) / kWarp;
  result.by_ctas = limits.ctas_per_sm;
  result.by_threads = limits.threads_per_sm / kWarp / warps;
  result.by_registers = result.by_ctas;
  const std::int64_t a_warp = round_up(std::int64_t{kWarp} * kernel.regs_per_thread, kRegisterGrain);
  if (a_warp > 0) {
    result.by_registers =
        static_cast<int>(kSubPartitions * (limits.regs_per_sm / kSubPartitions / a_warp) / warps);
  }
  const std::int64_t a_cta = std::max<std::int64_t>(
      round_up(kernel.static_smem + kernel.dynamic_smem + limits.smem_reserved_per_cta, kSmemGrain), 1);
  result.by_shared_memory =
      static_cast<int>(std::min<std::int64_t>(limits.smem_per_sm / a_cta, std::numeric_limits<int>::max()));

  result.ctas_per_sm = result.by_ctas;
  const auto consider = [&](int ctas, OccupancyLimit limit) {
    if (ctas >= result.ctas_per_sm) return;
    result.ctas_per_sm = ctas;
    result.limit = limit;
  };
  consider(result.by_threads, OccupancyLimit::threads);
  consider(result.by_registers, OccupancyLimit::registers);
  consider(result.by_shared_memory, OccupancyLimit::shared_memory);

  result.warps_per_sm = result.ctas_per_sm * warps;
  result.warp_share = static_cast<double>(result.warps_per_sm) / (limits.threads_per_sm / kWarp);

  if (result.ctas_per_sm == 0) {
    switch (result.limit) {
      case OccupancyLimit::registers:
        result.reason = misfit(warps * a_warp, "registers", "a multiprocessor has", limits.regs_per_sm);
        break;
      case OccupancyLimit::shared_memory:
        result.reason = misfit(a_cta, "bytes of shared memory", "a multiprocessor has", limits.smem_per_sm);
        break;
      default:
        result.reason = misfit(kernel.threads, "threads", "a multiprocessor has", limits.threads_per_sm);
    }
  }
  return result;
}

Occupancy occupancy(const CtaResources& kernel, const DeviceInfo& device) {
  return occupancy(kernel, sm_limits(device));
}

}  // namespace fdbench::rules
