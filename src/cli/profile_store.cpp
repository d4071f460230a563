#include "cli/profile_store.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "cli/build_info.h"
#include "cli/say.h"
#include "cli/shape_options.h"
#include "core/error.h"
#include "io/profile_file.h"
#include "tune/profile_lookup.h"

namespace fdbench::cli {

namespace {

// The folder that `variable` names, or the one under the home folder; empty where there is neither.
std::string base_folder(const char* variable, const char* under_home) {
  // A relative path in it is to be ignored, says the XDG specification.
  if (const char* set = std::getenv(variable); set && *set == '/') return set;
  const char* home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/" + under_home : std::string();
}

std::string file_name(const DeviceInfo& device) {
  return profile_name(device.name) + ".json";
}

}  // namespace

std::string user_profile_path(const DeviceInfo& device) {
  const std::string base = base_folder("XDG_CONFIG_HOME", ".config");
  return base.empty() ? base : base + "/fdbench/profiles/" + file_name(device);
}

std::string tuning_points_path(const DeviceInfo& device) {
  const std::string base = base_folder("XDG_STATE_HOME", ".local/state");
  return base.empty() ? base : base + "/fdbench/tune/" + file_name(device);
}

std::vector<TuningProfile> profiles_for(const DeviceInfo& device, const std::string& named) {
  std::vector<TuningProfile> profiles;
  if (!named.empty()) {
    auto profile = io::read_profile(named);
    if (!profile) throw usage_error("--profile " + named + ": no such file; fdbench tune writes one");
    profiles.push_back(*std::move(profile));
    return profiles;
  }
  std::vector<std::string> paths;
  if (const std::string own = user_profile_path(device); !own.empty()) paths.push_back(own);
  for (const std::string& folder : config_directories("profiles"))
    paths.push_back(folder + "/" + file_name(device));
  for (const std::string& path : paths) {
    try {
      if (auto profile = io::read_profile(path)) profiles.push_back(*std::move(profile));
    } catch (const Error& broken) {
      say(stderr, fmt::format("fdbench: {}: not used\n", broken.what()));
    }
  }
  return profiles;
}

void ProfileOptions::add_to(CLI::App& app) {
  app.add_option("--profile", file,
                 "tuned plans from this file, instead of this device's own and installed ones")
      ->group("Variants");
  app.add_flag("--no-profile", none, "the variants' own plans, also where tuned ones are known")
      ->group("Variants");
}

struct ProfiledRows::State {
  ProfileOptions options;
  std::optional<std::vector<TuningProfile>> profiles;
  std::map<std::string, std::map<tune::ProfileAnswer, int>> rows;  // by path
  std::set<std::string> told;

  void tell(const std::string& note) {
    if (told.insert(note).second) say(stderr, fmt::format("fdbench: {}\n", note));
  }
};

ProfiledRows::ProfiledRows(ProfileOptions options) : state_(std::make_shared<State>()) {
  if (options.none && !options.file.empty())
    throw usage_error("--profile " + options.file + ": contradicts --no-profile; leave one of them out");
  state_->options = std::move(options);
}

std::vector<bench::RowRequest> ProfiledRows::rows(const Variant& variant, const Problem& problem,
                                                  const DeviceInfo& device) {
  State& state = *state_;
  bench::RowRequest row{&variant, {}, "default"};
  if (state.options.none) return {row};
  const ProfileEnvironment here = profile_environment(device, build_info().cuda);
  if (!state.profiles) {
    state.profiles = profiles_for(device, state.options.file);
    for (const TuningProfile& profile : *state.profiles) {
      if (const auto why = tune::foreign(profile, here)) state.tell(*why);
    }
  }
  tune::Lookup found = tune::look_up(*state.profiles, here, variant, problem, kernels_hash());
  for (const std::string& note : found.notes) state.tell(note);
  if (!found.match) return {row};
  tune::ProfileMatch& match = *found.match;
  if (match.entry) {
    const PlanResult planned = make_plan(variant, problem, device, match.tuning);
    if (const auto* no = std::get_if<Unsupported>(&planned)) {
      state.tell(fmt::format("{}: its plan for {} does not fit here: {}: not used", match.path,
                             shape_id(problem), no->reason));
      match.answer = tune::ProfileAnswer::fallback;
    } else {
      for (const std::string& note : match.notes) state.tell(note);
      if (const auto note = tune::other_isa(match, std::get<LaunchPlan>(planned))) state.tell(*note);
      row.tuning = match.tuning;
    }
  }
  row.source = "profile:" + std::string(to_string(match.answer));
  ++state.rows[match.path][match.answer];
  return {row};
}

std::string ProfiledRows::remark() const {
  std::string text;
  for (const auto& [path, answers] : state_->rows) {
    text += (text.empty() ? "profile " : "; profile ") + path + ":";
    const char* sign = " ";
    for (const auto& [answer, rows] : answers) {
      text += fmt::format("{}{} {}", sign, rows, to_string(answer));
      sign = ", ";
    }
  }
  return text;
}

}  // namespace fdbench::cli
