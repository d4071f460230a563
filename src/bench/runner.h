// The whole of a run: every shape, in every process, each in a worker of its own.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/row_builder.h"
#include "bench/worker_process.h"

namespace fdbench::bench {

struct ShapeWork {
  Problem problem;
  std::vector<RowRequest> rows;
};

struct RunSettings {
  std::string device = "auto";
  std::string script;        // fake device only
  bool dirty_flush = false;  // evict by writing, to show what that does
  std::optional<Plant> plant;
  MeasureSettings measure;
  int processes = 1;
  std::optional<double> budget_s;  // of the whole run: shapes that have not begun by then are left out
  std::optional<double>
      silence_s;  // a worker silent for so long is taken to hang; absent: from the shape's size
};

// What the machine is, and what each shape would take of its memory (memory empty where no shapes were
// given).
struct Survey {
  DeviceInfo device;
  std::string why;  // why this device
  struct Memory {
    std::int64_t needed = 0, available = 0;
  };
  std::vector<Memory> memory;  // as the shapes
};

// Throws Error: Exit::no_device where the device asked for is absent.
Survey survey(const WorkerProtocol& protocol, const RunSettings& settings, const std::vector<Problem>& shapes,
              const std::vector<WorkItem>& items, const std::atomic<bool>& interrupted);

// What watches a run.
struct RunObserver {
  // A worker starts on shape `shape` (of `shapes`) in process `process`.
  std::function<void(int shape, int process)> shape_begins = [](int, int) {};
  std::function<void(const WorkEvent&)> event = [](const WorkEvent&) {};
  // All rows so far, in order. Called whenever a worker has ended: whoever saves them loses nothing.
  std::function<void(const std::vector<ResultRecord>&)> rows_changed = [](const std::vector<ResultRecord>&) {
  };
  // Shapes left out because the budget was spent.
  std::function<void(int left_out)> budget_spent = [](int) {};
};

// All rows, shape after shape. Throws Error only where nothing at all can be done.
std::vector<ResultRecord> run_shapes(const WorkerProtocol& protocol, const RunSettings& settings,
                                     const std::vector<ShapeWork>& shapes, const RunObserver& observer,
                                     const std::atomic<bool>& interrupted);

// Seconds of silence after which a worker on this shape is taken to hang.
double default_silence_s(const Problem& problem);

}  // namespace fdbench::bench
