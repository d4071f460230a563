// Suites: named sets of shapes, files of schema fdbench.suite/1.x (configs/suites/*.json):
//
//   {"schema": "fdbench.suite/1.0",
//    "name": "ci",
//    "description": "one line",
//    "problems": [{"seq": [512, 2048], "heads": 32, "kv_heads": 8, "dim": 128, "dtype": "bf16"}, ...]}
//
// Every extent is a number or a list. Lists give all combinations: heads slowest, then kv_heads, dim, dtype,
// seq fastest, each in the order written. kv_heads is heads where absent, dim 128, dtype bf16.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem.h"

namespace fdbench::io {

inline constexpr std::size_t kMaxSuiteProblems = 10000;

struct Suite {
  std::string name;
  std::string description;
  std::vector<Problem> problems;  // at least one, none twice
};

// Throw Error (usage), one line: line and column of a syntax error, the path of anything else (an unknown
// key, too, since a mistyped one would quietly measure something else).
Suite parse_suite(std::string_view text, const std::string& name);
Suite read_suite(const std::string& path);

// A file that parse_suite reads back, an entry a shape.
std::string to_json(const Suite& suite);

// A file where `name_or_path` has a slash or ends in ".json", else NAME.json in the first of `directories`
// that has it. Throws Error (usage) that lists the suites there are.
Suite find_suite(const std::string& name_or_path, const std::vector<std::string>& directories);

struct SuiteListing {
  std::string name;  // to ask for it by: the file's name without ".json"
  std::string path;
  Suite suite;
  std::string error;  // why the file can't be used; empty when it can
};

// Sorted by name; an earlier directory hides the same name in a later one. Directories that are not there
// are skipped.
std::vector<SuiteListing> list_suites(const std::vector<std::string>& directories);

}  // namespace fdbench::io
