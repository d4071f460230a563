// Where tuning profiles lie, and which a run consults.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/row_builder.h"
#include "core/device_info.h"
#include "core/tuning_profile.h"

namespace CLI {
class App;
}

namespace fdbench::cli {

// $XDG_CONFIG_HOME/fdbench/profiles/<device>.json, under ~/.config where the variable is not set. Empty where
// neither that nor HOME is.
std::string user_profile_path(const DeviceInfo& device);
// $XDG_STATE_HOME/fdbench/tune/<device>.json, under ~/.local/state: the points of the last tuning.
std::string tuning_points_path(const DeviceInfo& device);

// Profiles in the order in which they are asked: the file of --profile alone; else the user's own, then those
// installed. A broken file that nobody named is told on stderr and left out.
std::vector<TuningProfile> profiles_for(const DeviceInfo& device, const std::string& named);

// --profile and --no-profile of commands that measure.
struct ProfileOptions {
  std::string file;
  bool none = false;
  void add_to(CLI::App& app);
};

// Candidates' plans by profile, for MeasureCommand::rows_for and ::remark.
class ProfiledRows {
 public:
  explicit ProfiledRows(ProfileOptions options);
  // One row: the profile's plan with its word as source, or the variant's own.
  std::vector<bench::RowRequest> rows(const Variant& variant, const Problem& problem,
                                      const DeviceInfo& device);
  // "profile PATH: 2 exact, 1 fallback": rows by answer, of each profile; empty where none has one.
  std::string remark() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace fdbench::cli
