#include "cpu/detail/simd_targets.h"

namespace fdbench::cpu {

std::vector<std::string> simd_targets() {
  return {"plain"};
}

bool force_simd_target(const std::string& name) {
  return name.empty() || name == "plain";
}

SplitKvKernels split_kv_kernels() {
  return split_kv_plain();
}

ReadBytes read_bytes_kernel() {
  return read_bytes_plain();
}

}  // namespace fdbench::cpu
