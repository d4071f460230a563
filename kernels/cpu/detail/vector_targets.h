// Code that Highway compiles once for each target, by target. Its own tables answer for the one target that
// it chose for the whole program. To be included before Highway's headers, and in every file that includes
// them.
#pragma once

#include <cstdint>

#include "cpu/detail/read_bytes.h"
#include "cpu/detail/split_kv.h"

// Arrays of vectors need vectors of a fixed size.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

namespace fdbench::cpu {

// Each pass of foreach_target.h defines these for its HWY_TARGET.
template <std::int64_t target>
SplitKvKernels split_kv_of();
template <std::int64_t target>
ReadBytes read_bytes_of();

// `of` for `target`, one of `targets` (HWY_TARGETS: a bit each).
template <std::int64_t targets, class Of>
auto choose_target(std::int64_t target, Of of) {
  constexpr std::int64_t first = targets & -targets;
  if constexpr (targets == first) {
    return of.template operator()<first>();
  } else {
    return target == first ? of.template operator()<first>() : choose_target<targets & ~first>(target, of);
  }
}

// Of one of Highway's targets that this machine runs.
SplitKvKernels split_kv_simd(std::int64_t target);
ReadBytes read_bytes_simd(std::int64_t target);

}  // namespace fdbench::cpu
