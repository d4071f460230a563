// `fdbench compare`: two sets of results, or two builds, against each other.
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "cli/commands.h"
#include "cli/compare_bins.h"
#include "cli/compare_table.h"
#include "cli/interrupt.h"
#include "cli/measure_options.h"
#include "cli/numbers.h"
#include "cli/read_doctor.h"
#include "cli/result_inputs.h"
#include "cli/say.h"
#include "cli/shape_options.h"
#include "compare/comparable.h"
#include "compare/compare.h"
#include "io/compare_export.h"
#include "io/doctor_file.h"
#include "io/file.h"
#include "io/gate.h"
#include "io/result_json.h"

namespace fdbench::cli {

namespace {

// What is measured again is measured this many times as often.
constexpr int kAgainProcesses = 2;

struct CompareFlags {
  std::vector<std::string> sides, allow, exports, variants;
  std::string gate = "default", doctor, format = "table", keep;
  bool bin = false, allow_missing = false, fail_noisy = false;
  ShapeOptions shapes;
  MeasureOptions measure;
  CLI::App* app = nullptr;
};

enum class Format { table, markdown, json, junit, github, bmf };

Format parse_format(const std::string& flag, const std::string& text) {
  static const std::map<std::string, Format> names = {
      {"table", Format::table}, {"md", Format::markdown}, {"json", Format::json},
      {"junit", Format::junit}, {"bmf", Format::bmf},     {"github-action-benchmark", Format::github}};
  const auto found = names.find(text);
  if (found == names.end())
    throw usage_error(
        fmt::format("{} {}: must be table, md, json, junit, github-action-benchmark or bmf", flag, text));
  return found->second;
}

std::string rendered(Format format, const Comparison& comparison, bool allow_missing, bool color) {
  switch (format) {
    case Format::table:
      return comparison_table(comparison, color);
    case Format::markdown:
      return io::comparison_markdown(comparison);
    case Format::json:
      return io::comparison_json(comparison);
    case Format::junit:
      return io::comparison_junit(comparison, allow_missing);
    case Format::github:
      return io::comparison_github_benchmark(comparison);
    case Format::bmf:
      break;
  }
  return io::comparison_bmf(comparison);
}

// Files that the comparison also goes to, found writable before anything is measured.
class Exports {
 public:
  // `inputs`: files that are read, and may not be written.
  Exports(const std::vector<std::string>& requests, const std::vector<std::string>& inputs) {
    for (const std::string& request : requests) {
      const auto at = request.find('=');
      if (at == std::string::npos || at + 1 == request.size())
        throw usage_error("--export " + request + ": must be FORMAT=FILE, junit=report.xml say");
      const std::string path = request.substr(at + 1);
      const Format format = parse_format("--export", request.substr(0, at));
      io::probe_writable(path, "--export");
      io::refuse_overwriting(path, "--export", inputs, "compare");
      locks_.push_back(io::lock_output(path, "--export"));
      targets_.emplace_back(format, path);
    }
  }
  // False where one could not be written, which is said.
  bool write(const Comparison& comparison, bool allow_missing) const {
    bool written = true;
    for (const auto& [format, path] : targets_) {
      try {
        io::write_atomically(path, rendered(format, comparison, allow_missing, false));
      } catch (const Error& error) {
        written = false;
        say(stderr, std::string("fdbench: ") + error.what() + "\n");
      }
    }
    return written;
  }

