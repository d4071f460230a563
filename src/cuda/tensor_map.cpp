#include "cuda/tensor_map.h"

#include <cudaTypedefs.h>

#include <string>

#include "core/error.h"
#include "cuda/driver_entry.h"

namespace fdbench::cuda {

namespace {

// Dimensions inner to outer: `slab` elements, KV heads, tokens, slabs.
CUtensorMap encode(const KvTensor& tensor, int slab, int box_dims, int box_slabs, int box_rows,
                   Swizzle swizzle) {
  static const auto kEncode =
      reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(driver_entry("cuTensorMapEncodeTiled", 12000));
  static const auto kErrorName =
      reinterpret_cast<PFN_cuGetErrorName_v6000>(driver_entry("cuGetErrorName", 6000));

  const auto bytes = static_cast<cuuint64_t>(element_bytes(tensor.dtype));
  const cuuint64_t extents[4] = {static_cast<cuuint64_t>(slab), static_cast<cuuint64_t>(tensor.kv_heads),
                                 static_cast<cuuint64_t>(tensor.seq),
                                 static_cast<cuuint64_t>(tensor.dim / slab)};
  const cuuint64_t strides[3] = {static_cast<cuuint64_t>(tensor.head_stride) * bytes,
                                 static_cast<cuuint64_t>(tensor.seq_stride) * bytes,
                                 static_cast<cuuint64_t>(slab) * bytes};
  const cuuint32_t box[4] = {static_cast<cuuint32_t>(box_dims), 1, static_cast<cuuint32_t>(box_rows),
                             static_cast<cuuint32_t>(box_slabs)};
  const cuuint32_t element_strides[4] = {1, 1, 1, 1};
  CUtensorMap map{};
  const CUresult result = kEncode(
      &map, tensor.dtype == Dtype::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
      box_slabs == 0 ? 3 : 4, const_cast<void*>(tensor.base), extents, strides, box, element_strides,
      CU_TENSOR_MAP_INTERLEAVE_NONE,
      swizzle == Swizzle::bytes128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    const char* name = nullptr;
    (void)kErrorName(result, &name);
    throw Error(Exit::failed, "cuTensorMapEncodeTiled gave " +
                                  (name ? std::string(name) : std::to_string(static_cast<int>(result))) +
                                  " for seq " + std::to_string(tensor.seq) + ", kv_heads " +
                                  std::to_string(tensor.kv_heads) + ", dim " + std::to_string(tensor.dim) +
                                  ", strides " + std::to_string(strides[1]) + " and " +
                                  std::to_string(strides[0]) + " bytes, box " + std::to_string(box_dims) +
                                  " x " + std::to_string(box_rows) +
                                  (swizzle == Swizzle::bytes128 ? " with the 128-byte swizzle" : ""));
  }
  return map;
}

}  // namespace

KvTensor k_of(const DecodeArgs& args) {
  return {args.k, args.dtype, args.seq, args.kv_heads, args.dim, args.k_seq_stride, args.k_head_stride};
}
KvTensor v_of(const DecodeArgs& args) {
  return {args.v, args.dtype, args.seq, args.kv_heads, args.dim, args.v_seq_stride, args.v_head_stride};
}

CUtensorMap encode_kv_map(const KvTensor& tensor, int box_dims, int box_rows, Swizzle swizzle) {
  return encode(tensor, static_cast<int>(tensor.dim), box_dims, 0, box_rows, swizzle);
}

CUtensorMap encode_kv_slab_map(const KvTensor& tensor, int slab_dims, int box_rows, Swizzle swizzle) {
  return encode(tensor, slab_dims, slab_dims, static_cast<int>(tensor.dim / slab_dims), box_rows, swizzle);
}

}  // namespace fdbench::cuda
