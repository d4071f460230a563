// What the split_kv kernels are told. A POD; the host fills it (split_launch.cuh).
#pragma once

#include <cstdint>

#include "core/host_device.h"

namespace fdbench::split {

// How the partial results of a head's CTAs meet. Values are the axis `merge`'s.
enum class Merge : int {
  none = 0,      // one CTA a head
  last_cta = 1,  // the last to arrive merges; nobody waits
  shared = 2,    // every CTA merges its piece, through global memory; all must be resident
  cluster = 3,   // every CTA merges its piece, through the cluster's shared memory
};

// Where results meet: `parts` CTAs bring theirs for 1 << piece_log2 quads to each owner, which
// is the one with quad >> piece_log2 == owner; 1 << lanes_log2 lanes add a quad's parts up.
struct Meeting {
  std::int32_t parts = 1;
  std::int32_t piece_log2 = 0;
  std::int32_t lanes_log2 = 0;

  // Slots before that of `part` for `quad`: [owner, part, quad of the piece] (split_merge.cuh).
  FDBENCH_HOST_DEVICE constexpr std::int32_t slot(std::int32_t quad, std::int32_t part) const {
    return (((quad >> piece_log2) * parts + part) << piece_log2) + (quad & ((1 << piece_log2) - 1));
  }
};

// A unit is what a warp takes at a time (split_layout.h). A block is up to 16 query heads of a KV head. A
// quad is four dimensions of one query head's output; a block's quads are numbered head by head. The grid is
// (splits, KV heads, blocks of a KV head).
//
// Constant memory comes in lines, and the first touch of each stalls: what a CTA needs before it can load
// comes first, then what it needs to finish.
struct Params {
  // Units of each warp of each split (in_turn), or of each split (else), at least; `rest` have one more.
  std::int32_t each = 0;
  std::int32_t rest = 0;
  std::int32_t in_turn = 0;  // see split_body.cuh
  std::int32_t stages = 1;   // K and V tiles a warp keeps in flight
  std::int32_t group = 1;    // query heads a KV head
  std::int32_t rows = 1;     // of a block, at most
  std::int32_t seq = 0;
  std::int32_t splits = 1;
  Meeting meeting;
  float scale_log2 = 0.0f;  // softmax scale * log2 e

  const void* q = nullptr;         // [heads, dim]
  std::int64_t q_head_stride = 0;  // strides count elements
  void* o = nullptr;               // [heads, dim]
  std::int64_t o_head_stride = 0;
  float* lse = nullptr;  // [heads], natural log, or null
  // Where partial results meet outside a cluster, by owner: see split_merge.cuh. For shared zero before
  // and after.
  void* slot_o = nullptr;             // 16 bytes a slot: four sums of weight * v
  void* slot_ml = nullptr;            // 8 bytes a slot: maximum and sum of weights
  std::uint32_t* arrivals = nullptr;  // [KV head, block], last_cta: zero before and after

  // Not for TMA, whose tensor maps say the same.
  const void* k = nullptr;  // [seq, kv_heads, dim]
  const void* v = nullptr;  // [seq, kv_heads, dim]
  std::int64_t k_seq_stride = 0;
  std::int64_t k_head_stride = 0;
  std::int64_t v_seq_stride = 0;
  std::int64_t v_head_stride = 0;
};

}  // namespace fdbench::split
