#include "cpu/detail/simd_targets.h"

#include <algorithm>
#include <mutex>

#include "core/error.h"
#include "cpu/detail/split_kv_amx.h"

#if defined(FDBENCH_HAVE_HIGHWAY)
#include <hwy/highway.h>
#endif

namespace fdbench::cpu {

#if defined(FDBENCH_HAVE_HIGHWAY)

// The files that include foreach_target.h: of the target that Highway would choose.
SplitKvKernels split_kv_simd();
ReadBytes read_bytes_simd();

namespace {

const std::vector<std::string>& vector_targets() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto target : hwy::SupportedAndGeneratedTargets()) all.emplace_back(hwy::TargetName(target));
    return all;
  }();
  return names;
}

// `choose()` with Highway choosing this target alone: its tables can be asked in no other documented way.
template <class Choose>
auto with_vectors(const std::string& name, Choose choose) {
  static std::mutex one_at_a_time;
  (void)vector_targets();  // all of them, before the choice is narrowed
  const std::lock_guard lock(one_at_a_time);
  for (const auto target : hwy::SupportedAndGeneratedTargets()) {
    if (name == hwy::TargetName(target)) hwy::SetSupportedTargetsForTest(target);
  }
  auto chosen = choose();
  hwy::SetSupportedTargetsForTest(0);  // back to what the machine has
  return chosen;
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
template <class Choose>
auto with_vectors(const std::string&, Choose choose) {
  return choose();
}

}  // namespace

#endif

namespace {

constexpr std::string_view kPlain = "plain";

void check_target(const std::string& target) {
  const auto names = simd_targets();
  if (std::find(names.begin(), names.end(), target) != names.end()) return;
  std::string there;
  for (const std::string& name : names) there += (there.empty() ? "" : ", ") + name;
  throw Error(Exit::failed, "no code for the instruction set '" + target + "' here; there is " + there);
}

}  // namespace

std::vector<std::string> simd_targets() {
  std::vector<std::string> names = vector_targets();
  if (amx_usable()) names.insert(names.begin(), std::string(kTilesTarget));
  names.emplace_back(kPlain);
  return names;
}

std::string best_vectors() {
  const auto names = vector_targets();
  return names.empty() ? std::string(kPlain) : names.front();
}

std::string best_target(const Problem& problem) {
  const std::int64_t group = problem.group();
  const bool tiles = amx_usable() && amx_applies(problem.dtype, group) && amx_pays(group, problem.kv_bytes());
  return tiles ? std::string(kTilesTarget) : best_vectors();
}

SplitKvKernels split_kv_kernels(const std::string& target, const DecodeArgs& args) {
  check_target(target);
  if (target == kTilesTarget) {
    if (amx_applies(args.dtype, args.heads / args.kv_heads)) return split_kv_amx();
    throw Error(Exit::failed, "matrix tiles take bf16 and groups of " + std::to_string(kLeastAmxGroup) +
                                  " query heads and more that can be dealt out evenly");
  }
  if (target == kPlain) return split_kv_plain();
  return with_vectors(target, split_kv_simd);
}

ReadBytes read_bytes_kernel(const std::string& target) {
  check_target(target);
  if (target == kPlain) return read_bytes_plain();
  return with_vectors(target == kTilesTarget ? best_vectors() : target, read_bytes_simd);
}

}  // namespace fdbench::cpu
