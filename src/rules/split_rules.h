// Split rules: into how many chunks of the KV sequence each head is cut. The named rules of the field and our
// own.
//
// Pure functions of integers, in 64 bits throughout: what overflows, divides by zero or launches an empty
// grid upstream is right here, or an error that says why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/device_info.h"
#include "core/problem.h"

namespace fdbench::rules {

// What a rule may look at. Extents are counts of tokens, heads, elements; sizes are bytes.
struct SplitInput {
  std::int64_t seq = 0;       // KV tokens
  std::int64_t heads = 0;     // query heads
  std::int64_t kv_heads = 0;  // divides heads
  std::int64_t dim = 0;       // of K and V
  std::int64_t element_bytes = 2;
  std::int64_t batch = 1;
  std::int64_t num_sms = 0;  // multiprocessors; cores of a CPU

  // CTAs (one split's, over all heads, a sequence) that the kernel asking launches; absent: kv_heads. Only
  // sm_multiple looks.
  std::optional<std::int64_t> ctas_per_split;

  // CTAs of the rule's own kernel that a multiprocessor holds. flashinfer works it out when absent; llama_cpp
  // cannot.
  std::optional<std::int64_t> occupancy;

  // Limits from which flashinfer works out its occupancy; 0: not known.
  std::int64_t smem_per_sm = 0;
  std::int64_t smem_per_cta = 0;
  int threads_per_sm = 0;
  int ctas_per_sm = 0;

  int cc = 0;  // compute capability x10, by which fa3 chooses its tiles; 0: as on sm_90
};

// The input that a problem makes on a device.
SplitInput split_input(const Problem& problem, const DeviceInfo& device);

// A rule's answer. With ok():
//   chunk >= 1, splits = max(1, ceil(seq / chunk)): the chunks cover seq, the last may be short, none is
//   empty (at seq 0 there is one split, which has nothing to do: a grid is never empty).
struct Split {
  std::int64_t splits = 0;  // chunks a head
  std::int64_t chunk = 0;   // KV tokens a CTA owns
  // Splits that the rule's own code launches. More than `splits` where some of those get no token (fa3 and
  // fixed do that), or where it deals tokens in a way that no single chunk length gives.
  std::int64_t upstream_splits = 0;
  // Why there is no answer: a sentence without its full stop. Empty when there is one.
  std::string error = {};

  bool ok() const { return error.empty(); }
  bool operator==(const Split&) const = default;
};

// The answer with its chunk rounded up to a multiple of `tile` tokens and the splits that then remain. An
// error stays one; so is a tile below 1.
Split round_to_tile(const Split& split, std::int64_t seq, std::int64_t tile);

// The answer of `chunk` tokens a CTA, and of at most `splits` equal chunks. Both 1 at least, else an error.
Split split_by_chunk(std::int64_t seq, std::int64_t chunk);
Split split_by_count(std::int64_t seq, std::int64_t splits);

// Why no rule can work on these extents (below 1, seq below 0, kv_heads not dividing heads, or past seq 2^40,
// heads and batch 2^20 each and 2^22 together, dim 2^12, num_sms 2^16, occupancy 2^8: with these every
// product fits); nothing when they can.
std::optional<std::string> invalid_reason(const SplitInput& input);

// c = heads * seq / (2 * num_sms), rounded down; the first of 256, 512, 1024 not below c, else 2048.
// seed_fine also has 64 and 128. Source: get_chunk_size of the article whose kernels this project grew from,
// and of its repository's later version.
Split seed_rule(const SplitInput& input);
Split seed_fine_rule(const SplitInput& input);

// As many equal chunks as keep the grid within k CTAs a multiprocessor: floor(k * num_sms / (batch *
// ctas_per_split)), at least 1.
Split sm_multiple_rule(const SplitInput& input, std::int64_t k);

// `splits` equal chunks, whatever the machine.
Split fixed_rule(const SplitInput& input, std::int64_t splits);

}  // namespace fdbench::rules
