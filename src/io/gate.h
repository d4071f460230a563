// Gates: what counts as a regression, files of schema fdbench.gate/1.x (configs/gates/*.json):
//
//   {"schema": "fdbench.gate/1.0",
//    "name": "default",
//    "description": "one line",
//    "threshold_percent": 3,          of rows that no rule matches
//    "processes": 5,                  a side needs at least so many
//    "alpha_percent": 0.5,            reports with any false alarm, at most
//    "noise_floor_percent": 0.2,      processes are taken to differ by at least this
//    "rules": [{"pattern": "cpu_*/seq=512/*", "threshold_percent": 8}, ...]}
//
// A pattern is of a result's whole id; * is any text, ? any character; the first that matches holds. All but
// schema and name may be left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/comparison.h"

namespace fdbench::io {

// Throw Error (usage), one line. Unknown keys are errors.
Gate parse_gate(std::string_view text, const std::string& name);
Gate read_gate(const std::string& path);

// A file where `name_or_path` has a slash or ends in ".json", else NAME.json in the first of `directories`
// that has it. Throws Error (usage) that lists the gates there are.
Gate find_gate(const std::string& name_or_path, const std::vector<std::string>& directories);

}  // namespace fdbench::io
