// Two builds measured in turn on this machine: what `fdbench compare --bin` compares.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "core/problem.h"
#include "core/result_record.h"

namespace fdbench::cli {

struct Builds {
  std::string base, now;               // the programs
  std::vector<std::string> arguments;  // of `run`, for both: how to measure
  std::vector<std::string> only_new;   // for the new one alone
  std::string folder;                  // where they leave their results
};

struct BuildResults {
  std::vector<ResultFile> base, now;  // a file a process
  std::vector<std::string> base_names, new_names;
};

// `run` of both builds `processes` times, each in processes of its own: base, new, new, base, base, ... so
// that what drifts weighs on both alike. `variants`: these candidates alone, where not empty. Files in the
// folder begin with `stage`. Throws Error: usage where a program can't be started, refuses its arguments or
// leaves no results; no_device where a build finds no device; interrupted.
BuildResults measure_in_turn(const Builds& builds, const std::string& stage, int processes,
                             const std::vector<Problem>& shapes, const std::vector<std::string>& variants,
                             const std::function<void(int done, int of)>& progress,
                             const std::atomic<bool>& interrupted);

// A folder of its own under the system's temporary one, gone with this object.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace fdbench::cli
