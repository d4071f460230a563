#include "cli/read_doctor.h"

#include <fmt/core.h>

#include "core/error.h"
#include "io/doctor_file.h"

namespace fdbench::cli {

MachineReport read_doctor_of(const std::string& path, const DeviceInfo& device) {
  MachineReport report = io::read_doctor_file(path);
  const DeviceInfo& own = report.run.device;
  if (own.kind != device.kind || own.name != device.name || own.sms != device.sms) {
    throw usage_error(
        fmt::format("--doctor {}: is of {} ({}, {} cores), and the results are of {} ({}, {} cores)", path,
                    own.name, to_string(own.kind), own.sms, device.name, to_string(device.kind), device.sms));
  }
  return report;
}

}  // namespace fdbench::cli
