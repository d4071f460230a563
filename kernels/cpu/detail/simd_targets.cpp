#include "cpu/detail/simd_targets.h"

#if defined(FDBENCH_HAVE_HIGHWAY)
#include <hwy/highway.h>
#endif

namespace fdbench::cpu {

namespace {
bool plain_forced = false;
}

#if defined(FDBENCH_HAVE_HIGHWAY)

// The files that include foreach_target.h.
SplitKvKernels split_kv_simd();
ReadBytes read_bytes_simd();

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  for (const auto target : hwy::SupportedAndGeneratedTargets()) names.emplace_back(hwy::TargetName(target));
  names.emplace_back("plain");
  return names;
}

bool force_simd_target(const std::string& name) {
  plain_forced = name == "plain";
  hwy::SetSupportedTargetsForTest(0);
  if (name.empty() || plain_forced) return true;
  for (const auto target : hwy::SupportedAndGeneratedTargets()) {
    if (name != hwy::TargetName(target)) continue;
    hwy::SetSupportedTargetsForTest(target);
    return true;
  }
  return false;
}

SplitKvKernels split_kv_kernels() {
  return plain_forced ? split_kv_plain() : split_kv_simd();
}

ReadBytes read_bytes_kernel() {
  return plain_forced ? read_bytes_plain() : read_bytes_simd();
}

#else

std::vector<std::string> simd_targets() {
  return {"plain"};
}

bool force_simd_target(const std::string& name) {
  plain_forced = name == "plain";
  return name.empty() || plain_forced;
}

SplitKvKernels split_kv_kernels() {
  return split_kv_plain();
}

ReadBytes read_bytes_kernel() {
  return read_bytes_plain();
}

#endif

}  // namespace fdbench::cpu
