#include "io/result_csv.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "io/json_text.h"

namespace fdbench::io {

namespace {

std::string cell(double value) {
  return std::isfinite(value) ? number_text(value) : std::string();
}
std::string cell(const std::optional<double>& value) {
  return value ? cell(*value) : std::string();
}
std::string cell(std::string_view text) {
  return std::string(text);
}
std::string cell(const std::string& text) {
  return text;
}
template <class Integer>
requires std::is_integral_v<Integer> std::string cell(Integer value) {
  if constexpr (std::is_same_v<Integer, bool>) return value ? "true" : "false";
  return std::to_string(value);
}

std::string lo(const std::optional<Bounds>& bounds) {
  return bounds ? cell(bounds->lo) : "";
}
std::string hi(const std::optional<Bounds>& bounds) {
  return bounds ? cell(bounds->hi) : "";
}

std::string joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ";") + text;
  return out;
}

struct Cell {
  std::string_view column;
  std::string text;
};

// One row. The columns do not depend on what it holds.
std::vector<Cell> cells(const RunInfo& run, const ResultRecord& row) {
  std::vector<Cell> out;
  const auto add = [&](std::string_view column, std::string text) {
    out.push_back({column, std::move(text)});
  };
  const auto& time = row.time;
  const auto& plan = row.plan;
  const auto& accuracy = row.accuracy;
  add("id", row.id);
  add("variant", row.variant);
  add("role", cell(to_string(row.role)));
  add("status", cell(to_string(row.status)));
  add("reason", row.reason);
  add("flags", joined(row.flags));
  add("seq", cell(row.problem.seq));
  add("heads", cell(row.problem.heads));
  add("kv_heads", cell(row.problem.kv_heads));
  add("dim", cell(row.problem.dim));
  add("dtype", cell(to_string(row.problem.dtype)));
  add("scale", row.problem.scale ? cell(static_cast<double>(*row.problem.scale)) : "");
  add("tuning", row.tuning.id());
  add("tuning_version", cell(row.tuning_version));
  add("source", row.source);
  add("n", time ? cell(time->n) : "");
  add("median_ns", time ? cell(time->median) : "");
  add("median_ci95_lo_ns", time ? lo(time->ci95) : "");
  add("median_ci95_hi_ns", time ? hi(time->ci95) : "");
  add("min_ns", time ? cell(time->min) : "");
  add("q1_ns", time ? cell(time->q1) : "");
  add("q3_ns", time ? cell(time->q3) : "");
  add("max_ns", time ? cell(time->max) : "");
  add("stop", time ? cell(time->stop) : "");
  add("void_samples", time ? cell(time->void_samples) : "");
  add("set_aside_samples", time ? cell(time->set_aside) : "");
  add("prepare_ns", cell(row.prepare_ns));
  add("bytes", cell(row.bytes));
  add("bandwidth_GBps", row.bytes_per_s ? cell(*row.bytes_per_s / 1e9) : "");
  add("roof_share", cell(row.roof_share));
  add("roof_share_ci95_lo", lo(row.roof_share_ci95));
  add("roof_share_ci95_hi", hi(row.roof_share_ci95));
  add("speedup", cell(row.speedup));
  add("speedup_ci95_lo", lo(row.speedup_ci95));
  add("speedup_ci95_hi", hi(row.speedup_ci95));
  add("rel_l2", accuracy ? cell(accuracy->rel_l2) : "");
  add("max_abs", accuracy ? cell(accuracy->max_abs) : "");
  add("lse_max_abs", accuracy ? cell(accuracy->lse_max_abs) : "");
  add("oracle", accuracy ? cell(accuracy->oracle) : "");
  add("grid_x", plan ? cell(plan->grid.x) : "");
  add("grid_y", plan ? cell(plan->grid.y) : "");
  add("grid_z", plan ? cell(plan->grid.z) : "");
  add("block_x", plan ? cell(plan->block.x) : "");
  add("block_y", plan ? cell(plan->block.y) : "");
  add("block_z", plan ? cell(plan->block.z) : "");
  add("cluster_x", plan ? cell(plan->cluster.x) : "");
  add("cluster_y", plan ? cell(plan->cluster.y) : "");
  add("cluster_z", plan ? cell(plan->cluster.z) : "");
  add("chunk_tokens", plan ? cell(plan->chunk) : "");
  add("splits", plan ? cell(plan->splits) : "");
  add("tile_tokens", plan ? cell(plan->tile) : "");
  add("stages", plan ? cell(plan->stages) : "");
  add("dynamic_smem_bytes", plan ? cell(plan->dynamic_smem) : "");
  add("cooperative", plan ? cell(plan->cooperative) : "");
  add("merge", plan ? cell(plan->merge) : "");
  add("scratch_bytes", plan ? cell(plan->scratch_bytes) : "");
  add("zeroed_bytes", plan ? cell(plan->zeroed_bytes) : "");
  add("isa", plan ? cell(plan->isa) : "");
  add("rule", plan ? cell(plan->rule) : "");
  add("cache", cell(to_string(run.cache)));
  add("timer", cell(to_string(run.timer)));
  add("seed", cell(run.seed));
  add("inputs", run.inputs);
  add("processes", cell(run.processes));
  add("interrupted", cell(run.interrupted));
  add("device_kind", cell(to_string(run.device.kind)));
  add("device_name", run.device.name);
  add("device_uuid", run.device.uuid);
  add("driver", run.device.driver);
  add("host_cpu", run.host.cpu);
  add("run_id", run.id);
  add("started", run.started);
  add("version", run.tool.version);
  add("commit", run.tool.commit);
  add("dirty", cell(run.tool.dirty));
  return out;
}

template <class Get>
void append_line(const std::vector<Cell>& row, Get get, std::string& out) {
  for (const Cell& one : row) {
    if (&one != row.data()) out += ',';
    out += csv_field(get(one));
  }
  out += "\r\n";
}

}  // namespace

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::vector<std::string_view> csv_columns() {
  std::vector<std::string_view> names;
  for (const Cell& one : cells({}, {})) names.push_back(one.column);
  return names;
}

std::string to_csv(const ResultFile& file) {
  std::string out;
  append_line(
      cells({}, {}), [](const Cell& one) { return one.column; }, out);
  for (const ResultRecord& row : file.results) {
    append_line(
        cells(file.run, row), [](const Cell& one) -> std::string_view { return one.text; }, out);
  }
  return out;
}

}  // namespace fdbench::io
