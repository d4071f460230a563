#include "core/fake_script.h"

#include <array>
#include <cstddef>

namespace fdbench {

namespace {

constexpr std::array<std::string_view, 8> kBehaviours = {
    "ok", "unsupported", "throw", "crash", "hang", "nan", "writes_guard", "dirty_zeroed"};

FakeVariant taking(double ns) {
  FakeVariant variant;
  variant.ns = {ns};
  return variant;
}

}  // namespace

std::string_view to_string(FakeBehaviour behaviour) {
  return kBehaviours[static_cast<std::size_t>(behaviour)];
}

std::optional<FakeBehaviour> parse_fake_behaviour(std::string_view text) {
  for (std::size_t i = 0; i < kBehaviours.size(); ++i) {
    if (kBehaviours[i] == text) return static_cast<FakeBehaviour>(i);
  }
  return std::nullopt;
}

std::string_view to_string(FakeStep step) {
  return step == FakeStep::prepare ? "prepare" : "launch";
}

std::optional<FakeStep> parse_fake_step(std::string_view text) {
  if (text == "prepare") return FakeStep::prepare;
  if (text == "launch") return FakeStep::launch;
  return std::nullopt;
}

DeviceInfo FakeScript::default_device() {
  DeviceInfo device;
  device.kind = BackendKind::fake;
  device.name = "Fake device";
  device.sms = 16;
  device.l2_bytes = std::int64_t{32} << 20;
  device.memory_bytes = std::int64_t{16} << 30;
  device.memory_available_bytes = device.memory_bytes;
  device.cc = 90;
  device.smem_per_sm = 228 << 10;
  device.smem_per_block = 227 << 10;
  device.regs_per_sm = 65536;
  device.threads_per_sm = 2048;
  device.ctas_per_sm = 32;
  device.cooperative_launch = true;
  return device;
}

std::map<std::string, FakeVariant, std::less<>> FakeScript::default_variants() {
  return {{"fake_oracle", taking(1000.0)},
          {"fake_roof", taking(1000.0)},
          {"fake_reference", taking(4000.0)},
          {"fake_candidate", taking(2000.0)},
          {"fake_other", taking(3000.0)}};
}

}  // namespace fdbench
