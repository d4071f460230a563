#include "bench/runner.h"

#include <chrono>
#include <utility>

#include "core/error.h"

namespace fdbench::bench {

namespace {

// However short a row's --timeout is, finding the device takes its time.
constexpr double kSurveySilenceSeconds = 60.0;

WorkRequest request_for(const RunSettings& settings) {
  WorkRequest request;
  request.device = settings.device;
  request.script = settings.script;
  request.dirty_flush = settings.dirty_flush;
  request.plant = settings.plant;
  request.settings = settings.measure;
  return request;
}

// An error that is the caller's to mend, not a row's: the device is absent, or the request makes no sense.
void throw_if_refused(const WorkerOutcome& outcome) {
  for (const Exit code : {Exit::usage, Exit::no_device}) {
    if (outcome.end == WorkerEnd::died && outcome.exit_code == static_cast<int>(code))
      throw Error(code, outcome.message);
  }
}

// What the worker was at when it ended.
std::string where(const StepBegins& last) {
  if (last.item >= 0) return "in phase " + std::string(to_string(last.phase));
  switch (last.phase) {
    case Phase::prepare:
      return "while the inputs were made";
    case Phase::validate:
      return "while the oracle ran";
    case Phase::warm_up:
    case Phase::sample:
    case Phase::recheck:
      break;
  }
  return "while measuring was set up";
}

// One shape in one process: again and again without the culprit, until a worker gets through.
void measure_shape(const WorkerProtocol& protocol, const RunSettings& settings, RowBuilder& rows, int process,
                   const RunObserver& observer, const std::atomic<bool>& interrupted) {
  const double silence = settings.silence_s.value_or(default_silence_s(rows.problem()));
  while (!interrupted) {
    WorkRequest request = request_for(settings);
    request.problem = rows.problem();
    std::vector<int> index;  // of the request's items among all
    for (std::size_t i = 0; i < rows.rows().size(); ++i) {
      const int item = static_cast<int>(i);
      if (rows.ended(item)) continue;
      index.push_back(item);
      request.items.push_back({std::string(rows.rows()[i].variant->name), rows.rows()[i].tuning});
    }
    if (index.empty()) return;

    rows.begin_attempt(process);
    const auto emit = [&](WorkEvent event) {
      // Back to the numbers that rows and observers know.
      if (auto* step = std::get_if<StepBegins>(&event); step && step->item >= 0)
        step->item = index.at(static_cast<std::size_t>(step->item));
      if (auto* planned = std::get_if<ItemPlanned>(&event))
        planned->item = index.at(static_cast<std::size_t>(planned->item));
      if (auto* ended = std::get_if<ItemEnded>(&event))
        ended->item = index.at(static_cast<std::size_t>(ended->item));
      if (auto* checked = std::get_if<ItemChecked>(&event))
        checked->item = index.at(static_cast<std::size_t>(checked->item));
      if (auto* round = std::get_if<RoundDone>(&event)) {
        for (int& item : round->items) item = index.at(static_cast<std::size_t>(item));
      }
      rows.take(event);
      observer.event(event);
    };
    const WorkerOutcome outcome = run_worker(protocol, request, silence, emit, interrupted);
    if (outcome.end == WorkerEnd::done || outcome.end == WorkerEnd::interrupted) return;
    throw_if_refused(outcome);

    const bool hung = outcome.end == WorkerEnd::hung;
    const Status status = hung ? Status::timeout : Status::failed;
    const std::string why = outcome.message + " (" + where(outcome.last) + ")";
    if (outcome.last.item >= 0) {
      // The worker numbers its own items.
      const int culprit = index.at(static_cast<std::size_t>(outcome.last.item));
      // It may have said itself what it failed with before it died of it.
      rows.end_item(culprit, status, why);
    } else {
      for (const int item : index) rows.end_item(item, status, why);
    }
    rows.drop_attempt();
  }
}

}  // namespace

double default_silence_s(const Problem& problem) {
  // The slowest honest step is a float64 oracle on one slow core, some 50 MB/s.
  return 60.0 + static_cast<double>(problem.logical_bytes()) / 20e6;
}

Survey survey(const WorkerProtocol& protocol, const RunSettings& settings, const std::vector<Problem>& shapes,
              const std::vector<WorkItem>& items, const std::atomic<bool>& interrupted) {
  WorkRequest request = request_for(settings);
  request.survey = true;
  request.shapes = shapes;
  request.items = items;
  Survey found;
  found.memory.resize(shapes.size());
  const auto take = [&](const WorkEvent& event) {
    if (const auto* device = std::get_if<DeviceFound>(&event)) {
      found.device = device->device;
      found.why = device->why;
    } else if (const auto* memory = std::get_if<MemoryCounted>(&event)) {
      found.memory.at(static_cast<std::size_t>(memory->shape)) = {memory->needed, memory->available};
    }
  };
  const WorkerOutcome outcome = run_worker(protocol, request, kSurveySilenceSeconds, take, interrupted);
  throw_if_refused(outcome);
  if (outcome.end == WorkerEnd::interrupted)
    throw Error(Exit::interrupted, "interrupted before anything was measured");
  if (outcome.end != WorkerEnd::done)
    throw Error(Exit::failed, "--device " + settings.device + ": " + outcome.message);
  return found;
}

std::vector<ResultRecord> run_shapes(const WorkerProtocol& protocol, const RunSettings& settings,
                                     const std::vector<ShapeWork>& shapes, const RunObserver& observer,
                                     const std::atomic<bool>& interrupted) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<RowBuilder> builders;
  for (const ShapeWork& shape : shapes) builders.emplace_back(shape.problem, shape.rows, settings.measure);

  const auto all_rows = [&] {
    std::vector<ResultRecord> rows;
    for (const RowBuilder& builder : builders) {
      for (ResultRecord& record : builder.records()) rows.push_back(std::move(record));
    }
    return rows;
  };
  int left_out = 0;
  // Process by process, not shape by shape: what drifts over minutes then falls on all shapes alike.
  for (int process = 0; process < settings.processes && !interrupted; ++process) {
    for (std::size_t s = 0; s < builders.size() && !interrupted; ++s) {
      const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (settings.budget_s && spent >= *settings.budget_s) {
        ++left_out;
        continue;
      }
      observer.shape_begins(static_cast<int>(s), process);
      measure_shape(protocol, settings, builders[s], process, observer, interrupted);
      observer.rows_changed(all_rows());
    }
  }
  if (left_out > 0) observer.budget_spent(left_out);
  return all_rows();
}

}  // namespace fdbench::bench
