// The variants of this build, sorted by name; the definition is generated from the files under kernels/.
#pragma once

#include "core/variant.h"

namespace fdbench {

VariantTable variant_table();

}  // namespace fdbench
