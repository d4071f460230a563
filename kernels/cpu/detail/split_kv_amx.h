// cpu_split_kv on Intel's matrix tiles.
#pragma once

#include "cpu/detail/split_kv.h"

// Not with FDBENCH_SIMD=OFF. Compilers know the instructions from GCC 11 and Clang 12 on.
#if defined(FDBENCH_HAVE_HIGHWAY) && defined(__x86_64__) && defined(__linux__) && \
    (__GNUC__ >= 11 || (defined(__clang__) && __clang_major__ >= 12))
#define FDBENCH_CPU_AMX 1
#else
#define FDBENCH_CPU_AMX 0
#endif

namespace fdbench::cpu {

// Whether this machine has AMX-BF16 and its kernel lets us use it.
bool amx_usable();

inline constexpr std::int64_t kTileHeads = 16;  // query heads that tiles take at once, at most
inline constexpr std::int64_t kLeastAmxGroup = 4;

// Blocks that the query heads of a KV head are dealt out in.
constexpr std::int64_t tile_blocks(std::int64_t group) {
  return (group + kTileHeads - 1) / kTileHeads;
}

// bf16, and query heads that share a KV head and can be dealt out in equal blocks.
constexpr bool amx_applies(Dtype dtype, std::int64_t group) {
  return dtype == Dtype::bf16 && group >= kLeastAmxGroup && group % tile_blocks(group) == 0;
}

// Whether tiles are faster there than vectors. Cores take some 50 us to get up to speed on tiles: groups that
// vectors nearly keep up with need as long a run. Bytes of K alone.
constexpr bool amx_pays(std::int64_t group, std::int64_t kv_bytes) {
  return group >= 8 || kv_bytes >= std::int64_t{16} << 20;
}

SplitKvKernels split_kv_amx();

}  // namespace fdbench::cpu
