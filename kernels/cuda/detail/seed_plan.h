// The plan that the seed kernels (flash_decode_tma, flash_decode_tma_dbf_k) and flash_decode_cp_async share:
// how the work is cut and what one CTA holds. Pure, plain C++.
//
// An item is one chunk of one query head: `chunk` tokens, the head's last one maybe fewer, 64 at a time. The
// axes `chunk` (C) and `sm_multiple` (M) choose:
//   neither  chunk of the rule "seed"           grid (splits, heads), an item a CTA
//   C        chunk C                            grid (splits, heads), an item a CTA
//   M        chunk of the rule "sm_multiple:M"  grid (splits, heads), an item a CTA
//   both     chunk C                            grid min(items, M * multiprocessors): CTA i walks items
//                                               i, i + grid, ..., a head's splits next to each other
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/device_info.h"
#include "core/host_device.h"
#include "core/launch_plan.h"
#include "core/problem.h"
#include "core/tuning_point.h"
#include "core/variant.h"
#include "rules/split_rules.h"

namespace fdbench::seed {

inline constexpr int kTile = 64;      // KV tokens a stage
inline constexpr int kThreads = 128;  // a CTA
inline constexpr std::int64_t kMaxChunk = 4096;
inline constexpr std::int64_t kMaxSmMultiple = 32;

inline constexpr std::int64_t kMaxSeq = (std::int64_t{1} << 31) - kTile;  // coordinates are 32 bits
inline constexpr std::int64_t kMaxGridX = (std::int64_t{1} << 31) - 1;
inline constexpr std::int64_t kMaxGridY = 65535;
inline constexpr std::int64_t kReservedSmem = 1024;  // the system's own in every CTA

inline constexpr std::array<Axis, 2> kAxes = {{
    {"chunk", "KV tokens a CTA takes at a time, a multiple of 64; the seed rule's when absent", kTile,
     kMaxChunk},
    {"sm_multiple", "CTAs a multiprocessor: alone it sets the chunk, with chunk it makes the grid persistent",
     1, kMaxSmMultiple},
}};

// What tells the kernels apart.
struct Kernel {
  std::string_view name;
  int k_buffers = 1;  // tiles of K in shared memory
  int v_buffers = 1;
  bool tma = true;  // the copy engine brings them, each on an mbarrier of its own; else cp.async does
};

FDBENCH_HOST_DEVICE constexpr std::int64_t tile_bytes(std::int64_t dim) {
  return kTile * dim * 2;
}

// Tiles, and with TMA an 8-byte barrier for each. The kernels lay them out in this order: K, V, barriers.
constexpr std::int64_t dynamic_smem(const Kernel& kernel, std::int64_t dim) {
  return (kernel.k_buffers + kernel.v_buffers) * (tile_bytes(dim) + (kernel.tma ? 8 : 0));
}

// What a kernel declares for one architecture, at its largest head dimension.
constexpr KernelResources resources(const Kernel& kernel, std::string_view function, int cc, int registers,
                                    int ctas_per_sm) {
  return {.kernel = function,
          .cc = cc,
          .registers = registers,
          .dynamic_smem = static_cast<int>(dynamic_smem(kernel, 128)),
          .threads = kThreads,
          .ctas_per_sm = ctas_per_sm};
}

// Scratch: partial outputs f32 [heads, splits, dim], then their log2-sums f32 [heads, splits].
constexpr std::int64_t partial_o_bytes(std::int64_t items, std::int64_t dim) {
  return items * dim * 4;
}
constexpr std::int64_t scratch_bytes(std::int64_t items, std::int64_t dim) {
  return partial_o_bytes(items, dim) + items * 4;
}

inline std::optional<std::string> unsupported(const Kernel& kernel, const Problem& problem,
                                              const DeviceInfo& device) {
  const std::string name(kernel.name);
  if (device.cc < (kernel.tma ? 90 : 80)) {
    return name +
           (kernel.tma ? " copies by TMA, which compute capability 9.0 brought; this device has "
                       : " copies by cp.async, which compute capability 8.0 brought; this device has ") +
           std::to_string(device.cc / 10) + "." + std::to_string(device.cc % 10);
  }
  if (problem.dtype != Dtype::bf16) {
    return name + " takes bf16, not " + std::string(to_string(problem.dtype));
  }
  if (problem.dim != 64 && problem.dim != 128) {
    return name + " takes head dimensions 64 and 128, not " + std::to_string(problem.dim);
  }
  if (problem.seq > kMaxSeq) {
    return name + " addresses tokens in 32 bits: at most " + std::to_string(kMaxSeq) + ", not " +
           std::to_string(problem.seq);
  }
  return std::nullopt;
}

// Only for problems that unsupported() lets through.
inline PlanResult plan(const Kernel& kernel, const Problem& problem, const DeviceInfo& device,
                       const TuningPoint& tuning) {
  const std::string name(kernel.name);
  const std::optional<std::int64_t> chunk = tuning.get("chunk");
  const std::optional<std::int64_t> sm_multiple = tuning.get("sm_multiple");
  if (chunk && (*chunk < kTile || *chunk > kMaxChunk || *chunk % kTile != 0)) {
    return Unsupported{name + " takes chunks of 64 to " + std::to_string(kMaxChunk) +
                       " tokens, multiples of its 64-token tile, not " + std::to_string(*chunk)};
  }
  if (sm_multiple && (*sm_multiple < 1 || *sm_multiple > kMaxSmMultiple)) {
    return Unsupported{name + " takes sm_multiple 1 to " + std::to_string(kMaxSmMultiple) + ", not " +
                       std::to_string(*sm_multiple)};
  }

  LaunchPlan plan;
  rules::Split split;
  rules::SplitInput input = rules::split_input(problem, device);
  input.ctas_per_split = problem.heads;
  if (chunk) {
    split = rules::split_by_chunk(problem.seq, *chunk);
  } else if (sm_multiple) {
    split = rules::sm_multiple_rule(input, *sm_multiple);
    plan.rule = "sm_multiple:" + std::to_string(*sm_multiple);
  } else {
    split = rules::seed_rule(input);
    plan.rule = "seed";
  }
  split = rules::round_to_tile(split, problem.seq, kTile);
  if (!split.ok()) return Unsupported{name + " has no chunk: " + split.error};

  // At most 2^20 heads by 2^25 chunks each: nothing here overflows.
  const std::int64_t items = problem.heads * split.splits;
  if (items > kMaxGridX) {
    return Unsupported{name + " numbers its chunks in 31 bits: at most " + std::to_string(kMaxGridX) +
                       ", and these are " + std::to_string(items)};
  }
  const bool persistent = chunk && sm_multiple;
  if (persistent) {
    if (device.sms < 1) return Unsupported{name + " needs the number of multiprocessors, not given"};
    plan.grid = {std::min(items, *sm_multiple * device.sms), 1, 1};
  } else {
    if (problem.heads > kMaxGridY) {
      return Unsupported{name + " puts heads in the grid's y: at most " + std::to_string(kMaxGridY) +
                         ", not " + std::to_string(problem.heads) +
                         "; chunk and sm_multiple together make a grid without y"};
    }
    plan.grid = {split.splits, problem.heads, 1};
  }
  plan.block = {kThreads, 1, 1};
  plan.chunk = split.chunk;
  plan.splits = split.splits;
  plan.tile = kTile;
  plan.stages = kernel.k_buffers + kernel.v_buffers;
  plan.dynamic_smem = dynamic_smem(kernel, problem.dim);
  plan.merge = "kernel";
  plan.scratch_bytes = scratch_bytes(items, problem.dim);

  if (plan.dynamic_smem > device.smem_per_block) {
    return Unsupported{name + " needs " + std::to_string(plan.dynamic_smem) +
                       " bytes of shared memory a CTA; this device allows " +
                       std::to_string(device.smem_per_block)};
  }
  if (plan.dynamic_smem + kReservedSmem > device.smem_per_sm) {
    return Unsupported{name + " needs " + std::to_string(plan.dynamic_smem + kReservedSmem) +
                       " bytes of shared memory a multiprocessor; this device has " +
                       std::to_string(device.smem_per_sm)};
  }
  return plan;
}

}  // namespace fdbench::seed
