// A driver function by name, through the runtime: nothing links against libcuda.
#pragma once

namespace fdbench::cuda {

// The function as CUDA `version` (12000 for 12.0) declares it. Throws Error where the driver has none.
void* driver_entry(const char* name, unsigned version);

}  // namespace fdbench::cuda
