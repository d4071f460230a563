// What the fake backend plays: canned times and failures, so that the stop rule, the tables and the exit
// codes have exact tests. Read from a file by io/fake_script.h.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/device_info.h"

namespace fdbench {

enum class FakeBehaviour {
  ok,
  unsupported,   // refuses the problem
  throws,        // throws Error
  lost_device,   // throws, and the device is unusable from then on
  crash,         // the process dies of a signal
  hang,          // never returns
  nan,           // its output is NaN
  writes_guard,  // writes outside its workspace
  dirty_zeroed,  // leaves its zeroed workspace not zero
};

struct FakeVariantScript {
  std::vector<double> ns{1000.0};  // of one launch; cycled, one a sample
  std::map<int, double> chunk_ns;  // of a launch with this chunk, in place of `ns`: a landscape
  int bad_chunk = 0;               // the behaviour is this chunk's alone; 0: every launch's
  double error = 0.0;              // relative error put on the right output
  FakeBehaviour behaviour = FakeBehaviour::ok;
  bool at_prepare = false;  // else at a launch
  int after = 0;            // launches that go well first
  int void_every = 0;       // every n-th sample is void; 0: none
  std::string reason = "scripted";
};

struct FakeScript {
  DeviceInfo device;  // kind fake
  double timer_step_ns = 1.0;
  double sample_s = 0.01;  // what one sample, flush and all, advances the clock that --max-time looks at
  std::vector<double> clock_mhz;                      // one a sample, cycled; empty: unknown
  std::map<std::string, FakeVariantScript> variants;  // by name; one that is absent plays FakeVariantScript{}
};

}  // namespace fdbench
