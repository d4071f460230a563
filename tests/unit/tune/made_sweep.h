// Result rows of a sweep whose times are a function of the splits, for tests.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/result_record.h"
#include "tune/rule_plans.h"

namespace fdbench::tune {

inline DeviceInfo made_gpu() {
  DeviceInfo device;
  device.kind = BackendKind::cuda;
  device.name = "made";
  device.cc = 90;
  device.sms = 132;
  device.smem_per_sm = 233472;
  device.smem_per_block = 232448;
  device.threads_per_sm = 2048;
  device.ctas_per_sm = 32;
  device.regs_per_sm = 65536;
  return device;
}

inline LaunchPlan made_plan(const Problem& problem, std::int64_t splits) {
  LaunchPlan plan;
  plan.splits = splits;
  plan.chunk = (problem.seq + splits - 1) / splits;
  plan.grid = {splits, problem.kv_heads, 1};
  plan.block = {128, 1, 1};
  plan.tile = 64;
  return plan;
}

// ns(splits, round) for every split count; the first row is the variant's own plan, with `own` splits, where
// that is above 0.
inline std::vector<ResultRecord> made_rows(const Problem& problem, const std::vector<std::int64_t>& splits,
                                           int rounds, const std::function<double(std::int64_t, int)>& ns,
                                           std::int64_t own = 0) {
  std::vector<ResultRecord> rows;
  const auto add = [&](std::int64_t count, bool is_own) {
    ResultRecord row;
    row.problem = problem;
    row.variant = "made";
    if (!is_own) row.tuning.set("splits", count);
    row.plan = made_plan(problem, count);
    row.time = TimeSummary{};
    row.time->n = rounds;
    for (int r = 0; r < rounds; ++r) row.time->samples.push_back({0, r, ns(count, r), 0.0, false});
    row.time->median = ns(count, 0);
    rows.push_back(row);
  };
  if (own > 0) add(own, true);
  for (const std::int64_t count : splits) add(count, false);
  return rows;
}

}  // namespace fdbench::tune
