// How a variant will run a problem on a device: made by a pure function, so that tests see every launch
// parameter with no GPU.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace fdbench {

struct Extent3 {
  std::int64_t x = 1, y = 1, z = 1;
  std::int64_t total() const { return x * y * z; }
  bool operator==(const Extent3&) const = default;
};

struct LaunchPlan {
  Extent3 grid;             // CTAs; on a CPU, work items
  Extent3 block;            // threads a CTA; on a CPU, x = threads of the team
  Extent3 cluster;          // CTAs a cluster
  std::int64_t chunk = 0;   // KV tokens a CTA owns
  std::int64_t splits = 1;  // chunks a head
  std::int64_t tile = 0;    // KV tokens staged at once
  std::int64_t stages = 0;
  std::int64_t dynamic_smem = 0;  // bytes a CTA
  bool cooperative = false;       // every CTA must be resident: a misfit fails the launch
  std::string merge;  // how partial results meet: "none", "kernel", "last_cta", "shared", "cluster", ...
  std::int64_t scratch_bytes = 0;  // contents undefined before each launch
  std::int64_t zeroed_bytes = 0;   // zero before the first launch, left zero by every launch
  std::string isa;                 // one of DeviceInfo::isas: whose code runs; empty where there is no choice
  std::string rule;                // the split rule that chose the chunk; empty when the tuning point did
};

struct Unsupported {
  std::string reason;  // a sentence, with what is needed and what there is
};

using PlanResult = std::variant<LaunchPlan, Unsupported>;

}  // namespace fdbench
