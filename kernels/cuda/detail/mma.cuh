// Tensor-core products of one warp (sm_80 and later). All 32 lanes must call; no memory is touched.
#pragma once

#include <cstdint>

namespace fdbench::ptx {

// d += a b, with a 16x16 and b 16x8 of bf16, d 16x8 of float. In lane 4 * g + q:
//   a[0], a[1]: row g, row g + 8, columns 2q and 2q + 1; a[2], a[3]: the same rows, columns 2q + 8 and 2q + 9
//   b0: rows 2q and 2q + 1 of column g; b1: rows 2q + 8 and 2q + 9
//   d[0], d[1]: row g, columns 2q and 2q + 1; d[2], d[3]: row g + 8
__device__ __forceinline__ void mma_m16n8k16_bf16(float (&d)[4], const std::uint32_t (&a)[4],
                                                  std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace fdbench::ptx
