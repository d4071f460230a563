#include "bench/row_builder.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "stats/resampling.h"
#include "stats/throttle.h"

namespace fdbench::bench {

namespace {

std::optional<Bounds> bounds(const std::optional<stats::Interval>& interval) {
  if (!interval) return std::nullopt;
  return Bounds{interval->lo, interval->hi};
}

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

// Of several processes' reasons the row carries the one that says most against it.
std::string worse_stop(const std::string& a, const std::string& b) {
  static const std::vector<std::string> order = {"",           "fixed_rounds", "converged",
                                                 "max_rounds", "max_time",     "interrupted"};
  const auto rank = [](const std::string& reason) { return std::find(order.begin(), order.end(), reason); };
  return rank(a) < rank(b) ? b : a;
}

const char* const kThrottled = "throttled";
const char* const kAboveRoof = "above_roof";
const char* const kFewRounds = "few_rounds";

}  // namespace

RowBuilder::RowBuilder(Problem problem, std::vector<RowRequest> rows, MeasureSettings settings)
    : problem_(problem), requests_(std::move(rows)), settings_(settings), rows_(requests_.size()) {}

void RowBuilder::begin_attempt(int process) {
  process_ = process;
  before_attempt_ = rows_;
}

void RowBuilder::drop_attempt() {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    // Who ended stays ended; the rest is measured again.
    if (!rows_[i].ended) rows_[i] = before_attempt_[i];
  }
}

void RowBuilder::end_item(int item, Status status, const std::string& reason) {
  Row& row = rows_[static_cast<std::size_t>(item)];
  if (row.ended) return;
  row.ended = status;
  row.reason = reason;
}

bool RowBuilder::ended(int item) const {
  return rows_[static_cast<std::size_t>(item)].ended.has_value();
}

void RowBuilder::take(const WorkEvent& event) {
  const auto row = [this](int item) -> Row& { return rows_.at(static_cast<std::size_t>(item)); };
  std::visit(Overloaded{
                 [](const DeviceFound&) {},
                 [](const MemoryCounted&) {},
                 [](const StepBegins&) {},
                 [&](const ItemPlanned& planned) {
                   row(planned.item).plan = planned.plan;
                   row(planned.item).prepare_ns = planned.prepare_ns;
                 },
                 [&](const ItemEnded& ended) { end_item(ended.item, ended.status, ended.reason); },
                 [&](const ItemChecked& checked) { row(checked.item).accuracy = checked.accuracy; },
                 [&](const RoundDone& round) {
                   for (std::size_t i = 0; i < round.items.size(); ++i) {
                     Row& of = row(round.items[i]);
                     of.samples.push_back({process_, round.round, round.ns[i], round.sm_mhz[i], false});
                     of.void_samples += round.void_samples[i];
                   }
                 },
                 [](const RoundsTaken&) {},
                 [&](const WorkDone& done) {
                   stop_ = worse_stop(stop_, done.stop);
                   timer_step_ns_ = std::max(timer_step_ns_, done.timer_step_ns);
                   for (const std::string& flag : done.flags) {
                     if (std::find(flags_.begin(), flags_.end(), flag) == flags_.end())
                       flags_.push_back(flag);
                   }
                 },
             },
             event);
}

RowBuilder::Aside RowBuilder::mark_slow_rounds() const {
  std::map<int, std::map<int, double>> lowest;  // process -> round -> MHz
  for (const Row& row : rows_) {
    if (row.ended) continue;
    for (const Sample& sample : row.samples) {
      double& mhz = lowest[sample.process][sample.round];
      if (sample.sm_mhz > 0.0) mhz = mhz > 0.0 ? std::min(mhz, sample.sm_mhz) : sample.sm_mhz;
    }
  }
  Aside aside;
  for (const auto& [process, rounds] : lowest) {
    std::vector<double> mhz;
    for (const auto& [round, value] : rounds) mhz.push_back(value);
    const stats::SetAside slow = stats::set_aside_rounds(mhz);
    aside.throttled = aside.throttled || slow.throttled;
    std::size_t i = 0;
    for (const auto& [round, value] : rounds) {
      if (slow.set_aside[i++]) aside.rounds.emplace_back(process, round);
    }
  }
  return aside;
}

namespace {

bool is_aside(const std::vector<std::pair<int, int>>& rounds, const Sample& sample) {
  return std::binary_search(rounds.begin(), rounds.end(), std::pair(sample.process, sample.round));
}

}  // namespace

