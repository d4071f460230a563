// The CPU as a device: one pinned thread a core, memory touched first by the thread that will read it, and a
// steady clock around each launch.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace fdbench {

// What make_cpu_backend would say of this machine, without starting a thread. `isas`: DeviceInfo::isas, which
// those know who have the kernels.
DeviceInfo cpu_device_info(std::vector<std::string> isas);

// Throws Error when the threads can't be started.
//
// - allocate: 256-byte aligned; from 4 MiB on, 2 MiB aligned with huge pages advised, and touched first in
//   equal shares by the ranks, so that on a machine with several memory nodes rank r's share is near rank r.
// - A cold sample first reads a clean buffer on all cores: twice the last-level caches (and twice the cores'
//   own L2), at most a quarter of the memory that is available; row flag "flush_below_2x_llc" where that cap
//   bit. Nothing is written, so no write-back is left for the timed launch to pay.
// - A hot sample follows an untimed launch.
// - A sample is void when the scheduler took a core from one of the team's threads during the timed launch
//   (an involuntary context switch): it timed another program as well. After kMostVoid in a row the machine
//   is taken to be busy for good: until start_measuring is called again every sample is let through, and the
//   row flag "preempted" says so.
// - There is no graph timer, and no clock frequency: both are 0.
std::unique_ptr<Backend> make_cpu_backend(std::vector<std::string> isas);

inline constexpr int kMostVoid = 4;

}  // namespace fdbench
