#include "rules/split_rules.h"

#include <algorithm>
#include <array>

#include "rules/int_math.h"

namespace fdbench::rules {
namespace {

template <std::size_t N>
Split tiered(const SplitInput& input, const std::array<std::int64_t, N>& tiers, std::int64_t last) {
  if (auto why = invalid_reason(input)) return {.error = *why};
  const std::int64_t share = input.heads * input.seq / (2 * input.num_sms);
  const auto tier = std::find_if(tiers.begin(), tiers.end(), [share](std::int64_t t) { return t >= share; });
  return split_by_chunk(input.seq, tier == tiers.end() ? last : *tier);
}

}  // namespace

SplitInput split_input(const Problem& problem, const DeviceInfo& device) {
  SplitInput input;
  input.seq = problem.seq;
  input.heads = problem.heads;
  input.kv_heads = problem.kv_heads;
  input.dim = problem.dim;
  input.element_bytes = element_bytes(problem.dtype);
  input.num_sms = device.sms;
  input.smem_per_sm = device.smem_per_sm;
  input.smem_per_cta = device.smem_per_block;
  input.threads_per_sm = device.threads_per_sm;
  input.ctas_per_sm = device.ctas_per_sm;
  input.cc = device.cc;
  return input;
}

std::optional<std::string> invalid_reason(const SplitInput& input) {
  struct Extent {
    const char* name;
    std::int64_t value, least, most;
  };
  const Extent extents[] = {
      {"seq", input.seq, 0, std::int64_t{1} << 40},
      {"heads", input.heads, 1, 1 << 20},
      {"kv_heads", input.kv_heads, 1, 1 << 20},
      {"batch", input.batch, 1, 1 << 20},
      {"dim", input.dim, 1, 1 << 12},
      {"element_bytes", input.element_bytes, 1, 8},
      {"num_sms", input.num_sms, 1, 1 << 16},
      {"ctas_per_split", input.ctas_per_split.value_or(1), 1, 1 << 20},
      {"occupancy", input.occupancy.value_or(0), 0, 1 << 8},
  };
  for (const auto& [name, value, least, most] : extents) {
    if (value < least || value > most) {
      return std::string(name) + " must be " + std::to_string(least) + " to " + std::to_string(most) +
             ", not " + std::to_string(value);
    }
  }
  if (input.heads * input.batch > 1 << 22) {
    return "heads x batch must be at most " + std::to_string(1 << 22) + ", not " +
           std::to_string(input.heads * input.batch);
  }
  if (input.heads % input.kv_heads != 0) {
    return "heads " + std::to_string(input.heads) + " is not a multiple of kv_heads " +
           std::to_string(input.kv_heads);
  }
  return std::nullopt;
}

Split split_by_chunk(std::int64_t seq, std::int64_t chunk) {
  if (seq < 0) return {.error = "seq is " + std::to_string(seq) + ", below 0"};
  if (chunk < 1) return {.error = "a chunk of " + std::to_string(chunk) + " tokens is none"};
  const std::int64_t splits = std::max<std::int64_t>(ceil_div(seq, chunk), 1);
  return {.splits = splits, .chunk = chunk, .upstream_splits = splits};
}

Split split_by_count(std::int64_t seq, std::int64_t splits) {
  if (splits < 1) return {.error = std::to_string(splits) + " splits are none"};
  Split split = split_by_chunk(seq, std::max<std::int64_t>(ceil_div(seq, splits), 1));
  split.upstream_splits = splits;
  return split;
}

Split round_to_tile(const Split& split, std::int64_t seq, std::int64_t tile) {
  if (!split.ok()) return split;
  if (tile < 1) return {.error = "a tile of " + std::to_string(tile) + " tokens is none"};
  Split rounded = split_by_chunk(seq, ceil_div(split.chunk, tile) * tile);
  rounded.upstream_splits = split.upstream_splits;
  return rounded;
}

Split seed_rule(const SplitInput& input) {
  return tiered(input, std::array<std::int64_t, 3>{256, 512, 1024}, 2048);
}

Split seed_fine_rule(const SplitInput& input) {
  return tiered(input, std::array<std::int64_t, 5>{64, 128, 256, 512, 1024}, 2048);
}

Split sm_multiple_rule(const SplitInput& input, std::int64_t k) {
  if (auto why = invalid_reason(input)) return {.error = *why};
  if (k < 1 || k > 1 << 16) return {.error = "sm_multiple takes 1 to 65536 CTAs a multiprocessor"};
  const std::int64_t ctas = input.batch * input.ctas_per_split.value_or(input.kv_heads);
  const std::int64_t wanted = std::max<std::int64_t>(k * input.num_sms / ctas, 1);
  // More splits than tokens are not there to have.
  return split_by_count(input.seq, std::clamp<std::int64_t>(input.seq, 1, wanted));
}

Split fixed_rule(const SplitInput& input, std::int64_t splits) {
  if (auto why = invalid_reason(input)) return {.error = *why};
  return split_by_count(input.seq, splits);
}

}  // namespace fdbench::rules
