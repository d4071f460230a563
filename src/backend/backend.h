// Where memory lives and how a launch is timed. The CPU backend is the plainest; read it first.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/device_info.h"
#include "core/input_recipe.h"
#include "core/measurement.h"
#include "core/problem.h"
#include "core/variant.h"

namespace fdbench {

struct Reading {
  double ns = 0.0;      // one operation
  bool valid = true;    // false: the host was late and the clock may have started too early; take it again
  double sm_mhz = 0.0;  // lowest multiprocessor clock over the sample; 0 where it is not known
};

// One device. Not thread-safe. Every member throws Error; after a device fault the object can only be
// destroyed.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual const DeviceInfo& device() const = 0;

  // Memory. 256-byte aligned, contents undefined; `release` takes what `allocate` gave.
  virtual void* allocate(std::int64_t bytes) = 0;
  virtual void release(void* memory) = 0;
  virtual void set_bytes(void* memory, std::uint8_t value, std::int64_t bytes) = 0;
  virtual void upload(void* to, const void* from_host, std::int64_t bytes) = 0;
  virtual void download(void* to_host, const void* from, std::int64_t bytes) = 0;

  // Writes the standard inputs (core/input_recipe.h): `elements` of them from element 0, in `dtype`.
  virtual void fill_input(void* to, std::int64_t elements, Tensor tensor, std::uint64_t seed,
                          Dtype dtype) = 0;

  virtual LaunchContext context() = 0;
  // Waits for everything launched; throws what it failed with.
  virtual void synchronize() = 0;

  // Bytes that `start_measuring` will allocate for a problem of this size, beside the inputs.
  virtual std::int64_t measuring_bytes(CacheMode cache) const = 0;
  // Flush buffer, events, clock stamps. Every Prepared has been launched once before.
  virtual void start_measuring(CacheMode cache) = 0;
  // One timed launch, cold or hot as start_measuring was told. Samples of one `round` meet the same of what
  // comes and goes with the number of launches before them (docs/measuring.md).
  virtual Reading sample(Prepared& prepared, int round) = 0;
  virtual double timer_step_ns() const = 0;

  // Copies of the inputs that the graph timer needs to rotate over, so that none is found in the cache again;
  // 0 where the backend has no graph timer.
  virtual int rotation(const Problem& problem) const = 0;
  // The mean time of one operation over a replayed graph that launches each Prepared in turn.
  virtual Reading graph_sample(std::span<Prepared* const> rotation) = 0;

  // Seconds on the clock that bounds measuring (--max-time).
  virtual double now_s() = 0;

  // Slowing a launch down on purpose: behind what was launched, the device is kept busy for `ns` more (on a
  // GPU, enqueued), and for spin_overhead_ns() beside, which is what spinning for no time at all costs within
  // a sample. After start_measuring.
  virtual void spin(double ns) = 0;
  virtual double spin_overhead_ns() = 0;

  // Flags for every row measured here: "launches_batched" where queued timing means less, say.
  virtual std::vector<std::string> row_flags() { return {}; }
};

}  // namespace fdbench
