#include "tune/rule_plans.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "rules/int_math.h"
#include "rules/occupancy.h"

namespace fdbench::tune {

namespace {

constexpr std::int64_t kLeastTokens = 32;
constexpr std::int64_t kMostCtasPerSm = 4;
constexpr std::int64_t kMostChunksPerCore = 16;
constexpr std::string_view kStandard[] = {
    "fixed:8", "seed",       "seed_fine", "sm_multiple:1", "sm_multiple:2", "sm_multiple:4", "fa2",
    "fa3",     "flashinfer", "llama_cpp", "trtllm",        "vllm_v1",       "vllm_v2",       "xqa"};

struct Found {
  PlannedPoint point;
  std::int64_t splits = 0, chunk = 0;
};

// The first of `points` that the variant takes.
std::optional<Found> first_taken(const Variant& variant, const Site& site,
                                 const std::vector<TuningPoint>& points) {
  for (const TuningPoint& point : points) {
    const PlanResult made = make_plan(variant, site.problem, site.device, point);
    if (const auto* plan = std::get_if<LaunchPlan>(&made))
      return Found{{point, {}}, plan->splits, plan->chunk};
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(SplitAxis axis) {
  return axis == SplitAxis::chunk ? "chunk" : "splits";
}

std::int64_t axis_value(SplitAxis axis, const LaunchPlan& plan) {
  return axis == SplitAxis::chunk ? plan.chunk : plan.splits;
}

std::optional<SplitAxis> split_axis(std::span<const Axis> axes) {
  for (const SplitAxis axis : {SplitAxis::splits, SplitAxis::chunk}) {
    const auto named = [&](const Axis& one) { return one.name == to_string(axis); };
    if (std::any_of(axes.begin(), axes.end(), named)) return axis;
  }
  return std::nullopt;
}

std::int64_t Site::ctas_per_split() const {
  return std::max<std::int64_t>(1, base.grid.total() / std::max<std::int64_t>(1, base.splits));
}

rules::SplitInput rule_input(const Site& site, const rules::NamedSplitRule& rule) {
  rules::SplitInput input = rules::split_input(site.problem, site.device);
  input.ctas_per_split = site.ctas_per_split();
  if (site.device.kind != BackendKind::cuda) {
    input.occupancy = 1;
  } else if (rule.ok() && rule.rule->name == "llama_cpp") {
    rules::CtaResources cta;
    cta.threads = static_cast<int>(site.base.block.total());
    cta.dynamic_smem = site.base.dynamic_smem;
    input.occupancy = rules::occupancy(cta, site.device).ctas_per_sm;
  }
  return input;
}

std::vector<TuningPoint> rule_points(const Site& site, const rules::Split& answer) {
  std::vector<TuningPoint> points;
  const auto add = [&](std::int64_t value) {
    TuningPoint point;
    point.set(to_string(site.axis), value);
    if (points.empty() || !(points.back() == point)) points.push_back(point);
  };
  if (!answer.ok()) return points;
  if (site.axis == SplitAxis::splits) {
    add(answer.splits);
  } else {
    add(answer.chunk);
    if (site.base.tile > 0) add(rules::round_up(answer.chunk, site.base.tile));
  }
  return points;
}

std::vector<std::int64_t> candidate_splits(std::int64_t seq, std::int64_t ctas_per_split,
                                           std::int64_t num_sms, bool gpu) {
  const std::int64_t slots = std::max<std::int64_t>(1, num_sms);
  const std::int64_t ctas = std::max<std::int64_t>(1, ctas_per_split);
  const std::int64_t by_grid = slots * (gpu ? kMostCtasPerSm : kMostChunksPerCore) / ctas;
  const std::int64_t most = std::max<std::int64_t>(1, std::min(by_grid, rules::ceil_div(seq, kLeastTokens)));
  std::vector<std::int64_t> splits;
  for (std::int64_t power = 1; power <= most; power *= 2) {
    splits.push_back(power);
    if (power > 1 && power + power / 2 <= most) splits.push_back(power + power / 2);
  }
  for (const std::int64_t multiple : {1, 2, 4}) {
    const std::int64_t full = multiple * slots / ctas;
    if (full >= 1 && full <= most) splits.push_back(full);
  }
  std::sort(splits.begin(), splits.end());
  splits.erase(std::unique(splits.begin(), splits.end()), splits.end());
  return splits;
}

std::vector<std::int64_t> candidate_splits(const Site& site) {
  return candidate_splits(site.problem.seq, site.ctas_per_split(), site.device.sms,
                          site.device.kind == BackendKind::cuda);
}

Site site_of(const Variant& variant, const Problem& problem, const DeviceInfo& device, SplitAxis axis,
             const LaunchPlan& own) {
  TuningPoint asked;
  asked.set(to_string(axis), axis_value(axis, own));
  const PlanResult made = make_plan(variant, problem, device, asked);
  const auto* plan = std::get_if<LaunchPlan>(&made);
  return {problem, device, axis, plan ? *plan : own};
}

std::vector<rules::NamedSplitRule> standard_rules() {
  std::vector<rules::NamedSplitRule> rules;
  for (const std::string_view name : kStandard) rules.push_back(rules::find_split_rule(name));
  return rules;
}

std::vector<PlannedPoint> points_to_measure(const Variant& variant, const Problem& problem,
                                            const DeviceInfo& device,
                                            std::span<const rules::NamedSplitRule> rules) {
  std::vector<PlannedPoint> points{{TuningPoint{}, "default"}};
  const auto axis = split_axis(variant.axes);
  const PlanResult own = make_plan(variant, problem, device, {});
  const auto* base = std::get_if<LaunchPlan>(&own);
  if (!axis || !base) return points;
  const Site site = site_of(variant, problem, device, *axis, *base);

  std::vector<Found> found;
  const auto add = [&](const rules::Split& answer, const std::string& name) {
    auto taken = first_taken(variant, site, rule_points(site, answer));
    if (!taken) return;
    for (Found& known : found) {
      if (!(known.point.tuning == taken->point.tuning)) continue;
      if (!name.empty()) known.point.source += (known.point.source.empty() ? "rule:" : ",") + name;
      return;
    }
    if (!name.empty()) taken->point.source = "rule:" + name;
    found.push_back(*std::move(taken));
  };
  for (const rules::NamedSplitRule& rule : rules) add(rule(rule_input(site, rule)), rule.name());
  for (const std::int64_t splits : candidate_splits(site))
    add(rules::split_by_count(problem.seq, splits), "");
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return a.splits != b.splits ? a.splits < b.splits : a.chunk > b.chunk;
  });
  for (Found& one : found) {
    if (one.point.source.empty()) one.point.source = "grid";
    points.push_back(std::move(one.point));
  }
  return points;
}

}  // namespace fdbench::tune
