// Figures over several processes. Rounds of one process share its placement, clocks and page layout, so they
// are not independent samples of what another process would measure: processes are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "stats/summary.h"

namespace fdbench::stats {

struct BootstrapSettings {
  std::size_t resamples = 2000;
  double confidence = 0.95;  // within (0, 1)
  std::uint64_t seed = 1;
};

// Of the values of one resample; it may reorder them.
using Statistic = std::function<double(std::span<double>)>;

// Percentile interval of `statistic` by the two-stage bootstrap: draw as many processes as there are, with
// replacement, then from each as many of its values as it has, with replacement; the interval is the type 7
// quantiles of the statistic over `resamples` draws at (1 -+ confidence) / 2. Source: Davison and Hinkley,
// Bootstrap Methods and their Application, 1997, section 3.8 (strategy 2). The result depends on the values,
// their order and the settings only, not on the standard library. Processes without values are left out;
// nullopt when none is left. Throws std::invalid_argument when a value is not finite, resamples is 0 or
// confidence is out of range. Preconditions: a process has fewer than 2^32 values. Cost: resamples * (number
// of values + one call of `statistic`).
std::optional<Interval> bootstrap_interval(std::span<const std::vector<double>> per_process,
                                           const Statistic& statistic,
                                           const BootstrapSettings& settings = {});

// The 97.5 % quantile of Student's t with `degrees` >= 1 degrees of freedom, within 0.001.
double student_t975(std::size_t degrees);

// n, min, quartiles, median and max are of all values together; so a process counts by its number of rounds.
// ci95 is of the median:
//   one process     median_ci95: it says nothing of what another process would measure
//   several         the hull of the bootstrap's interval of the pooled median, of Student's interval
//                   m +- t(P - 1) s / sqrt(P) of the mean m of the P process medians (s their standard
//                   deviation), and of the median itself. The bootstrap carries the rounds' noise but, with
//                   few processes, far too little of what differs between them: of two processes it sees only
//                   the gap. Student's interval carries that, and is wide with 2 or 3 processes because they
//                   do not say more.
//   either          nullopt below kMinForInterval values; never narrower than timer_step
// Throws std::invalid_argument when there is no value at all, or one is not finite.
Summary summarise_processes(std::span<const std::vector<double>> per_process, double timer_step,
                            const BootstrapSettings& settings = {});

}  // namespace fdbench::stats
