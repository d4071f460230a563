// The flags that say how to measure, and where results go.
#pragma once

#include <string>

#include "bench/runner.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace fdbench::cli {

struct MeasureOptions {
  std::string device = "auto", cache = "cold", timer = "events", script;
  // Numbers as typed; empty: not given.
  std::string max_noise = "1", max_time = "3", rounds, processes = "1", budget, timeout, seed = "1";
  bool fail_noisy = false;
  std::string plant;         // hidden: VARIANT=5%, a slowdown to be found (docs/gating.md)
  bool dirty_flush = false;  // hidden: what evicting by writing does to the figures (docs/measuring.md)

  // `timing`: the flags that make sense only where something is timed.
  void add_to(CLI::App& app, bool timing);
  // Throws Error (usage) for values that make no sense.
  bench::RunSettings settings() const;
};

// Given on the command line: what comes from the environment is not meant for one command.
bool was_typed(const CLI::Option& option);

struct OutputOptions {
  std::string json, csv, md, directory;
  bool quiet = false, no_color = false;
  bool plot = false;  // run and sweep

  void add_to(CLI::App& app);
  // Something other than the table takes stdout.
  bool stdout_taken() const { return json == "-" || csv == "-" || md == "-"; }
};

}  // namespace fdbench::cli
