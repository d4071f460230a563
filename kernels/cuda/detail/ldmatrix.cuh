// Loads of 8x8 matrices of 16-bit elements as the tensor cores take them (sm_75 and later). All 32 lanes must
// call. In a fragment, lane 4 * g + q holds elements (g, 2q) and (g, 2q + 1) of each matrix.
#pragma once

#include <cstdint>

namespace fdbench::ptx {

// Four matrices: lane 8 * i + r gives the shared address (16-byte aligned) of row r of matrix i, which comes
// back in fragment[i]. Ordering: an ordinary read of shared memory.
__device__ __forceinline__ void ldmatrix_x4(std::uint32_t (&fragment)[4], std::uint32_t row_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(row_address)
               : "memory");
}

// The same, each matrix transposed.
__device__ __forceinline__ void ldmatrix_x4_trans(std::uint32_t (&fragment)[4], std::uint32_t row_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(row_address)
               : "memory");
}

// The fragment of the transposed matrix. Touches no memory.
__device__ __forceinline__ std::uint32_t movmatrix_trans(std::uint32_t fragment) {
  std::uint32_t transposed;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(transposed) : "r"(fragment));
  return transposed;
}

}  // namespace fdbench::ptx
