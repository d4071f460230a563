// The split rules of other decode kernels, as their host code chooses, in 64 bits.
#pragma once

#include <cstdint>

#include "rules/split_rules.h"

namespace fdbench::rules {

// All of them: an answer as split_rules.h defines it, or an error that begins with the rule's name. Bad
// extents (invalid_reason) are errors of every rule. Where upstream deals KV blocks out evenly without a
// chunk length of its own (xqa, trtllm, llama_cpp), the chunk is ceil(seq / splits).

// FlashInfer's decode of a single sequence, with workspace. seq <= 256: no split. Else mc = occupancy *
// num_sms / kv_heads, rounded down, chunk = max(ceil(seq / mc), 256). Errors: batch other than 1; occupancy 0
// or mc 0 (upstream divides by it); what flashinfer_cta refuses where the occupancy is not given. Source:
// SingleDecodeWithKVCacheDispatched in FlashInfer's include/flashinfer/attention/decode.cuh.
Split flashinfer_rule(const SplitInput& input);

// A CTA of that kernel: threads = max(group == 8 ? 512 : 128, bdx * group), bdx = dim / max(8, dim / 32);
// with bdz = threads / (bdx * group) and a tile of 8 rows ungrouped, else 1, dynamic shared memory = 2 * 2 *
// group * tile * bdz * dim * 2 + 8 * group * bdz bytes. Its registers are not known, so an occupancy from
// this is an upper bound.
struct FlashinferCta {
  std::int64_t threads = 0;
  std::int64_t dynamic_smem = 0;  // bytes
  // Group not in 1, 2, 3, 4, 6, 8; dim not in 64, 128, 256, 512; elements of other than 2 bytes
  std::string error = {};

  bool ok() const { return error.empty(); }
};
FlashinferCta flashinfer_cta(std::int64_t group, std::int64_t dim, std::int64_t element_bytes);

// FlashAttention-2, one query: fa2_num_splits(batch * H * ceil(q / 64), 2 * num_sms, ceil(seq / block_n),
// 128) with block_n = 256 to dim 64, 128 to dim 128, else 64. Grouped heads are first swapped for queries: H
// = kv_heads, q = group; else H = heads, q = 1. The chunk is whole blocks. Error: dim above 256. Source:
// set_params_splitkv in FlashAttention's csrc/flash_attn/flash_api.cpp.
Split fa2_rule(const SplitInput& input);

// FlashAttention-3, one query, neither window nor pages: fa3_split_plan. The chunk is whole blocks;
// upstream_splits counts the empty splits that it launches too. Error: what fa3_split_plan refuses. Source:
// fa3_tiles.h, wave_heuristics.h.
Split fa3_rule(const SplitInput& input);

// min(max(1, num_sms / (batch * kv_heads)), ceil(seq / 256)), at least 1.
// Source: the multi-block count of XQA, csrc/xqa/mha.cu of FlashInfer.
Split xqa_rule(const SplitInput& input);

// m = seq / 128, then at most round(sqrt(8 m)) in float, at least 1; if a = batch * kv_heads * m / num_sms /
// 8 (in double) is above 1, m = floor(m / a); at least 1 and at most 6000 / batch (but at least 1 again,
// where upstream would have 0). Source: computeMultiBlockCount in TensorRT-LLM's
// kernels/decoderMaskedMultiheadAttention/decoderXQAImplCommon.h.
Split trtllm_rule(const SplitInput& input);

// vLLM's paged attention. v2 cuts partitions of 512 tokens, but is not used (one pass, no split) if seq <=
// 8192 and there is one partition or batch * heads > 512. v1 is the pass without split; error past 8192
// tokens, where it has no room for its scores. Source: PagedAttention.forward_decode in vLLM's
// attention/ops/paged_attn.py.
Split vllm_v1_rule(const SplitInput& input);
Split vllm_v2_rule(const SplitInput& input);

// llama.cpp's vector kernel, one query. With n = ceil(seq / dim) KV tiles, t = heads * batch CTAs unsplit and
// B = num_sms * occupancy slots: p from min(occupancy, n) to n, w = ceil(t * p / B) waves, e = 100 * t * p /
// (w * B) in whole percent; the first p of the best e, ended when that is 95 or more and w has grown past its
// own. Needs input.occupancy; error: absent or 0. Source: launch_fattn in llama.cpp's
// ggml/src/ggml-cuda/fattn-common.cuh.
Split llama_cpp_rule(const SplitInput& input);

}  // namespace fdbench::rules
