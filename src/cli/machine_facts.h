// What `fdbench doctor` looks at beside the measurements: the machine's state, and what of it makes figures
// doubtful.
#pragma once

#include <vector>

#include "backend/cpu/host_topology.h"
#include "core/device_info.h"
#include "core/machine_report.h"

namespace fdbench::cli {

// Cores, governor, load, quota, huge pages; `read` stands for the system's files.
std::vector<MachineFact> host_facts(const ReadText& read);

// Device, driver, power limit, clocks, throttling, other processes, ECC, MIG; what its management library
// does not say is "not known". To be called when none of our own processes is on the device.
std::vector<MachineFact> device_facts(const DeviceInfo& device);

}  // namespace fdbench::cli