 private:
  std::vector<std::unique_ptr<io::OutputLock>> locks_;
  std::vector<std::pair<Format, std::string>> targets_;
};

compare::Side side_of(const std::vector<ResultFile>& files, const std::vector<std::string>& names,
                      bool in_turn) {
  compare::Side side;
  for (const ResultFile& file : files) side.files.push_back(&file);
  side.names = names;
  side.one_session = in_turn;
  return side;
}

void take_noise(const std::string& path, const DeviceInfo& device, compare::CompareSettings& settings) {
  if (path.empty()) return;
  const MachineReport report = read_doctor_of(path, device);
  for (const RowNoise& row : report.noise) settings.noise[row.id] = row;
}

compare::CompareSettings settings_of(const CompareFlags& flags) {
  compare::CompareSettings settings;
  settings.gate = io::find_gate(flags.gate, config_directories("gates"));
  for (const std::string& key : flags.allow) {
    const auto& known = compare::kComparableKeys;
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      std::string names;
      for (const std::string_view name : known) names += (names.empty() ? "" : ", ") + std::string(name);
      throw usage_error("--allow " + key + ": no such key; there are " + names);
    }
    settings.allow.insert(key);
  }
  return settings;
}

bool measures(const CLI::Option* option) {
  const std::string& group = option->get_group();
  return group == "Shapes" || group == "Measuring" || group == "Variants";
}

Comparison compare_files(const CompareFlags& flags, compare::CompareSettings& settings,
                         const std::vector<std::string>& argv) {
  for (const CLI::Option* option : flags.app->get_options(measures)) {
    for (const std::string& word : argv) {
      if (option->check_name(word.substr(0, word.find('='))))
        throw usage_error(word + " says how to measure, and files are measured already; it goes with --bin");
    }
  }
  if (flags.sides.size() < 2)
    throw usage_error("compare takes two result files or more: BASE... NEW (or --bin OLD NEW)");
  std::vector<ResultFile> files = read_result_files(flags.sides);
  refuse_repeated_runs(files, flags.sides, "");
  if (!flags.keep.empty()) throw usage_error("--keep " + flags.keep + ": goes with --bin");
  take_noise(flags.doctor, files.back().run.device, settings);
  std::vector<ResultFile> now;
  now.push_back(std::move(files.back()));
  files.pop_back();
  std::vector<std::string> names = flags.sides;
  names.pop_back();
  return compare::compare_sides(side_of(files, names, false), side_of(now, {flags.sides.back()}, false),
                                settings);
}

// The measuring flags as typed, for `run`. What the environment says reaches it by itself.
std::vector<std::string> run_arguments(const CompareFlags& flags) {
  std::vector<std::string> words;
  for (const CLI::Option* option : flags.app->get_options()) {
    if (option->get_lnames().empty()) continue;  // a hidden option's get_name() is empty
    const std::string name = "--" + option->get_lnames().front();
    const bool passed = option->get_group() == "Measuring" || name == "--fake";
    if (!passed || name == "--processes" || option->count() == 0) continue;
    words.push_back(name);
    words.push_back(option->as<std::string>());
  }
  return words;
}

Comparison compare_builds(const CompareFlags& flags, compare::CompareSettings& settings) {
  if (flags.sides.size() != 2) throw usage_error("--bin takes two programs: --bin OLD NEW");
  flags.measure.settings();  // what makes no sense is refused here
  const std::vector<Problem> shapes = flags.shapes.problems();
  const CLI::Option* given = flags.app->get_option("--processes");
  const int processes = given->count() > 0
                            ? static_cast<int>(parse_whole("--processes", flags.measure.processes, 1, 1000))
                            : settings.gate.processes;
  for (const std::string& program : flags.sides) {
    if (access(program.c_str(), X_OK) != 0 && program.find('/') != std::string::npos)
      throw usage_error(fmt::format("--bin {}: can't be started: {}", program, std::strerror(errno)));
  }
  std::optional<ScratchFolder> scratch;
  Builds builds{flags.sides[0], flags.sides[1], run_arguments(flags), {}, flags.keep};
  if (!flags.measure.plant.empty()) builds.only_new = {"--plant-slowdown", flags.measure.plant};
  if (flags.keep.empty()) {
    builds.folder = scratch.emplace().path();
  } else {
    io::make_directories(flags.keep, "--keep");
  }
  watch_for_interrupts();
  const bool shown = isatty(STDERR_FILENO) != 0;
  const auto progress = [&](const char* what) {
    return [=](int done, int of) {
      if (shown) say(stderr, fmt::format("\r\x1b[K[{}/{}] {}", done + 1, of, what));
    };
  };
  const auto clear = [&] {
    if (shown) say(stderr, "\r\x1b[K");
  };
  const BuildResults first = measure_in_turn(builds, "first", processes, shapes, flags.variants,
                                             progress("both builds in turn"), interrupted());
  clear();
  take_noise(flags.doctor, first.now.back().run.device, settings);
  Comparison comparison = compare::compare_sides(side_of(first.base, first.base_names, true),
                                                 side_of(first.now, first.new_names, true), settings);
  const std::vector<std::size_t> suspects = compare::suspects(comparison);
  if (suspects.empty()) return comparison;

  std::vector<Problem> again_shapes;
  std::set<std::string> again_variants;
  compare::CompareSettings again_settings = settings;
  for (const std::size_t at : suspects) {
    const RowComparison& row = comparison.rows[at];
    if (std::find(again_shapes.begin(), again_shapes.end(), row.problem) == again_shapes.end())
      again_shapes.push_back(row.problem);
    again_variants.insert(row.variant);
    again_settings.only.insert(row.id);
  }
  const BuildResults again =
      measure_in_turn(builds, "again", kAgainProcesses * processes, again_shapes,
                      {again_variants.begin(), again_variants.end()},
                      progress("measuring again what seems to have changed"), interrupted());
  clear();
  compare::confirm(comparison, suspects,
                   compare::compare_sides(side_of(again.base, again.base_names, true),
                                          side_of(again.now, again.new_names, true), again_settings));
  return comparison;
}

Exit execute(const CompareFlags& flags, const std::vector<std::string>& argv) {
  const Format format = parse_format("--format", flags.format);
  compare::CompareSettings settings = settings_of(flags);
  std::vector<std::string> inputs = flags.sides;
  inputs.insert(inputs.end(), {flags.doctor, flags.gate});
  const Exports exports(flags.exports, inputs);
  const Comparison comparison =
      flags.bin ? compare_builds(flags, settings) : compare_files(flags, settings, argv);
  // Terminals get colours, nothing else does.
  const bool color = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  say(stdout, rendered(format, comparison, flags.allow_missing, color));
  if (format != Format::table) {
    for (const std::string& warning : comparison.warnings) say(stderr, "fdbench: warning: " + warning + "\n");
  }
  for (const std::string& line : comparison.not_comparable)
    say(stderr, "fdbench: not comparable: " + line + "\n");
  if (!exports.write(comparison, flags.allow_missing)) return Exit::not_written;
  return compare::exit_for(comparison, flags.allow_missing, flags.fail_noisy);
}

}  // namespace

