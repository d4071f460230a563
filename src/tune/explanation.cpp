#include "tune/explanation.h"

#include <algorithm>
#include <cmath>

#include "rules/int_math.h"

namespace fdbench::tune {

namespace {

constexpr std::int64_t kPartialBytes = 4;  // floats
constexpr std::int64_t kStatistics = 2;    // maximum and sum of weights

}  // namespace

const KernelResources* resources_for(const Variant& variant, int cc) {
  const KernelResources* best = nullptr;
  for (const KernelResources& one : variant.resources) {
    if (one.cc > cc) continue;
    if (!best || one.cc > best->cc || (one.cc == best->cc && one.dynamic_smem > best->dynamic_smem))
      best = &one;
  }
  return best;
}

Explanation explain(const Problem& problem, const DeviceInfo& device, const LaunchPlan& plan,
                    const KernelResources* resources, double latency_ns) {
  Explanation e;
  const std::int64_t splits = std::max<std::int64_t>(1, plan.splits);
  const std::int64_t sms = std::max(1, device.sms);
  e.ctas = plan.grid.total();
  e.slots = sms;
  if (device.kind == BackendKind::cuda) {
    rules::CtaResources cta;
    if (resources) cta = rules::cta_resources(*resources);
    cta.threads = static_cast<int>(plan.block.total());
    cta.dynamic_smem = plan.dynamic_smem;
    e.registers_known = cta.regs_per_thread > 0;
    e.occupancy = rules::occupancy(cta, device);
    // CTAs go to empty multiprocessors first: only as deep as this grid stacks them.
    e.slots = sms * std::min<std::int64_t>(e.occupancy->ctas_per_sm,
                                           rules::ceil_div(std::max<std::int64_t>(e.ctas, 1), sms));
  }
  // A CPU's plan says how many threads there are.
  if (device.kind == BackendKind::cpu && plan.block.x > 0)
    e.slots = std::min<std::int64_t>(sms, plan.block.x);
  if (e.slots > 0) {
    e.waves = static_cast<double>(e.ctas) / static_cast<double>(e.slots);
    if (e.ctas > 0) e.tail_idle = 1.0 - e.waves / std::ceil(e.waves);
  }

  const std::int64_t token_bytes = 2 * problem.dim * element_bytes(problem.dtype);
  const std::int64_t ctas_a_split = std::max<std::int64_t>(1, e.ctas / splits);
  const std::int64_t chunk = plan.chunk > 0 ? std::min(plan.chunk, problem.seq) : problem.seq;
  e.kv_bytes_per_cta = chunk * token_bytes * problem.kv_heads / std::min(problem.kv_heads, ctas_a_split);
  e.last_chunk =
      plan.chunk > 0 ? std::max<std::int64_t>(0, problem.seq - (splits - 1) * plan.chunk) : problem.seq;

  if (e.occupancy && e.occupancy->ctas_per_sm > 0 && plan.tile > 0) {
    std::int64_t a_cta = plan.tile * std::max<std::int64_t>(1, plan.stages) * token_bytes;
    if (plan.dynamic_smem > 0) a_cta = std::min(a_cta, plan.dynamic_smem);
    a_cta = std::min(a_cta, e.kv_bytes_per_cta);
    const std::int64_t resident = std::min<std::int64_t>(
        e.occupancy->ctas_per_sm, rules::ceil_div(std::max<std::int64_t>(e.ctas, 1), sms));
    e.in_flight = a_cta * resident;
  }
  if (device.kind == BackendKind::cuda && device.bandwidth_datasheet)
    e.needed = latency_ns * 1e-9 * *device.bandwidth_datasheet / static_cast<double>(sms);

  if (splits > 1) {
    e.partial_bytes = 2 * splits * problem.heads * (problem.dim + kStatistics) * kPartialBytes;
    if (problem.seq > 0)
      e.partial_share =
          static_cast<double>(e.partial_bytes) / (2.0 * static_cast<double>(problem.kv_bytes()));
  }
  e.workspace = plan.scratch_bytes + plan.zeroed_bytes;
  return e;
}

}  // namespace fdbench::tune
