#include "io/gate.h"

#include <filesystem>
#include <set>
#include <system_error>

#include "core/error.h"
#include "io/file.h"
#include "io/json_reader.h"

namespace fdbench::io {

namespace {

namespace fs = std::filesystem;

double read_percent(const Cursor& from, double least, double most) {
  const double value = from.number();
  if (!(value >= least && value <= most)) {
    from.must_be("a percentage, " + std::to_string(least) + " ... " + std::to_string(most));
  }
  return value;
}

constexpr double kLeastThreshold = 0.01, kMostThreshold = 1000.0;

}  // namespace

Gate parse_gate(std::string_view text, const std::string& name) {
  const Source source{name, "a gate of schema fdbench.gate/1.x"};
  const nlohmann::json value = parse_json(text, source);
  const Cursor root(value, source);
  check_schema(root, "fdbench.gate");
  root.only({"schema", "name", "description", "threshold_percent", "processes", "alpha_percent",
             "noise_floor_percent", "rules"});
  Gate gate;
  gate.name = root.at("name").text();
  if (const auto threshold = root.find("threshold_percent"))
    gate.threshold_percent = read_percent(*threshold, kLeastThreshold, kMostThreshold);
  if (const auto processes = root.find("processes")) {
    // Two a side have a variance, of a kind.
    gate.processes = static_cast<int>(processes->integer(2, 1000));
  }
  if (const auto alpha = root.find("alpha_percent")) gate.alpha_percent = read_percent(*alpha, 1e-6, 50.0);
  if (const auto floor = root.find("noise_floor_percent"))
    gate.noise_floor_percent = read_percent(*floor, 0.0, 100.0);
  if (const auto rules = root.find("rules")) {
    for (std::size_t i = 0; i < rules->size(); ++i) {
      const Cursor rule = rules->item(i);
      rule.only({"pattern", "threshold_percent"});
      const Cursor pattern = rule.at("pattern"), threshold = rule.at("threshold_percent");
      if (pattern.text().empty()) pattern.must_be("a pattern of result ids, cpu_*/seq=512/* say");
      gate.rules.push_back({pattern.text(), read_percent(threshold, kLeastThreshold, kMostThreshold)});
    }
  }
  return gate;
}

Gate read_gate(const std::string& path) {
  return parse_gate(read_file(path), path);
}

Gate find_gate(const std::string& name_or_path, const std::vector<std::string>& directories) {
  if (name_or_path.find('/') != std::string::npos || fs::path(name_or_path).extension() == ".json")
    return read_gate(name_or_path);
  std::set<std::string> names;
  for (const std::string& directory : directories) {
    const fs::path path = fs::path(directory) / (name_or_path + ".json");
    std::error_code ignored;
    if (fs::exists(path, ignored)) return read_gate(path.string());
    for (const fs::directory_entry& entry : fs::directory_iterator(directory, ignored)) {
      if (entry.path().extension() == ".json") names.insert(entry.path().stem().string());
    }
  }
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  throw usage_error("--gate " + name_or_path + ": no such gate; " +
                    (list.empty() ? "none is installed" : "there are " + list) + "; or name a FILE.json");
}

}  // namespace fdbench::io
