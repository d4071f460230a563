// Machines that differ from themselves, simulated: how often does the gate fire when nothing changed, and how
// often does it see what did?
#pragma once

#include <cstdint>
#include <vector>

#include "compare/judge.h"

namespace fdbench::test {

// How the figures of processes scatter. `sd`: the between-process standard deviation of log(time / roof).
enum class Noise {
  normal,
  heavy_tails,  // Student's t with 3 degrees of freedom, scaled to `sd`
  bursts,       // normal, and one process in ten has groups of rows slowed by 5 % on average, exponentially
  drift,        // normal, and the ratio itself drifts by `sd` from the first process to the last
};

enum class Mode {
  files,  // one side after the other; the verdict from these figures
  bin,    // in turn; what fires is measured again with twice the processes
};

struct Scenario {
  Noise noise = Noise::normal;
  double sd = 0.005;
  Mode mode = Mode::files;
  int processes = 5;     // a side
  int rows = 40;         // of a report
  double planted = 0.0;  // on the first row: 0.05 is +5 %
};

struct Outcome {
  int reports = 0;
  int false_alarms = 0;  // reports with SLOWER on a row that nothing was done to
  int caught = 0;        // reports with SLOWER on the planted row
};

Outcome simulate(const Scenario& scenario, int reports, std::uint64_t seed);

}  // namespace fdbench::test
