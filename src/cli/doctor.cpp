// `fdbench doctor`: what this machine is, its roof, and the smallest change that can be seen on it.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "backend/fake/fake_backend.h"
#include "cli/commands.h"
#include "cli/compare_bins.h"
#include "cli/interrupt.h"
#include "cli/machine_facts.h"
#include "cli/measure_command.h"
#include "cli/measure_options.h"
#include "cli/run_info.h"
#include "cli/say.h"
#include "cli/shape_options.h"
#include "cli/variant_table.h"
#include "compare/noise.h"
#include "core/machine_report.h"
#include "io/doctor_file.h"
#include "io/file.h"
#include "io/gate.h"
#include "io/result_json.h"

namespace fdbench::cli {

namespace {

constexpr int kProcesses = 10;
// The float64 oracle checks every size, and takes its time on a CPU.
constexpr std::int64_t kMostRoofBytesCpu = std::int64_t{1} << 27, kMostRoofBytesGpu = std::int64_t{1} << 30;

struct DoctorFlags {
  ShapeOptions shapes;
  MeasureOptions measure;
  std::string json, gate = "default";
  std::vector<std::string> variants;
  bool no_noise = false;
  CLI::App* app = nullptr;
};

// 32 heads of 128: 16 KiB of K and V a token. From 1 MiB, doubling twice.
std::vector<Problem> roof_shapes(std::int64_t most_bytes, std::int64_t available) {
  std::vector<Problem> shapes;
  for (std::int64_t seq = 64;; seq *= 4) {
    const Problem problem{seq, 32, 32, 128, Dtype::bf16, {}};
    // Inputs, flush buffer and oracle: a quarter of the memory is a safe share.
    if (problem.logical_bytes() > 2 * most_bytes || problem.logical_bytes() > available / 4) return shapes;
    shapes.push_back(problem);
  }
}

std::vector<RoofPoint> roof_curve(const bench::RunSettings& settings, const DeviceInfo& device,
                                  VariantTable table) {
  const Variant* roof = find_role(table, device.kind, Role::roof);
  if (!roof) return {};
  const std::int64_t most = device.kind == BackendKind::cuda ? kMostRoofBytesGpu : kMostRoofBytesCpu;
  std::vector<bench::ShapeWork> work;
  for (const Problem& problem : roof_shapes(most, device.memory_available_bytes))
    work.push_back({problem, {{roof, {}, "default"}}});
  bench::RunSettings once = settings;
  once.processes = 1;
  std::vector<RoofPoint> points;
  for (const ResultRecord& row : bench::run_shapes(worker_protocol(), once, work, {}, interrupted())) {
    if (row.time && row.bytes_per_s) points.push_back({row.bytes, row.time->median, *row.bytes_per_s});
  }
  return points;
}

// The same build against itself: fresh processes of one run.
std::vector<RowNoise> noise_of(const DoctorFlags& flags, const bench::RunSettings& settings, const Gate& gate,
                               std::vector<MachineFact>& facts, const std::vector<std::string>& argv) {
  const ScratchFolder scratch;
  MeasureCommand command;
  command.name = "doctor";
  command.argv = argv;
  command.shapes = flags.shapes.problems();
  command.variants = flags.variants;
  command.settings = settings;
  command.output.json = scratch.path() + "/noise.json";
  command.output.quiet = true;
  command.quiet_progress = true;
  const Exit exit = measure(command);
  if (exit == Exit::interrupted || exit == Exit::not_written)
    throw Error(exit, "doctor: the noise floor was not measured to its end");
  const ResultFile file = io::read_result_file(command.output.json);
  const auto any_flag = [&](const char* flag) {
    return std::any_of(file.results.begin(), file.results.end(), [&](const ResultRecord& row) {
      return std::find(row.flags.begin(), row.flags.end(), flag) != row.flags.end();
    });
  };
  std::int64_t set_aside = 0;
  for (const ResultRecord& row : file.results) set_aside += row.time ? row.time->set_aside : 0;
  const bool throttled = any_flag("throttled");
  facts.push_back({"throttling seen while measuring",
                   throttled       ? "yes"
                   : set_aside > 0 ? fmt::format("{} samples set aside", set_aside)
                                   : "no",
                   throttled ? "figures are of a slower device" : ""});
  if (any_flag("preempted"))
    facts.push_back({"preemption", "seen", "the scheduler took cores away from the kernels being timed"});
  return compare::row_noise(file, gate);
}

std::string text_of(const MachineReport& report, const Gate& gate) {
  std::string out;
  std::size_t name_width = 0, id_width = 2;
  for (const MachineFact& fact : report.facts) name_width = std::max(name_width, fact.name.size());
  for (const MachineFact& fact : report.facts) {
    out += fmt::format("{:<{}}  {}", fact.name, name_width, fact.value);
    if (!fact.worry.empty()) out += "  <- " + fact.worry;
    out += "\n";
  }
  if (!report.roof.empty()) out += "\nroof: what reading alone gives\n";
  for (const RoofPoint& point : report.roof) {
    out += fmt::format("  {:>9.1f} MB  {:>10.1f} us  {:>8.1f} GB/s\n", static_cast<double>(point.bytes) / 1e6,
                       point.ns / 1e3, point.bytes_per_s / 1e9);
  }
  if (report.noise.empty()) return out;
  for (const RowNoise& row : report.noise) id_width = std::max(id_width, row.id.size());
  out += fmt::format(
      "\nnoise floor of log(time / roof), {} fresh processes, and the smallest effect that files of {} "
      "processes a "
      "side\nshow in 95 % of cases, over {} rows\n  {:<{}}  {:>8}  {:>8}  {:>8}\n",
      report.noise.front().processes, gate.processes, report.noise.size(), "id", id_width, "within",
      "between", "smallest");
  for (const RowNoise& row : report.noise) {
    out += fmt::format("  {:<{}}  {:>6.2f} %  {:>6.2f} %  {:>6.1f} %", row.id, id_width, row.within_percent,
                       row.between_percent, row.smallest_effect_percent);
    const double threshold = threshold_percent(gate, row.id);
    if (row.smallest_effect_percent > threshold)
      out += fmt::format("  <- above the threshold of {} %", threshold);
    out += "\n";
  }
  return out;
}

Exit execute(const DoctorFlags& flags, const std::vector<std::string>& argv) {
  bench::RunSettings settings = flags.measure.settings();
  if (flags.app->get_option("--processes")->count() == 0) settings.processes = kProcesses;
  if (settings.processes < 2 && !flags.no_noise)
    throw usage_error("--processes 1: noise between processes takes at least 2");
  if (flags.no_noise) {
    for (const CLI::Option* option : flags.app->get_options()) {
      const bool of_noise = option->get_group() == "Shapes" || option->get_group() == "Variants" ||
                            option->check_name("--processes") || option->check_name("--gate");
      if (of_noise && was_typed(*option))
        throw usage_error(option->get_name() + ": is of the noise floor, which --no-noise leaves out");
    }
  }
  const Gate gate = io::find_gate(flags.gate, config_directories("gates"));
  std::unique_ptr<io::OutputLock> lock;
  if (!flags.json.empty() && flags.json != "-") {
    io::probe_writable(flags.json, "--json");
    lock = io::lock_output(flags.json, "--json");
  }
  watch_for_interrupts();
  const VariantTable table = settings.script.empty() ? variant_table() : fake_variant_table();
  MachineReport report;
  // The host's load before we make one.
  report.facts = host_facts(read_text_file);
  const bench::Survey found = bench::survey(worker_protocol(), settings, {}, {}, interrupted());
  report.run = make_run_info("doctor", argv, found.device, settings.measure, settings.processes);
  const std::vector<MachineFact> device = device_facts(found.device);
  report.facts.insert(report.facts.begin(), device.begin(), device.end());
  report.roof = roof_curve(settings, found.device, table);
  if (!flags.no_noise && !interrupted()) report.noise = noise_of(flags, settings, gate, report.facts, argv);
  if (interrupted()) throw Error(Exit::interrupted, "doctor: interrupted");
  if (flags.json == "-") {
    say(stdout, io::to_json(report));
    say(stderr, text_of(report, gate));
    return Exit::good;
  }
  say(stdout, text_of(report, gate));
  if (!flags.json.empty() && flags.json != "-") {
    io::write_atomically(flags.json, io::to_json(report));
    say(stdout, "\nwrote " + flags.json + "\n");
  }
  return Exit::good;
}

}  // namespace

Command add_doctor(CLI::App& parent, const std::vector<std::string>& argv) {
  CLI::App* app =
      parent.add_subcommand("doctor", "what this machine is, its roof, and the smallest change it can show");
  auto flags = std::make_shared<DoctorFlags>();
  flags->app = app;
  flags->shapes.add_to(*app);
  app->add_option("--variant", flags->variants, "the noise of these candidates alone; may be repeated")
      ->delimiter(',')
      ->group("Variants");
  flags->measure.add_to(*app, true);
  for (const char* name : {"--fail-noisy", "--budget"}) app->remove_option(app->get_option(name));
  app->add_option("--gate", flags->gate,
                  "whose thresholds to warn about: a name under configs/gates, or a file");
  app->add_flag("--no-noise", flags->no_noise,
                "leave out the noise floor, which takes the time, and with it shapes, --variant, --processes "
                "and --gate");
  app->add_option("--json", flags->json,
                  "write what was found to this file, for compare --doctor; - for stdout")
      ->group("Output");
  app->footer(
      "Examples:\n"
      "  fdbench doctor --no-noise\n"
      "  fdbench doctor --suite ci --json doctor.json    then: fdbench compare --doctor doctor.json "
      "base.json new.json\n"
      "Noise is measured over 10 fresh processes (--processes) on the suite default, or the shapes given.");
  return {app, [flags, argv] { return execute(*flags, argv); }};
}

}  // namespace fdbench::cli
