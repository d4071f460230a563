#include "rules/varlen_scheduler.h"

#include <algorithm>
#include <cmath>

#include "rules/int_math.h"

namespace fdbench::rules {
namespace {

constexpr std::int64_t kSortedTogether = 992;  // 31 sequences a warp, 32 warps
constexpr std::int64_t kL2Bytes = 8 << 20;
constexpr double kMostTiles = 1 << 24;

std::string invalid_call(const VarlenCall& c) {
  struct Extent {
    const char* name;
    std::int64_t value, least, most;
  };
  const Extent extents[] = {
      {"sequences", static_cast<std::int64_t>(c.sequences.size()), 1, 1 << 20},
      {"heads", c.heads, 1, 1 << 16},
      {"kv_heads", c.kv_heads, 1, 1 << 16},
      {"block_m", c.block_m, 1, 1 << 16},
      {"block_n", c.block_n, 1, 1 << 16},
      {"max_splits", c.max_splits, 1, 1 << 16},
      {"num_sms", c.num_sms, 1, 1 << 16},
      {"dim", c.dim, 1, 1 << 12},
      {"dim_v", c.dim_v, 1, 1 << 12},
      {"element_bytes", c.element_bytes, 1, 8},
  };
  for (const auto& [name, value, least, most] : extents) {
    if (value < least || value > most) {
      return std::string(name) + " must be " + std::to_string(least) + " to " + std::to_string(most) +
             ", not " + std::to_string(value);
    }
  }
  if (c.heads % c.kv_heads != 0) {
    return "heads " + std::to_string(c.heads) + " is not a multiple of kv_heads " +
           std::to_string(c.kv_heads);
  }
  constexpr std::int64_t kTokens = std::int64_t{1} << 40;
  for (const VarlenSequence& s : c.sequences) {
    if (s.seq_q < 0 || s.seq_q > kTokens || s.seq_k < 0 || s.seq_k > kTokens)
      return "a length must be 0 to 2^40 tokens";
  }
  return {};
}

// Blocks a split should have, so that the machine is filled once with a tenth to spare; 0 when there is no
// block. Float, as upstream.
float blocks_per_split(const std::vector<VarlenEntry>& entries, std::int64_t heads, std::int64_t num_sms) {
  double blocks = 0.0;  // exact to 2^53
  for (const VarlenEntry& e : entries)
    blocks += static_cast<double>(e.m_blocks) * static_cast<double>(e.n_blocks);
  return std::ceil(static_cast<float>(blocks) * 1.1f * static_cast<float>(heads) /
                   static_cast<float>(num_sms));
}

std::int64_t heads_that_fit(std::int64_t n_blocks, std::int64_t most_blocks) {
  std::int64_t heads = 16;
  while (heads > 1 && std::max<std::int64_t>(n_blocks, 1) * heads > most_blocks) heads /= 2;
  return heads;
}

}  // namespace

VarlenPlan varlen_plan(const VarlenCall& call) {
  VarlenPlan plan;
  plan.error = invalid_call(call);
  if (!plan.ok()) return plan;
  const std::int64_t group = call.heads / call.kv_heads;
  plan.heads = call.pack_gqa ? call.kv_heads : call.heads;
  plan.longest_first = call.causal || call.local;
  for (const VarlenSequence& s : call.sequences) {
    const std::int64_t rows = s.seq_q * (call.pack_gqa ? group : 1);
    plan.entries.push_back({.batch = static_cast<std::int64_t>(plan.entries.size()),
                            .m_blocks = ceil_div(rows, call.block_m),
                            .n_blocks = ceil_div(s.seq_k, call.block_n)});
  }

  const float share = blocks_per_split(plan.entries, plan.heads, call.num_sms);
  const bool splits = call.max_splits > 1 && call.sequences.size() <= kSortedTogether && share >= 1.0f;
  const std::int64_t most_blocks = kL2Bytes / (call.block_n * (call.dim + call.dim_v) * call.element_bytes);
  for (VarlenEntry& e : plan.entries) {
    if (splits && share < static_cast<float>(e.n_blocks)) {
      e.splits = std::min(ceil_div(e.n_blocks, static_cast<std::int64_t>(share)), call.max_splits);
    }
    const std::int64_t heads =
        heads_that_fit(ceil_div(e.n_blocks, e.splits), most_blocks) * (call.pack_gqa ? 1 : group);
    e.l2_heads = std::min(heads, plan.heads);
  }

  if (call.local) return plan;
  const auto work = [&call](const VarlenEntry& e) {
    const std::int64_t a_split = ceil_div(e.n_blocks, e.splits);
    return call.causal ? a_split * call.block_n - e.m_blocks * call.block_m : a_split;
  };
  for (auto first = plan.entries.begin(); first != plan.entries.end();) {
    const auto last = first + std::min<std::ptrdiff_t>(kSortedTogether, plan.entries.end() - first);
    std::stable_sort(first, last,
                     [&](const VarlenEntry& a, const VarlenEntry& b) { return work(a) > work(b); });
    first = last;
  }
  return plan;
}

std::vector<Tile> varlen_tile_order(const VarlenPlan& plan) {
  std::vector<Tile> order;
  if (!plan.ok()) return order;
  double tiles = 0.0;
  for (const VarlenEntry& e : plan.entries) {
    tiles +=
        static_cast<double>(e.m_blocks) * static_cast<double>(e.splits) * static_cast<double>(plan.heads);
  }
  if (tiles > kMostTiles) return order;
  order.reserve(static_cast<std::size_t>(tiles));

  for (const VarlenEntry& e : plan.entries) {
    const auto emit = [&](std::int64_t head, std::int64_t split, std::int64_t block) {
      order.push_back({.block = plan.longest_first ? e.m_blocks - 1 - block : block,
                       .head = head,
                       .batch = e.batch,
                       .split = split});
    };
    const bool in_sections = plan.longest_first && e.splits == 1;
    const std::int64_t section = in_sections ? e.l2_heads : 1;
    for (std::int64_t first = 0; first < plan.heads; first += section) {
      const std::int64_t last = std::min(first + section, plan.heads);
      for (std::int64_t split = 0; split < e.splits; ++split) {
        for (std::int64_t block = 0; block < e.m_blocks; ++block) {
          for (std::int64_t head = first; head < last; ++head) emit(head, split, block);
        }
      }
    }
  }
  return order;
}

}  // namespace fdbench::rules
