// Tensor maps for the copy engine (compute capability 9.0 and later), encoded by the driver, which is reached
// through the runtime and never linked.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "core/decode_args.h"
#include "core/problem.h"

namespace fdbench::cuda {

enum class Swizzle {
  none,
  bytes128,  // 16-byte units of a 128-byte row exchanged by row index modulo 8: box_dims * 2 <= 128
};

// A 3-D tensor [seq, kv_heads, dim], as K and V lie: dimension 0 of the map is dim, 1 the head, 2 the token,
// and a box is {box_dims, 1, box_rows}. Strides count elements. L2 promotion 128 bytes: 256 costs 7 % of
// bandwidth on an H200. Rows past `seq` read as zeros.
// Limits, the driver's: `base` and both strides multiples of 16 bytes, extents 1 ... 2^32, strides below 2^40
// bytes, box extents 1 ... 256 with box_dims * 2 a multiple of 16. Throws Error naming all of these values.
struct KvTensor {
  const void* base = nullptr;
  Dtype dtype = Dtype::bf16;
  std::int64_t seq = 0;
  std::int64_t kv_heads = 0;
  std::int64_t dim = 0;
  std::int64_t seq_stride = 0;
  std::int64_t head_stride = 0;
};
KvTensor k_of(const DecodeArgs& args);
KvTensor v_of(const DecodeArgs& args);

CUtensorMap encode_kv_map(const KvTensor& tensor, int box_dims, int box_rows, Swizzle swizzle);

// As a 4-D map, inner to outer slab_dims dimensions, KV heads, tokens, slabs of dimensions: one copy brings
// box_rows tokens of a whole head, a slab after the other. slab_dims divides dim.
CUtensorMap encode_kv_slab_map(const KvTensor& tensor, int slab_dims, int box_rows, Swizzle swizzle);

}  // namespace fdbench::cuda
