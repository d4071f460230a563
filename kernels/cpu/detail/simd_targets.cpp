#include "cpu/detail/simd_targets.h"

#include <algorithm>

#include "cpu/detail/split_kv_amx.h"

#if defined(FDBENCH_HAVE_HIGHWAY)
#include <hwy/highway.h>
#endif

namespace fdbench::cpu {

namespace {

enum class Forced { none, plain, vectors, tiles };
Forced forced = Forced::none;

}  // namespace

#if defined(FDBENCH_HAVE_HIGHWAY)

// The files that include foreach_target.h.
SplitKvKernels split_kv_simd();
ReadBytes read_bytes_simd();

namespace {

// Asked once, before one is forced.
const std::vector<std::string>& vector_targets() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto target : hwy::SupportedAndGeneratedTargets()) all.emplace_back(hwy::TargetName(target));
    return all;
  }();
  return names;
}

void use_vectors(const std::string& name) {
  hwy::SetSupportedTargetsForTest(0);
  for (const auto target : hwy::SupportedAndGeneratedTargets()) {
    if (name == hwy::TargetName(target)) {
      hwy::SetSupportedTargetsForTest(target);
      return;
    }
  }
}

}  // namespace

#else

namespace {

SplitKvKernels split_kv_simd() {
  return split_kv_plain();
}
ReadBytes read_bytes_simd() {
  return read_bytes_plain();
}
std::vector<std::string> vector_targets() {
  return {};
}
void use_vectors(const std::string&) {}

}  // namespace

#endif

std::vector<std::string> simd_targets() {
  std::vector<std::string> names = vector_targets();
  if (amx_usable()) names.insert(names.begin(), "AMX");
  names.emplace_back("plain");
  return names;
}

bool force_simd_target(const std::string& name) {
  const auto names = simd_targets();
  if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) return false;
  use_vectors(name);
  forced = name.empty()      ? Forced::none
           : name == "AMX"   ? Forced::tiles
           : name == "plain" ? Forced::plain
                             : Forced::vectors;
  return true;
}

SplitKvKernels split_kv_kernels(const DecodeArgs& args) {
  if (forced == Forced::plain) return split_kv_plain();
  const std::int64_t kv_bytes = args.seq * args.kv_heads * args.dim * element_bytes(args.dtype);
  const std::int64_t group = args.heads / args.kv_heads;
  const bool pays = amx_pays(group, kv_bytes);
  const bool tiles = forced == Forced::tiles || (forced == Forced::none && pays);
  if (tiles && amx_usable() && amx_applies(args.dtype, group)) return split_kv_amx();
  return split_kv_simd();
}

ReadBytes read_bytes_kernel() {
  return forced == Forced::plain ? read_bytes_plain() : read_bytes_simd();
}

}  // namespace fdbench::cpu
