// Recorded sweeps over a variant's splits: what rules are scored on and cost models fitted to.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/measurement.h"
#include "core/result_record.h"
#include "tune/rule_plans.h"

namespace fdbench::tune {

struct SplitTimes {
  TuningPoint tuning;  // empty: the variant's own plan
  LaunchPlan plan;
  double median_ns = 0.0;       // of all kept samples
  std::vector<Sample> samples;  // kept ones, by process and round
};

// One shape's points, measured in the same rounds.
struct SplitSweep {
  Site site;
  std::string variant;
  std::vector<SplitTimes> points;

  // The point for a rule's answer: the first of rule_points() that was measured, or the variant's own plan
  // where it launches that; nothing otherwise.
  std::optional<std::size_t> find(const rules::Split& answer) const;
  std::optional<std::size_t> own() const;  // the variant's own plan
};

// The sweeps of `variant` among `rows`, in the order of the rows: of every shape with two points or more
// whose tuning says nothing but chunk or nothing but splits (the axis that more of them have). Rows without a
// time are left out.
std::vector<SplitSweep> split_sweeps(std::span<const ResultRecord> rows, const DeviceInfo& device,
                                     const std::string& variant);

// Candidates that split_sweeps() would find something of, in the order of the rows.
std::vector<std::string> swept_variants(std::span<const ResultRecord> rows);

}  // namespace fdbench::tune
