#include "rules/field_split_rules.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "rules/fa3_tiles.h"
#include "rules/int_math.h"
#include "rules/occupancy.h"
#include "rules/wave_heuristics.h"

namespace fdbench::rules {
namespace {

// The answer of a rule that deals whole KV blocks to a number of splits.
Split split_by_blocks(std::int64_t seq, std::int64_t splits, std::int64_t block_n) {
  const std::int64_t blocks = std::max<std::int64_t>(ceil_div(seq, block_n), 1);
  Split split = split_by_chunk(seq, ceil_div(blocks, splits) * block_n);
  split.upstream_splits = splits;
  return split;
}

template <class Container>
bool contains(const Container& values, std::int64_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

struct Slots {
  std::int64_t occupancy = 0;
  std::string error = {};
};

Slots flashinfer_occupancy(const SplitInput& input) {
  if (input.occupancy) {
    if (*input.occupancy > 0) return {.occupancy = *input.occupancy};
    return {.error = "flashinfer: a multiprocessor holds no CTA of its kernel (occupancy 0)"};
  }
  const FlashinferCta cta = flashinfer_cta(input.heads / input.kv_heads, input.dim, input.element_bytes);
  if (!cta.ok()) return {.error = cta.error};
  SmLimits limits;
  limits.threads_per_sm = input.threads_per_sm;
  limits.ctas_per_sm = input.ctas_per_sm;
  limits.smem_per_sm = input.smem_per_sm;
  limits.smem_per_cta = input.smem_per_cta;
  const Occupancy found =
      occupancy({.threads = static_cast<int>(cta.threads), .dynamic_smem = cta.dynamic_smem}, limits);
  if (found.ctas_per_sm == 0) return {.error = "flashinfer: " + found.reason};
  return {.occupancy = found.ctas_per_sm};
}

}  // namespace

FlashinferCta flashinfer_cta(std::int64_t group, std::int64_t dim, std::int64_t element_bytes) {
  static constexpr std::array<std::int64_t, 6> kGroups = {1, 2, 3, 4, 6, 8};
  static constexpr std::array<std::int64_t, 4> kDims = {64, 128, 256, 512};
  FlashinferCta cta;
  if (!contains(kGroups, group)) {
    cta.error = "flashinfer: heads a KV head must be 1, 2, 3, 4, 6 or 8, not " + std::to_string(group);
  } else if (!contains(kDims, dim)) {
    cta.error = "flashinfer: dim must be 64, 128, 256 or 512, not " + std::to_string(dim);
  } else if (element_bytes != 2) {
    cta.error = "flashinfer: elements must have 2 bytes, not " + std::to_string(element_bytes);
  }
  if (!cta.ok()) return cta;

  constexpr std::int64_t kBuffers = 2 * 2;  // K and V, two stages
  const std::int64_t bdx = dim / std::max<std::int64_t>(8, dim / 32);
  const std::int64_t tile = group == 1 ? 8 : 1;
  cta.threads = std::max<std::int64_t>(group == 8 ? 512 : 128, bdx * group);
  const std::int64_t bdz = cta.threads / (bdx * group);
  cta.dynamic_smem = kBuffers * group * tile * bdz * dim * element_bytes + 8 * group * bdz;
  return cta;
}

Split flashinfer_rule(const SplitInput& input) {
  constexpr std::int64_t kLeastChunk = 256;
  if (auto why = invalid_reason(input)) return {.error = "flashinfer: " + *why};
  if (input.batch != 1) {
    return {.error =
                "flashinfer: the rule is that of one sequence, and batch is " + std::to_string(input.batch)};
  }
  const Slots slots = flashinfer_occupancy(input);
  if (!slots.error.empty()) return {.error = slots.error};
  if (input.seq <= kLeastChunk) return split_by_count(input.seq, 1);

  const std::int64_t most = slots.occupancy * input.num_sms / input.kv_heads;
  if (most == 0) {
    return {.error = "flashinfer: " + std::to_string(input.num_sms) + " multiprocessors of " +
                     std::to_string(slots.occupancy) + " CTAs hold fewer than one for each of " +
                     std::to_string(input.kv_heads) + " KV heads, so no number of chunks fits"};
  }
  return split_by_chunk(input.seq, std::max(ceil_div(input.seq, most), kLeastChunk));
}

Split fa2_rule(const SplitInput& input) {
  if (auto why = invalid_reason(input)) return {.error = "fa2: " + *why};
  if (input.dim > 256) return {.error = "fa2: dim must be at most 256, not " + std::to_string(input.dim)};
  const bool grouped = input.heads > input.kv_heads;
  const std::int64_t m_blocks = grouped ? ceil_div(input.heads / input.kv_heads, 64) : 1;
  const std::int64_t tiles = input.batch * input.kv_heads * m_blocks;
  const std::int64_t block_n = input.dim <= 64 ? 256 : (input.dim <= 128 ? 128 : 64);
  const std::int64_t splits = fa2_num_splits(tiles, 2 * input.num_sms, ceil_div(input.seq, block_n), 128);
  return split_by_blocks(input.seq, splits, block_n);
}

Split fa3_rule(const SplitInput& input) {
  if (auto why = invalid_reason(input)) return {.error = "fa3: " + *why};
  const Fa3SplitPlan plan = fa3_split_plan({.batch = input.batch,
                                            .seq_k = input.seq,
                                            .heads = input.heads,
                                            .kv_heads = input.kv_heads,
                                            .dim = input.dim,
                                            .dim_v = input.dim,
                                            .element_bytes = input.element_bytes,
                                            .num_sms = input.num_sms,
                                            .cc = input.cc == 0 ? 90 : input.cc});
  if (!plan.ok()) return {.error = plan.error};
  return split_by_blocks(input.seq, plan.num_splits, plan.block_n);
}

Split xqa_rule(const SplitInput& input) {
  if (auto why = invalid_reason(input)) return {.error = "xqa: " + *why};
  const std::int64_t to_fill = std::max<std::int64_t>(input.num_sms / (input.batch * input.kv_heads), 1);
  return split_by_count(input.seq, std::max<std::int64_t>(std::min(to_fill, ceil_div(input.seq, 256)), 1));
}

Split trtllm_rule(const SplitInput& input) {
  if (auto why = invalid_reason(input)) return {.error = "trtllm: " + *why};
  const std::int64_t blocks = input.seq / 128;
  const auto root = static_cast<std::int64_t>(std::round(std::sqrt(static_cast<float>(blocks) * 8.0f)));
  std::int64_t splits = std::max<std::int64_t>(std::min(blocks, root), 1);
  const double ctas = static_cast<double>(input.batch * input.kv_heads * splits);
  const double excess = ctas / static_cast<double>(input.num_sms) / 8.0;
  if (excess > 1.0) splits = static_cast<std::int64_t>(std::floor(static_cast<double>(splits) / excess));
  const std::int64_t most = std::max<std::int64_t>(6000 / input.batch, 1);
  return split_by_count(input.seq, std::clamp<std::int64_t>(splits, 1, most));
}

namespace {
constexpr std::int64_t kVllmPartition = 512;
constexpr std::int64_t kVllmOnePassSeq = 8192;
}  // namespace

Split vllm_v1_rule(const SplitInput& input) {
  if (auto why = invalid_reason(input)) return {.error = "vllm_v1: " + *why};
  if (input.seq > kVllmOnePassSeq) {
    return {.error = "vllm_v1: one pass serves at most 8192 tokens, not " + std::to_string(input.seq)};
  }
  return split_by_count(input.seq, 1);
}

Split vllm_v2_rule(const SplitInput& input) {
  if (auto why = invalid_reason(input)) return {.error = "vllm_v2: " + *why};
  const bool one_partition = input.seq <= kVllmPartition;
  const bool busy = input.batch * input.heads > 512;
  if (input.seq <= kVllmOnePassSeq && (one_partition || busy)) return split_by_count(input.seq, 1);
  return split_by_chunk(input.seq, kVllmPartition);
}

Split llama_cpp_rule(const SplitInput& input) {
  constexpr std::int64_t kGoodPercent = 95;
  if (auto why = invalid_reason(input)) return {.error = "llama_cpp: " + *why};
  if (!input.occupancy)
    return {.error = "llama_cpp: the rule needs its kernel's occupancy, and none was given"};
  if (*input.occupancy == 0)
    return {.error = "llama_cpp: a multiprocessor holds no CTA of its kernel (occupancy 0)"};

  const std::int64_t tiles = ceil_div(input.seq, input.dim);
  const std::int64_t unsplit = input.heads * input.batch;
  const std::int64_t slots = input.num_sms * *input.occupancy;
  std::int64_t splits = std::min(*input.occupancy, tiles);
  std::int64_t best = 0;
  std::int64_t best_waves = 0;
  for (std::int64_t p = splits; p <= tiles && p > 0; ++p) {
    const std::int64_t waves = ceil_div(unsplit * p, slots);
    const std::int64_t percent = 100 * unsplit * p / (waves * slots);
    if (best >= kGoodPercent && waves > best_waves) break;
    if (percent > best) {
      best = percent;
      best_waves = waves;
      splits = p;
    }
  }
  return split_by_count(input.seq, std::max<std::int64_t>(splits, 1));
}

}  // namespace fdbench::rules
