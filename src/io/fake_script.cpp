#include "io/fake_script.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "io/file.h"
#include "io/json_reader.h"
#include "io/record_json.h"

namespace fdbench::io {

namespace {

constexpr std::array<std::pair<std::string_view, FakeBehaviour>, 9> kBehaviours = {{
    {"ok", FakeBehaviour::ok},
    {"unsupported", FakeBehaviour::unsupported},
    {"throw", FakeBehaviour::throws},
    {"lost_device", FakeBehaviour::lost_device},
    {"crash", FakeBehaviour::crash},
    {"hang", FakeBehaviour::hang},
    {"nan", FakeBehaviour::nan},
    {"writes_guard", FakeBehaviour::writes_guard},
    {"dirty_zeroed", FakeBehaviour::dirty_zeroed},
}};

constexpr std::string_view kVariants[] = {"fake_candidate", "fake_oracle", "fake_other", "fake_reference",
                                          "fake_roof"};

DeviceInfo default_device() {
  DeviceInfo device;
  device.kind = BackendKind::fake;
  device.name = "Fake device";
  device.cc = 90;
  device.sms = 16;
  device.l2_bytes = std::int64_t{32} << 20;
  device.memory_bytes = std::int64_t{16} << 30;
  device.memory_available_bytes = device.memory_bytes;
  device.smem_per_sm = 228 << 10;
  device.smem_per_block = 227 << 10;
  device.regs_per_sm = 65536;
  device.threads_per_sm = 2048;
  device.ctas_per_sm = 32;
  device.cooperative_launch = true;
  return device;
}

// A list of numbers that are at least 0, or one.
std::vector<double> read_numbers(const Cursor& from) {
  if (!from.is_array()) return {from.number_at_least(0.0)};
  std::vector<double> out;
  for (std::size_t i = 0; i < from.size(); ++i) out.push_back(from.item(i).number_at_least(0.0));
  return out;
}

FakeBehaviour read_behaviour(const Cursor& from) {
  for (const auto& [name, behaviour] : kBehaviours) {
    if (from.text() == name) return behaviour;
  }
  std::string names;
  for (const auto& [name, behaviour] : kBehaviours) names += (names.empty() ? "" : ", ") + std::string(name);
  from.must_be("one of " + names);
}

FakeVariantScript read_variant(const Cursor& from) {
  from.only({"ns", "chunk_ns", "bad_chunk", "error", "behaviour", "at", "after", "void_every", "reason"});
  FakeVariantScript variant;
  if (const auto ns = from.find("ns")) {
    variant.ns = read_numbers(*ns);
    if (variant.ns.empty()) ns->must_be("a number or a list of at least one");
  }
  if (const auto by_chunk = from.find("chunk_ns")) {
    by_chunk->object();
    for (const auto& [key, value] : by_chunk->node().items()) {
      const Cursor ns = by_chunk->at(key.c_str());
      char* end = nullptr;
      const long chunk = std::strtol(key.c_str(), &end, 10);
      if (*end != 0 || chunk < 1 || chunk > 1'000'000'000) ns.fail("must be named by a chunk, \"256\" say");
      variant.chunk_ns[static_cast<int>(chunk)] = ns.number();
    }
  }
  variant.bad_chunk = small_count_or(from, "bad_chunk", variant.bad_chunk);
  variant.error = number_or(from, "error", variant.error);
  if (const auto behaviour = from.find("behaviour")) variant.behaviour = read_behaviour(*behaviour);
  if (const auto at = from.find("at")) {
    if (at->text() != "prepare" && at->text() != "launch") at->must_be("\"prepare\" or \"launch\"");
    variant.at_prepare = at->text() == "prepare";
  }
  variant.after = small_count_or(from, "after", variant.after);
  variant.void_every = small_count_or(from, "void_every", variant.void_every);
  variant.reason = text_or(from, "reason", variant.reason);
  return variant;
}

// The default device with what the script says of it, put in the script's place so that messages name the
// path.
void complete_device(nlohmann::json& script, const Cursor& given) {
  nlohmann::json device = json_of(default_device());
  device["isas"] = nullptr;  // written only where there are some
  for (const auto& [key, value] : given.node().items()) {
    if (!device.contains(key)) {
      given.at(key.c_str()).fail("is no field of a device (docs/results.md has them)");
    }
    device[key] = value;
  }
  device["kind"] = "fake";
  script["device"] = std::move(device);
}

}  // namespace

FakeScript parse_fake_script(std::string_view text, const std::string& name) {
  const Source source{name, "a script of schema fdbench.fake/1.x"};
  nlohmann::json value = parse_json(text, source);
  const Cursor root(value, source);
  check_schema(root, "fdbench.fake");
  root.only({"schema", "device", "timer_step_ns", "sample_s", "clock_mhz", "variants"});
  FakeScript script;
  script.device = default_device();
  script.timer_step_ns = number_or(root, "timer_step_ns", script.timer_step_ns);
  script.sample_s = number_or(root, "sample_s", script.sample_s);
  if (const auto clock = root.find("clock_mhz")) script.clock_mhz = read_numbers(*clock);
  if (const auto variants = root.find("variants")) {
    variants->object();
    for (const auto& [key, item] : variants->node().items()) {
      const Cursor variant = variants->at(key.c_str());
      if (std::find(std::begin(kVariants), std::end(kVariants), key) == std::end(kVariants)) {
        std::string names;
        for (const std::string_view known : kVariants)
          names += (names.empty() ? "" : ", ") + std::string(known);
        variant.fail("is no fake variant; there are " + names);
      }
      script.variants[key] = read_variant(variant);
    }
  }
  if (const auto device = root.find("device")) {
    device->object();
    complete_device(value, *device);
    const Cursor completed = root.at("device");
    script.device = read_device(completed);
  }
  return script;
}

FakeScript read_fake_script(const std::string& path) {
  return parse_fake_script(read_file(path), path);
}

}  // namespace fdbench::io
