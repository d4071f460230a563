#include "tune/live_measurer.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/seconds_since.h"
#include "stats/throttle.h"

namespace fdbench::tune {

namespace {

using Clock = std::chrono::steady_clock;

std::vector<bench::RowRequest> requests_of(const SearchSpace& space, VariantTable table) {
  std::vector<bench::RowRequest> requests;
  for (const SpacePoint& point : space.points)
    requests.push_back({find_variant(table, point.variant), point.tuning, source_of(point)});
  return requests;
}

}  // namespace

LiveMeasurer::LiveMeasurer(const SearchSpace& space, LiveSetup setup, const std::atomic<bool>& interrupted)
    : space_(space),
      setup_(std::move(setup)),
      interrupted_(interrupted),
      rows_(space.problem, requests_of(space, setup_.table), setup_.settings.measure),
      failed_(space.points.size()),
      status_(space.points.size(), Status::ok),
      earlier_(space.points.size(), nullptr) {
  rows_.take(WorkDone{"fixed_rounds", 0.0, {}});
  for (const ResultRecord& row : setup_.earlier) {
    const auto at = space.find(row.variant, row.tuning);
    if (!at) continue;
    earlier_[*at] = &row;
    if (!row.time) continue;
    for (const Sample& sample : row.time->samples) process_ = std::max(process_, sample.process + 1);
  }
}

bool LiveMeasurer::wrong(std::size_t point) const {
  return status_[point] == Status::incorrect;
}

void LiveMeasurer::note(const WorkEvent& event) {
  if (const auto* ended = std::get_if<ItemEnded>(&event)) {
    const auto at = static_cast<std::size_t>(ended->item);
    if (failed_[at].empty()) {
      failed_[at] = ended->reason.empty() ? std::string(to_string(ended->status)) : ended->reason;
      status_[at] = ended->status;
    }
  }
  if (const auto* round = std::get_if<RoundDone>(&event)) {
    RoundDone of_shape = *round;
    of_shape.round += next_round_;
    for (std::size_t i = 0; i < round->items.size(); ++i) {
      taken_[of_shape.round][round->items[i]] = round->ns[i];
      double& lowest = mhz_[of_shape.round];
      if (round->sm_mhz[i] > 0.0)
        lowest = lowest > 0.0 ? std::min(lowest, round->sm_mhz[i]) : round->sm_mhz[i];
    }
    rows_.take(of_shape);
    for (std::size_t i = 0; i < round->items.size(); ++i) {
      if (!(round->ns[i] > 0.0))
        note(ItemEnded{round->items[i], Status::failed,
                       "a sample took no time: below what the timer can tell"});
    }
    return;
  }
  if (const auto* taken = std::get_if<RoundsTaken>(&event)) elapsed_s_ = taken->elapsed_s;
  if (const auto* done = std::get_if<WorkDone>(&event)) {
    rows_.take(WorkDone{"", done->timer_step_ns, done->flags});
    return;
  }
  rows_.take(event);
}

int LiveMeasurer::from_earlier(std::span<const std::size_t> points, int rounds) {
  std::vector<std::map<int, Sample>> samples;
  int there = rounds;
  for (const std::size_t i : points) {
    auto& of = samples.emplace_back();
    const ResultRecord* row = earlier_[i];
    if (!row) return 0;
    if (row->status != Status::ok) continue;
    if (!row->time) return 0;
    for (const Sample& sample : row->time->samples) of[sample.round] = sample;
    int has = 0;
    while (has < there && of.count(next_round_ + has) != 0 && of[next_round_ + has].ns > 0.0) ++has;
    there = has;
  }
  // Rounds go forwards and backwards by turns: what is taken anew begins with a pair.
  if (there < rounds) there -= there % 2;
  if (there == 0) return 0;
  for (std::size_t p = 0; p < points.size(); ++p) {
    const ResultRecord& row = *earlier_[points[p]];
    const int item = static_cast<int>(points[p]);
    if (row.plan) rows_.take(ItemPlanned{item, *row.plan, row.prepare_ns.value_or(0.0)});
    if (row.accuracy) rows_.take(ItemChecked{item, *row.accuracy});
    if (row.status != Status::ok) note(ItemEnded{item, row.status, row.reason});
  }
  for (int r = 0; r < there; ++r) {
    RoundDone done;
    done.round = r;
    int process = 0;
    for (std::size_t p = 0; p < points.size(); ++p) {
      const auto at = samples[p].find(next_round_ + r);
      if (at == samples[p].end()) continue;
      done.items.push_back(static_cast<int>(points[p]));
      done.ns.push_back(at->second.ns);
      done.sm_mhz.push_back(at->second.sm_mhz);
      done.void_samples.push_back(0);
      process = at->second.process;
    }
    rows_.begin_attempt(process);
    resumed_ += static_cast<std::int64_t>(done.items.size());
    note(done);
  }
  next_round_ += there;
  return there;
}

void LiveMeasurer::fill(std::span<const std::size_t> points, Batch& batch) const {
  // Against all rounds of the shape so far: a whole batch at a low clock is found too.
  std::vector<double> mhz;
  std::vector<int> numbers;
  for (const auto& [round, lowest] : mhz_) {
    numbers.push_back(round);
    mhz.push_back(lowest);
  }
  const stats::SetAside aside = stats::set_aside_rounds(mhz);
  const auto is_kept = [&](int round) {
    const auto at = std::lower_bound(numbers.begin(), numbers.end(), round) - numbers.begin();
    return !aside.set_aside[static_cast<std::size_t>(at)];
  };
  for (const auto& [round, ns] : taken_) {
    if (is_kept(round)) batch.rounds.push_back(round);
  }
  // All of it at a low clock: its points can still be compared with each other.
  if (batch.rounds.empty()) {
    for (const auto& [round, ns] : taken_) batch.rounds.push_back(round);
  }
  for (const std::size_t i : points) {
    batch.failed.push_back(failed_[i]);
    auto& ns = batch.ns.emplace_back();
    if (!failed_[i].empty()) continue;
    for (const int round : batch.rounds) ns.push_back(taken_.at(round).at(static_cast<int>(i)));
  }
}

Batch LiveMeasurer::measure(std::span<const std::size_t> points, int rounds) {
  Batch batch;
  taken_.clear();
  const int there = from_earlier(points, rounds);
  if (there < rounds) {
    batch.stop = interrupted_ || (setup_.deadline && Clock::now() >= *setup_.deadline);
    if (!batch.stop) take(points, rounds - there, batch);
  }
  fill(points, batch);
  return batch;
}

void LiveMeasurer::take(std::span<const std::size_t> points, int rounds, Batch& batch) {
  const Clock::time_point begin = Clock::now();
  elapsed_s_ = 0.0;
  taken_live_ = true;
  const double silence = setup_.settings.silence_s.value_or(bench::default_silence_s(space_.problem));
  while (true) {
    RoundsAsked asked;
    asked.rounds = rounds;
    for (const std::size_t i : points) {
      if (failed_[i].empty()) asked.items.push_back(static_cast<int>(i));
    }
    if (asked.items.empty()) break;
    if (!worker_) {
      WorkRequest request;
      request.device = setup_.settings.device;
      request.script = setup_.settings.script;
      request.dirty_flush = setup_.settings.dirty_flush;
      request.settings = setup_.settings.measure;
      request.problem = space_.problem;
      request.steered = true;
      for (const SpacePoint& point : space_.points) request.items.push_back({point.variant, point.tuning});
      worker_ = std::make_unique<bench::WorkerProcess>(setup_.protocol, request, silence);
    }
    rows_.begin_attempt(process_);
    worker_->send(setup_.protocol.encode_rounds(asked));
    const bool done = worker_->pump(
        [this](const WorkEvent& event) { note(event); },
        [](const WorkEvent& event) { return std::holds_alternative<RoundsTaken>(event); }, interrupted_);
    if (done) break;
    const bench::WorkerOutcome outcome = worker_->outcome();
    worker_.reset();
    ++process_;
    if (outcome.end == bench::WorkerEnd::interrupted) {
      batch.stop = true;
      break;
    }
    for (const Exit code : {Exit::usage, Exit::no_device}) {
      if (outcome.end == bench::WorkerEnd::died && outcome.exit_code == static_cast<int>(code))
        throw Error(code, outcome.message);
    }
    const Status status = outcome.end == bench::WorkerEnd::hung ? Status::timeout : Status::failed;
    const std::string why = outcome.message.empty() ? "its worker ended early" : outcome.message;
    const auto fail = [&](int item) {
      note(ItemEnded{item, status, why + " (in phase " + std::string(to_string(outcome.last.phase)) + ")"});
    };
    if (outcome.last.item >= 0) {
      fail(outcome.last.item);
    } else {
      for (const int item : asked.items) fail(item);
    }
    rows_.drop_attempt();
    // Rounds of an earlier run are before these, and stay.
    mhz_.erase(mhz_.lower_bound(next_round_), mhz_.end());
    taken_.erase(taken_.lower_bound(next_round_), taken_.end());
  }
  // A round that was begun without one that failed in it is not theirs alone: it is whole or it is nothing.
  std::erase_if(taken_, [&](const auto& round) {
    return std::any_of(points.begin(), points.end(), [&](std::size_t i) {
      return failed_[i].empty() && round.second.count(static_cast<int>(i)) == 0;
    });
  });
  batch.cost_s = elapsed_s_;
  checking_s_ += std::max(0.0, seconds_since(begin) - elapsed_s_);
  if (!mhz_.empty()) next_round_ = std::max(next_round_ + rounds, mhz_.rbegin()->first + 1);
}

void LiveMeasurer::finish() {
  if (!worker_) return;
  const Clock::time_point begin = Clock::now();
  worker_->close_input();
  worker_->pump([this](const WorkEvent& event) { note(event); }, [](const WorkEvent&) { return false; },
                interrupted_);
  const bench::WorkerOutcome outcome = worker_->outcome();
  worker_.reset();
  ++process_;
  if (outcome.end == bench::WorkerEnd::died || outcome.end == bench::WorkerEnd::hung) {
    const int item = outcome.last.item;
    if (item >= 0)
      note(ItemEnded{item, outcome.end == bench::WorkerEnd::hung ? Status::timeout : Status::failed,
                     outcome.message + " (checked again after measuring)"});
  }
  checking_s_ += seconds_since(begin);
}

}  // namespace fdbench::tune
