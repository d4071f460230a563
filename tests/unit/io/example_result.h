// Results for the tests of io: every field set, every status, text that needs quoting.
#pragma once

#include "core/result_record.h"

namespace fdbench::io_test {

// What tests/data/io/results.{json,csv} and the example in docs/results.md hold.
ResultFile example_result();

// The text of tests/data/io/`name`. With FDBENCH_UPDATE_GOLDENS set, `actual` is written there first.
std::string golden(const std::string& name, const std::string& actual);

}  // namespace fdbench::io_test
