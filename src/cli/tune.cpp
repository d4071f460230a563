// `fdbench tune`: searches for this machine's plans and writes them into a profile.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <utility>

#include "cli/commands.h"
#include "cli/open_device.h"
#include "cli/profile_store.h"
#include "cli/say.h"
#include "cli/tune_flags.h"
#include "cli/tune_table.h"
#include "io/profile_file.h"

namespace fdbench::cli {

namespace {

// --show and --export: what is known already. Without --profile that of this machine's device, the first file
// that there is.
Exit show(const TuneFlags& flags) {
  std::vector<TuningProfile> profiles;
  if (!flags.profile.empty()) {
    profiles = profiles_for({}, flags.profile);
  } else {
    const OpenedDevice opened = open_device(flags.measure.device, flags.measure.script);
    const DeviceInfo& device = opened.backend->device();
    profiles = profiles_for(device, {});
    if (profiles.empty()) {
      const std::string own = user_profile_path(device);
      throw usage_error(fmt::format("{}: no profile of {} yet; fdbench tune writes one{}",
                                    flags.show ? "--show" : "--export", device.name,
                                    own.empty() ? " where --profile says" : " to " + own));
    }
  }
  const TuningProfile& profile = profiles.front();
  if (flags.export_as == "json") {
    say(stdout, io::to_json(profile));
  } else if (flags.export_as == "csv") {
    say(stdout, io::profile_csv(profile));
  } else if (flags.export_as == "header") {
    if (profile.entries.empty()) throw usage_error("--export header: " + profile.path + " holds no plan");
    say(stdout, io::profile_header(profile));
  } else {
    say(stdout, fmt::format("{}: {} tuned plan{}\n", profile.path, profile.entries.size(),
                            profile.entries.size() == 1 ? "" : "s"));
    for (const std::vector<ProfileEntry>& group : by_environment(profile)) {
      say(stdout, fmt::format("\n{}\n{}\n{}", environment_text(group.front().key.environment),
                              profile_table(group), gain_summary(group, false)));
    }
  }
  return Exit::good;
}

// A flag that changes nothing was meant to; but what came from the environment was not meant for this.
void refuse_all_but(std::initializer_list<std::string_view> meant, const TuneFlags& flags,
                    const std::string& why) {
  for (const CLI::Option* option : flags.app->get_options()) {
    const std::string name = option->get_name();
    if (name.empty() || option->count() == 0 || !is_typed(*option, flags.argv)) continue;
    if (std::find(meant.begin(), meant.end(), name) == meant.end())
      throw usage_error(name + ": " + why + "; leave it out");
  }
}

// How a search measures is its own affair: what the environment says of it is not heard, what is typed
// refused.
constexpr const char* kNotOfASearch[] = {"--max-noise", "--max-time", "--fail-noisy", "--processes",
                                         "--timer"};

void leave_out_measuring(TuneFlags& flags) {
  const auto typed = [&](const char* name) { return is_typed(*flags.app->get_option(name), flags.argv); };
  for (const char* name : {"--max-noise", "--max-time", "--fail-noisy"}) {
    if (typed(name))
      throw usage_error(std::string(name) + ": a search counts its rounds; give --rounds or --budget");
  }
  const MeasureOptions plain;
  flags.measure.max_noise = plain.max_noise;
  flags.measure.max_time = plain.max_time;
  if (!typed("--processes")) flags.measure.processes = plain.processes;
  if (!typed("--timer")) flags.measure.timer = plain.timer;
}

Exit run(TuneFlags flags) {
  if (!flags.export_as.empty() && flags.export_as != "header" && flags.export_as != "json" &&
      flags.export_as != "csv")
    throw usage_error("--export " + flags.export_as + ": must be header, json or csv");
  leave_out_measuring(flags);
  search_settings(flags);
  if (flags.show || !flags.export_as.empty()) {
    refuse_all_but({"--show", "--export", "--profile", "--device", "--quiet", "--no-color"}, flags,
                   flags.show ? "--show only prints the profile" : "--export only prints the profile");
    return show(flags);
  }
  if (!flags.from.empty()) {
    refuse_all_but({"--from", "--variant", "--strategy", "--rounds", "--seed", "--quiet", "--no-color"},
                   flags, "with --from nothing is measured or written");
    return tune_from_files(flags);
  }
  return tune_live(flags);
}

}  // namespace

Command add_tune(CLI::App& parent, const std::vector<std::string>& argv) {
  CLI::App* app = parent.add_subcommand(
      "tune", "searches for this device's fastest plans; writes the profile that run uses");
  auto flags = std::make_shared<TuneFlags>();
  flags->argv = argv;
  flags->app = app;
  const char* group = "Tuning";
  flags->shapes.add_to(*app);
  app->add_option("--variant", flags->variants,
                  "search these only (every candidate of the device); may be repeated")
      ->delimiter(',')
      ->group(group);
  app->add_option("-a,--axis", flags->axes,
                  "NAME=VALUES: values of an axis in place of its own; may be repeated")
      ->group(group);
  app->add_option("--strategy", flags->strategy, "halving, random or exhaustive (halving)")->group(group);
  app->add_option("--model", flags->models,
                  "start also from a cost model fitted to the sweeps in this result file; may be repeated")
      ->group(group);
  app->add_option("--profile", flags->profile, "the profile to write, or to show (this device's own)")
      ->group(group);
  app->add_option(
         "--from", flags->from,
         "search this recorded sweep instead, and say how near it came at what cost; may be repeated")
      ->group(group);
  app->add_flag("--resume", flags->resume, "go on from the points that the last tuning has measured")
      ->group(group);
  app->add_flag("--dry-run", flags->dry_run, "list the points and the estimated time, measure nothing")
      ->group(group);
  app->add_flag("--show", flags->show, "print the profile")->group(group);
  app->add_option("--export", flags->export_as, "print the profile as header (C++17), json or csv")
      ->group(group);
  flags->measure.add_to(*app, true);
  for (const char* name : kNotOfASearch) app->get_option(name)->group("");
  app->get_option("--rounds")->description("final rounds at most (40)");
  app->get_option("--seed")->description("of the inputs, and of what is taken at random (1)");
  flags->output.add_to(*app);
  app->footer(
      "Examples:\n"
      "  fdbench tune --heads 32 --kv-heads 8 --seq 512:131072*2\n"
      "  fdbench tune --seq 8192 --heads 32 --variant cpu_split_kv --device cpu -a threads=1,2 --budget 60\n"
      "  fdbench tune --heads 32 --seq 512:131072*2 --dry-run\n"
      "  fdbench tune --from rules.json\n"
      "  fdbench tune --show\n"
      "  fdbench tune --export header\n"
      "The points measured go to --json, or $XDG_STATE_HOME/fdbench/tune/<device>.json; --resume reads "
      "them.\n"
      "See docs/tuning.md.");
  return {app, [flags] { return run(*flags); }};
}

}  // namespace fdbench::cli
