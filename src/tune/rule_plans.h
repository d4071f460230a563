// Which tuning points of a variant stand for a split rule's answer, and which points a sweep needs so that
// every rule can be held against the best of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device_info.h"
#include "core/launch_plan.h"
#include "core/problem.h"
#include "core/tuning_point.h"
#include "core/variant.h"
#include "rules/split_rule_table.h"
#include "rules/split_rules.h"

namespace fdbench::tune {

// The axis by which a variant lets itself be split.
enum class SplitAxis { chunk, splits };

std::string_view to_string(SplitAxis axis);                       // the axis' name
std::int64_t axis_value(SplitAxis axis, const LaunchPlan& plan);  // what the plan has on it
// Of these axes the one that splits, "splits" before "chunk"; nothing where neither is there.
std::optional<SplitAxis> split_axis(std::span<const Axis> axes);

// Where a rule is asked: a problem, a device, and how the variant launches there.
struct Site {
  Problem problem;
  DeviceInfo device;
  SplitAxis axis = SplitAxis::splits;
  LaunchPlan base;  // how the variant launches what a rule answers

  std::int64_t ctas_per_split() const;  // CTAs that one split has over all heads; at least 1
};

// `own`, the variant's own plan, as it would be with its splits or chunk asked for: that may be another
// launch (split_kv shares out query heads by itself only where nothing is asked).
Site site_of(const Variant& variant, const Problem& problem, const DeviceInfo& device, SplitAxis axis,
             const LaunchPlan& own);

// What `rule` sees there. Occupancy: on a GPU llama_cpp is told that of the base plan, by its threads and
// shared memory, since it asks its own kernel; every other rule works it out or does not look. Elsewhere a
// core runs one work item: 1.
rules::SplitInput rule_input(const Site& site, const rules::NamedSplitRule& rule);

// The points that may stand for the answer, the first that the variant takes: its splits; or its chunk as it
// is, then rounded up to the base plan's tile. Empty for an error.
std::vector<TuningPoint> rule_points(const Site& site, const rules::Split& answer);

// Numbers of splits between which there is something to choose, ascending, from 1: 1, 2, 3, 4, 6, 8, 12, ...
// and those that sm_multiple:1, 2 and 4 give; a split has 32 tokens at least, and the grid at most 4 CTAs a
// multiprocessor (16 chunks a core on a CPU, which takes one after the other).
std::vector<std::int64_t> candidate_splits(std::int64_t seq, std::int64_t ctas_per_split,
                                           std::int64_t num_sms, bool gpu);
std::vector<std::int64_t> candidate_splits(const Site& site);

// The rules that are scored unless others are asked for: every rule of the table, those that take a number
// with one or more of them.
std::vector<rules::NamedSplitRule> standard_rules();

struct PlannedPoint {
  TuningPoint tuning;
  std::string source;  // "default", "rule:fa2,xqa" (all that answer so) or "grid"
};

// The variant's own point, then every rule's and every candidate's, by splits, none twice. Only points that
// the variant takes; nothing but the first where the variant does not take the problem, or has no axis to
// split by.
std::vector<PlannedPoint> points_to_measure(const Variant& variant, const Problem& problem,
                                            const DeviceInfo& device,
                                            std::span<const rules::NamedSplitRule> rules);

}  // namespace fdbench::tune
