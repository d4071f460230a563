#include "cpu/detail/simd_targets.h"

#include <algorithm>
#include <cstdint>

#include "core/error.h"
#include "cpu/detail/split_kv_amx.h"

#if defined(FDBENCH_HAVE_HIGHWAY)
#include "cpu/detail/vector_targets.h"
// After vector_targets.h, as that asks.
#include <hwy/highway.h>
#endif

namespace fdbench::cpu {

namespace {

constexpr std::string_view kPlain = "plain";

#if !defined(FDBENCH_HAVE_HIGHWAY)
// No vectors have a name here, so that neither is called.
SplitKvKernels split_kv_simd(std::int64_t) {
  return split_kv_plain();
}
ReadBytes read_bytes_simd(std::int64_t) {
  return read_bytes_plain();
}
#endif

// Vectors as Highway numbers and names them, best first.
struct Vectors {
  std::int64_t target = 0;
  std::string name;
};

std::vector<Vectors> vectors_here() {
  std::vector<Vectors> all;
#if defined(FDBENCH_HAVE_HIGHWAY)
  for (const auto target : hwy::SupportedAndGeneratedTargets())
    all.push_back({target, hwy::TargetName(target)});
#endif
  return all;
}

// The number of the vectors of that name. `tiles`: the kernel has code for them, too.
std::int64_t vectors_named(const std::string& name, bool tiles) {
  std::string there = tiles && amx_usable() ? std::string(kTilesTarget) + ", " : "";
  for (const Vectors& vectors : vectors_here()) {
    if (vectors.name == name) return vectors.target;
    there += vectors.name + ", ";
  }
  throw Error(Exit::failed,
              "no code for the instruction set '" + name + "' here; there is " + there + std::string(kPlain));
}

}  // namespace

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  if (amx_usable()) names.emplace_back(kTilesTarget);
  for (const Vectors& vectors : vectors_here()) names.push_back(vectors.name);
  names.emplace_back(kPlain);
  return names;
}

std::string best_vectors(const DeviceInfo& device) {
  for (const std::string& isa : device.isas) {
    if (isa != kTilesTarget) return isa;
  }
  return {};
}

std::string best_target(const Problem& problem, const DeviceInfo& device) {
  const std::vector<std::string>& isas = device.isas;
  std::string vectors = best_vectors(device);
  if (std::find(isas.begin(), isas.end(), kTilesTarget) == isas.end() ||
      !amx_applies(problem.dtype, problem.group())) {
    return vectors;
  }
  // amx_pays compares with vectors.
  const bool pays = vectors.empty() || vectors == kPlain || amx_pays(problem.group(), problem.kv_bytes());
  return pays ? std::string(kTilesTarget) : vectors;
}

SplitKvKernels split_kv_kernels(const std::string& target, const DecodeArgs& args) {
  if (target == kPlain) return split_kv_plain();
  if (target == kTilesTarget && amx_usable()) {
    if (amx_applies(args.dtype, args.heads / args.kv_heads)) return split_kv_amx();
    throw Error(Exit::failed, "matrix tiles take bf16 and groups of " + std::to_string(kLeastAmxGroup) +
                                  " query heads and more that can be dealt out evenly");
  }
  return split_kv_simd(vectors_named(target, true));
}

ReadBytes read_bytes_kernel(const std::string& target) {
  if (target == kPlain) return read_bytes_plain();
  return read_bytes_simd(vectors_named(target, false));
}

}  // namespace fdbench::cpu
