// Which build this is; the definition is generated at build time.
#pragma once

#include "core/result_record.h"

namespace fdbench {

ToolInfo build_info();

}  // namespace fdbench
