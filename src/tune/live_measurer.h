// Measures the points of a space on the device: one steered worker a shape (bench/session.h), so that points
// share inputs and rounds; a point that crashes or hangs it becomes a failed row, and the rest goes on in a
// new one.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/row_builder.h"
#include "bench/runner.h"
#include "bench/worker_process.h"
#include "tune/search.h"
#include "tune/search_space.h"

namespace fdbench::tune {

struct LiveSetup {
  bench::WorkerProtocol protocol;
  bench::RunSettings settings;
  VariantTable table;
  std::optional<std::chrono::steady_clock::time_point>
      deadline;  // batches that have not begun by then are not
  // Rows of an earlier run on the same shape: rounds that it took are not taken again.
  std::vector<ResultRecord> earlier;
};

class LiveMeasurer : public Measurer {
 public:
  LiveMeasurer(const SearchSpace& space, LiveSetup setup, const std::atomic<bool>& interrupted);

  // Device time: the rounds' wall time, eviction and all, without checking and without starting workers.
  // Rounds in which the clock fell are left out. Throws Error where the device is absent.
  Batch measure(std::span<const std::size_t> points, int rounds) override;

  // Ends the worker, which checks every point's output once more. Whoever fails that is among the failed.
  // What is measured after that is by another one.
  void finish();

  // Why a point failed; empty where it did not.
  const std::string& failed(std::size_t point) const { return failed_[point]; }
  bool wrong(std::size_t point) const;  // it failed with a wrong result
  std::vector<ResultRecord> rows() const { return rows_.records(); }
  double checking_s() const { return checking_s_; }  // wall time of all else
  std::int64_t resumed_samples() const { return resumed_; }
  bool taken_live() const { return taken_live_; }  // not all was there from an earlier run

 private:
  // The first of these rounds, as far as an earlier run took them: how many.
  int from_earlier(std::span<const std::size_t> points, int rounds);
  // Asks the worker for it, again without the culprit where it dies.
  void take(std::span<const std::size_t> points, int rounds, Batch& batch);
  void note(const WorkEvent& event);
  void fill(std::span<const std::size_t> points, Batch& batch) const;

  const SearchSpace& space_;
  LiveSetup setup_;
  const std::atomic<bool>& interrupted_;
  bench::RowBuilder rows_;
  std::unique_ptr<bench::WorkerProcess> worker_;
  std::vector<std::string> failed_;
  std::vector<Status> status_;
  std::vector<const ResultRecord*> earlier_;    // of every point; null: none
  std::map<int, std::map<int, double>> taken_;  // of this batch: round, point, ns
  std::map<int, double> mhz_;                   // lowest, by round of the shape
  int next_round_ = 0, process_ = 0;
  double elapsed_s_ = 0.0, checking_s_ = 0.0;
  std::int64_t resumed_ = 0;
  bool taken_live_ = false;
};

}  // namespace fdbench::tune
