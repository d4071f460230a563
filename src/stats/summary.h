// Summaries of a series of measurements. Distribution-free: times are skewed and bounded below, so nothing
// here assumes a normal distribution.
//
// Values are plain numbers in any one unit (nanoseconds, say); results are in the same unit. Every function
// takes values in any order and throws std::invalid_argument when one of them is not finite.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace fdbench::stats {

// The fewest values that have a 95 % interval of the median: min..max covers it with 1 - 2/2^n, 93.8 %
// for n = 5 and 96.9 % for n = 6.
inline constexpr std::size_t kMinForInterval = 6;

struct Interval {
  double lo = 0, hi = 0;  // lo <= hi
  double width() const { return hi - lo; }
  bool operator==(const Interval&) const = default;
};

// The middle value, or the midpoint of the two middle ones when their number is even. Throws
// std::invalid_argument when `values` is empty.
double median(std::span<const double> values);

// Linear interpolation at rank 1 + (n - 1) p: type 7 of Hyndman and Fan, "Sample Quantiles in Statistical
// Packages", The American Statistician 50(4), 1996 (the default of R and NumPy). quantile(v, 0.5) is
// median(v). Throws std::invalid_argument when `values` is empty or p is outside [0, 1].
double quantile(std::span<const double> values, double p);

// k (counted from 1) such that [k-th smallest, k-th largest] of n values covers their distribution's median
// with at least 95 %: the largest k with P(Binomial(n, 1/2) <= k - 1) <= 0.025. Exact for any n, no normal
// approximation; nullopt for n < kMinForInterval. O(sqrt n). Source: David and Nagaraja, Order Statistics,
// 3rd ed., section 7.1.
std::optional<std::size_t> median_ci95_rank(std::size_t n);

// The interval of those ranks; it covers the median with >= 95 % whatever the distribution, if the values are
// independent. Where it is narrower than timer_step (the timer's resolution, unit of the values, >= 0), both
// ends move out by the same amount until it is that wide: equal readings of a coarse clock are no proof of
// equal times. nullopt below kMinForInterval values.
std::optional<Interval> median_ci95(std::span<const double> values, double timer_step = 0);

struct Summary {
  std::size_t n = 0;
  double min = 0, q1 = 0, median = 0, q3 = 0, max = 0;  // q1, q3: quantile() at 1/4, 3/4
  std::optional<Interval> ci95 = std::nullopt;          // of the median
};

// nullopt when `values` is empty.
std::optional<Summary> summarise(std::span<const double> values, double timer_step = 0);

// x of "median +- x": half the interval's width over the median, (hi - lo) / (2 median), a fraction (0.01 is
// 1 %). This is what --max-noise is compared with. Infinity when there is no interval or the median is not
// positive.
double relative_width(const Summary& summary);

struct Ratio {
  double median = 0;
  std::optional<Interval> ci95 = std::nullopt;
};

// Paired by round: median and interval of numerator[i] / denominator[i], so that what moves both within a
// round (clock, temperature) cancels. With timer_step > 0 the interval is never narrower than what one step
// in each does to the ratio r = a / b of the medians, r step (1/a + 1/b), to first order. nullopt when the
// lengths differ, there is nothing, or a value is not positive.
std::optional<Ratio> paired_ratio(std::span<const double> numerator, std::span<const double> denominator,
                                  double timer_step = 0);

// exp(mean(log v)): the mean for ratios, since it doesn't depend on which side is the base. Throws
// std::invalid_argument when `values` is empty or one is not positive.
double geometric_mean(std::span<const double> values);

}  // namespace fdbench::stats
