// The plan of cpu_split_kv: how the sequence is cut, with which instructions, what a launch keeps.
#pragma once

#include <cstdint>

#include "core/device_info.h"
#include "core/launch_plan.h"
#include "core/problem.h"
#include "core/tuning_point.h"

namespace fdbench::cpu {

// Scratch, in this order; each part starts on a cache line. Elements are floats.
struct SplitKvLayout {
  std::int64_t acc = 0;   // [splits, heads, dim]
  std::int64_t max = 0;   // [splits, heads]
  std::int64_t sum = 0;   // [splits, heads]
  std::int64_t rank = 0;  // [threads] of rank_size
  // Of one rank:
  std::int64_t query = 0;   // as load_query writes it
  std::int64_t scores = 0;  // ChunkJob::scores
  std::int64_t row = 0;     // [dim]
  std::int64_t rank_size = 0;
  std::int64_t end = 0;
};

SplitKvLayout lay_out_split_kv(std::int64_t heads, std::int64_t kv_heads, std::int64_t dim,
                               const LaunchPlan& plan);

PlanResult plan_split_kv(const Problem& problem, const DeviceInfo& device, const TuningPoint& tuning);

}  // namespace fdbench::cpu
