// Who measures, on what, since when: the header of a result file.
#pragma once

#include <string>
#include <vector>

#include "core/result_record.h"

namespace fdbench::cli {

RunInfo make_run_info(const std::string& command, const std::vector<std::string>& argv,
                      const DeviceInfo& device, const MeasureSettings& settings, int processes);

// "20261130T041500Z-run-1a2b3c4d5e6f": the dated name of --out's files.
std::string dated_name(const RunInfo& run);

}  // namespace fdbench::cli
