#include "compare/evidence.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/error.h"
#include "stats/summary.h"

namespace fdbench::compare {

namespace {

using RoundKey = std::pair<int, int>;  // process, round

bool has_time(const ResultRecord& record) {
  return record.status == Status::ok && record.time && !record.time->samples.empty();
}

// The plain roof of the record's shape in the same file; null where there is none.
const ResultRecord* roof_of(const ResultFile& file, const ResultRecord& record) {
  for (const ResultRecord& other : file.results) {
    if (other.role == Role::roof && other.tuning.empty() && has_time(other) &&
        other.problem == record.problem)
      return &other;
  }
  return nullptr;
}

std::map<RoundKey, double> kept_times(const ResultRecord& record) {
  std::map<RoundKey, double> times;
  for (const Sample& sample : record.time->samples) {
    if (!sample.set_aside && sample.ns > 0.0) times[{sample.process, sample.round}] = sample.ns;
  }
  return times;
}

std::map<int, std::vector<double>> log_ratios(const ResultRecord& record, const ResultRecord& roof) {
  const std::map<RoundKey, double> roof_times = kept_times(roof);
  std::map<int, std::vector<double>> ratios;
  for (const auto& [key, ns] : kept_times(record)) {
    const auto found = roof_times.find(key);
    if (found != roof_times.end()) ratios[key.first].push_back(std::log(ns / found->second));
  }
  return ratios;
}

std::vector<double> medians(const std::map<int, std::vector<double>>& per_process) {
  std::vector<double> out;
  for (const auto& [process, values] : per_process) out.push_back(stats::median(values));
  return out;
}

std::string roof_identity(const ResultRecord& roof) {
  std::string text = roof.variant + "/" + std::to_string(roof.tuning_version);
  if (roof.plan) {
    for (const std::int64_t value : {roof.plan->grid.total(), roof.plan->block.total(), roof.plan->chunk,
                                     roof.plan->splits, roof.plan->tile, roof.plan->stages})
      text += "/" + std::to_string(value);
  }
  return text;
}

std::string key_of(const ResultRecord& record, const RunInfo& run, const Pairing& pairing) {
  if (!pairing.ignore_dtype && !pairing.ignore_cache && !pairing.ignore_timer) return record.id;
  Problem problem = record.problem;
  if (pairing.ignore_dtype) problem.dtype = Dtype::bf16;
  return result_id(record.variant, problem, asked_tuning(record.tuning, record.source),
                   pairing.ignore_cache ? CacheMode::cold : run.cache,
                   pairing.ignore_timer ? TimerMode::events : run.timer);
}

void add_figures(std::vector<std::vector<double>>& sessions, std::vector<double> figures, bool one_session) {
  if (figures.empty()) return;
  if (one_session && !sessions.empty()) {
    sessions.front().insert(sessions.front().end(), figures.begin(), figures.end());
  } else {
    sessions.push_back(std::move(figures));
  }
}

void add(RowEvidence& row, const ResultFile& file, const ResultRecord& record, bool one_session,
         std::vector<double>& clocks) {
  const bool timed = has_time(record);
  if (timed || !row.record || !has_time(*row.record)) row.record = &record;
  if (record.status != Status::ok) row.reason = record.reason;
  switch (record.status) {
    case Status::ok:
      row.ok += timed ? 1 : 0;
      break;
    case Status::incorrect:
      ++row.incorrect;
      break;
    case Status::unsupported:
      ++row.unsupported;
      break;
    case Status::failed:
    case Status::timeout:
      ++row.failed;
      break;
  }
  if (!timed) return;
  row.throttled =
      row.throttled || std::find(record.flags.begin(), record.flags.end(), "throttled") != record.flags.end();
  row.medians_ns.push_back(record.time->median);
  std::map<int, std::vector<double>> logs;
  for (const auto& [key, ns] : kept_times(record)) logs[key.first].push_back(std::log(ns));
  add_figures(row.log_time, medians(logs), one_session);
  if (const ResultRecord* roof = roof_of(file, record)) {
    add_figures(row.log_ratio, medians(log_ratios(record, *roof)), one_session);
    row.roof = roof_identity(*roof);
  }
  for (const Sample& sample : record.time->samples) {
    if (!sample.set_aside && sample.sm_mhz > 0.0) clocks.push_back(sample.sm_mhz);
  }
}

}  // namespace

std::size_t RowEvidence::processes() const {
  std::size_t sum = 0;
  for (const auto& session : log_time) sum += session.size();
  return sum;
}

Evidence collect(const Side& side, const Pairing& pairing) {
  Evidence evidence;
  std::map<std::string, std::vector<double>> clocks;
  for (std::size_t f = 0; f < side.files.size(); ++f) {
    const ResultFile& file = *side.files[f];
    std::set<std::string> seen;
    for (const ResultRecord& record : file.results) {
      const std::string key = key_of(record, file.run, pairing);
      if (!seen.insert(key).second)
        throw usage_error(side.names[f] + ": has the result " + key + " twice; a result file has each once");
      if (!evidence.rows.count(key)) evidence.order.push_back(key);
      add(evidence.rows[key], file, record, side.one_session, clocks[key]);
    }
  }
  for (auto& [key, row] : evidence.rows) {
    if (!clocks[key].empty()) row.mhz = stats::median(clocks[key]);
  }
  return evidence;
}

double within_sd(const ResultFile& file, const ResultRecord& record) {
  const ResultRecord* roof = has_time(record) ? roof_of(file, record) : nullptr;
  if (!roof) return 0.0;
  std::vector<double> deviations;
  for (const auto& [process, ratios] : log_ratios(record, *roof)) {
    if (ratios.size() < 2) continue;
    double mean = 0.0, squares = 0.0;
    for (const double ratio : ratios) mean += ratio / static_cast<double>(ratios.size());
    for (const double ratio : ratios) squares += (ratio - mean) * (ratio - mean);
    deviations.push_back(std::sqrt(squares / static_cast<double>(ratios.size() - 1)));
  }
  return deviations.empty() ? 0.0 : stats::median(deviations);
}

}  // namespace fdbench::compare
