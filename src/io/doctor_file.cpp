#include "io/doctor_file.h"

#include <utility>

#include "io/file.h"
#include "io/json_reader.h"
#include "io/json_text.h"
#include "io/record_json.h"
#include "io/run_json.h"

namespace fdbench::io {

namespace {
using Json = nlohmann::ordered_json;
}

std::string to_json(const MachineReport& report) {
  Json out;
  out["schema"] = "fdbench.doctor/1.0";
  out["run"] = json_of(report.run);
  Json machine = Json::array();
  for (const MachineFact& fact : report.facts) {
    machine.push_back({{"name", fact.name}, {"value", fact.value}, {"worry", text_or_null(fact.worry)}});
  }
  out["machine"] = std::move(machine);
  Json roof = Json::array();
  for (const RoofPoint& point : report.roof) {
    roof.push_back({{"bytes", point.bytes},
                    {"ns", number_or_null(point.ns)},
                    {"bytes_per_s", number_or_null(point.bytes_per_s)}});
  }
  out["roof"] = std::move(roof);
  Json noise = Json::array();
  for (const RowNoise& row : report.noise) {
    noise.push_back({{"id", row.id},
                     {"processes", row.processes},
                     {"within_percent", number_or_null(row.within_percent)},
                     {"between_percent", number_or_null(row.between_percent)},
                     {"smallest_effect_percent", number_or_null(row.smallest_effect_percent)}});
  }
  out["noise"] = std::move(noise);
  return pretty_text(out);
}

MachineReport parse_doctor(std::string_view text, const std::string& name) {
  const Source source{name, "a doctor's file of schema fdbench.doctor/1.x"};
  const nlohmann::json value = parse_json(text, source);
  const Cursor root(value, source);
  check_schema(root, "fdbench.doctor");
  MachineReport report;
  const Cursor run = root.at("run");
  report.run = read_run(run);
  if (const auto machine = root.find("machine")) {
    for (std::size_t i = 0; i < machine->size(); ++i) {
      const Cursor fact = machine->item(i);
      report.facts.push_back({fact.at("name").text(), text_or(fact, "value"), text_or(fact, "worry")});
    }
  }
  if (const auto roof = root.find("roof")) {
    for (std::size_t i = 0; i < roof->size(); ++i) {
      const Cursor point = roof->item(i);
      report.roof.push_back({point.at("bytes").integer(0), point.at("ns").number_at_least(0.0),
                             point.at("bytes_per_s").number_at_least(0.0)});
    }
  }
  const Cursor noise = root.at("noise");
  for (std::size_t i = 0; i < noise.size(); ++i) {
    const Cursor row = noise.item(i);
    report.noise.push_back({row.at("id").text(), row.at("processes").small_integer(0),
                            row.at("within_percent").number_at_least(0.0),
                            row.at("between_percent").number_at_least(0.0),
                            row.at("smallest_effect_percent").number_at_least(0.0)});
  }
  return report;
}

MachineReport read_doctor_file(const std::string& path) {
  return parse_doctor(read_file(path), path);
}

}  // namespace fdbench::io