Command add_compare(CLI::App& parent, const std::vector<std::string>& argv) {
  CLI::App* app = parent.add_subcommand(
      "compare", "two sets of results, or two builds: a verdict a row, and CI's exit code");
  auto flags = std::make_shared<CompareFlags>();
  flags->app = app;
  app->add_option("sides", flags->sides, "BASE... NEW: result files; more than one BASE is a pooled history");
  app->add_flag("--bin", flags->bin,
                "OLD NEW are two builds of fdbench: measure both in turn on this machine");
  app->add_option("--gate", flags->gate, "thresholds: a name under configs/gates, or a file (default)");
  app->add_option("--doctor", flags->doctor, "what `fdbench doctor --json FILE` wrote on this machine");
  app->add_option("--allow", flags->allow,
                  "compare although this differs: device, power, mig, dtype, cache, timer, inputs")
      ->delimiter(',')
      ->allow_extra_args(false);
  app->add_flag("--allow-missing", flags->allow_missing, "rows that are gone don't fail");
  app->add_option("--format", flags->format,
                  "of stdout: table, md, json, junit, github-action-benchmark or bmf (table)")
      ->group("Output");
  app->add_option("--export", flags->exports, "FORMAT=FILE: also write it there; may be repeated")
      ->allow_extra_args(false)
      ->group("Output");
  app->add_option("--keep", flags->keep, "with --bin: leave the builds' result files in this folder")
      ->group("Output");
  flags->shapes.add_to(*app);
  app->add_option("--variant", flags->variants, "with --bin: only these candidates; may be repeated")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group("Variants");
  flags->measure.add_to(*app, true);
  // What these two of run's flags would say, compare says otherwise or not at all.
  for (const char* name : {"--fail-noisy", "--budget"}) app->remove_option(app->get_option(name));
  app->add_flag("--fail-noisy", flags->fail_noisy, "exit 4 when a row is UNSURE")->group("Verdicts");
  app->footer(
      "Examples:\n"
      "  fdbench compare baseline.json new.json\n"
      "  fdbench compare monday.json tuesday.json wednesday.json new.json --format md\n"
      "  fdbench compare --bin old/fdbench new/fdbench --suite ci --export junit=report.xml\n"
      "\n"
      "Exit codes, the first that applies: 130 interrupted, 2 usage or an unreadable file, 7 no such device, "
      "8 not\n"
      "written, 5 not comparable or rows gone (unless --allow-missing), 3 a wrong result, 1 a regression, 4 "
      "UNSURE "
      "(only\n"
      "with --fail-noisy), 6 a row failed or nothing was compared, 0 good. Improvements never fail. "
      "docs/gating.md");
  return {app, [flags, argv] { return execute(*flags, argv); }};
}

}  // namespace fdbench::cli
