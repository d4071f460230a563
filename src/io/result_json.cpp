#include "io/result_json.h"

#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "io/file.h"
#include "io/json_reader.h"
#include "io/json_text.h"
#include "io/record_json.h"
#include "io/run_json.h"

namespace fdbench::io {

namespace {

using Json = nlohmann::ordered_json;

Json optional_json(const std::optional<double>& value) {
  return value ? number_or_null(*value) : Json(nullptr);
}

Json json_of(const std::optional<Bounds>& bounds) {
  if (!bounds || !std::isfinite(bounds->lo) || !std::isfinite(bounds->hi)) return nullptr;
  return Json::array({bounds->lo, bounds->hi});
}

std::optional<Bounds> read_bounds(const Cursor& from, const char* key) {
  const auto found = from.find(key);
  if (!found) return std::nullopt;
  if (found->size() != 2) found->must_be("an array [lo, hi]");
  const Cursor lo = found->item(0), hi = found->item(1);
  const Bounds bounds{lo.number(), hi.number()};
  if (bounds.lo > bounds.hi) found->must_be("an array [lo, hi] with lo <= hi");
  return bounds;
}

Json json_of(const Accuracy& accuracy) {
  Json out;
  out["rel_l2"] = number_or_null(accuracy.rel_l2);
  out["max_abs"] = number_or_null(accuracy.max_abs);
  out["lse_max_abs"] = optional_json(accuracy.lse_max_abs);
  out["oracle"] = accuracy.oracle;
  return out;
}

// null is how an error that is not finite was written.
double read_error(const Cursor& from, const char* key) {
  const Cursor error = from.at(key);
  return error.is_null() ? std::numeric_limits<double>::infinity() : error.number_at_least(0.0);
}

Accuracy read_accuracy(const Cursor& from) {
  Accuracy accuracy;
  accuracy.rel_l2 = read_error(from, "rel_l2");
  accuracy.max_abs = read_error(from, "max_abs");
  accuracy.lse_max_abs = optional_number(from, "lse_max_abs");
  accuracy.oracle = text_or(from, "oracle");
  return accuracy;
}

Json json_of(const Sample& sample) {
  Json out;
  out["process"] = sample.process;
  out["round"] = sample.round;
  out["t"] = number_or_null(sample.ns);
  out["sm_mhz"] = sample.sm_mhz == 0.0 ? Json(nullptr) : number_or_null(sample.sm_mhz);
  out["set_aside"] = sample.set_aside;
  return out;
}

// No launch takes less: a zero would make ratios and logarithms of it mean nothing.
constexpr double kLeastNs = 1e-3;

Sample read_sample(const Cursor& from) {
  Sample sample;
  sample.process = from.at("process").small_integer(0);
  sample.round = from.at("round").small_integer(0);
  sample.ns = from.at("t").number_at_least(kLeastNs);
  sample.sm_mhz = number_or(from, "sm_mhz", 0.0);
  sample.set_aside = boolean_or(from, "set_aside", false);
  return sample;
}

Json json_of(const TimeSummary& time) {
  Json out;
  out["n"] = time.n;
  out["min"] = number_or_null(time.min);
  out["q1"] = number_or_null(time.q1);
  out["median"] = number_or_null(time.median);
  out["q3"] = number_or_null(time.q3);
  out["max"] = number_or_null(time.max);
  out["ci95"] = json_of(time.ci95);
  out["stop"] = text_or_null(time.stop);
  out["void"] = time.void_samples;
  out["set_aside"] = time.set_aside;
  Json samples = Json::array();
  for (const Sample& sample : time.samples) samples.push_back(json_of(sample));
  out["samples"] = std::move(samples);
  return out;
}

TimeSummary read_time(const Cursor& from) {
  TimeSummary time;
  time.n = from.at("n").integer(0);
  time.min = from.at("min").number_at_least(kLeastNs);
  time.q1 = from.at("q1").number();
  time.median = from.at("median").number();
  time.q3 = from.at("q3").number();
  time.max = from.at("max").number();
  // The median of several processes need not lie between the quartiles of all. Interpolating may cost a bit.
  constexpr double kSlack = 1.0 + 1e-12;
  if (time.q1 > time.q3 * kSlack) from.at("q1").must_be("at most q3");
  const std::pair<const char*, double> middles[] = {
      {"q1", time.q1}, {"median", time.median}, {"q3", time.q3}};
  for (const auto& [key, value] : middles) {
    if (value * kSlack < time.min || value > time.max * kSlack) from.at(key).must_be("between min and max");
  }
  time.ci95 = read_bounds(from, "ci95");
  time.stop = text_or(from, "stop");
  time.void_samples = count_or(from, "void", 0);
  time.set_aside = count_or(from, "set_aside", 0);
  if (const auto samples = from.find("samples")) {
    time.samples.reserve(samples->size());
    std::set<std::pair<int, int>> rounds;
    for (std::size_t i = 0; i < samples->size(); ++i) {
      const Cursor sample = samples->item(i);
      time.samples.push_back(read_sample(sample));
      if (!rounds.insert({time.samples.back().process, time.samples.back().round}).second)
        sample.must_be("of a process and round that no other sample of the row has");
    }
  }
  return time;
}

Json json_of(const ResultRecord& record) {
  Json out;
  out["id"] = record.id;
  out["problem"] = io::json_of(record.problem);
  out["variant"] = record.variant;
  out["role"] = std::string(to_string(record.role));
  out["tuning_version"] = record.tuning_version;
  out["tuning"] = io::json_of(record.tuning);
  out["plan"] = record.plan ? io::json_of(*record.plan) : Json(nullptr);
  out["source"] = record.source;
  out["status"] = std::string(to_string(record.status));
  out["reason"] = text_or_null(record.reason);
  out["flags"] = record.flags;
  out["accuracy"] = record.accuracy ? json_of(*record.accuracy) : Json(nullptr);
  out["time_ns"] = record.time ? json_of(*record.time) : Json(nullptr);
  out["prepare_ns"] = optional_json(record.prepare_ns);
  out["bytes"] = record.bytes;
  out["bytes_per_s"] = optional_json(record.bytes_per_s);
  out["roof_share"] = optional_json(record.roof_share);
  out["roof_share_ci95"] = json_of(record.roof_share_ci95);
  out["speedup"] = optional_json(record.speedup);
  out["speedup_ci95"] = json_of(record.speedup_ci95);
  return out;
}

Role read_role(const Cursor& from) {
  for (const Role role : {Role::oracle, Role::roof, Role::reference, Role::candidate}) {
    if (from.text() == to_string(role)) return role;
  }
  from.must_be("\"oracle\", \"roof\", \"reference\" or \"candidate\"");
}

ResultRecord read_record(const Cursor& from) {
  ResultRecord record;
  record.id = from.at("id").word();
  const Cursor problem = from.at("problem");
  record.problem = read_problem(problem);
  record.variant = from.at("variant").word();
  record.role = read_role(from.at("role"));
  record.tuning_version = small_count_or(from, "tuning_version", 1);
  if (const auto tuning = from.find("tuning")) record.tuning = read_tuning(*tuning);
  if (const auto plan = from.find("plan")) record.plan = read_plan(*plan);
  record.source = word_or(from, "source", "default");
  record.status = read_status(from.at("status"));
  record.reason = text_or(from, "reason");
  if (const auto flags = from.find("flags")) record.flags = texts(*flags);
  if (const auto accuracy = from.find("accuracy")) record.accuracy = read_accuracy(*accuracy);
  if (const auto time = from.find("time_ns")) record.time = read_time(*time);
  record.prepare_ns = optional_number(from, "prepare_ns");
  record.bytes = count_or(from, "bytes", record.problem.logical_bytes());
  record.bytes_per_s = optional_number(from, "bytes_per_s");
  record.roof_share = optional_number(from, "roof_share");
  record.roof_share_ci95 = read_bounds(from, "roof_share_ci95");
  record.speedup = optional_number(from, "speedup");
  record.speedup_ci95 = read_bounds(from, "speedup_ci95");
  return record;
}

}  // namespace

std::string to_json(const ResultFile& file) {
  Json out;
  out["schema"] = std::string(kResultSchema);
  out["run"] = json_of(file.run);
  Json results = Json::array();
  for (const ResultRecord& record : file.results) results.push_back(json_of(record));
  out["results"] = std::move(results);
  return pretty_text(out);
}

ResultFile parse_result(std::string_view text, const std::string& name) {
  const Source source{name, "a result file of schema fdbench.result/1.x", Exit::usage, kMaxResultBytes};
  const nlohmann::json value = parse_json(text, source);
  const Cursor root(value, source);
  check_schema(root, "fdbench.result");
  ResultFile file;
  const Cursor run = root.at("run");
  file.run = read_run(run);
  const Cursor results = root.at("results");
  file.results.reserve(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Cursor record = results.item(i);
    file.results.push_back(read_record(record));
  }
  return file;
}

ResultFile read_result_file(const std::string& path) {
  return parse_result(read_file(path, kMaxResultBytes), path);
}

}  // namespace fdbench::io
