// The plans that a search chooses from: variant x its axes, pruned by what cannot fit and by what launches
// the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/device_info.h"
#include "core/launch_plan.h"
#include "core/problem.h"
#include "core/tuning_point.h"
#include "core/variant.h"
#include "rules/split_rule_table.h"

namespace fdbench::tune {

struct CostModel;  // cost_model.h

// The same launch, whatever chose it.
bool same_launch(const LaunchPlan& a, const LaunchPlan& b);

// Scratch and zeroed bytes.
std::int64_t workspace_bytes(const LaunchPlan& plan);

struct SpacePoint {
  std::string variant;
  TuningPoint tuning;  // the shortest that launches so
  LaunchPlan plan;
  std::vector<TuningPoint> others;  // further points that launch the same
  // Who answers so: "default" (the variant's own plan), "rule:fa3", "model", ... Empty: nobody.
  std::vector<std::string> origins;

  bool has_origin(const std::string& origin) const;
  // "split_kv_tma splits=16"
  std::string name() const;
};

// The word of a point's row, "default", "rule:fa2,xqa" (all that answer so) or "search", and back: the
// origins that a row's tuning and word name.
std::string source_of(const SpacePoint& point);
std::vector<std::string> origins_of(const TuningPoint& tuning, const std::string& source);

struct SearchSpace {
  Problem problem;
  std::vector<SpacePoint> points;
  // Of every point those one step away along one axis, ascending. A step goes to the next value that the
  // space has there; an axis of four values or fewer is a choice between all of them (merge, say).
  std::vector<std::vector<std::size_t>> neighbours;
  std::vector<std::size_t> starts;  // where the default search begins: points with an origin, ascending

  std::optional<std::size_t> find(const std::string& variant, const TuningPoint& tuning) const;
  std::optional<std::size_t> with_origin(const std::string& variant, const std::string& origin) const;
};

// Values of axes by name, in place of those that the space would take.
using AxisChoice = std::map<std::string, std::vector<std::int64_t>>;

// No shape's space may have more points.
inline constexpr std::size_t kMaxSpace = 20'000;

// All of `variants` on one problem. Values of an axis: its candidates (rule_plans.h) where it splits; else
// all up to eight, then 1, 2, 3, 4, 6, 8, 12, ... up to its maximum, on a CPU up to the cores; and always
// none, which leaves it to the plan. Rules' plans are points whether a value or not. Throws
// std::invalid_argument past kMaxSpace.
SearchSpace search_space(std::span<const Variant* const> variants, const Problem& problem,
                         const DeviceInfo& device, std::span<const rules::NamedSplitRule> rules,
                         const AxisChoice& chosen);

// Points that were measured: neighbours and starts of a space whose points are already there.
void complete_space(SearchSpace& space);

// Adds an origin to the point that launches as `tuning` does; a start from then on. False where the space has
// none.
bool add_start(SearchSpace& space, const std::string& variant, const TuningPoint& tuning,
               const std::string& origin);

// The variant's point whose plan is nearest to so many splits, then to so many CTAs, both as ratios.
std::optional<std::size_t> nearest_point(const SearchSpace& space, const std::string& variant,
                                         std::int64_t splits, std::int64_t ctas);

// Adds what a fitted model would choose, the point nearest to it, as a start "model". False where the model
// says nothing or the space has no point of its variant.
bool add_model_start(SearchSpace& space, const CostModel& model);

}  // namespace fdbench::tune
