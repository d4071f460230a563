// Events in, result rows out: what one shape's workers said, over all processes, as records.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/result_record.h"
#include "core/work_message.h"

namespace fdbench::bench {

// One item of a shape, as asked for.
struct RowRequest {
  const Variant* variant = nullptr;
  TuningPoint tuning;
  std::string source = "default";
};

class RowBuilder {
 public:
  RowBuilder(Problem problem, std::vector<RowRequest> rows, MeasureSettings settings);

  // Items are numbered as in the constructor. Call begin_attempt before a worker's events; an attempt whose
  // worker died is measured again without its culprit, so drop_attempt takes back what it measured.
  void begin_attempt(int process);
  void take(const WorkEvent& event);
  void drop_attempt();
  void end_item(int item, Status status, const std::string& reason);

  bool ended(int item) const;
  const Problem& problem() const { return problem_; }
  const std::vector<RowRequest>& rows() const { return requests_; }

  // Rows as far as they have come. An item that has neither ended nor given what was asked for has no row
  // yet.
  std::vector<ResultRecord> records() const;

 private:
  struct Row {
    std::optional<LaunchPlan> plan;
    std::optional<double> prepare_ns;
    std::optional<Accuracy> accuracy;
    std::optional<Status> ended;
    std::string reason;
    std::vector<Sample> samples;
    std::int64_t void_samples = 0;
  };
  struct Aside {
    std::vector<std::pair<int, int>> rounds;  // (process, round) set aside
    bool throttled = false;
  };

  Aside mark_slow_rounds() const;
  // Times of `row` over those of `base`, a vector a process, over the rounds that both kept.
  std::vector<std::vector<double>> ratios(const Row& base, const Row& row, const Aside& aside) const;
  void summarise(const Row& row, const Aside& aside, ResultRecord& record) const;
  void relate(const Row& row, const Aside& aside, std::vector<ResultRecord>& records, std::size_t at) const;

  Problem problem_;
  std::vector<RowRequest> requests_;
  MeasureSettings settings_;
  std::vector<Row> rows_;
  std::vector<Row> before_attempt_;
  int process_ = 0;
  double timer_step_ns_ = 0.0;
  std::string stop_;
  std::vector<std::string> flags_;
};

}  // namespace fdbench::bench
