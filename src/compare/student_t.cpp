#include "compare/student_t.h"

#include <cmath>

namespace fdbench::compare {

namespace {

constexpr double kPi = 3.14159265358979323846;

double kept_from_zero(double value) {
  constexpr double kTiny = 1e-300;
  return std::abs(value) < kTiny ? kTiny : value;
}

// The continued fraction of I_x(a, b), fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr int kMostTerms = 10000;
  double c = 1.0, d = 1.0 / kept_from_zero(1.0 - (a + b) * x / (a + 1.0)), h = d;
  for (int m = 1; m < kMostTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1.0 / kept_from_zero(1.0 + even * d);
    c = kept_from_zero(1.0 + even / c);
    h *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1.0 / kept_from_zero(1.0 + odd * d);
    c = kept_from_zero(1.0 + odd / c);
    h *= d * c;
    if (std::abs(d * c - 1.0) < 1e-15) break;
  }
  return h;
}

// I_x(a, b), with y = 1 - x given apart since it may be tiny.
double incomplete_beta(double a, double b, double x, double y) {
  if (x <= 0.0) return 0.0;
  if (y <= 0.0) return 1.0;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log(y));
  if (x < (a + 1.0) / (a + b + 2.0)) return front * beta_fraction(a, b, x) / a;
  return 1.0 - front * beta_fraction(b, a, y) / b;
}

}  // namespace

double student_t_upper(double t, double degrees) {
  if (t < 0.0) return 1.0 - student_t_upper(-t, degrees);
  if (std::isinf(t)) return 0.0;
  const double square = t * t;
  return incomplete_beta(degrees / 2, 0.5, degrees / (degrees + square), square / (degrees + square)) / 2;
}

double student_t_quantile(double p, double degrees) {
  const double log_peak =
      std::lgamma((degrees + 1) / 2) - std::lgamma(degrees / 2) - std::log(degrees * kPi) / 2;
  double lo = 0.0, hi = 1.0;
  while (student_t_upper(hi, degrees) > p && hi < 1e150) hi *= 2.0;
  double t = lo + (hi - lo) / 2;
  for (int i = 0; i < 200; ++i) {
    const double above = student_t_upper(t, degrees) - p;
    (above > 0.0 ? lo : hi) = t;
    const double density = std::exp(log_peak - (degrees + 1) / 2 * std::log1p(t * t / degrees));
    double next = t + above / density;
    if (!(next > lo && next < hi)) next = lo + (hi - lo) / 2;
    const bool close = std::abs(next - t) <= 1e-13 * next;
    t = next;
    if (close) break;
  }
  return t;
}

}  // namespace fdbench::compare
