// --seq, --heads, --kv-heads, --dim, --dtype and --suite: the shapes a command works on.
#pragma once

#include <string>
#include <vector>

#include "core/problem.h"

namespace CLI {
class App;
}

namespace fdbench::cli {

struct ShapeOptions {
  std::string seq, heads, kv_heads, dim, dtype, suite;

  void add_to(CLI::App& app);

  // The cross product of the flags, seq fastest, or the suite's shapes; --suite default where nothing was
  // given. Throws Error (usage) naming the flags.
  std::vector<Problem> problems() const;
};

// Existing folders `kind` ("suites") of the configuration: under $FDBENCH_CONFIG_DIR, installed beside the
// binary, and in the source tree it was built from.
std::vector<std::string> config_directories(const std::string& kind);

}  // namespace fdbench::cli
