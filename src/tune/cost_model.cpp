#include "tune/cost_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>

#include "rules/int_math.h"

namespace fdbench::tune {

namespace {

using Terms = std::array<double, kCostTerms>;

constexpr std::int64_t kLargestCluster = 16;
constexpr int kMaxDoublings = 4;  // stands for the larger of both
constexpr double kSame = 1e-9;
constexpr double kClusterSlots[] = {1.0, 10.0 / 11.0};  // the latter: 120 of an H200's 132
constexpr double kCoarsest = 0.03, kFinest = 0.004;     // steps at which a search ends, in log terms
constexpr std::size_t kFormsTried = 4;

double norm(double a, double b, int doublings) {
  const double large = std::max(a, b);
  if (doublings >= kMaxDoublings || large <= 0.0) return large;
  double ratio = std::min(a, b) / large;
  for (int i = 0; i < doublings; ++i) ratio *= ratio;
  double root = 1.0 + ratio;
  for (int i = 0; i < doublings; ++i) root = std::sqrt(root);
  return large * root;
}

// What the formula needs of one point: everything that no term changes.
struct Features {
  double waves = 0, cta_bytes = 0, row_tokens = 0, memory_bytes = 0, cluster_bytes = 0, splits = 0, rows = 0;
  bool merges = false, cluster = false;
};

Features features_of(const Problem& problem, std::int64_t ctas_per_split, std::int64_t num_sms,
                     double cluster_slots, std::int64_t grain, std::int64_t splits) {
  const auto tokens = static_cast<double>(rules::round_up(rules::ceil_div(problem.seq, splits), grain));
  const auto kv_heads = static_cast<double>(problem.kv_heads);
  const auto ctas = static_cast<double>(ctas_per_split);
  Features f;
  f.splits = static_cast<double>(splits);
  f.rows = static_cast<double>(problem.heads) / std::min(static_cast<double>(problem.heads), ctas);
  f.cta_bytes = tokens * 2.0 * static_cast<double>(problem.dim * element_bytes(problem.dtype)) * kv_heads /
                std::min(kv_heads, ctas);
  f.row_tokens = tokens * f.rows;
  f.memory_bytes = 2.0 * static_cast<double>(problem.kv_bytes());
  f.merges = splits > 1;
  f.cluster = f.merges && splits <= kLargestCluster && (splits & (splits - 1)) == 0;
  const auto slots =
      f.cluster ? static_cast<std::int64_t>(cluster_slots * static_cast<double>(num_sms)) : num_sms;
  f.waves = static_cast<double>(rules::ceil_div(splits * ctas_per_split, std::max<std::int64_t>(1, slots)));
  f.cluster_bytes = f.cluster ? f.cta_bytes * f.splits : 0.0;
  return f;
}

double time_of(const Terms& t, int doublings, const Features& f) {
  const double core =
      std::max(f.waves * (t[1] + t[2] * f.cta_bytes + t[3] * f.row_tokens), t[10] * f.cluster_bytes);
  double ns = t[0] + norm(core, t[4] * f.memory_bytes, doublings);
  if (!f.merges) return ns;
  if (f.cluster) return ns + t[5] + t[6] * f.splits;
  return ns + t[7] + t[8] * f.splits + t[9] * f.splits * f.rows;
}

struct Point {
  Features features;
  double log_ns = 0.0;
  double weight = 0.0;
};
struct Shape {
  std::vector<Point> points;
  double best_log_ns = 0.0;
};

constexpr double kSoftness = 0.01;  // of the choice, in log time
constexpr double kNearBest = 0.25;  // log time over the best at which a point weighs 1/e

double loss(const std::vector<Shape>& shapes, const Terms& log_terms, int doublings, double regret_weight) {
  Terms terms{};
  for (std::size_t i = 0; i < kCostTerms; ++i) terms[i] = std::exp(log_terms[i]);
  double total = 0.0;
  std::vector<double> predicted;
  for (const Shape& shape : shapes) {
    predicted.clear();
    double least = std::numeric_limits<double>::infinity(), error = 0.0, weights = 0.0;
    for (const Point& point : shape.points) {
      predicted.push_back(std::log(time_of(terms, doublings, point.features)));
      least = std::min(least, predicted.back());
      const double off = predicted.back() - point.log_ns;
      error += point.weight * off * off;
      weights += point.weight;
    }
    double regret = 0.0, shares = 0.0;
    for (std::size_t i = 0; i < shape.points.size(); ++i) {
      const double share = std::exp((least - predicted[i]) / kSoftness);
      regret += share * (shape.points[i].log_ns - shape.best_log_ns);
      shares += share;
    }
    total += regret_weight * regret / shares + error / weights;
  }
  return total / static_cast<double>(shapes.size());
}

// Hooke and Jeeves' pattern search ("Direct Search", Journal of the ACM 8(2), 1961), in log terms.
template <class Loss>
double descend(Terms& at, double finest, const Loss& value) {
  double best = value(at);
  for (double step = 1.0; step > finest;) {
    const auto before = at;
    const auto try_from = [&](Terms& from, double& from_value) {
      for (std::size_t i = 0; i < kCostTerms; ++i) {
        for (const double move : {step, -step}) {
          auto trial = from;
          trial[i] += move;
          const double trial_value = value(trial);
          if (trial_value < from_value) {
            from = trial;
            from_value = trial_value;
            break;
          }
        }
      }
    };
    const double previous = best;
    try_from(at, best);
    if (!(best < previous)) {
      step *= 0.5;
      continue;
    }
    // Once more the same way.
    auto further = at;
    for (std::size_t i = 0; i < kCostTerms; ++i) further[i] += at[i] - before[i];
    double further_value = value(further);
    try_from(further, further_value);
    if (further_value < best) {
      at = further;
      best = further_value;
    }
  }
  return best;
}

// Where the search begins: an empty kernel, one multiprocessor, the memory, a merge, as seen in the times.
Terms first_guess(std::span<const SplitSweep> sweeps, std::int64_t num_sms) {
  double shortest = std::numeric_limits<double>::infinity(), per_byte = shortest;
  for (const SplitSweep& sweep : sweeps) {
    for (const SplitTimes& point : sweep.points) {
      shortest = std::min(shortest, point.median_ns);
      per_byte = std::min(per_byte, point.median_ns / static_cast<double>(2 * sweep.site.problem.kv_bytes()));
    }
  }
  const double a_core = per_byte * static_cast<double>(num_sms) / 3.0;
  return {shortest * 0.5,   shortest * 0.1,    a_core,           a_core,
          per_byte,         shortest * 0.1,    shortest * 0.003, shortest * 0.2,
          shortest * 0.003, shortest * 0.0003, per_byte * 4.0};
}

std::optional<CtasPerSplit> common_form(std::span<const SplitSweep> sweeps) {
  for (const CtasPerSplit form : {CtasPerSplit::kv_heads, CtasPerSplit::heads, CtasPerSplit::one}) {
    CostModel model;
    model.ctas_per_split = form;
    const auto fits = [&](const SplitSweep& s) {
      return model.ctas(s.site.problem) == s.site.ctas_per_split();
    };
    if (std::all_of(sweeps.begin(), sweeps.end(), fits)) return form;
  }
  return std::nullopt;
}

void widen(Span& span, std::int64_t value, bool first) {
  span = first ? Span{value, value} : Span{std::min(span.least, value), std::max(span.most, value)};
}

// Whether every chunk is whole tiles: then the kernel wants it so.
std::int64_t chunk_grain(std::span<const SplitSweep> sweeps) {
  const std::int64_t tile = sweeps.front().site.base.tile;
  for (const SplitSweep& sweep : sweeps) {
    for (const SplitTimes& point : sweep.points) {
      const auto chunk = point.tuning.get("chunk");
      if (tile < 1 || sweep.site.base.tile != tile || (chunk && *chunk % tile != 0)) return 1;
    }
  }
  return tile;
}

std::vector<Shape> shapes_of(std::span<const SplitSweep> sweeps, const CostModel& model, double cluster_slots,
                             std::int64_t grain) {
  std::vector<Shape> shapes;
  for (const SplitSweep& sweep : sweeps) {
    const Problem& problem = sweep.site.problem;
    Shape& shape = shapes.emplace_back();
    shape.best_log_ns = std::numeric_limits<double>::infinity();
    for (const SplitTimes& point : sweep.points) {
      if (point.tuning.empty()) continue;  // may be told more than its splits
      const double log_ns = std::log(point.median_ns);
      shape.points.push_back({features_of(problem, model.ctas(problem), model.num_sms, cluster_slots, grain,
                                          std::max<std::int64_t>(1, point.plan.splits)),
                              log_ns, 0.0});
      shape.best_log_ns = std::min(shape.best_log_ns, log_ns);
    }
    for (Point& point : shape.points) point.weight = std::exp((shape.best_log_ns - point.log_ns) / kNearBest);
  }
  return shapes;
}

}  // namespace

std::string_view to_string(CtasPerSplit ctas) {
  switch (ctas) {
    case CtasPerSplit::one:
      return "1";
    case CtasPerSplit::kv_heads:
      return "kv_heads";
    case CtasPerSplit::heads:
      break;
  }
  return "heads";
}

std::int64_t CostModel::ctas(const Problem& problem) const {
  switch (ctas_per_split) {
    case CtasPerSplit::one:
      return 1;
    case CtasPerSplit::kv_heads:
      return problem.kv_heads;
    case CtasPerSplit::heads:
      break;
  }
  return problem.heads;
}

double predicted_ns(const CostModel& model, const Problem& problem, std::int64_t splits) {
  return time_of(
      model.terms, model.doublings,
      features_of(problem, model.ctas(problem), model.num_sms, model.cluster_slots, model.grain, splits));
}

std::optional<std::string> outside(const CostModel& model, const Problem& problem) {
  const auto beyond = [](const char* name, const Span& span,
                         std::int64_t value) -> std::optional<std::string> {
    if (span.holds(value)) return std::nullopt;
    return std::string(name) + " " + std::to_string(value) + " is outside what was fitted, " +
           std::to_string(span.least) + " to " + std::to_string(span.most);
  };
  if (auto why = beyond("seq", model.seq, problem.seq)) return why;
  if (auto why = beyond("kv_heads", model.kv_heads, problem.kv_heads)) return why;
  if (auto why = beyond("heads a KV head", model.group, problem.group())) return why;
  return beyond("dim", model.dim, problem.dim);
}

std::int64_t fitted_splits(const CostModel& model, const Problem& problem) {
  if (outside(model, problem)) return 0;
  std::int64_t best = 1;
  double best_ns = std::numeric_limits<double>::infinity();
  for (const std::int64_t splits :
       candidate_splits(problem.seq, model.ctas(problem), model.num_sms, model.gpu)) {
    const double ns = predicted_ns(model, problem, splits);
    if (ns < best_ns * (1.0 - kSame)) {
      best = splits;
      best_ns = ns;
    }
  }
  return best;
}

Chooser fitted_chooser(const CostModel& model) {
  return {"fitted", [model](const SplitSweep& sweep) {
            if (auto why = outside(model, sweep.site.problem)) return Choice{0, 0, std::nullopt, *why};
            rules::Split answer =
                rules::split_by_count(sweep.site.problem.seq, fitted_splits(model, sweep.site.problem));
            if (model.axis == SplitAxis::chunk)
              answer = rules::round_to_tile(answer, sweep.site.problem.seq, model.chunk_grain);
            Choice choice{answer.splits, answer.chunk, sweep.find(answer), {}};
            if (!choice.point)
              choice.why = std::to_string(answer.splits) + " splits of " + std::to_string(answer.chunk) +
                           " tokens are not among the points measured";
            return choice;
          }};
}

CostModel fit_cost_model(std::span<const SplitSweep> sweeps) {
  if (sweeps.size() < 4)
    throw std::invalid_argument("a fit needs at least 4 shapes to be fitted to, and has " +
                                std::to_string(sweeps.size()));
  const SplitSweep& first = sweeps.front();
  CostModel model;
  model.variant = first.variant;
  model.device = first.site.device.name;
  model.num_sms = first.site.device.sms;
  model.gpu = first.site.device.kind == BackendKind::cuda;
  model.axis = first.site.axis;
  const auto ctas = common_form(sweeps);
  if (!ctas)
    throw std::invalid_argument(first.variant +
                                " launches neither one CTA a KV head, a query head nor in all for a " +
                                "split, on all of these shapes: the model has no form for it");
  model.ctas_per_split = *ctas;
  model.chunk_grain = model.axis == SplitAxis::chunk ? chunk_grain(sweeps) : 1;
  bool one_tile = first.site.base.tile > 1;
  for (const SplitSweep& sweep : sweeps) {
    const Problem& p = sweep.site.problem;
    if (sweep.variant != first.variant || sweep.site.device.name != model.device ||
        sweep.site.device.sms != model.num_sms || sweep.site.axis != model.axis)
      throw std::invalid_argument("the sweeps are not all of one variant, axis and device");
    const bool is_first = &sweep == &first;
    widen(model.seq, p.seq, is_first);
    widen(model.kv_heads, p.kv_heads, is_first);
    widen(model.group, p.group(), is_first);
    widen(model.dim, p.dim, is_first);
    one_tile = one_tile && sweep.site.base.tile == first.site.base.tile;
  }

  // Forms of the model, by how well each explains the times: those have one broad valley.
  struct Form {
    int doublings;
    std::int64_t grain;
    double cluster_slots;
    std::vector<Shape> shapes;
    Terms at;
    double loss;
  };
  std::vector<std::int64_t> grains{1};
  if (one_tile) grains.push_back(first.site.base.tile);
  Terms guess = first_guess(sweeps, model.num_sms);
  for (double& term : guess) term = std::log(term);
  std::vector<Form> forms;
  for (const std::int64_t grain : grains) {
    for (const double slots : kClusterSlots) {
      if (!model.gpu && slots < 1.0) continue;
      for (int doublings = 0; doublings <= kMaxDoublings; ++doublings) {
        Form form{doublings, grain, slots, shapes_of(sweeps, model, slots, grain), guess, 0.0};
        form.loss = descend(form.at, kCoarsest,
                            [&](const Terms& terms) { return loss(form.shapes, terms, doublings, 0.0); });
        forms.push_back(std::move(form));
      }
    }
  }
  std::stable_sort(forms.begin(), forms.end(), [](const Form& a, const Form& b) { return a.loss < b.loss; });
  forms.resize(std::min(forms.size(), kFormsTried));
  // Of the best few, by what their choices cost.
  double best = std::numeric_limits<double>::infinity();
  for (Form& form : forms) {
    double reached = 0.0;
    for (const double weight : {0.3, 1.0}) {
      reached = descend(form.at, kFinest,
                        [&](const Terms& terms) { return loss(form.shapes, terms, form.doublings, weight); });
    }
    if (!(reached < best)) continue;
    best = reached;
    model.doublings = form.doublings;
    model.grain = form.grain;
    model.cluster_slots = form.cluster_slots;
    for (std::size_t i = 0; i < kCostTerms; ++i) model.terms[i] = std::exp(form.at[i]);
  }
  return model;
}

double log_error(const CostModel& model, std::span<const SplitSweep> sweeps) {
  double sum = 0.0;
  std::size_t count = 0;
  for (const SplitSweep& sweep : sweeps) {
    double best = std::numeric_limits<double>::infinity();
    for (const SplitTimes& point : sweep.points) best = std::min(best, point.median_ns);
    for (const SplitTimes& point : sweep.points) {
      if (point.tuning.empty() || point.median_ns > 1.5 * best) continue;
      const double off =
          std::log(predicted_ns(model, sweep.site.problem, point.plan.splits) / point.median_ns);
      sum += off * off;
      ++count;
    }
  }
  return count == 0 ? 0.0 : std::sqrt(sum / static_cast<double>(count));
}

Halves halves(std::span<const SplitSweep> sweeps) {
  std::set<std::size_t> ends;
  const auto pin = [&](const auto& extent) {
    if (sweeps.empty()) return;
    std::size_t least = 0, most = 0;
    for (std::size_t i = 1; i < sweeps.size(); ++i) {
      const std::int64_t value = extent(sweeps[i].site.problem);
      if (value < extent(sweeps[least].site.problem)) least = i;
      if (value > extent(sweeps[most].site.problem)) most = i;
    }
    ends.insert({least, most});
  };
  pin([](const Problem& p) { return p.seq; });
  pin([](const Problem& p) { return p.kv_heads; });
  pin([](const Problem& p) { return p.group(); });
  pin([](const Problem& p) { return p.dim; });
  Halves halves;
  for (std::size_t i = 0; i < sweeps.size(); ++i) {
    // A shape measured twice has been seen, or it has not.
    const auto is_same = [&](const SplitSweep& other) {
      return other.site.problem == sweeps[i].site.problem;
    };
    const bool seen = std::any_of(halves.fit.begin(), halves.fit.end(), is_same);
    const bool unseen = std::any_of(halves.test.begin(), halves.test.end(), is_same);
    const bool fit = seen || (!unseen && (ends.count(i) != 0 || halves.fit.size() <= halves.test.size()));
    (fit ? halves.fit : halves.test).push_back(sweeps[i]);
  }
  return halves;
}

}  // namespace fdbench::tune
