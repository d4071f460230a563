#include "stats/resampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

namespace fdbench::stats {
namespace {

// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): the n-th number is a mix of seed + n * gamma. Own, since
// the standard fixes the engines but not the distributions.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  // Within [0, n), n in 1 .. 2^32 - 1; multiply and shift, biased by less than n / 2^32.
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(((next() >> 32) * n) >> 32); }

 private:
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
};

// median() without its copy and sort: it runs thousands of times.
double median_in_place(std::span<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  const double low = *std::max_element(values.begin(), middle);
  return low + (*middle - low) / 2;
}

Interval hull(Interval a, Interval b) {
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}

// Student's interval of the mean of the process medians.
Interval between_processes(std::span<const double> medians) {
  const auto count = static_cast<double>(medians.size());
  double mean = 0;
  for (const double m : medians) mean += m / count;
  double squares = 0;
  for (const double m : medians) squares += (m - mean) * (m - mean);
  const double half = student_t975(medians.size() - 1) * std::sqrt(squares / (count - 1) / count);
  return {mean - half, mean + half};
}

}  // namespace

std::optional<Interval> bootstrap_interval(std::span<const std::vector<double>> per_process,
                                           const Statistic& statistic, const BootstrapSettings& settings) {
  if (settings.resamples == 0 || !(settings.confidence > 0 && settings.confidence < 1))
    throw std::invalid_argument("stats: a bootstrap needs resamples, and a confidence between 0 and 1");
  std::vector<std::span<const double>> processes;
  for (const auto& process : per_process) {
    if (!std::all_of(process.begin(), process.end(), [](double v) { return std::isfinite(v); }))
      throw std::invalid_argument("stats: every value must be finite");
    if (!process.empty()) processes.emplace_back(process);
  }
  if (processes.empty()) return std::nullopt;

  Random random(settings.seed);
  std::vector<double> statistics(settings.resamples), drawn;
  for (double& result : statistics) {
    drawn.clear();
    for (std::size_t p = 0; p < processes.size(); ++p) {
      const std::span<const double> process = processes[random.below(processes.size())];
      for (std::size_t i = 0; i < process.size(); ++i) drawn.push_back(process[random.below(process.size())]);
    }
    result = statistic(drawn);
  }
  const double tail = (1 - settings.confidence) / 2;
  return Interval{quantile(statistics, tail), quantile(statistics, 1 - tail)};
}

double student_t975(std::size_t degrees) {
  static constexpr std::array<double, 10> kTable{12.7062, 4.3027, 3.1824, 2.7764, 2.5706,
                                                 2.4469,  2.3646, 2.3060, 2.2622, 2.2281};
  if (degrees == 0) throw std::invalid_argument("stats: Student's t has at least one degree of freedom");
  if (degrees <= kTable.size()) return kTable[degrees - 1];
  // Abramowitz and Stegun 26.7.5, three terms, at z = 1.959964, the normal quantile.
  const double z = 1.959964, v = static_cast<double>(degrees);
  const double z2 = z * z;
  return z + z * (z2 + 1) / (4 * v) + z * ((5 * z2 + 16) * z2 + 3) / (96 * v * v) +
         z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / (384 * v * v * v);
}

Summary summarise_processes(std::span<const std::vector<double>> per_process, double timer_step,
                            const BootstrapSettings& settings) {
  std::vector<double> all, medians;
  for (const auto& process : per_process) {
    if (process.empty()) continue;
    all.insert(all.end(), process.begin(), process.end());
    medians.push_back(median(process));
  }
  const std::optional<Summary> pooled = summarise(all, timer_step);
  if (!pooled) throw std::invalid_argument("stats: at least one value is needed");
  Summary summary = *pooled;
  if (medians.size() < 2 || !summary.ci95) return summary;

  Interval ci = hull(between_processes(medians), {summary.median, summary.median});
  if (const auto rounds = bootstrap_interval(per_process, median_in_place, settings)) ci = hull(ci, *rounds);
  if (const double missing = timer_step - ci.width(); missing > 0) {
    ci.lo -= missing / 2;
    ci.hi += missing / 2;
  }
  summary.ci95 = ci;
  return summary;
}

}  // namespace fdbench::stats
