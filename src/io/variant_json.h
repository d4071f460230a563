// Variants as JSON: what `fdbench list variants --json` prints, and what the resource check reads.
#pragma once

#include <string>

#include "core/variant.h"

namespace fdbench::io {

// {"variants": [{"name", "backend", "role", "summary", "tuning_version", "tolerance", "writes_lse",
//                "deterministic", "axes": [{"name", "help", "min", "max"}],
//                "resources": [{"kernel", "cc", "registers", "static_smem", "dynamic_smem", "threads",
//                               "ctas_per_sm"}]}]}
// Axis "max" is null where there is none.
std::string variants_json(VariantTable table);

}  // namespace fdbench::io
