#include "cli/measure_options.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "cli/numbers.h"
#include "cli/open_device.h"
#include "core/error.h"

namespace fdbench::cli {

namespace {

// "cpu_split_kv=5%"
Plant parse_plant(const std::string& text) {
  const auto at = text.rfind('=');
  std::string number = at == std::string::npos ? "" : text.substr(at + 1);
  if (!number.empty() && number.back() == '%') number.pop_back();
  if (at == 0 || number.empty())
    throw usage_error("--plant-slowdown " + text + ": must be VARIANT=PERCENT, cpu_split_kv=5% say");
  return {text.substr(0, at), parse_positive("--plant-slowdown", number) / 100.0};
}

}  // namespace

void MeasureOptions::add_to(CLI::App& app, bool timing) {
  const char* group = "Measuring";
  app.add_option("--device", device, "auto (the first CUDA device, else the CPU), cpu, cuda or cuda:N")
      ->envname("FDBENCH_DEVICE")
      ->group(group);
  app.add_option("--seed", seed, "of the inputs (1)")->envname("FDBENCH_SEED")->group(group);
  app.add_option("--timeout", timeout, "seconds without a sign of life after which a row is given up")
      ->group(group);
  app.add_option("--fake", script)->group("");
  if (!timing) return;
  app.add_flag("--dirty-flush", dirty_flush)->group("");
  app.add_option("--plant-slowdown", plant)->group("");
  app.add_option("--cache", cache, "cold (evicted before each sample) or hot")
      ->envname("FDBENCH_CACHE")
      ->group(group);
  app.add_option("--timer", timer, "events (each launch) or graph (throughput of replays; CUDA)")
      ->envname("FDBENCH_TIMER")
      ->group(group);
  app.add_option("--max-noise", max_noise, "stop when every median is known to +- this many percent (1)")
      ->envname("FDBENCH_MAX_NOISE")
      ->group(group);
  app.add_option("--max-time", max_time, "or after this many seconds a row (3)")
      ->envname("FDBENCH_MAX_TIME")
      ->group(group);
  app.add_option("--rounds", rounds, "exactly so many rounds instead")
      ->envname("FDBENCH_ROUNDS")
      ->group(group);
  app.add_option("--processes", processes, "repeat the whole in so many fresh processes (1)")
      ->envname("FDBENCH_PROCESSES")
      ->group(group);
  app.add_option("--budget", budget, "seconds for the whole: shapes not begun by then are left out")
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
  if (!plant.empty()) settings.plant = parse_plant(plant);
  const auto cache_mode = parse_cache_mode(cache);
  if (!cache_mode) throw usage_error("--cache " + cache + ": must be cold or hot");
  const auto timer_mode = parse_timer_mode(timer);
  if (!timer_mode) throw usage_error("--timer " + timer + ": must be events or graph");
  settings.measure.cache = *cache_mode;
  settings.measure.timer = *timer_mode;
  settings.measure.max_noise = parse_positive("--max-noise", max_noise) / 100.0;
  settings.measure.max_time_s = parse_positive("--max-time", max_time);
  if (!rounds.empty())
    settings.measure.rounds = static_cast<int>(parse_whole("--rounds", rounds, 1, 100'000));
  settings.measure.seed =
      static_cast<std::uint64_t>(parse_whole("--seed", seed, 0, std::numeric_limits<std::int64_t>::max()));
  settings.processes = static_cast<int>(parse_whole("--processes", processes, 1, 1000));
  if (!budget.empty()) settings.budget_s = parse_positive("--budget", budget);
  if (!timeout.empty()) settings.silence_s = parse_positive("--timeout", timeout);
  return settings;
}

bool was_typed(const CLI::Option& option) {
  return option.count() > 0 &&
         (option.get_envname().empty() || std::getenv(option.get_envname().c_str()) == nullptr);
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
