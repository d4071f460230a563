// One run and its rows, as they are written to disk (schema fdbench.result/1.0, docs/results.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device_info.h"
#include "core/launch_plan.h"
#include "core/measurement.h"
#include "core/problem.h"
#include "core/tuning_point.h"
#include "core/variant.h"

namespace fdbench {

struct ToolInfo {
  std::string version, commit, compiler, cuda, flags;  // cuda: empty when built without
  bool dirty = false;
  std::string sources;  // digest of what it was built from; empty: not known
};

// The commit, and whether files were changed since: "4ba13ed0c1a2+changes".
std::string commit_text(const ToolInfo& tool);

struct HostInfo {
  std::string cpu, os, kernel;
  int cores = 0;  // that affinity and cgroup quota leave us
};

struct RunInfo {
  std::string id;       // unique to the run
  std::string command;  // the subcommand
  std::string started;  // ISO 8601, UTC
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;  // the FDBENCH_* variables that were set
  CacheMode cache = CacheMode::cold;
  TimerMode timer = TimerMode::events;
  std::uint64_t seed = 0;
  std::string inputs;  // recipe and version, "philox_sum4/1"
  int processes = 1;
  bool interrupted = false;
  ToolInfo tool;
  HostInfo host;
  DeviceInfo device;
};

struct ResultRecord {
  std::string id;  // variant, shape, tuning, cache and timer; no date
  Problem problem;
  std::string variant;
  Role role = Role::candidate;
  int tuning_version = 1;
  TuningPoint tuning;              // as asked for, or as the profile has it
  std::optional<LaunchPlan> plan;  // as run
  std::string source = "default";  // where the plan came from: default, rule:NAME, flag, profile:exact, ...
  Status status = Status::ok;
  std::string reason;  // why the status is not ok
  std::vector<std::string> flags;
  std::optional<Accuracy> accuracy;
  std::optional<double> tolerance;  // of rel_l2, the variant's: for tables, not in files
  std::optional<TimeSummary> time;
  std::optional<double> prepare_ns;  // once, outside the timed region
  std::int64_t bytes = 0;            // logical: Q + K + V + O once each
  std::optional<double> bytes_per_s;
  std::optional<double> roof_share;  // roof time / this time, median of the rounds' ratios
  std::optional<Bounds> roof_share_ci95;
  std::optional<double> speedup;  // reference time / this time, likewise
  std::optional<Bounds> speedup_ci95;
};

struct ResultFile {
  RunInfo run;
  std::vector<ResultRecord> results;
};

// The point that was asked for by flag: none where a profile chose it. What the row's id has.
TuningPoint asked_tuning(const TuningPoint& tuning, std::string_view source);

std::string result_id(std::string_view variant, const Problem& problem, const TuningPoint& tuning,
                      CacheMode cache, TimerMode timer);

}  // namespace fdbench
