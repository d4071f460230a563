// A variant: one way to compute (or to bound) decode attention. One file under kernels/ defines one constant
// of this type, named like the file; CMake makes the table.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/decode_args.h"
#include "core/device_info.h"
#include "core/launch_plan.h"
#include "core/problem.h"
#include "core/thread_team.h"
#include "core/tuning_point.h"

namespace fdbench {

enum class Role {
  oracle,     // float64 ground truth; writes oracle_o and oracle_lse; never timed
  roof,       // reads the same bytes and computes nothing: the ceiling
  reference,  // what speedups are against
  candidate,
};

std::string_view to_string(Role role);

// What a launch runs on. A backend sets what is its own; a kernel takes what its backend gives.
struct LaunchContext {
  void* stream = nullptr;      // cudaStream_t
  ThreadTeam* team = nullptr;  // CPU
};

// A variant made ready for one set of pointers and one plan: tensor maps, attributes, handles.
class Prepared {
 public:
  virtual ~Prepared() = default;
  // Runs the operation once. On a GPU it only enqueues, and must be fit for stream capture. Throws Error on
  // failure.
  virtual void launch(const LaunchContext& context) = 0;
};

// What a kernel may use on one architecture; the resource test holds the compiler's report to it.
struct KernelResources {
  std::string_view kernel;  // the __global__ function's name, without template arguments
  int cc = 0;               // 80, 90, 100, 120
  int registers = 0;        // a thread, at most
  int static_smem = 0;      // bytes a CTA, at most
  int dynamic_smem = 0;     // bytes a CTA, the largest the variant's plans use on this architecture
  int threads = 0;          // a CTA, at most
  int ctas_per_sm = 1;      // occupancy, at least, with all of the above
};

struct Variant {
  std::string_view name;
  BackendKind backend = BackendKind::cpu;
  Role role = Role::candidate;
  std::string_view summary;  // one line
  int tuning_version = 1;    // raised when old tuned points stop meaning the same
  double tolerance = 0.0;    // relative L2 error against the oracle on the standard inputs, at most
  bool writes_lse = false;
  bool deterministic = true;  // bitwise repeatable for a fixed plan
  std::span<const Axis> axes{};
  std::span<const KernelResources> resources{};

  // A sentence that says why this problem can't run on this device; nothing when it can.
  std::optional<std::string> (*unsupported)(const Problem&, const DeviceInfo&) = nullptr;
  // Pure. Called only for problems that `unsupported` lets through; may still find that the plan can't fit.
  PlanResult (*plan)(const Problem&, const DeviceInfo&, const TuningPoint&) = nullptr;
  // Everything that need not be repeated for each launch. Throws Error.
  std::unique_ptr<Prepared> (*prepare)(const DecodeArgs&, const LaunchPlan&, const DeviceInfo&) = nullptr;
};

// The variants of a build, sorted by name.
using VariantTable = std::span<const Variant* const>;

const Variant* find_variant(VariantTable table, std::string_view name);
// The first variant of that role on that backend, or null.
const Variant* find_role(VariantTable table, BackendKind backend, Role role);

// `unsupported`, then `plan`, then the axes' own limits: what a caller wants in one step. Shapes whose plans
// can't be counted have none.
PlanResult make_plan(const Variant& variant, const Problem& problem, const DeviceInfo& device,
                     const TuningPoint& tuning);

}  // namespace fdbench
