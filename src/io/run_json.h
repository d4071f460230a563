// Inside io only: what a run says of itself, as results and the doctor's file hold it.
#pragma once

#include <nlohmann/json.hpp>

#include "core/result_record.h"
#include "io/json_reader.h"

namespace fdbench::io {

nlohmann::ordered_json json_of(const RunInfo& run);
// Throws Error as Cursor does.
RunInfo read_run(const Cursor& from);

}  // namespace fdbench::io
