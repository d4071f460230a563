// What a kernel is told: a POD of pointers, strides and extents, fit for a C interface.
#pragma once

#include <cstdint>

#include "core/problem.h"

namespace fdbench {

// Strides count elements; the innermost dimension is contiguous. All memory is the backend's.
struct DecodeArgs {
  const void* q = nullptr;  // [heads, dim]
  const void* k = nullptr;  // [seq, kv_heads, dim]
  const void* v = nullptr;  // [seq, kv_heads, dim]
  void* o = nullptr;        // [heads, dim], the dtype of q; null for the oracle and the roof
  float* lse = nullptr;     // [heads], natural log; null when not asked for

  // What an oracle writes instead of o and lse.
  double* oracle_o = nullptr;    // [heads, dim]
  double* oracle_lse = nullptr;  // [heads]

  void* scratch = nullptr;  // LaunchPlan::scratch_bytes, contents undefined
  void* zeroed =
      nullptr;  // LaunchPlan::zeroed_bytes, zero before the first launch; every launch leaves them zero

  std::int64_t seq = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t dim = 0;
  std::int64_t q_head_stride = 0;
  std::int64_t k_seq_stride = 0;
  std::int64_t k_head_stride = 0;
  std::int64_t v_seq_stride = 0;
  std::int64_t v_head_stride = 0;
  std::int64_t o_head_stride = 0;
  float scale = 0.0f;  // softmax scale
  Dtype dtype = Dtype::bf16;
};

// Extents, dense strides and scale of `problem`; every pointer null.
DecodeArgs dense_args(const Problem& problem);

}  // namespace fdbench
