// The doctor's file, schema fdbench.doctor/1.0: what a machine is and what it can resolve.
//
//   {"schema": "fdbench.doctor/1.0",
//    "run": as a result file's (docs/results.md),
//    "machine": [{"name", "value", "worry"}, ...],
//    "roof": [{"bytes", "ns", "bytes_per_s"}, ...],
//    "noise": [{"id", "processes", "within_percent", "between_percent", "smallest_effect_percent"}, ...]}
#pragma once

#include <string>
#include <string_view>

#include "core/machine_report.h"

namespace fdbench::io {

std::string to_json(const MachineReport& report);

// Any fdbench.doctor/1.x; unknown fields are ignored. Throw Error (usage), one line.
MachineReport parse_doctor(std::string_view text, const std::string& name);
MachineReport read_doctor_file(const std::string& path);

}  // namespace fdbench::io
