// Why a plan takes the time it does: waves, tail, occupancy, bytes in flight, what merging costs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/device_info.h"
#include "core/launch_plan.h"
#include "core/problem.h"
#include "core/variant.h"
#include "rules/occupancy.h"

namespace fdbench::tune {

struct Explanation {
  std::int64_t ctas = 0;  // on a CPU work items
  // Of them at once: multiprocessors (cores) times the occupancy, or times what this grid stacks on one where
  // that is less; 0 where the kernel does not fit.
  std::int64_t slots = 0;
  std::optional<rules::Occupancy> occupancy;  // of a GPU
  bool registers_known = false;
  double waves = 0.0;
  double tail_idle = 0.0;  // share of all slots' time without a CTA in the last wave: 1 - waves / ceil

  std::int64_t kv_bytes_per_cta = 0;  // K and V that a CTA of whole chunk reads
  std::int64_t last_chunk = 0;        // tokens of a head's last chunk

  // Of a multiprocessor, in bytes; nothing on a CPU.
  std::optional<std::int64_t>
      in_flight;                 // what its resident CTAs stage at most: tile x stages of K and V each
  std::optional<double> needed;  // latency x its share of the bandwidth (Little's law)

  std::int64_t partial_bytes = 0;  // written by the splits, and read again to merge them; 0 with one split
  double partial_share = 0.0;      // of the bytes of K and V
  std::int64_t workspace = 0;      // scratch and zeroed bytes
};

// `resources`: what the variant declares for the device's architecture, null where that is not known.
// `latency_ns`: of a loaded memory. Partial results are floats, dim and two a query head and split, once out
// and once in.
Explanation explain(const Problem& problem, const DeviceInfo& device, const LaunchPlan& plan,
                    const KernelResources* resources, double latency_ns);

// The resources of the variant's main kernel on `cc`: those with the most dynamic shared memory for the
// greatest capability not above it. Null where it declares none.
const KernelResources* resources_for(const Variant& variant, int cc);

}  // namespace fdbench::tune
