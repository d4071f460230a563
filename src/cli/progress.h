// Where a run is, on stderr, only when that is a terminal: [3/12] shape, round, time so far, best so far.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "bench/runner.h"

namespace fdbench::cli {

class Progress {
 public:
  Progress(const std::vector<bench::ShapeWork>& shapes, const bench::RunSettings& settings, bool enabled);
  ~Progress();

  void shape_begins(int shape, int process);
  void event(const WorkEvent& event);
  // Takes the line away, so that something else can be printed.
  void clear();

 private:
  void show(const std::string& text);
  std::string time_left() const;

  const std::vector<bench::ShapeWork>& shapes_;
  const bench::RunSettings& settings_;
  bool enabled_;
  bool shown_ = false;
  int shape_ = 0, process_ = 0, steps_begun_ = 0;
  std::string phase_, best_;
  std::vector<double> best_ns_;
  std::chrono::steady_clock::time_point start_, last_;
};

}  // namespace fdbench::cli
