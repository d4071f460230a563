// Which instruction sets the code was compiled for, which this machine has, and the code of each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/decode_args.h"
#include "core/device_info.h"
#include "core/problem.h"
#include "cpu/detail/read_bytes.h"
#include "cpu/detail/split_kv.h"

namespace fdbench::cpu {

inline constexpr std::string_view kTilesTarget = "AMX";

// The targets that were compiled and that this machine can run, best first: "AMX" (matrix tiles, for what
// they apply to), Highway's names, "plain" (no explicit SIMD).
std::vector<std::string> simd_targets();

// The fastest of the device's for such a problem: tiles where they apply and pay. Empty where the device does
// not say what it has.
std::string best_target(const Problem& problem, const DeviceInfo& device);
// The same where there are no tiles.
std::string best_vectors(const DeviceInfo& device);

// The code of one of simd_targets(). Throws Error (failed) for any other name, and for tiles where they don't
// apply.
SplitKvKernels split_kv_kernels(const std::string& target, const DecodeArgs& args);
// Tiles have none.
ReadBytes read_bytes_kernel(const std::string& target);

}  // namespace fdbench::cpu
