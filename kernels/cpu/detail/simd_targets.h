// Which instruction set the SIMD code runs with, and a way for tests to force one.
#pragma once

#include <string>
#include <vector>

#include "cpu/detail/read_bytes.h"
#include "cpu/detail/split_kv.h"

namespace fdbench::cpu {

// The targets that were compiled and that this machine can run, best first: "AMX" (matrix tiles, for what
// they apply to; else the next), Highway's names, "plain" (no explicit SIMD).
std::vector<std::string> simd_targets();

// What is prepared from now on uses this target, one of simd_targets(); "" for the best. False where the name
// is not among them. Not thread-safe.
bool force_simd_target(const std::string& name);

// As forced, or the best for these arguments.
SplitKvKernels split_kv_kernels(const DecodeArgs& args);
ReadBytes read_bytes_kernel();

}  // namespace fdbench::cpu
