// What the same build differs by from itself.
#pragma once

#include <vector>

#include "compare/evidence.h"
#include "core/comparison.h"

namespace fdbench::compare {

// A row each that has a roof in its rounds and figures of at least two processes; roofs themselves are left
// out. The smallest effect is that of a comparison of files with gate.processes a side, over as many rows as
// there are here, at gate.alpha_percent, seen with 95 % probability.
std::vector<RowNoise> row_noise(const ResultFile& file, const Gate& gate);

}  // namespace fdbench::compare
