// The statistics of the gate, on plain numbers: the figures of processes in, effect and evidence out.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "stats/summary.h"

namespace fdbench::compare {

// Natural logarithms throughout. A figure is one fresh process's: the median over its rounds of
// log(time / same-round roof).
struct RowFigures {
  // A vector a session. Files measured at different times are sessions of their own: what differs between
  // them is then estimated too. Every session has at least one figure.
  std::vector<std::vector<double>> base;
  std::vector<double> now;
  double floor_sd = 0.0;  // the between-process standard deviation is not taken smaller
  // What one session may differ from another by with nothing changed: only an effect beyond it is evidence.
  double allowance = 0.0;
};

struct Estimate {
  double effect = 0.0;  // mean of `now` minus mean of the base's session means
  double error = 0.0;   // standard error of the effect
  double degrees = 1.0;
  double sd = 0.0;  // between processes of one session, as used
  bool sd_is_floor = false;
  double p_slower = 1.0;  // one-sided: an effect so large, were there none but the allowance
  double p_faster = 1.0;
  stats::Interval ci95;  // of the effect
};

// Student's test with a variance pooled over the sessions of both sides, N - K - 1 degrees of freedom. With
// K >= 2 base sessions the variance between sessions (by the analysis of variance, not below 0) enters as
// tau^2 (1 + 1/K), and the degrees of freedom are Satterthwaite's. With one base session a difference between
// the two sessions cannot be told from an effect; the allowance stands for it.
// Preconditions: both sides have figures, three or more in all.
Estimate estimate(const RowFigures& row);

// p values corrected for their number by Holm's step-down method (Holm 1979): rejecting those <= alpha makes
// any false rejection at most alpha probable, however the rows hang together.
std::vector<double> holm(std::span<const double> p);

// The smallest effect (log) that passes the test of `rows` rows at `alpha` with probability `power`, where
// processes differ by `sd` and each side has `processes`: error * (t(1 - alpha / rows) + t(power)).
double smallest_effect(double sd, int processes, std::size_t rows, double alpha, double power);

}  // namespace fdbench::compare
