// The plan that the split_kv kernels share: how the work is cut, how the parts meet again, what a CTA holds.
// Pure, plain C++.
//
// Axes, each the plan's to choose when absent:
//   splits   CTAs a head; contiguous ranges of 32-token units that differ by at most one
//   merge    how they meet (split_params.h)
//   stages   K and V tiles of 32 tokens that each of a CTA's four warps keeps in flight
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
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

// What ptxas gives the kernels, at most, over all their instances and architectures: 16 query heads at dim
// 128.
inline constexpr int kRegisters = 240;

constexpr KernelResources resources(std::string_view kernel, int cc, int dynamic_smem) {
  return {.kernel = kernel,
          .cc = cc,
          .registers = kRegisters,
          .static_smem = 0,
          .dynamic_smem = dynamic_smem,
          .threads = kThreads,
          .ctas_per_sm = 1};
}

inline constexpr std::int64_t kMaxSplits = 4096;
inline constexpr std::int64_t kMaxStages = 8;

inline constexpr Axis kTmaAxes[] = {
    {"splits", "CTAs a head; by the plan's cost model when absent", 1, kMaxSplits},
    {"merge",
     "0 none (one split), 1 last_cta, 2 shared (all CTAs resident), 3 cluster (at most 16 splits); the "
     "cheapest "
     "when absent",
     0, 3},
    {"stages",
     "32-token tiles of K and of V that each of 4 warps keeps in flight; 2 where they fit when absent", 1,
     kMaxStages},
};
inline constexpr Axis kCpAsyncAxes[] = {
    {"splits", "CTAs a head; by the plan's cost model when absent", 1, kMaxSplits},
    {"merge", "0 none (one split), 1 last_cta, 2 shared (all CTAs resident); the cheapest when absent", 0, 2},
    {"stages",
     "32-token tiles of K and of V that each of 4 warps keeps in flight; 2 where they fit when absent", 1, 2},
};

// What follows from a plan's splits and merge.
struct Pieces {
  int rows = 0;        // query heads a block, at most
  int row_blocks = 0;  // blocks of a KV head
  int owners = 1;
  int piece_log2 = 0;
  int lanes_log2 = 0;
  int piece_rows = 1;
  std::int64_t slots = 0;  // of all blocks
  std::int64_t ml_slots = 0;
};
inline constexpr std::int64_t kMaxSeq =
    (std::int64_t{1} << 31) - 1 - 2 * kUnitTokens;  // coordinates are 32 bits
inline constexpr std::int64_t kMaxGridYz = 65535;
inline constexpr std::int64_t kMaxCluster = 16;  // above 8 the kernel asks for it

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

inline std::int64_t units_of(const Problem& problem) {
  return ceil_div(problem.seq, kUnitTokens);
}

inline std::int64_t blocks_of(const Problem& problem) {
  return problem.kv_heads * ceil_div(problem.group(), max_rows(problem.group()));
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

inline Pieces pieces(std::int64_t kv_heads, std::int64_t group, std::int64_t dim, std::int64_t splits,
                     Merge merge) {
  Pieces cut;
  cut.rows = static_cast<int>(std::min<std::int64_t>(group, max_rows(group)));
  cut.row_blocks = static_cast<int>(ceil_div(group, max_rows(group)));
  cut.owners = merge == Merge::shared || merge == Merge::cluster ? static_cast<int>(splits) : 1;
  const std::int64_t row_quads = dim / 4;
  while ((std::int64_t{cut.owners} << cut.piece_log2) < cut.rows * row_quads) ++cut.piece_log2;
  cut.piece_rows =
      static_cast<int>(std::max<std::int64_t>(1, (std::int64_t{1} << cut.piece_log2) / row_quads));
  // Four slots a lane while the piece leaves threads idle, then as many lanes as fill its warp.
  while (cut.lanes_log2 < 5 && (std::int64_t{4} << cut.lanes_log2) < splits &&
         (std::int64_t{1} << (cut.piece_log2 + cut.lanes_log2)) < kThreads) {
    ++cut.lanes_log2;
  }
  while (cut.piece_log2 + cut.lanes_log2 < 5 && (std::int64_t{1} << cut.lanes_log2) < splits)
    ++cut.lanes_log2;
  if (merge != Merge::none && merge != Merge::cluster) {
    const std::int64_t places = kv_heads * cut.row_blocks * cut.owners * splits;
    cut.slots = places << cut.piece_log2;
    cut.ml_slots = places * cut.piece_rows;
  }
  return cut;
}

inline std::int64_t smem_of(const Problem& problem, std::int64_t splits, Merge merge, std::int64_t stages) {
  const Pieces cut = pieces(problem.kv_heads, problem.group(), problem.dim, splits, merge);
  const std::int64_t inbox = merge == Merge::cluster ? splits << cut.piece_log2 : 0;
  return dynamic_smem(static_cast<int>(problem.dim), max_rows(problem.group()), stages, inbox,
                      splits * cut.piece_rows);
}

inline std::int64_t ctas_per_sm(const DeviceInfo& device, std::int64_t smem) {
  return rules::occupancy(
             {.regs_per_thread = kRegisters, .threads = kThreads, .static_smem = 0, .dynamic_smem = smem},
             device)
      .ctas_per_sm;
}

// A warp's partial result takes the place of its stages: with 16 rows it needs 16 * (dim + 4) * 4 bytes of
// them. One stage has 128 * dim, always more.
static_assert(16 * (64 + 4) * 4 <= 2 * tile_bytes(64) && 16 * (128 + 4) * 4 <= 2 * tile_bytes(128));

struct Choice {
  std::int64_t splits = 1;
  Merge merge = Merge::none;
  double us = std::numeric_limits<double>::infinity();
};

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
  const std::int64_t row_blocks = ceil_div(problem.group(), max_rows(problem.group()));
  if (problem.kv_heads > kMaxGridYz || row_blocks > kMaxGridYz) {
    return name + " puts KV heads and blocks of their query heads in the grid's y and z: at most " +
           std::to_string(kMaxGridYz) + ", not " + std::to_string(problem.kv_heads) + " and " +
           std::to_string(row_blocks);
  }
  return std::nullopt;
}

