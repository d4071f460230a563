// The inner parts of cpu_split_kv, in plain loops and in SIMD. One job is one rank's work on one chunk of
// tokens, for every head.
#pragma once

#include <cstdint>

#include "core/decode_args.h"

namespace fdbench::cpu {

// Scores are kept in base 2: scale * log2(e) * q.k, so that weights are powers of two.
struct ChunkJob {
  const DecodeArgs* args = nullptr;
  std::int64_t begin = 0, end = 0;  // tokens; begin < end
  std::int64_t tile = 0;            // tokens whose scores are kept at once; a multiple of 16
  const float* query = nullptr;     // what load_query wrote
  float* scores = nullptr;          // [heads, tile]; tiles keep more (split_kv_plan.cpp)
  // The partial: greatest score, sum of weights relative to it, weighted sum of V rows (dims in the order of
  // load_query). [heads], [heads], [heads, dim].
  float* max = nullptr;
  float* sum = nullptr;
  float* acc = nullptr;
};

// Merges the partials of `heads` in the order of their chunks, writes o and, when asked for, lse.
struct MergeJob {
  const DecodeArgs* args = nullptr;
  std::int64_t splits = 0;
  std::int64_t head_begin = 0, head_end = 0;
  const float* max = nullptr;  // [splits, heads]
  const float* sum = nullptr;  // [splits, heads]
  const float* acc = nullptr;  // [splits, heads, dim]
  float* row = nullptr;        // [dim], scratch
};

struct SplitKvKernels {
  // q in the implementation's own form and order of dims, 64-byte aligned.
  void (*load_query)(const DecodeArgs& args, float* query);
  void (*run_chunk)(const ChunkJob& job);
  void (*merge)(const MergeJob& job);
};

SplitKvKernels split_kv_plain();

}  // namespace fdbench::cpu
