// What a split costs: a model of a variant's time on one device, fitted to recorded sweeps, and the split
// rule that it makes.
//
// With s splits a CTA has x = ceil(seq / s) tokens, in whole grains; there are s * C CTAs (C a split: one,
// one a KV head or one a query head) in w = ceil(s * C / multiprocessors) waves, and a CTA serves `rows`
// query heads. Cluster counts, the splits that a thread-block cluster can hold (2, 4, 8, 16), have terms of
// their own, and may find only cluster_slots of the multiprocessors.
//   core   = w * (per_wave + per_byte * bytes of K and V a CTA reads + per_row_token * x * rows); for cluster
//            counts at least per_cluster_byte * the bytes that s CTAs read
//   memory = per_memory_byte * bytes of K and V
//   time   = fixed + norm(core, memory) + merge
//   merge  = 0 with one split; for cluster counts cluster_fixed + cluster_per_split * s; else merge_fixed +
//            merge_per_split * s + merge_per_row * s * rows
// norm is (core^p + memory^p)^(1/p): the sum at p = 1, the larger of both in the limit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tune/regret.h"
#include "tune/split_sweep.h"

namespace fdbench::tune {

inline constexpr std::size_t kCostTerms = 11;
// Names of CostModel::terms, in order; all in nanoseconds (a byte, a token and row, ...).
inline constexpr std::array<std::string_view, kCostTerms> kCostTermNames = {
    "fixed",           "per_wave",      "per_byte",          "per_row_token",
    "per_memory_byte", "cluster_fixed", "cluster_per_split", "merge_fixed",
    "merge_per_split", "merge_per_row", "per_cluster_byte"};

enum class CtasPerSplit { one, kv_heads, heads };
std::string_view to_string(CtasPerSplit ctas);

struct Span {
  std::int64_t least = 0, most = 0;
  bool holds(std::int64_t value) const { return value >= least && value <= most; }
};

struct CostModel {
  std::array<double, kCostTerms> terms{};
  int doublings = 0;  // p = 2^doublings; above 3: the larger of both
  std::int64_t grain = 1;
  double cluster_slots = 1.0;  // a share

  // What it is of.
  std::string variant;
  std::string device;
  std::int64_t num_sms = 0;
  bool gpu = true;
  SplitAxis axis = SplitAxis::splits;
  std::int64_t chunk_grain = 1;  // chunks come in multiples of it
  CtasPerSplit ctas_per_split = CtasPerSplit::kv_heads;

  // The shapes it has seen.
  Span seq, kv_heads, group, dim;

  std::int64_t ctas(const Problem& problem) const;  // a split
};

// Time of `splits` >= 1 equal splits of a problem with tokens.
double predicted_ns(const CostModel& model, const Problem& problem, std::int64_t splits);

// Why the model says nothing of this problem: a sentence without its full stop; nothing where it does.
std::optional<std::string> outside(const CostModel& model, const Problem& problem);

// The rule: the candidate_splits() of least time, the fewest of those within 1e-9 of it. 0 outside.
std::int64_t fitted_splits(const CostModel& model, const Problem& problem);

Chooser fitted_chooser(const CostModel& model);  // "fitted"

// Fits to the medians of the sweeps: least loss = mean over shapes of the expected log regret of choosing by
// the model (softly, so that it has slopes) + the mean squared log error, near-best points weighing most.
// Deterministic. Throws std::invalid_argument: fewer than 4 sweeps; of several variants or devices; C of none
// of its three forms.
CostModel fit_cost_model(std::span<const SplitSweep> sweeps);

// Root of the mean squared error of log(predicted / measured) over the points within 1.5 times the best of
// each shape.
double log_error(const CostModel& model, std::span<const SplitSweep> sweeps);

// What is fitted to, and the rest, on which the fit is tested: by turns, in the order given, but that the
// first shape with the least and with the most of each extent is fitted to, since outside the fit says
// nothing.
struct Halves {
  std::vector<SplitSweep> fit, test;
};
Halves halves(std::span<const SplitSweep> sweeps);

}  // namespace fdbench::tune
