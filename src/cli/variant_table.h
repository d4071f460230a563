// The variants of this build, sorted by name, and what the CPU's are compiled for; the definitions are
// generated from the files under kernels/.
#pragma once

#include <string>
#include <vector>

#include "core/variant.h"

namespace fdbench {

VariantTable variant_table();

// Instruction sets that the CPU kernels have code for and this machine runs, best first.
std::vector<std::string> cpu_isas();

}  // namespace fdbench
