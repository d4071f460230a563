// --doctor FILE, as compare and report take it.
#pragma once

#include <string>

#include "core/device_info.h"
#include "core/machine_report.h"

namespace fdbench::cli {

// Throws Error (usage), beginning with --doctor, where the file is unreadable or of another device model than
// the results are.
MachineReport read_doctor_of(const std::string& path, const DeviceInfo& device);

}  // namespace fdbench::cli