void RowBuilder::summarise(const Row& row, const Aside& aside, ResultRecord& record) const {
  // No time of a row that failed in the end is believed.
  if (row.samples.empty() || row.ended) return;
  TimeSummary time;
  std::map<int, std::vector<double>> kept;
  // Not every point of a search is in every round: this one may have been in slow ones alone.
  const bool all_slow = std::all_of(row.samples.begin(), row.samples.end(),
                                    [&](const Sample& sample) { return is_aside(aside.rounds, sample); });
  for (Sample sample : row.samples) {
    sample.set_aside = !all_slow && is_aside(aside.rounds, sample);
    if (sample.set_aside) {
      ++time.set_aside;
    } else {
      kept[sample.process].push_back(sample.ns);
    }
    time.samples.push_back(sample);
  }
  std::vector<std::vector<double>> series;
  for (auto& [process, times] : kept) series.push_back(std::move(times));
  const stats::Summary summary = stats::summarise_processes(series, timer_step_ns_);
  time.n = static_cast<std::int64_t>(summary.n);
  time.min = summary.min;
  time.q1 = summary.q1;
  time.median = summary.median;
  time.q3 = summary.q3;
  time.max = summary.max;
  time.ci95 = bounds(summary.ci95);
  time.stop = stop_.empty() ? "interrupted" : stop_;
  time.void_samples = row.void_samples;
  if (!time.ci95) record.flags.push_back(kFewRounds);
  if (aside.throttled || all_slow) record.flags.push_back(kThrottled);
  if (time.median > 0.0) record.bytes_per_s = static_cast<double>(record.bytes) / (time.median * 1e-9);
  record.time = std::move(time);
}

std::vector<std::vector<double>> RowBuilder::ratios(const Row& base, const Row& row,
                                                    const Aside& aside) const {
  std::map<std::pair<int, int>, double> base_ns;
  for (const Sample& sample : base.samples) base_ns[{sample.process, sample.round}] = sample.ns;
  std::map<int, std::vector<double>> by_process;
  for (const Sample& sample : row.samples) {
    const auto found = base_ns.find({sample.process, sample.round});
    if (found == base_ns.end() || is_aside(aside.rounds, sample) || !(sample.ns > 0.0)) continue;
    by_process[sample.process].push_back(found->second / sample.ns);
  }
  std::vector<std::vector<double>> series;
  for (auto& [process, values] : by_process) series.push_back(std::move(values));
  return series;
}

void RowBuilder::relate(const Row& row, const Aside& aside, std::vector<ResultRecord>& records,
                        std::size_t at) const {
  ResultRecord& record = records[at];
  if (!record.time) return;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Role role = requests_[i].variant->role;
    if (role != Role::roof && role != Role::reference) continue;
    if (!requests_[i].tuning.empty()) continue;  // a swept roof is measured against the plain one
    if (rows_[i].samples.empty() || rows_[i].ended) continue;
    const auto series = ratios(rows_[i], row, aside);
    if (series.empty()) continue;
    // What one step of the timer does to the ratio of the two, to first order.
    const double base_median = records[i].time->median;
    const double step = timer_step_ns_ * (base_median / record.time->median) *
                        (1.0 / base_median + 1.0 / record.time->median);
    const stats::Summary ratio = stats::summarise_processes(series, i == at ? 0.0 : step);
    if (role == Role::roof) {
      record.roof_share = ratio.median;
      record.roof_share_ci95 = bounds(ratio.ci95);
      const auto& roof_ci = records[i].time->ci95;
      // Nothing reads faster than reading: where it seems so, the figure is not to be trusted.
      if (i != at && ratio.ci95 && ratio.ci95->lo > 1.0 && record.time->ci95 && roof_ci &&
          record.time->ci95->hi < roof_ci->lo) {
        record.flags.push_back(kAboveRoof);
      }
    } else {
      record.speedup = ratio.median;
      record.speedup_ci95 = bounds(ratio.ci95);
    }
  }
}

std::vector<ResultRecord> RowBuilder::records() const {
  Aside aside = mark_slow_rounds();
  std::sort(aside.rounds.begin(), aside.rounds.end());
  std::vector<ResultRecord> records(rows_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    const RowRequest& request = requests_[i];
    ResultRecord& record = records[i];
    record.id = result_id(request.variant->name, problem_, asked_tuning(request.tuning, request.source),
                          settings_.cache, settings_.timer);
    record.problem = problem_;
    record.variant = request.variant->name;
    record.role = request.variant->role;
    record.tuning_version = request.variant->tuning_version;
    record.tuning = request.tuning;
    record.plan = row.plan;
    record.source = request.source;
    if (request.source == "default" && row.plan && !row.plan->rule.empty())
      record.source = "rule:" + row.plan->rule;
    record.status = row.ended.value_or(Status::ok);
    record.reason = row.reason;
    record.flags = flags_;
    record.accuracy = row.accuracy;
    if (record.role != Role::roof) record.tolerance = request.variant->tolerance;
    record.prepare_ns = row.prepare_ns;
    record.bytes = problem_.logical_bytes();
    summarise(row, aside, record);
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) relate(rows_[i], aside, records, i);

  std::vector<ResultRecord> finished;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const bool answered = settings_.measure
                              ? records[i].time.has_value()
                              : rows_[i].plan && (rows_[i].accuracy || records[i].role == Role::roof);
    if (rows_[i].ended || answered) finished.push_back(std::move(records[i]));
  }
  return finished;
}

}  // namespace fdbench::bench
