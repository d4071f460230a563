#include "compare/judge.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compare/student_t.h"

namespace fdbench::compare {

namespace {

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double squares_about(std::span<const double> values, double centre) {
  double sum = 0.0;
  for (const double value : values) sum += (value - centre) * (value - centre);
  return sum;
}

}  // namespace

Estimate estimate(const RowFigures& row) {
  std::vector<double> session_means;
  double squares = 0.0, inverse_sizes = 0.0;
  std::size_t figures = 0;
  for (const auto& session : row.base) {
    session_means.push_back(mean(session));
    squares += squares_about(session, session_means.back());
    inverse_sizes += 1.0 / static_cast<double>(session.size());
    figures += session.size();
  }
  const double now_mean = mean(row.now);
  squares += squares_about(row.now, now_mean);
  figures += row.now.size();

  const auto sessions = static_cast<double>(session_means.size());
  const double base_mean = mean(session_means);
  const double within_degrees = std::max(1.0, static_cast<double>(figures) - sessions - 1.0);
  const double seen = squares / within_degrees;
  const double variance = std::max(seen, row.floor_sd * row.floor_sd);

  Estimate out;
  out.effect = now_mean - base_mean;
  out.sd = std::sqrt(variance);
  out.sd_is_floor = seen < row.floor_sd * row.floor_sd;
  const double within =
      variance * (1.0 / static_cast<double>(row.now.size()) + inverse_sizes / (sessions * sessions));
  double between = 0.0;
  out.degrees = within_degrees;
  if (session_means.size() > 1) {
    const double of_means = squares_about(session_means, base_mean) / (sessions - 1.0);
    const double tau2 = std::max(0.0, of_means - variance * inverse_sizes / sessions);
    between = tau2 * (1.0 + 1.0 / sessions);
    const double total = within + between;
    if (total > 0.0)
      out.degrees = total * total / (within * within / within_degrees + between * between / (sessions - 1.0));
  }
  out.error = std::sqrt(within + between);
  if (out.error > 0.0) {
    out.p_slower = student_t_upper((out.effect - row.allowance) / out.error, out.degrees);
    out.p_faster = student_t_upper((-out.effect - row.allowance) / out.error, out.degrees);
  } else {
    // No noise and no floor: whatever differs, differs.
    out.p_slower = out.effect > row.allowance ? 0.0 : 1.0;
    out.p_faster = out.effect < -row.allowance ? 0.0 : 1.0;
  }
  const double half = out.error > 0.0 ? student_t_quantile(0.025, out.degrees) * out.error : 0.0;
  out.ci95 = {out.effect - half, out.effect + half};
  return out;
}

std::vector<double> holm(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<double> corrected(p.size());
  double largest = 0.0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    largest = std::max(largest, p[order[rank]] * static_cast<double>(order.size() - rank));
    corrected[order[rank]] = std::min(1.0, largest);
  }
  return corrected;
}

double smallest_effect(double sd, int processes, std::size_t rows, double alpha, double power) {
  const double n = static_cast<double>(processes), degrees = 2.0 * n - 2.0;
  const double needed =
      student_t_quantile(alpha / static_cast<double>(std::max<std::size_t>(rows, 1)), degrees);
  return sd * std::sqrt(2.0 / n) * (needed + student_t_quantile(1.0 - power, degrees));
}

}  // namespace fdbench::compare
