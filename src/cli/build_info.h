// Which build this is; the definition is generated at build time.
#pragma once

#include <string>

#include "core/result_record.h"

namespace fdbench {

ToolInfo build_info();

// Of everything under kernels/, twelve hexadecimal digits.
std::string kernels_hash();

}  // namespace fdbench