// The cost model: microseconds from the first byte asked for to the output written, beyond a launch.
// Fitted to the H200's figures in docs/kernels.md; what matters is which merge wins, and that is a matter of
// microseconds of latency that other devices share.
inline double predicted_us(const Problem& problem, const DeviceInfo& device, std::int64_t splits,
                           Merge merge) {
  // One multiprocessor takes 75 bytes/ns (32/32: 256 against 128 tokens in one CTA a head), all together 95 %
  // of what the memory gives; where the device does not say, as much a multiprocessor as on the H200.
  constexpr double kSmBytesPerUs = 75e3;
  const double memory = device.bandwidth_datasheet.value_or(device.sms * 36.4e9) * 0.95e-6;  // bytes/us
  const double sms = std::max(1, device.sms);
  const std::int64_t blocks = blocks_of(problem);
  const double ctas = static_cast<double>(blocks * splits);
  const double room =
      merge == Merge::cluster ? static_cast<double>(std::max<std::int64_t>(1, cluster_ctas(device))) : sms;
  const double units = static_cast<double>(ceil_div(units_of(problem), splits));
  const double cta_bytes = units * kUnitTokens * 2.0 * static_cast<double>(problem.dim) * 2.0;
  const double waves =
      static_cast<double>(ceil_div(static_cast<std::int64_t>(ctas), static_cast<std::int64_t>(room)));
  const double total_bytes = 2.0 * static_cast<double>(problem.kv_bytes());
  double load = std::max(waves * cta_bytes / kSmBytesPerUs, total_bytes / memory);
  // CTAs that share a multiprocessor finish after those that have one to themselves.
  if (ctas > room) load *= 1.04;

  const double rows = static_cast<double>(std::min<std::int64_t>(problem.group(), max_rows(problem.group())));
  const double parts = static_cast<double>(splits);
  switch (merge) {
    case Merge::none:
      return load;
    case Merge::last_cta:
      return load + 1.7 + 0.009 * parts * rows;  // one CTA reads all of a block's slots
    case Merge::shared:
      return load + 1.65 + 0.006 * parts;
    case Merge::cluster:
      return load + 0.85 + 0.01 * parts;
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
  if (splits_asked && (*splits_asked < 1 || *splits_asked > kMaxSplits)) {
    return Unsupported{name + " takes 1 to " + std::to_string(kMaxSplits) + " splits, not " +
                       std::to_string(*splits_asked)};
  }
  const std::int64_t last_merge = kernel.clusters ? 3 : 2;
  if (merge_asked && (*merge_asked < 0 || *merge_asked > last_merge)) {
    return Unsupported{name + " takes merge 0 to " + std::to_string(last_merge) + ", not " +
                       std::to_string(*merge_asked)};
  }
  if (stages_asked && (*stages_asked < 1 || *stages_asked > kernel.max_stages)) {
    return Unsupported{name + " takes 1 to " + std::to_string(kernel.max_stages) + " stages, not " +
                       std::to_string(*stages_asked)};
  }
  if (device.sms < 1) return Unsupported{name + " needs the number of multiprocessors, not given"};

  const std::int64_t blocks = blocks_of(problem);
  const std::int64_t units = units_of(problem);
  const std::int64_t most_smem = std::min(device.smem_per_block, device.smem_per_sm - 1024);
  if (smem_of(problem, 1, Merge::none, 1) > most_smem) {
    return Unsupported{name + " needs " + std::to_string(smem_of(problem, 1, Merge::none, 1)) +
                       " bytes of shared memory a CTA; this device allows " + std::to_string(most_smem)};
  }

  // As asked, else two stages where the CTA then still fits (a multiprocessor of its own for each CTA, which
  // is also what keeps a cluster's CTAs apart), one where CTAs must share.
  const auto stages_for = [&](std::int64_t splits, Merge merge) {
    if (stages_asked) return *stages_asked;
    const std::int64_t room = merge == Merge::cluster ? cluster_ctas(device) : device.sms;
    const std::int64_t two = std::min<std::int64_t>(2, kernel.max_stages);
    const bool alone = blocks * splits <= room;
    return alone && smem_of(problem, splits, merge, two) <= most_smem ? two : std::int64_t{1};
  };
  // Why this cannot be, or nothing.
  const auto misfit = [&](std::int64_t splits, Merge merge) -> std::optional<std::string> {
    const std::int64_t stages = stages_for(splits, merge);
    const std::int64_t smem = smem_of(problem, splits, merge, stages);
    if (smem > most_smem) {
      return name + " with " + std::to_string(stages) + " stages and " + std::to_string(splits) +
             " splits needs " + std::to_string(smem) + " bytes of shared memory a CTA; this device allows " +
             std::to_string(most_smem);
    }
    if ((merge == Merge::none) != (splits == 1)) {
      return name + " merges 'none' exactly where there is one split, not with " + std::to_string(splits);
    }
    if (merge == Merge::cluster && splits > kMaxCluster) {
      return name + " has clusters of at most " + std::to_string(kMaxCluster) + " CTAs, not " +
             std::to_string(splits);
    }
    if (merge == Merge::shared) {
      if (!device.cooperative_launch)
        return name + " merges 'shared' under a cooperative launch, which this device has not";
      const std::int64_t room = device.sms * ctas_per_sm(device, smem);
      if (blocks * splits > room) {
        return name +
               " merges 'shared' only where all CTAs are resident: " + std::to_string(blocks * splits) +
               " are asked for, and this device holds " + std::to_string(room);
      }
    }
    return std::nullopt;
  };

  std::vector<std::int64_t> splits_tried;
  if (splits_asked) {
    splits_tried = {*splits_asked};
  } else {
    // What fills the machine once, the cluster sizes, and one.
    splits_tried = {1, 2, 4, 8};
    // 16 is not portable: sm_90 and sm_100 have it.
    if (device.cc < 120) splits_tried.push_back(16);
    splits_tried.push_back(device.sms / std::max<std::int64_t>(1, blocks));
  }
  Choice best;
  std::string why;
  for (const std::int64_t splits : splits_tried) {
    if (splits < 1 || (!splits_asked && splits > std::max<std::int64_t>(1, units))) continue;
    for (const Merge merge : {Merge::none, Merge::cluster, Merge::shared, Merge::last_cta}) {
      if (merge_asked ? static_cast<std::int64_t>(merge) != *merge_asked
                      : merge == Merge::cluster && !kernel.clusters) {
        continue;
      }
      // A split by itself is merged by nobody; asked for two or more, nobody merging is a mistake to report.
      if (!merge_asked && (merge == Merge::none) != (splits == 1)) continue;
      if (const auto reason = misfit(splits, merge)) {
        why = *reason;
        continue;
      }
      const double us = predicted_us(problem, device, splits, merge);
      if (us < best.us) best = {splits, merge, us};
    }
  }
  if (best.us == std::numeric_limits<double>::infinity()) {
    return Unsupported{why.empty() ? name + " has no number of splits for this merge" : why};
  }

  const Pieces cut = pieces(problem.kv_heads, problem.group(), problem.dim, best.splits, best.merge);
  LaunchPlan made;
  made.grid = {best.splits, problem.kv_heads, cut.row_blocks};
  made.block = {kThreads, 1, 1};
  if (best.merge == Merge::cluster) made.cluster = {best.splits, 1, 1};
  made.splits = best.splits;
  made.chunk = ceil_div(units, best.splits) * kUnitTokens;
  made.tile = kUnitTokens * kWarps;
  made.stages = stages_for(best.splits, best.merge);
  made.dynamic_smem = smem_of(problem, best.splits, best.merge, made.stages);
  made.cooperative = best.merge == Merge::shared;
  made.merge = to_string(best.merge);
  const std::int64_t slot_bytes = cut.slots * 16 + cut.ml_slots * 8;
  if (best.merge == Merge::shared) made.zeroed_bytes = slot_bytes;
  if (best.merge == Merge::last_cta) {
    made.scratch_bytes = slot_bytes;
    made.zeroed_bytes = blocks * 4;
  }
  if (!splits_asked) made.rule = "cost_model";
  return made;
}

}  // namespace fdbench::split
