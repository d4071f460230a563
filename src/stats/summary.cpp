#include "stats/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

namespace fdbench::stats {
namespace {

void require_finite(std::span<const double> values) {
  if (!std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); }))
    throw std::invalid_argument("stats: every value must be finite");
}

void require_values(std::span<const double> values) {
  if (values.empty()) throw std::invalid_argument("stats: at least one value is needed");
  require_finite(values);
}

std::vector<double> sorted(std::span<const double> values) {
  std::vector<double> copy(values.begin(), values.end());
  std::sort(copy.begin(), copy.end());
  return copy;
}

double midpoint_of_middle(std::span<const double> ascending) {
  const std::size_t n = ascending.size();
  const double high = ascending[n / 2];
  if (n % 2 == 1) return high;
  const double low = ascending[n / 2 - 1];
  return low + (high - low) / 2;
}

double quantile_of(std::span<const double> ascending, double p) {
  const double rank = static_cast<double>(ascending.size() - 1) * p;  // from 0
  const auto below = static_cast<std::size_t>(rank);
  if (below + 1 >= ascending.size()) return ascending.back();
  const double share = rank - static_cast<double>(below);
  return ascending[below] + share * (ascending[below + 1] - ascending[below]);
}

Interval widened(Interval interval, double least_width) {
  const double missing = least_width - interval.width();
  if (!(missing > 0)) return interval;
  return {interval.lo - missing / 2, interval.hi + missing / 2};
}

std::optional<Interval> interval_of(std::span<const double> ascending, double least_width) {
  const auto rank = median_ci95_rank(ascending.size());
  if (!rank) return std::nullopt;
  return widened({ascending[*rank - 1], ascending[ascending.size() - *rank]}, least_width);
}

}  // namespace

double median(std::span<const double> values) {
  require_values(values);
  return midpoint_of_middle(sorted(values));
}

double quantile(std::span<const double> values, double p) {
  require_values(values);
  if (!(p >= 0 && p <= 1)) throw std::invalid_argument("stats: a quantile's p lies within 0 and 1");
  return quantile_of(sorted(values), p);
}

std::optional<std::size_t> median_ci95_rank(std::size_t n) {
  if (n < kMinForInterval) return std::nullopt;
  // Binomial weights relative to the largest, from the middle down: no 2^n to overflow. What is cut off is
  // below 1e-25 of the sum, and since 1/40 is no fraction of a power of two, the comparison is never on the
  // edge.
  std::vector<double> weight;  // weight[i] is that of middle - i successes
  const std::size_t middle = n / 2;
  double current = 1;
  for (std::size_t k = middle;; --k) {
    weight.push_back(current);
    if (k == 0) break;
    current *= static_cast<double>(k) / static_cast<double>(n - k + 1);
    if (current < 1e-30) break;
  }
  double lower_half = 0;
  for (std::size_t i = weight.size(); i-- > 0;) lower_half += weight[i];
  const double total = n % 2 == 1 ? 2 * lower_half : 2 * lower_half - weight[0];
  double tail = 0;
  std::size_t k = middle - (weight.size() - 1);
  for (std::size_t i = weight.size(); i-- > 0; ++k) {
    tail += weight[i];  // P(Binomial <= k) * total
    if (tail > 0.025 * total) return k;
  }
  return std::nullopt;  // not reached: the lower half holds at least 1/2
}

std::optional<Interval> median_ci95(std::span<const double> values, double timer_step) {
  require_finite(values);
  return interval_of(sorted(values), timer_step);
}

std::optional<Summary> summarise(std::span<const double> values, double timer_step) {
  if (values.empty()) return std::nullopt;
  require_finite(values);
  const std::vector<double> ascending = sorted(values);
  Summary summary;
  summary.n = ascending.size();
  summary.min = ascending.front();
  summary.q1 = quantile_of(ascending, 0.25);
  summary.median = midpoint_of_middle(ascending);
  summary.q3 = quantile_of(ascending, 0.75);
  summary.max = ascending.back();
  summary.ci95 = interval_of(ascending, timer_step);
  return summary;
}

double relative_width(const Summary& summary) {
  if (!summary.ci95 || !(summary.median > 0)) return std::numeric_limits<double>::infinity();
  return summary.ci95->width() / 2 / summary.median;
}

std::optional<Ratio> paired_ratio(std::span<const double> numerator, std::span<const double> denominator,
                                  double timer_step) {
  require_finite(numerator);
  require_finite(denominator);
  if (numerator.empty() || numerator.size() != denominator.size()) return std::nullopt;
  std::vector<double> ratios(numerator.size());
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    if (!(numerator[i] > 0 && denominator[i] > 0)) return std::nullopt;
    ratios[i] = numerator[i] / denominator[i];
  }
  double least_width = 0;
  if (timer_step > 0) {
    const double a = median(numerator), b = median(denominator);
    least_width = a / b * timer_step * (1 / a + 1 / b);
  }
  return Ratio{median(ratios), median_ci95(ratios, least_width)};
}

double geometric_mean(std::span<const double> values) {
  require_values(values);
  double sum = 0;
  for (const double v : values) {
    if (!(v > 0)) throw std::invalid_argument("stats: a geometric mean is of positive values");
    sum += std::log(v);
  }
  return std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace fdbench::stats
