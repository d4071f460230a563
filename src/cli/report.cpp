// `fdbench report`: result files as one HTML page.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>

#include "cli/commands.h"
#include "cli/read_doctor.h"
#include "cli/result_inputs.h"
#include "cli/say.h"
#include "cli/shape_options.h"
#include "compare/compare.h"
#include "io/doctor_file.h"
#include "io/file.h"
#include "io/gate.h"
#include "report/html.h"
#include "rules/split_rule_table.h"

namespace fdbench::cli {

namespace {

struct ReportFlags {
  std::vector<std::string> files;
  std::string output, gate = "default", doctor;
};

std::vector<report::RuleChoice> rule_choices(const std::vector<ResultFile>& files) {
  std::vector<report::RuleChoice> choices;
  for (std::size_t f = 0; f < files.size(); ++f) {
    for (const report::SweepMap& map : report::sweep_maps_of(files[f].results, f)) {
      if (map.x_axis != "chunk") continue;
      const auto planned =
          std::find_if(map.cells.begin(), map.cells.end(),
                       [](const report::SweepCell& cell) { return cell.best.record->plan.has_value(); });
      if (planned == map.cells.end()) continue;
      const LaunchPlan& plan = *planned->best.record->plan;
      const rules::SplitInput input = rules::split_input(map.problem, files[f].run.device);
      for (const rules::SplitRule& rule : rules::split_rules()) {
        if (!rule.argument.empty() && !rule.default_argument) continue;
        rules::Split split = rules::find_split_rule(rule.name)(input);
        // A GPU kernel stages whole tiles: that is what it would run.
        if (plan.tile > 0 && files[f].run.device.kind == BackendKind::cuda)
          split = rules::round_to_tile(split, map.problem.seq, plan.tile);
        if (split.ok()) choices.push_back({f, map.variant, map.problem, std::string(rule.name), split.chunk});
      }
    }
  }
  return choices;
}

// Candidates' ids that have a time.
std::set<std::string> measured_ids(const ResultFile& file) {
  std::set<std::string> ids;
  for (const ResultRecord& row : file.results) {
    if (row.role == Role::candidate && row.time) ids.insert(row.id);
  }
  return ids;
}

// The last file against those before it that measured some of the same; nothing where none did.
std::optional<Comparison> before_and_after(const std::vector<ResultFile>& files,
                                           const std::vector<std::string>& names,
                                           const compare::CompareSettings& settings) {
  if (files.size() < 2) return std::nullopt;
  const std::set<std::string> now = measured_ids(files.back());
  compare::Side base, after;
  for (std::size_t f = 0; f + 1 < files.size(); ++f) {
    const std::set<std::string> ids = measured_ids(files[f]);
    if (std::none_of(ids.begin(), ids.end(), [&](const std::string& id) { return now.count(id) > 0; }))
      continue;
    base.files.push_back(&files[f]);
    base.names.push_back(names[f]);
  }
  if (base.files.empty()) return std::nullopt;
  after.files = {&files.back()};
  after.names = {names.back()};
  return compare::compare_sides(base, after, settings);
}

Exit execute(const ReportFlags& flags) {
  if (flags.files.empty())
    throw usage_error("report takes one result file or more: fdbench report results.json -o report.html");
  if (flags.output.empty())
    throw usage_error("-o is missing: which file is the page to go to? (- for stdout)");
  if (flags.output != "-") io::probe_writable(flags.output, "-o");
  io::refuse_overwriting(flags.output, "-o", flags.files, "report");
  compare::CompareSettings settings;
  settings.gate = io::find_gate(flags.gate, config_directories("gates"));
  const std::vector<ResultFile> files = read_result_files(flags.files);
  refuse_repeated_runs(files, flags.files, "");
  std::optional<MachineReport> machine;
  if (!flags.doctor.empty()) {
    machine = read_doctor_of(flags.doctor, files.back().run.device);
    for (const RowNoise& row : machine->noise) settings.noise[row.id] = row;
  }
  const std::optional<Comparison> comparison = before_and_after(files, flags.files, settings);

  report::ReportInput input;
  input.files = files;
  input.names = flags.files;
  input.rules = rule_choices(files);
  input.comparison = comparison ? &*comparison : nullptr;
  input.machine = machine ? &*machine : nullptr;
  const std::string page = report::html_report(input);
  if (flags.output == "-") {
    say(stdout, page);
    return Exit::good;
  }
  io::write_atomically(flags.output, page);
  say(stdout, fmt::format("wrote {}\n", flags.output));
  return Exit::good;
}

}  // namespace

Command add_report(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("report", "result files as one HTML page that needs nothing else");
  auto flags = std::make_shared<ReportFlags>();
  app->add_option("files", flags->files,
                  "result files; the last is compared with those before it that measured the same");
  app->add_option("-o,--output", flags->output, "the page to write, - for stdout");
  app->add_option("--gate", flags->gate,
                  "thresholds for before and after: a name under configs/gates, or a file (default)");
  app->add_option("--doctor", flags->doctor, "what `fdbench doctor --json FILE` wrote on this machine");
  app->footer(
      "Examples:\n"
      "  fdbench report results.json -o report.html\n"
      "  fdbench report before.json after.json -o change.html");
  return {app, [flags] { return execute(*flags); }};
}

}  // namespace fdbench::cli
