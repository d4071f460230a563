// The plan that the split_kv kernels share: how the work is cut, how the parts meet again, what a CTA holds.
// Pure, plain C++.
//
// Axes, each the plan's to choose when absent:
//   splits   CTAs a head; contiguous ranges of units (split_layout.h) that differ by at most one
//   merge    how they meet (split_params.h)
//   row_blocks  CTAs that share out a KV head's query heads; each reads all tokens of its split
//   stages   8 KB tiles of K and of V that each of a CTA's four warps keeps in flight
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/device_info.h"
#include "core/launch_plan.h"
#include "core/problem.h"
#include "core/tuning_point.h"
#include "core/variant.h"
#include "rules/occupancy.h"
#include "split_layout.h"
#include "split_params.h"

namespace fdbench::split {

// What tells the kernels apart.
struct Kernel {
  std::string_view name;
  int lowest_cc = 80;
  bool clusters = false;
  int max_stages = 1;
};

// What ptxas gives the kernels, at most, over all their instances and architectures.
inline constexpr int kRegisters = 255;

constexpr KernelResources resources(std::string_view kernel, int cc, int dynamic_smem) {
  return {.kernel = kernel,
          .cc = cc,
          .registers = kRegisters,
          .static_smem = 0,
          .dynamic_smem = dynamic_smem,
          .threads = kThreads,
          .ctas_per_sm = 1};
}

// The most that a plan without a cluster takes.
constexpr int largest_smem(std::int64_t stages) {
  return static_cast<int>(dynamic_smem(kMaxRows, stages, 0, 0));
}

inline constexpr std::int64_t kMaxSplits = 4096;
inline constexpr std::int64_t kMaxAtOnce = 128;  // slots that 32 lanes load before they use the first
inline constexpr std::int64_t kMaxStages = 8;
inline constexpr std::int64_t kMaxGridYz = 65535;

inline constexpr Axis kRowBlocks = {
    "row_blocks",
    "CTAs that share out a KV head's query heads, 4 to 16 each; by the plan's cost model when absent, as few "
    "as possible with splits",
    1, kMaxGridYz};
inline constexpr Axis kTmaAxes[] = {
    {"splits", "CTAs a head; by the plan's cost model when absent", 1, kMaxSplits},
    {"merge",
     "0 none (one split), 1 last_cta, 2 shared (all CTAs resident), 3 cluster (2, 4, 8 or 16 splits); the "
     "cheapest "
     "when absent",
     0, 3},
    {"stages", "8 KB tiles of K and of V that each of 4 warps keeps in flight; 1 or 2 when absent", 1,
     kMaxStages},
    kRowBlocks,
};
inline constexpr Axis kCpAsyncAxes[] = {
    {"splits", "CTAs a head; by the plan's cost model when absent", 1, kMaxSplits},
    {"merge", "0 none (one split), 1 last_cta, 2 shared (all CTAs resident); the cheapest when absent", 0, 2},
    {"stages", "8 KB tiles of K and of V that each of 4 warps keeps in flight; 1 or 2 when absent", 1, 2},
    kRowBlocks,
};

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// How a head is cut and meets again.
struct Cut {
  std::int64_t splits = 1;
  Merge merge = Merge::none;
  std::int64_t row_blocks = 1;  // of a KV head
  std::int64_t blocks(std::int64_t kv_heads) const { return kv_heads * row_blocks; }
  std::int64_t rows(std::int64_t group) const { return ceil_div(group, row_blocks); }  // a block, at most
  std::int64_t cluster() const { return merge == Merge::cluster ? splits : 1; }        // CTAs
};

// What follows from it: see split_params.h and split_merge.cuh.
struct Pieces {
  int rows = 0;  // query heads a block, at most
  Meeting meeting;
  int inbox_slots = 0;  // of a CTA
  int inbox_rows = 0;
  std::int64_t slots = 0;  // in global memory, of all blocks
};

inline constexpr std::int64_t kMaxSeq =
    (std::int64_t{1} << 31) - 1 - 2 * unit_tokens(64);  // coordinates are 32 bits
inline constexpr std::int64_t kMaxCluster = 16;         // above 8 the kernel asks for it

inline std::int64_t units_of(const Problem& problem) {
  return ceil_div(problem.seq, unit_tokens(problem.dim));
}

// Blocks that a KV head's query heads can be shared out to. Each reads the KV head's tokens, all but one from
// L2; fewer than 4 query heads a block have not been worth that anywhere.
inline std::int64_t least_row_blocks(std::int64_t group) {
  return ceil_div(group, kMaxRows);
}
inline std::int64_t most_row_blocks(std::int64_t group) {
  return std::max(least_row_blocks(group), std::min(ceil_div(group, 4), kMaxGridYz));
}

// Clusters are placed within a GPC, whose multiprocessors they rarely divide: on an H200 (132) 30 clusters of
// 4, 15 of 8 or 7 of 16 find a multiprocessor for each of their CTAs, nine tenths of the machine.
inline std::int64_t cluster_ctas(const DeviceInfo& device) {
  return device.sms * 10 / 11;
}

inline std::string_view to_string(Merge merge) {
  switch (merge) {
    case Merge::none:
      return "none";
    case Merge::last_cta:
      return "last_cta";
    case Merge::shared:
      return "shared";
    case Merge::cluster:
      return "cluster";
  }
  return "none";
}

inline std::optional<Merge> parse_merge(std::string_view text) {
  for (const Merge merge : {Merge::none, Merge::last_cta, Merge::shared, Merge::cluster}) {
    if (to_string(merge) == text) return merge;
  }
  return std::nullopt;
}

// `owners` share `quads`; `parts` bring theirs to each.
inline Meeting meeting_of(std::int64_t quads, std::int64_t owners, std::int64_t parts) {
  Meeting meeting;
  meeting.parts = static_cast<std::int32_t>(parts);
  while ((owners << meeting.piece_log2) < quads) ++meeting.piece_log2;
  // Four slots a lane while the piece leaves threads idle, then as many lanes as fill its warp.
  const auto lanes = [&] { return std::int64_t{1} << meeting.lanes_log2; };
  const std::int64_t piece = std::int64_t{1} << meeting.piece_log2;
  while (lanes() < 32 && 4 * lanes() < parts && piece * lanes() < kThreads) ++meeting.lanes_log2;
  while (piece * lanes() < 32 && lanes() < parts) ++meeting.lanes_log2;
  return meeting;
}

inline Pieces pieces(std::int64_t kv_heads, std::int64_t group, std::int64_t dim, const Cut& cut) {
  Pieces made;
  made.rows = static_cast<int>(cut.rows(group));
  const std::int64_t row_quads = dim / 4;
  const std::int64_t quads = made.rows * row_quads;
  const std::int64_t blocks = cut.blocks(kv_heads);
  const auto rows_of = [&](const Meeting& meeting) {
    return std::max<std::int64_t>(1, (std::int64_t{1} << meeting.piece_log2) / row_quads);
  };
  const auto in_memory = [&](const Meeting& meeting, std::int64_t owners) {
    made.slots = (owners * meeting.parts) << meeting.piece_log2;
  };
  switch (cut.merge) {
    case Merge::none:
      made.meeting = meeting_of(quads, 1, 1);
      break;
    case Merge::last_cta:
      made.meeting = meeting_of(quads, 1, cut.splits);
      in_memory(made.meeting, blocks);
      break;
    case Merge::shared:
      made.meeting = meeting_of(quads, cut.splits, cut.splits);
      in_memory(made.meeting, blocks * cut.splits);
      break;
    case Merge::cluster:
      made.meeting = meeting_of(quads, cut.splits, cut.splits);
      made.inbox_slots = static_cast<int>(cut.splits << made.meeting.piece_log2);
      made.inbox_rows = static_cast<int>(cut.splits * rows_of(made.meeting));
      break;
  }
  return made;
}

inline std::int64_t smem_of(const Problem& problem, const Cut& cut, std::int64_t stages) {
  const Pieces made = pieces(problem.kv_heads, problem.group(), problem.dim, cut);
  return dynamic_smem(kernel_rows(made.rows), stages, made.inbox_slots, made.inbox_rows);
}

inline std::int64_t ctas_per_sm(const DeviceInfo& device, std::int64_t smem) {
  return rules::occupancy(
             {.regs_per_thread = kRegisters, .threads = kThreads, .static_smem = 0, .dynamic_smem = smem},
             device)
      .ctas_per_sm;
}

inline std::optional<std::string> unsupported(const Kernel& kernel, const Problem& problem,
                                              const DeviceInfo& device) {
  const std::string name(kernel.name);
  if (device.cc < kernel.lowest_cc) {
    return name + " needs compute capability " + std::to_string(kernel.lowest_cc / 10) + "." +
           std::to_string(kernel.lowest_cc % 10) + "; this device has " + std::to_string(device.cc / 10) +
           "." + std::to_string(device.cc % 10);
  }
  if (problem.dtype != Dtype::bf16) {
    return name + " takes bf16, not " + std::string(fdbench::to_string(problem.dtype));
  }
  if (problem.dim != 64 && problem.dim != 128) {
    return name + " takes head dimensions 64 and 128, not " + std::to_string(problem.dim);
  }
  if (problem.seq > kMaxSeq) {
    return name + " numbers tokens in 32 bits: at most " + std::to_string(kMaxSeq) + ", not " +
           std::to_string(problem.seq);
  }
  const std::int64_t row_blocks = least_row_blocks(problem.group());
  if (problem.kv_heads > kMaxGridYz || row_blocks > kMaxGridYz) {
    return name + " puts KV heads and blocks of their query heads in the grid's y and z: at most " +
           std::to_string(kMaxGridYz) + ", not " + std::to_string(problem.kv_heads) + " and " +
           std::to_string(row_blocks);
  }
  return std::nullopt;
}

// The cost model: microseconds from the first byte asked for to the output written, beyond a launch.
// Fitted to 840 cuts of 52 shapes on an H200 (docs/kernels.md): the cut that it picks is 0.2 % slower than
// the best cut measured, 2.7 % at most. What row blocks add, to 571 cuts of 54 shapes: 0.4 %, 4.9 % at most.
// Again with heads as rows, and dim 64 in half of them, 1,188 cuts of 57 shapes: 0.4 %, 3.9 % at most.
// What matters is which cut wins, and that is a matter of latencies that other devices share.
inline double predicted_us(const Problem& problem, const DeviceInfo& device, const Cut& cut,
                           std::int64_t stages) {
  // What a multiprocessor takes, by query heads, stages and dimensions (64: more scores a byte); all together
  // 95 % of what the memory gives, or as much a multiprocessor as on the H200 where the device does not say;
  // and a GPC 22 % of that.
  const std::int64_t most_rows = cut.rows(problem.group());
  const bool wide = most_rows > 8;
  const double sm_bytes_per_us =
      (stages >= 2 && cut.merge != Merge::none ? (wide ? 95e3 : 114e3) : (wide ? 91e3 : 96e3)) *
      (problem.dim < 128 ? 0.85 : 1.0);
  const double memory = device.bandwidth_datasheet.value_or(device.sms * 36.4e9) * 0.95e-6;
  const double gpc = memory * 0.2225;
  const bool clusters = cut.merge == Merge::cluster;
  const std::int64_t ctas = cut.blocks(problem.kv_heads) * cut.splits;
  const std::int64_t room = std::max<std::int64_t>(1, clusters ? cluster_ctas(device) : device.sms);
  const double units = static_cast<double>(ceil_div(units_of(problem), cut.splits));
  const double cta_bytes = units * 2.0 * kTileBytes;
  const double total_bytes = 2.0 * static_cast<double>(problem.kv_bytes());
  double by_sm = static_cast<double>(ceil_div(ctas, room)) * cta_bytes / sm_bytes_per_us;
  if (cut.merge == Merge::none) by_sm *= 1.21;  // nothing else hides the first copies
  // Bytes that several blocks read come from L2, 1.6 times as fast, 1.2 times to a GPC.
  const double row_blocks = static_cast<double>(cut.row_blocks);
  double by_memory = total_bytes * std::max(1.0, row_blocks / 1.6) / memory;
  const bool again = cut.row_blocks > least_row_blocks(problem.group());
  if (clusters) {
    const double gpcs = static_cast<double>(problem.kv_heads) * (again ? 1.2 : 1.0);
    by_memory = std::max(by_memory, total_bytes / (gpcs * gpc));
  }
  // Both multiprocessors of half of the pairs: 4 % slower than one of each (32/32 from 8192 tokens on).
  if (clusters && cut.splits == 2) by_memory *= 1.04;
  // The larger, and more than it where the two are close.
  constexpr double kSharp = 7.5;
  double load = std::pow(std::pow(by_sm, kSharp) + std::pow(by_memory, kSharp), 1.0 / kSharp);
  // CTAs that share a multiprocessor finish after those that have one to themselves.
  if (ctas > room) load *= 1.09;
  // Scoring and merging that nothing hides, beyond what 4 query heads take.
  if (wide) {
    load += 0.7;
  } else if (most_rows > 4) {
    load += 0.2;
  }

  const double rows = static_cast<double>(most_rows);
  const double parts = static_cast<double>(cut.splits);
  // Splits that the pieces of the output do not divide by leave some owners more than others.
  const double uneven = (cut.splits & (cut.splits - 1)) == 0 ? 0.0 : 0.3;
  switch (cut.merge) {
    case Merge::none:
      return load - 0.07;
    case Merge::last_cta:
      return load + 1.52 + 0.0144 * parts * rows + uneven;  // one CTA reads all of a block's slots
    case Merge::shared:
      return load + 1.215 + (again ? 0.2 : 0.0) + 0.0137 * parts + uneven;  // more CTAs ask
    case Merge::cluster:
      return load + 0.8155 + 0.0165 * parts;
  }
  return load;
}

// Only for problems that unsupported() lets through.
inline PlanResult plan(const Kernel& kernel, const Problem& problem, const DeviceInfo& device,
                       const TuningPoint& tuning) {
  const std::string name(kernel.name);
  const std::optional<std::int64_t> splits_asked = tuning.get("splits");
  const std::optional<std::int64_t> merge_asked = tuning.get("merge");
  const std::optional<std::int64_t> stages_asked = tuning.get("stages");
  const std::optional<std::int64_t> row_blocks_asked = tuning.get("row_blocks");
  const auto outside = [&](const std::optional<std::int64_t>& value, std::int64_t lowest,
                           std::int64_t highest) { return value && (*value < lowest || *value > highest); };
  const auto takes = [&](std::int64_t lowest, std::int64_t highest, const char* what, std::int64_t asked) {
    return Unsupported{name + " takes " + std::to_string(lowest) + " to " + std::to_string(highest) + " " +
                       what + ", not " + std::to_string(asked)};
  };
  const std::int64_t last_merge = kernel.clusters ? 3 : 2;
  if (outside(splits_asked, 1, kMaxSplits)) return takes(1, kMaxSplits, "splits", *splits_asked);
  if (outside(merge_asked, 0, last_merge)) return takes(0, last_merge, "as merge", *merge_asked);
  if (outside(stages_asked, 1, kernel.max_stages))
    return takes(1, kernel.max_stages, "stages", *stages_asked);
  const std::int64_t least_blocks = least_row_blocks(problem.group());
  const std::int64_t most_blocks = most_row_blocks(problem.group());
  if (outside(row_blocks_asked, least_blocks, most_blocks))
    return takes(least_blocks, most_blocks, "row blocks here", *row_blocks_asked);
  if (device.sms < 1) return Unsupported{name + " needs the number of multiprocessors, not given"};

  const std::int64_t units = units_of(problem);
  const auto ctas_of = [&](const Cut& cut) { return cut.blocks(problem.kv_heads) * cut.splits; };
  const std::int64_t most_smem = std::min(device.smem_per_block, device.smem_per_sm - 1024);

  // As asked; else two where each CTA then has a multiprocessor of its own and a warp has three units or
  // more, otherwise one. On an H200 two won there by up to 4 % (32/8, 8192) and lost as much below (32/8,
  // 2048). A grid of most of the machine has enough in flight with one: over 64 units and more that won by
  // 0.4 % (32/32, 32768).
  const auto stages_for = [&](const Cut& cut) {
    if (stages_asked) return *stages_asked;
    const std::int64_t ctas = ctas_of(cut);
    const std::int64_t room = cut.merge == Merge::cluster ? cluster_ctas(device) : device.sms;
    const std::int64_t warp_units = ceil_div(ceil_div(units, cut.splits), kWarps);
    const bool two = kernel.max_stages >= 2 && ctas <= room && warp_units > 2 &&
                     (warp_units < 64 || 4 * ctas < 3 * device.sms) && smem_of(problem, cut, 2) <= most_smem;
    return two ? std::int64_t{2} : std::int64_t{1};
  };
  // Why this cannot be, or nothing.
  const auto misfit = [&](const Cut& cut) -> std::optional<std::string> {
    const std::int64_t stages = stages_for(cut);
    const std::int64_t smem = smem_of(problem, cut, stages);
    const std::string with = name + " with merge '" + std::string(to_string(cut.merge)) + "' ";
    if (smem > most_smem) {
      return with + "and " + std::to_string(stages) + " stages needs " + std::to_string(smem) +
             " bytes of shared memory a CTA; this device allows " + std::to_string(most_smem);
    }
    if ((cut.merge == Merge::none) != (cut.splits == 1)) {
      return with + "does not take " + std::to_string(cut.splits) +
             " splits: one split is merged by none, and only it";
    }
    if (cut.merge == Merge::cluster) {
      // More than 8 are not portable: sm_90 and sm_100 have them.
      const std::int64_t most = device.cc < 120 ? kMaxCluster : 8;
      if ((cut.splits & (cut.splits - 1)) != 0 || cut.splits > most) {
        return with + "takes powers of two up to " + std::to_string(most) + " as splits, not " +
               std::to_string(cut.splits);
      }
    }
    if (cut.merge == Merge::shared) {
      if (!device.cooperative_launch) return with + "needs cooperative launches, which this device has not";
      const std::int64_t room = device.sms * ctas_per_sm(device, smem);
      if (ctas_of(cut) > room) {
        return with + "needs all CTAs resident: " + std::to_string(ctas_of(cut)) +
               " are asked for, and this device holds " + std::to_string(room);
      }
    }
    return std::nullopt;
  };

  // One split, the cluster sizes, and what fills the machine once: exactly, and as the powers of two below.
  const auto splits_for = [&](std::int64_t row_blocks) -> std::vector<std::int64_t> {
    if (splits_asked) return {*splits_asked};
    const std::int64_t blocks = std::max<std::int64_t>(1, problem.kv_heads * row_blocks);
    const std::int64_t full = std::min(device.sms / blocks, kMaxAtOnce);
    const std::int64_t power =
        full < 1 ? 0 : static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(full)));
    return {1, 16, 8, 4, 2, power, power / 2, power / 4, full};
  };
  // Blocks of up to 16, 8 and 4 query heads. With splits alone asked for, as few blocks as there can be: what
  // answers with splits (rules, a fitted model) knows of one CTA a split.
  const std::int64_t halves = std::clamp(ceil_div(problem.group(), 8), least_blocks, most_blocks);
  std::vector<std::int64_t> shared_out = {least_blocks, halves, most_blocks};
  if (splits_asked) shared_out = {least_blocks};
  if (row_blocks_asked) shared_out = {*row_blocks_asked};
  std::vector<std::pair<std::int64_t, std::int64_t>> tried;  // row blocks, splits
  for (const std::int64_t asked : shared_out) {
    // Blocks of equal size may come to fewer: 33 query heads in 8 blocks are 7 of up to 5, and one of none.
    const std::int64_t row_blocks = ceil_div(problem.group(), ceil_div(problem.group(), asked));
    for (const std::int64_t splits : splits_for(row_blocks)) tried.emplace_back(row_blocks, splits);
  }

  double best_us = std::numeric_limits<double>::infinity();
  Cut best;
  std::string why;
  for (const auto& [row_blocks, splits] : tried) {
    if (splits < 1 || (!splits_asked && splits > 1 && splits > units)) continue;
    for (const Merge merge : {Merge::none, Merge::cluster, Merge::shared, Merge::last_cta}) {
      if (merge_asked ? static_cast<std::int64_t>(merge) != *merge_asked
                      : merge == Merge::cluster && !kernel.clusters) {
        continue;
      }
      const Cut cut = {splits, merge, row_blocks};
      if (const auto reason = misfit(cut)) {
        if (why.empty() || merge_asked) why = *reason;
        continue;
      }
      const double us = predicted_us(problem, device, cut, stages_for(cut));
      if (us < best_us) {
        best_us = us;
        best = cut;
      }
    }
  }
  if (best_us == std::numeric_limits<double>::infinity()) {
    return Unsupported{why.empty() ? name + " has no number of splits for this merge here" : why};
  }

  const Pieces made = pieces(problem.kv_heads, problem.group(), problem.dim, best);
  LaunchPlan result;
  result.grid = {best.splits, problem.kv_heads, best.row_blocks};
  result.block = {kThreads, 1, 1};
  result.cluster = {best.cluster(), 1, 1};
  result.splits = best.splits;
  result.chunk = ceil_div(units, best.splits) * unit_tokens(problem.dim);
  result.tile = unit_tokens(problem.dim) * kWarps;
  result.stages = stages_for(best);
  result.dynamic_smem = smem_of(problem, best, result.stages);
  result.cooperative = best.merge == Merge::shared;
  result.merge = to_string(best.merge);
  const std::int64_t slot_bytes = made.slots * kSlotBytes;
  if (result.cooperative) result.zeroed_bytes = slot_bytes;
  if (best.merge == Merge::last_cta) {
    result.scratch_bytes = slot_bytes;
    result.zeroed_bytes = best.blocks(problem.kv_heads) * 4;
  }
  if (!splits_asked) result.rule = "cost_model";
  return result;
}

}  // namespace fdbench::split
