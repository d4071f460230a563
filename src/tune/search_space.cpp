#include "tune/search_space.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <variant>

#include "rules/int_math.h"
#include "tune/cost_model.h"
#include "tune/rule_plans.h"

namespace fdbench::tune {

namespace {

constexpr std::int64_t kAllUpTo = 8;
constexpr std::size_t kChoice = 4;
// Past this an axis without a maximum is not followed; chunks go by the sequence.
constexpr std::int64_t kMostValue = 64;
constexpr std::int64_t kMostChunk = 4096;
constexpr std::int64_t kAbsent = -1;

std::vector<std::int64_t> doubling_values(std::int64_t least, std::int64_t most) {
  std::vector<std::int64_t> values;
  for (std::int64_t value = std::max<std::int64_t>(least, 0); value <= std::min(most, kAllUpTo); ++value) {
    // A short axis has every value; of a long one 5 and 7 tell nothing that 4, 6 and 8 don't.
    if (most <= kAllUpTo / 2 || value <= 4 || value % 2 == 0) values.push_back(value);
  }
  for (std::int64_t power = kAllUpTo; power <= most; power *= 2) {
    if (power > kAllUpTo) values.push_back(power);
    if (power + power / 2 <= most) values.push_back(power + power / 2);
  }
  if (values.empty() || values.back() != most) values.push_back(most);
  return values;
}

std::vector<std::int64_t> axis_values(const Axis& axis, const Site& site, const AxisChoice& chosen) {
  if (const auto asked = chosen.find(std::string(axis.name)); asked != chosen.end()) return asked->second;
  std::vector<std::int64_t> values;
  if (axis.name == to_string(site.axis)) {
    for (const std::int64_t splits : candidate_splits(site)) {
      if (site.axis == SplitAxis::splits) {
        values.push_back(splits);
      } else {
        const std::int64_t chunk = rules::split_by_count(site.problem.seq, splits).chunk;
        values.push_back(site.base.tile > 0 && site.device.kind == BackendKind::cuda
                             ? rules::round_up(chunk, site.base.tile)
                             : chunk);
      }
    }
    // A persistent grid takes chunks far shorter than those that fill the machine.
    const std::int64_t most = std::min(site.problem.seq, kMostChunk);
    if (site.axis == SplitAxis::chunk && site.device.kind == BackendKind::cuda && site.base.tile > 0) {
      for (std::int64_t chunk = site.base.tile; chunk <= most; chunk *= 2) values.push_back(chunk);
    }
  } else {
    const bool threads = site.device.kind != BackendKind::cuda && axis.name == "threads";
    const std::int64_t bound = threads ? std::max(1, site.device.sms) : kMostValue;
    values = doubling_values(axis.min, axis.max > 0 ? std::min(axis.max, bound) : bound);
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

// The points by what they launch, so that each launch is there once.
class Collector {
 public:
  explicit Collector(SearchSpace& space) : space_(space) {}

  // Where the variant takes the point: its index.
  std::optional<std::size_t> add(const Variant& variant, const DeviceInfo& device,
                                 const TuningPoint& tuning) {
    const PlanResult made = make_plan(variant, space_.problem, device, tuning);
    const auto* plan = std::get_if<LaunchPlan>(&made);
    if (!plan) return std::nullopt;
    auto& alike = by_splits_[{variant.name, plan->splits}];
    for (const std::size_t at : alike) {
      SpacePoint& point = space_.points[at];
      if (!same_launch(point.plan, *plan)) continue;
      if (point.tuning == tuning ||
          std::find(point.others.begin(), point.others.end(), tuning) != point.others.end())
        return at;
      if (tuning.values().size() < point.tuning.values().size()) {
        point.others.push_back(std::exchange(point.tuning, tuning));
      } else {
        point.others.push_back(tuning);
      }
      return at;
    }
    if (space_.points.size() == kMaxSpace)
      throw std::invalid_argument("the space has more than " + std::to_string(kMaxSpace) + " points");
    alike.push_back(space_.points.size());
    space_.points.push_back({std::string(variant.name), tuning, *plan, {}, {}});
    return space_.points.size() - 1;
  }

 private:
  SearchSpace& space_;
  std::map<std::pair<std::string_view, std::int64_t>, std::vector<std::size_t>> by_splits_;
};

void add_variant(Collector& collector, SearchSpace& space, const Variant& variant, const DeviceInfo& device,
                 std::span<const rules::NamedSplitRule> rules, const AxisChoice& chosen) {
  const auto note = [&](const TuningPoint& tuning, const std::string& origin) {
    const auto at = collector.add(variant, device, tuning);
    if (at && !space.points[*at].has_origin(origin)) space.points[*at].origins.push_back(origin);
    return at.has_value();
  };
  // The variant's own plan and the rules' come first: a launch keeps the shortest name.
  const PlanResult own = make_plan(variant, space.problem, device, {});
  const auto* base = std::get_if<LaunchPlan>(&own);
  if (!base) return;
  note({}, "default");
  const auto split = split_axis(variant.axes);
  const Site site = split ? site_of(variant, space.problem, device, *split, *base)
                          : Site{space.problem, device, SplitAxis::splits, *base};
  if (split) {
    for (const rules::NamedSplitRule& rule : rules) {
      for (const TuningPoint& point : rule_points(site, rule(rule_input(site, rule)))) {
        if (note(point, "rule:" + rule.name())) break;
      }
    }
  }
  std::vector<TuningPoint> grid{TuningPoint{}};
  for (const Axis& axis : variant.axes) {
    std::vector<TuningPoint> product;
    const auto values = axis_values(axis, site, chosen);
    const bool narrowed = chosen.count(std::string(axis.name)) != 0;
    for (const TuningPoint& point : grid) {
      if (!narrowed) product.push_back(point);
      for (const std::int64_t value : values) {
        product.push_back(point);
        product.back().set(axis.name, value);
      }
    }
    if (product.size() > 4 * kMaxSpace)
      throw std::invalid_argument("the grid of " + std::string(variant.name) + " has more than " +
                                  std::to_string(4 * kMaxSpace) + " points");
    grid = std::move(product);
  }
  for (const TuningPoint& point : grid) collector.add(variant, device, point);
}

// Axis values of one tuning point; the split axis where it is absent has what the plan launches.
using Coordinates = std::vector<std::int64_t>;

}  // namespace

bool same_launch(const LaunchPlan& a, const LaunchPlan& b) {
  // One chunk ends where the sequence does, however long it may be.
  const bool same_cut = a.splits == b.splits && (a.splits == 1 || a.chunk == b.chunk);
  return same_cut && a.grid == b.grid && a.block == b.block && a.cluster == b.cluster && a.tile == b.tile &&
         a.stages == b.stages && a.dynamic_smem == b.dynamic_smem && a.cooperative == b.cooperative &&
         a.merge == b.merge && a.scratch_bytes == b.scratch_bytes && a.zeroed_bytes == b.zeroed_bytes &&
         a.isa == b.isa;
}

std::int64_t workspace_bytes(const LaunchPlan& plan) {
  return plan.scratch_bytes + plan.zeroed_bytes;
}

std::string source_of(const SpacePoint& point) {
  if (point.tuning.empty()) return "default";
  std::string rules;
  for (const std::string& origin : point.origins) {
    if (origin.rfind("rule:", 0) == 0) rules += (rules.empty() ? "" : ",") + origin.substr(5);
  }
  return rules.empty() ? "search" : "rule:" + rules;
}

std::vector<std::string> origins_of(const TuningPoint& tuning, const std::string& source) {
  if (tuning.empty()) return {"default"};
  std::vector<std::string> origins;
  if (source.rfind("rule:", 0) != 0) return origins;
  std::string rest = source.substr(5);
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    origins.push_back("rule:" + rest.substr(0, comma));
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
  }
  return origins;
}

bool SpacePoint::has_origin(const std::string& origin) const {
  return std::find(origins.begin(), origins.end(), origin) != origins.end();
}

std::string SpacePoint::name() const {
  return name_with(variant, tuning);
}

std::optional<std::size_t> SearchSpace::find(const std::string& variant, const TuningPoint& tuning) const {
  for (std::size_t i = 0; i < points.size(); ++i) {
    const SpacePoint& point = points[i];
    if (point.variant != variant) continue;
    if (point.tuning == tuning ||
        std::find(point.others.begin(), point.others.end(), tuning) != point.others.end())
      return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> SearchSpace::with_origin(const std::string& variant,
                                                    const std::string& origin) const {
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].variant == variant && points[i].has_origin(origin)) return i;
  }
  return std::nullopt;
}

void complete_space(SearchSpace& space) {
  const std::size_t n = space.points.size();
  space.neighbours.assign(n, {});
  space.starts.clear();
  std::vector<std::set<std::size_t>> linked(n);
  std::map<std::string, std::vector<std::size_t>> by_variant;
  for (std::size_t i = 0; i < n; ++i) by_variant[space.points[i].variant].push_back(i);
  for (const auto& [variant, members] : by_variant) {
    std::set<std::string> names;
    for (const std::size_t i : members) {
      const auto take = [&](const TuningPoint& tuning) {
        for (const auto& [axis, value] : tuning.values()) names.insert(axis);
      };
      take(space.points[i].tuning);
      for (const TuningPoint& other : space.points[i].others) take(other);
    }
    const std::vector<std::string> axes(names.begin(), names.end());
    std::vector<std::pair<Coordinates, std::size_t>> places;
    for (const std::size_t i : members) {
      const SpacePoint& point = space.points[i];
      const auto place = [&](const TuningPoint& tuning) {
        Coordinates at;
        for (const std::string& axis : axes) {
          auto value = tuning.get(axis);
          if (!value && axis == "splits") value = point.plan.splits;
          if (!value && axis == "chunk") value = point.plan.chunk;
          at.push_back(value.value_or(kAbsent));
        }
        places.emplace_back(std::move(at), i);
      };
      place(point.tuning);
      for (const TuningPoint& other : point.others) place(other);
    }
    for (std::size_t a = 0; a < axes.size(); ++a) {
      std::map<Coordinates, std::vector<std::pair<std::int64_t, std::size_t>>> lines;
      std::set<std::int64_t> values;
      for (const auto& [at, i] : places) {
        Coordinates rest = at;
        rest[a] = 0;
        lines[rest].emplace_back(at[a], i);
        values.insert(at[a]);
      }
      values.erase(kAbsent);
      const bool choice = values.size() <= kChoice && axes[a] != "splits" && axes[a] != "chunk";
      const auto link = [&](std::size_t x, std::size_t y) {
        if (x == y) return;
        linked[x].insert(y);
        linked[y].insert(x);
      };
      for (auto& [rest, line] : lines) {
        std::sort(line.begin(), line.end());
        for (std::size_t i = 0; i < line.size(); ++i) {
          // Several points of one value (the plan's own and the axis') are next to the same ones.
          std::optional<std::int64_t> step;
          for (std::size_t j = i + 1; j < line.size(); ++j) {
            if (line[j].first != line[i].first && !step) step = line[j].first;
            if (!choice && step && line[j].first > *step) break;
            link(line[i].second, line[j].second);
          }
        }
      }
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    space.neighbours[i].assign(linked[i].begin(), linked[i].end());
    if (!space.points[i].origins.empty()) space.starts.push_back(i);
  }
}

SearchSpace search_space(std::span<const Variant* const> variants, const Problem& problem,
                         const DeviceInfo& device, std::span<const rules::NamedSplitRule> rules,
                         const AxisChoice& chosen) {
  SearchSpace space;
  space.problem = problem;
  Collector collector(space);
  for (const Variant* variant : variants) add_variant(collector, space, *variant, device, rules, chosen);
  complete_space(space);
  return space;
}

bool add_start(SearchSpace& space, const std::string& variant, const TuningPoint& tuning,
               const std::string& origin) {
  const auto at = space.find(variant, tuning);
  if (!at) return false;
  SpacePoint& point = space.points[*at];
  if (!point.has_origin(origin)) point.origins.push_back(origin);
  const auto place = std::lower_bound(space.starts.begin(), space.starts.end(), *at);
  if (place == space.starts.end() || *place != *at) space.starts.insert(place, *at);
  return true;
}

std::optional<std::size_t> nearest_point(const SearchSpace& space, const std::string& variant,
                                         std::int64_t splits, std::int64_t ctas) {
  const auto apart = [](std::int64_t a, std::int64_t b) {
    return std::abs(std::log(static_cast<double>(std::max<std::int64_t>(a, 1)) /
                             static_cast<double>(std::max<std::int64_t>(b, 1))));
  };
  std::optional<std::size_t> best;
  std::pair<double, double> least;
  for (std::size_t i = 0; i < space.points.size(); ++i) {
    const SpacePoint& point = space.points[i];
    if (point.variant != variant) continue;
    const std::pair<double, double> off{apart(point.plan.splits, splits),
                                        apart(point.plan.grid.total(), ctas)};
    if (!best || off < least) {
      best = i;
      least = off;
    }
  }
  return best;
}

bool add_model_start(SearchSpace& space, const CostModel& model) {
  const std::int64_t splits = fitted_splits(model, space.problem);
  if (splits < 1) return false;
  const auto at = nearest_point(space, model.variant, splits, splits * model.ctas(space.problem));
  return at && add_start(space, model.variant, space.points[*at].tuning, "model");
}

}  // namespace fdbench::tune
