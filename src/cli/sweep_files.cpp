#include "cli/sweep_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "cli/result_inputs.h"
#include "core/error.h"

namespace fdbench::cli {

namespace {

void check_comparable(const RunInfo& first, const RunInfo& other, const std::string& path) {
  const auto differ = [&](const char* what, const std::string& a, const std::string& b) {
    if (a == b) return;
    throw Error(Exit::not_comparable,
                fmt::format("--from {}: its {} is {}, and the first file's {}", path, what, b, a));
  };
  differ("device", first.device.name, other.device.name);
  differ("number of multiprocessors or cores", std::to_string(first.device.sms),
         std::to_string(other.device.sms));
  if (isas_differ(first.device, other.device))
    differ("list of instruction sets", isas_text(first.device), isas_text(other.device));
  differ("cache mode", std::string(to_string(first.cache)), std::string(to_string(other.cache)));
  differ("kind of inputs", first.inputs, other.inputs);
  differ("timer", std::string(to_string(first.timer)), std::string(to_string(other.timer)));
}

std::string list_of(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

}  // namespace

SweepFiles read_sweeps(const std::vector<std::string>& paths, const std::string& variant) {
  SweepFiles found;
  std::vector<std::string> swept;
  found.files = read_result_files(paths);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    check_comparable(found.files.front().run, found.files[i].run, paths[i]);
    for (const std::string& name : tune::swept_variants(found.files[i].results)) {
      if (std::find(swept.begin(), swept.end(), name) == swept.end()) swept.push_back(name);
    }
  }
  refuse_repeated_runs(found.files, paths, "--from ");
  found.names = list_of(paths);
  found.device = found.files.front().run.device;
  found.variant = variant;
  if (swept.empty())
    throw usage_error("--from " + found.names +
                      ": holds no sweep over splits or chunk alone; fdbench rules measures one");
  if (variant.empty()) {
    if (swept.size() > 1)
      throw usage_error("--from " + found.names + ": holds sweeps of " + list_of(swept) +
                        "; choose one with --variant");
    found.variant = swept.front();
  }
  std::optional<int> version;
  for (std::size_t i = 0; i < found.files.size(); ++i) {
    const ResultFile& file = found.files[i];
    for (const ResultRecord& row : file.results) {
      if (row.variant != found.variant) continue;
      if (version.value_or(row.tuning_version) != row.tuning_version)
        throw Error(Exit::not_comparable,
                    fmt::format("--from {}: {} has tuning_version {} there and {} elsewhere", paths[i],
                                row.variant, row.tuning_version, *version));
      version = row.tuning_version;
    }
    for (tune::SplitSweep& sweep : tune::split_sweeps(file.results, file.run.device, found.variant))
      found.sweeps.push_back(std::move(sweep));
  }
  if (found.sweeps.empty())
    throw usage_error(fmt::format("--variant {}: not swept in {}; there are {}", found.variant, found.names,
                                  list_of(swept)));
  return found;
}

}  // namespace fdbench::cli
