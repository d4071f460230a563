// `fdbench tune --from`: the search on recorded sweeps.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "cli/result_inputs.h"
#include "cli/rules_table.h"
#include "cli/say.h"
#include "cli/tune_flags.h"
#include "stats/summary.h"
#include "tune/cost_model.h"
#include "tune/replay.h"
#include "tune/rule_plans.h"

namespace fdbench::cli {

namespace {

// A model that has not seen the shape: two are fitted, each to one half of the shapes of its variant.
class Models {
 public:
  Models(std::span<const ResultRecord> rows, const DeviceInfo& device) {
    for (const std::string& variant : tune::swept_variants(rows)) {
      const auto sweeps = tune::split_sweeps(rows, device, variant);
      if (sweeps.size() < 8) continue;
      const tune::Halves halves = tune::halves(sweeps);
      try {
        fits_.push_back({halves.fit, tune::fit_cost_model(halves.test)});
        fits_.push_back({halves.test, tune::fit_cost_model(halves.fit)});
      } catch (const std::invalid_argument&) {  // nothing to fit to: then there is no such start
      }
    }
  }

  void add_starts(tune::RecordedShape& shape) const {
    for (const Fit& fit : fits_) {
      const bool unseen = std::any_of(fit.for_shapes.begin(), fit.for_shapes.end(), [&](const auto& sweep) {
        return sweep.site.problem == shape.space.problem;
      });
      if (unseen) tune::add_model_start(shape.space, fit.model);
    }
  }

 private:
  struct Fit {
    std::vector<tune::SplitSweep> for_shapes;
    tune::CostModel model;
  };
  std::vector<Fit> fits_;
};

struct Line {
  Problem problem;
  std::string chosen, best;
  tune::ReplayScore score;
};

std::string table(const std::vector<Line>& lines) {
  std::string out = fmt::format("  {:<26} {:>6} {:>8} {:>9}  {:<18} {:>7}  {}\n", "shape", "points",
                                "measured", "us", "over the optimum", "cost", "plan (the optimum)");
  for (const Line& line : lines) {
    const tune::ReplayScore& s = line.score;
    std::string interval;
    if (s.ratio_ci)
      interval = fmt::format(" ({} ... {})", regret_text(s.ratio_ci->lo), regret_text(s.ratio_ci->hi));
    out +=
        fmt::format("  {:<26} {:>6} {:>8} {:>9.2f}  {:<18} {:>7}  {} ({})\n", short_shape(line.problem),
                    s.points, s.outcome.measured, s.best_ns * s.ratio / 1e3, regret_text(s.ratio) + interval,
                    fmt::format("{:.1f} %", 100.0 * s.cost_share), line.chosen, line.best);
  }
  return out;
}

std::string summary(const std::vector<Line>& lines) {
  std::size_t within = 0, not_shown = 0, a_tenth = 0;
  double cost = 0.0, all = 0.0;
  std::vector<double> ratios, shares;
  for (const Line& line : lines) {
    const tune::ReplayScore& s = line.score;
    within += s.ratio <= 1.01 ? 1u : 0u;
    not_shown += s.ratio <= 1.01 || (s.ratio_ci && s.ratio_ci->lo <= 1.01) ? 1u : 0u;
    a_tenth += s.cost_share <= 0.1 ? 1u : 0u;
    cost += s.cost_s;
    all += s.exhaustive_s;
    ratios.push_back(s.ratio);
    shares.push_back(s.cost_share);
  }
  const auto percent = [&](std::size_t n) {
    return fmt::format("{} of {} ({:.1f} %)", n, lines.size(),
                       100.0 * static_cast<double>(n) / static_cast<double>(lines.size()));
  };
  return fmt::format(
      "  within 1 % of the optimum:         {}\n"
      "  not shown to be further off:       {}\n"
      "  over the optimum:                  {} (geometric mean), {} at worst\n"
      "  device time of the exhaustive one: {:.1f} % (all shapes together), {:.1f} % (median shape), at most "
      "a "
      "tenth on {}\n",
      percent(within), percent(not_shown), regret_text(stats::geometric_mean(ratios)),
      regret_text(*std::max_element(ratios.begin(), ratios.end())), 100.0 * cost / all,
      100.0 * stats::median(shares), percent(a_tenth));
}

}  // namespace

Exit tune_from_files(const TuneFlags& flags) {
  const tune::SearchSettings settings = search_settings(flags);
  const auto rules = tune::standard_rules();
  std::vector<Line> lines;
  std::size_t nothing = 0;
  std::vector<std::string> devices;
  const auto files = read_result_files(flags.from);
  refuse_repeated_runs(files, flags.from, "--from ");
  for (const ResultFile& file : files) {
    auto shapes = tune::recorded_shapes(file.results, file.run.device, flags.variants, rules);
    const Models models(file.results, file.run.device);
    if (std::find(devices.begin(), devices.end(), file.run.device.name) == devices.end())
      devices.push_back(file.run.device.name);
    for (tune::RecordedShape& shape : shapes) {
      models.add_starts(shape);
      auto score = tune::replay(shape, settings);
      if (!score || score->ratio == 0.0) {
        ++nothing;
        continue;
      }
      const std::string chosen = shape.space.points[score->plan].name();
      const std::string best =
          score->best == score->plan ? "the same" : shape.space.points[score->best].tuning.id();
      lines.push_back({shape.space.problem, chosen, best, *std::move(score)});
    }
  }
  const std::string names = fmt::format("{}", fmt::join(flags.from, ", "));
  if (lines.empty() && nothing > 0)
    throw usage_error(
        "--from " + names +
        ": no shape has rounds that its points share, to search and to score by (that takes 3)");
  if (lines.empty())
    throw usage_error(fmt::format(
        "--from {}: holds no shape with two measured points of {}", names,
        flags.variants.empty() ? "a candidate" : fmt::format("{}", fmt::join(flags.variants, " or "))));
  if (nothing > 0)
    say(stderr, fmt::format("fdbench: shapes without enough rounds to search and to score: {}\n", nothing));
  if (flags.output.quiet) return Exit::good;
  say(stdout, fmt::format("fdbench tune: {} on recorded rounds of {}, {} shape{} from {}\n\n{}\n{}",
                          to_string(settings.strategy), fmt::join(devices, ", "), lines.size(),
                          lines.size() == 1 ? "" : "s", names, table(lines), summary(lines)));
  return Exit::good;
}

}  // namespace fdbench::cli
