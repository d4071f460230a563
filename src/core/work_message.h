// What passes between the runner and the worker process that measures one shape.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/device_info.h"
#include "core/launch_plan.h"
#include "core/measurement.h"
#include "core/problem.h"
#include "core/tuning_point.h"

namespace fdbench {

struct WorkItem {
  std::string variant;
  TuningPoint tuning;
  bool operator==(const WorkItem&) const = default;
};

// A slowdown made on purpose, to see whether a comparison finds it.
struct Plant {
  std::string variant;
  double share = 0.0;  // of the variant's own time: 0.05 is 5 %
};

// Runner to worker, once: either measure `items` on `problem`, or, where `survey` is set, say what the device
// is and what each of `shapes` would need of its memory.
struct WorkRequest {
  std::string device = "auto";  // auto, cpu, cuda, cuda:N, fake
  std::string script;           // fake only: the file that scripts it
  bool dirty_flush = false;     // evict by writing, to show what that does to what follows
  std::optional<Plant> plant;
  bool survey = false;
  std::vector<Problem> shapes;  // survey only
  Problem problem;              // otherwise
  std::vector<WorkItem> items;
  // The runner says which items to measure and for how many rounds, again and again (RoundsAsked), until its
  // end of the pipe closes; an item is checked when it is first asked for.
  bool steered = false;
  MeasureSettings settings;
};

// Runner to a steered worker.
struct RoundsAsked {
  std::vector<int> items;  // of WorkRequest::items
  int rounds = 0;
};

enum class Phase { prepare, validate, warm_up, sample, recheck };

std::string_view to_string(Phase phase);
std::optional<Phase> parse_phase(std::string_view text);

// Worker to runner. `item` indexes WorkRequest::items.
struct DeviceFound {
  DeviceInfo device;
  std::string why;  // why this device: "the first CUDA device", "no CUDA device: ..."
};
// Survey: bytes that measuring `shape` would take, and that there are.
struct MemoryCounted {
  int shape = 0;
  std::int64_t needed = 0;
  std::int64_t available = 0;
};
// Sent before each step that could hang or crash, so that the runner knows the culprit; item -1: none in
// particular.
struct StepBegins {
  int item = -1;
  Phase phase = Phase::prepare;
};
struct ItemPlanned {
  int item = 0;
  LaunchPlan plan;
  double prepare_ns = 0.0;
};
// The item takes no further part.
struct ItemEnded {
  int item = 0;
  Status status = Status::failed;
  std::string reason;
};
struct ItemChecked {
  int item = 0;
  Accuracy accuracy;
};
struct RoundDone {
  int round = 0;
  std::vector<int> items;
  std::vector<double> ns;         // as `items`
  std::vector<double> sm_mhz;     // as `items`; 0 unknown
  std::vector<int> void_samples;  // as `items`
};
// A steered worker has taken the rounds asked for, those that could be taken, and waits.
struct RoundsTaken {
  double elapsed_s = 0.0;  // of the rounds, eviction and all; not of checking
};
struct WorkDone {
  std::string stop;                // empty when nothing was measured
  double timer_step_ns = 0;        // resolution of the clock that timed
  std::vector<std::string> flags;  // that hold for every row of the shape
};

using WorkEvent = std::variant<DeviceFound, MemoryCounted, StepBegins, ItemPlanned, ItemEnded, ItemChecked,
                               RoundDone, RoundsTaken, WorkDone>;

}  // namespace fdbench
