// Result files as commands read several of them.
#pragma once

#include <string>
#include <vector>

#include "core/result_record.h"

namespace fdbench::cli {

// In the order given. Throws Error (usage) for a file that can't be read.
std::vector<ResultFile> read_result_files(const std::vector<std::string>& paths);

// Throws Error (usage), beginning with `prefix` ("--from ", or nothing) and a path, where a run stands twice:
// it would be evidence for itself.
void refuse_repeated_runs(const std::vector<ResultFile>& files, const std::vector<std::string>& paths,
                          const std::string& prefix);

}  // namespace fdbench::cli
