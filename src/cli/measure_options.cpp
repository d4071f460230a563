#include "cli/measure_options.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "cli/open_device.h"
#include "core/error.h"

namespace fdbench::cli {

void MeasureOptions::add_to(CLI::App& app, bool timing) {
  const char* group = "Measuring";
  app.add_option("--device", device, "auto (the first CUDA device, else the CPU), cpu, cuda or cuda:N")
      ->envname("FDBENCH_DEVICE")
      ->group(group);
  app.add_option("--seed", seed, "of the inputs (1)")->envname("FDBENCH_SEED")->group(group);
  app.add_option("--timeout", timeout_s, "seconds without a sign of life after which a row is given up")
      ->group(group);
  app.add_option("--fake", script)->group("");
  if (!timing) return;
  app.add_flag("--dirty-flush", dirty_flush)->group("");
  app.add_option("--cache", cache, "cold (evicted before each sample) or hot")
      ->envname("FDBENCH_CACHE")
      ->group(group);
  app.add_option("--timer", timer, "events (each launch) or graph (throughput of replays; CUDA)")
      ->envname("FDBENCH_TIMER")
      ->group(group);
  app.add_option("--max-noise", max_noise_percent,
                 "stop when every median is known to +- this many percent (1)")
      ->envname("FDBENCH_MAX_NOISE")
      ->group(group);
  app.add_option("--max-time", max_time_s, "or after this many seconds a row (3)")
      ->envname("FDBENCH_MAX_TIME")
      ->group(group);
  app.add_option("--rounds", rounds, "exactly so many rounds instead")
      ->envname("FDBENCH_ROUNDS")
      ->group(group);
  app.add_option("--processes", processes, "repeat the whole in so many fresh processes (1)")
      ->envname("FDBENCH_PROCESSES")
      ->group(group);
  app.add_option("--budget", budget_s, "seconds for the whole: shapes not begun by then are left out")
      ->envname("FDBENCH_BUDGET")
      ->group(group);
  app.add_flag("--fail-noisy", fail_noisy, "exit 4 when a row did not reach --max-noise")->group(group);
}

bench::RunSettings MeasureOptions::settings() const {
  bench::RunSettings settings;
  check_device_spec(device);
  settings.device = device;
  settings.script = script;
  settings.dirty_flush = dirty_flush;
  const auto cache_mode = parse_cache_mode(cache);
  if (!cache_mode) throw usage_error("--cache " + cache + ": must be cold or hot");
  const auto timer_mode = parse_timer_mode(timer);
  if (!timer_mode) throw usage_error("--timer " + timer + ": must be events or graph");
  const auto positive = [](const char* flag, double value) {
    if (!(value > 0.0) || !std::isfinite(value))
      throw usage_error(fmt::format("{} {}: must be more than 0", flag, value));
  };
  positive("--max-noise", max_noise_percent);
  positive("--max-time", max_time_s);
  if (budget_s) positive("--budget", *budget_s);
  if (timeout_s) positive("--timeout", *timeout_s);
  if (rounds && (*rounds < 1 || *rounds > 100000))
    throw usage_error(fmt::format("--rounds {}: must be 1 ... 100000", *rounds));
  if (processes < 1 || processes > 1000)
    throw usage_error(fmt::format("--processes {}: must be 1 ... 1000", processes));
  settings.measure.cache = *cache_mode;
  settings.measure.timer = *timer_mode;
  settings.measure.max_noise = max_noise_percent / 100.0;
  settings.measure.max_time_s = max_time_s;
  settings.measure.rounds = rounds;
  settings.measure.seed = seed;
  settings.processes = processes;
  settings.budget_s = budget_s;
  settings.silence_s = timeout_s;
  return settings;
}

void OutputOptions::add_to(CLI::App& app) {
  const char* group = "Output";
  app.add_option("--json", json, "write the results as JSON to this file, - for stdout")->group(group);
  app.add_option("--csv", csv, "write the results as CSV to this file, - for stdout")->group(group);
  app.add_option("--md", md, "write the table as Markdown to this file, - for stdout")->group(group);
  app.add_option("--out", directory, "write JSON and CSV into this folder under a dated name")->group(group);
  app.add_flag("--quiet", quiet, "no table, no progress")->group(group);
  app.add_flag("--no-color", no_color, "no colours (nor with NO_COLOR set, nor when not a terminal)")
      ->group(group);
}

}  // namespace fdbench::cli
