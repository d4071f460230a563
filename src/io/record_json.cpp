#include "io/record_json.h"

#include <cstddef>
#include <string_view>
#include <utility>

#include "io/json_text.h"

namespace fdbench::io {

namespace {

using Json = nlohmann::ordered_json;

Json optional_json(const std::optional<double>& value) {
  return value ? number_or_null(*value) : Json(nullptr);
}

// null for 0, which stands for "none" in DeviceInfo.
template <class Integer>
Json none_if_zero(Integer value) {
  return value == 0 ? Json(nullptr) : Json(value);
}

Json json_of(const Extent3& extent) {
  return Json::array({extent.x, extent.y, extent.z});
}

Extent3 extent_or_one(const Cursor& from, const char* key) {
  const auto found = from.find(key);
  if (!found) return {};
  if (found->size() != 3) found->must_be("an array [x, y, z]");
  const Cursor x = found->item(0), y = found->item(1), z = found->item(2);
  return {x.integer(0), y.integer(0), z.integer(0)};
}

BackendKind read_kind(const Cursor& from) {
  for (const BackendKind kind : {BackendKind::cpu, BackendKind::cuda, BackendKind::fake}) {
    if (from.text() == to_string(kind)) return kind;
  }
  from.must_be("\"cpu\", \"cuda\" or \"fake\"");
}

}  // namespace

Json json_of(const Problem& problem) {
  Json out;
  out["seq"] = problem.seq;
  out["heads"] = problem.heads;
  out["kv_heads"] = problem.kv_heads;
  out["dim"] = problem.dim;
  out["dtype"] = std::string(to_string(problem.dtype));
  out["scale"] = problem.scale ? number_or_null(static_cast<double>(*problem.scale)) : Json(nullptr);
  return out;
}

Problem read_problem(const Cursor& from) {
  Problem problem;
  problem.seq = from.at("seq").integer(0);
  problem.heads = from.at("heads").integer(1);
  problem.kv_heads = from.at("kv_heads").integer(1);
  problem.dim = from.at("dim").integer(1);
  problem.dtype = read_dtype(from.at("dtype"));
  if (const auto scale = from.find("scale")) problem.scale = static_cast<float>(scale->number());
  if (const auto reason = invalid_reason(problem)) from.fail("makes no problem: " + *reason);
  return problem;
}

Json json_of(const TuningPoint& tuning) {
  Json out = Json::object();
  for (const auto& [axis, value] : tuning.values()) out[axis] = value;
  return out;
}

TuningPoint read_tuning(const Cursor& from) {
  from.object();
  TuningPoint tuning;
  for (const auto& [axis, value] : from.node().items()) {
    if (has_control(axis)) from.fail("has an axis with a control character in its name");
    tuning.set(axis, from.at(axis.c_str()).integer());
  }
  return tuning;
}

Json json_of(const LaunchPlan& plan) {
  Json out;
  out["grid"] = json_of(plan.grid);
  out["block"] = json_of(plan.block);
  out["cluster"] = json_of(plan.cluster);
  out["chunk"] = plan.chunk;
  out["splits"] = plan.splits;
  out["tile"] = plan.tile;
  out["stages"] = plan.stages;
  out["dynamic_smem"] = plan.dynamic_smem;
  out["cooperative"] = plan.cooperative;
  out["merge"] = text_or_null(plan.merge);
  out["scratch_bytes"] = plan.scratch_bytes;
  out["zeroed_bytes"] = plan.zeroed_bytes;
  if (!plan.isa.empty()) out["isa"] = plan.isa;
  out["rule"] = text_or_null(plan.rule);
  return out;
}

LaunchPlan read_plan(const Cursor& from) {
  LaunchPlan plan;
  plan.grid = extent_or_one(from, "grid");
  plan.block = extent_or_one(from, "block");
  plan.cluster = extent_or_one(from, "cluster");
  plan.chunk = count_or(from, "chunk", plan.chunk);
  plan.splits = count_or(from, "splits", plan.splits);
  plan.tile = count_or(from, "tile", plan.tile);
  plan.stages = count_or(from, "stages", plan.stages);
  plan.dynamic_smem = count_or(from, "dynamic_smem", plan.dynamic_smem);
  plan.cooperative = boolean_or(from, "cooperative", plan.cooperative);
  plan.merge = text_or(from, "merge");
  plan.scratch_bytes = count_or(from, "scratch_bytes", plan.scratch_bytes);
  plan.zeroed_bytes = count_or(from, "zeroed_bytes", plan.zeroed_bytes);
  plan.isa = text_or(from, "isa");
  plan.rule = text_or(from, "rule");
  return plan;
}

Json json_of(const DeviceInfo& device) {
  Json out;
  out["kind"] = std::string(to_string(device.kind));
  out["index"] = device.index;
  out["name"] = device.name;
  out["uuid"] = text_or_null(device.uuid);
  out["cc"] = none_if_zero(device.cc);
  out["sms"] = device.sms;
  out["l2_bytes"] = device.l2_bytes;
  out["memory_bytes"] = device.memory_bytes;
  out["memory_available_bytes"] = device.memory_available_bytes;
  out["bandwidth_datasheet"] = optional_json(device.bandwidth_datasheet);
  out["driver"] = text_or_null(device.driver);
  out["cublas"] = text_or_null(device.cublas);
  out["power_limit_w"] = optional_json(device.power_limit_w);
  out["mig"] = device.mig ? Json(*device.mig) : Json(nullptr);
  out["smem_per_sm"] = none_if_zero(device.smem_per_sm);
  out["smem_per_block"] = none_if_zero(device.smem_per_block);
  out["regs_per_sm"] = none_if_zero(device.regs_per_sm);
  out["threads_per_sm"] = none_if_zero(device.threads_per_sm);
  out["ctas_per_sm"] = none_if_zero(device.ctas_per_sm);
  out["cooperative_launch"] = device.cooperative_launch;
  out["l1d_bytes"] = none_if_zero(device.l1d_bytes);
  out["core_l2_bytes"] = none_if_zero(device.core_l2_bytes);
  if (!device.isas.empty()) out["isas"] = device.isas;
  return out;
}

DeviceInfo read_device(const Cursor& from) {
  DeviceInfo device;
  device.kind = read_kind(from.at("kind"));
  device.index = small_count_or(from, "index", 0);
  device.name = from.at("name").word();
  device.uuid = text_or(from, "uuid");
  device.cc = small_count_or(from, "cc", 0);
  device.sms = small_count_or(from, "sms", 0);
  device.l2_bytes = count_or(from, "l2_bytes", 0);
  device.memory_bytes = count_or(from, "memory_bytes", 0);
  device.memory_available_bytes = count_or(from, "memory_available_bytes", 0);
  device.bandwidth_datasheet = optional_number(from, "bandwidth_datasheet");
  device.driver = text_or(from, "driver");
  device.cublas = text_or(from, "cublas");
  device.power_limit_w = optional_number(from, "power_limit_w");
  if (const auto mig = from.find("mig")) device.mig = mig->boolean();
  device.smem_per_sm = count_or(from, "smem_per_sm", 0);
  device.smem_per_block = count_or(from, "smem_per_block", 0);
  device.regs_per_sm = small_count_or(from, "regs_per_sm", 0);
  device.threads_per_sm = small_count_or(from, "threads_per_sm", 0);
  device.ctas_per_sm = small_count_or(from, "ctas_per_sm", 0);
  device.cooperative_launch = boolean_or(from, "cooperative_launch", false);
  device.l1d_bytes = count_or(from, "l1d_bytes", 0);
  device.core_l2_bytes = count_or(from, "core_l2_bytes", 0);
  if (const auto isas = from.find("isas")) device.isas = texts(*isas);
  return device;
}

CacheMode read_cache_mode(const Cursor& from) {
  const auto mode = parse_cache_mode(from.text());
  if (!mode) from.must_be("\"cold\" or \"hot\"");
  return *mode;
}

TimerMode read_timer_mode(const Cursor& from) {
  const auto mode = parse_timer_mode(from.text());
  if (!mode) from.must_be("\"events\" or \"graph\"");
  return *mode;
}

Status read_status(const Cursor& from) {
  const auto status = parse_status(from.text());
  if (!status) from.must_be("\"ok\", \"unsupported\", \"incorrect\", \"failed\" or \"timeout\"");
  return *status;
}

Dtype read_dtype(const Cursor& from) {
  const auto dtype = parse_dtype(from.text());
  if (!dtype) from.must_be("\"bf16\" or \"fp16\"");
  return *dtype;
}

std::string text_or(const Cursor& from, const char* key, const std::string& otherwise) {
  const auto found = from.find(key);
  return found ? found->text() : otherwise;
}

std::string word_or(const Cursor& from, const char* key, const std::string& otherwise) {
  const auto found = from.find(key);
  return found ? found->word() : otherwise;
}

bool boolean_or(const Cursor& from, const char* key, bool otherwise) {
  const auto found = from.find(key);
  return found ? found->boolean() : otherwise;
}

double number_or(const Cursor& from, const char* key, double otherwise) {
  const auto found = from.find(key);
  return found ? found->number() : otherwise;
}

std::optional<double> optional_number(const Cursor& from, const char* key) {
  const auto found = from.find(key);
  return found ? std::optional<double>(found->number()) : std::nullopt;
}

std::int64_t count_or(const Cursor& from, const char* key, std::int64_t otherwise) {
  const auto found = from.find(key);
  return found ? found->integer(0) : otherwise;
}

int small_count_or(const Cursor& from, const char* key, int otherwise) {
  const auto found = from.find(key);
  return found ? found->small_integer(0) : otherwise;
}

std::vector<std::string> texts(const Cursor& from) {
  std::vector<std::string> out;
  out.reserve(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) out.push_back(from.item(i).text());
  return out;
}

}  // namespace fdbench::io
