#include "cli/result_inputs.h"

#include <fmt/core.h>

#include "core/error.h"
#include "io/result_json.h"

namespace fdbench::cli {

std::vector<ResultFile> read_result_files(const std::vector<std::string>& paths) {
  std::vector<ResultFile> files;
  for (const std::string& path : paths) files.push_back(io::read_result_file(path));
  return files;
}

void refuse_repeated_runs(const std::vector<ResultFile>& files, const std::vector<std::string>& paths,
                          const std::string& prefix) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (files[i].run.id == files[j].run.id)
        throw usage_error(
            fmt::format("{}{}: is the same run as {}; give it once", prefix, paths[i], paths[j]));
    }
  }
}

}  // namespace fdbench::cli
