#include "backend/fake/fake_backend.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "backend/fake/fake_player.h"
#include "core/error.h"

namespace fdbench {

const FakeVariantScript& FakePlayer::of(std::string_view variant) const {
  static const FakeVariantScript plain;
  const auto found = script.variants.find(std::string(variant));
  return found == script.variants.end() ? plain : found->second;
}

double FakePlayer::next_ns(std::string_view variant) {
  if (const auto by_chunk = of(variant).chunk_ns.find(last_chunk); by_chunk != of(variant).chunk_ns.end()) {
    ++timed[std::string(variant)];
    return by_chunk->second;
  }
  const auto& ns = of(variant).ns;
  return ns[static_cast<std::size_t>(timed[std::string(variant)]++) % ns.size()];
}

FakePlayer& fake_player() {
  static FakePlayer player;
  return player;
}

namespace {

class FakeBackend final : public Backend {
 public:
  const DeviceInfo& device() const override { return fake_player().script.device; }

  void* allocate(std::int64_t bytes) override {
    const auto rounded = (static_cast<std::size_t>(bytes) + 255) / 256 * 256;
    void* memory = std::aligned_alloc(256, rounded);
    if (!memory) throw Error(Exit::failed, "no memory for " + std::to_string(bytes) + " bytes");
    return memory;
  }
  void release(void* memory) override { std::free(memory); }
  void set_bytes(void* memory, std::uint8_t value, std::int64_t bytes) override {
    std::memset(memory, value, static_cast<std::size_t>(bytes));
  }
  void upload(void* to, const void* from, std::int64_t bytes) override {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void download(void* to, const void* from, std::int64_t bytes) override {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void fill_input(void* to, std::int64_t elements, Tensor tensor, std::uint64_t seed, Dtype dtype) override {
    auto* out = static_cast<std::uint16_t*>(to);
    for (std::int64_t i = 0; i < elements; i += 4) {
      const InputBlock block = input_block(seed, tensor, static_cast<std::uint64_t>(i / 4));
      for (std::int64_t j = i; j < i + 4 && j < elements; ++j) out[j] = round_to(dtype, block.value[j - i]);
    }
  }

  LaunchContext context() override { return {}; }
  void synchronize() override {
    if (fake_player().lost) throw Error(Exit::failed, "the scripted device is lost");
  }

  std::int64_t measuring_bytes(CacheMode cache) const override {
    return cache == CacheMode::cold ? 2 * device().l2_bytes : 0;
  }
  void start_measuring(CacheMode) override {}

  Reading sample(Prepared& prepared, int) override {
    FakePlayer& player = fake_player();
    player.spun_ns = 0.0;
    prepared.launch(context());
    const std::string variant = player.last_launched;
    player.now_s += player.script.sample_s;
    Reading reading;
    const int nth = ++player.samples;
    const auto& mhz = player.script.clock_mhz;
    if (!mhz.empty()) reading.sm_mhz = mhz[static_cast<std::size_t>(nth - 1) % mhz.size()];
    reading.ns = player.next_ns(variant) + player.spun_ns;
    const FakeVariantScript& script = player.of(variant);
    reading.valid = script.void_every == 0 || player.timed[variant] % script.void_every != 0;
    return reading;
  }
  double timer_step_ns() const override { return fake_player().script.timer_step_ns; }

  int rotation(const Problem&) const override { return 2; }
  Reading graph_sample(std::span<Prepared* const> rotation) override { return sample(*rotation.front(), 0); }

  void spin(double ns) override { fake_player().spun_ns += ns; }
  double spin_overhead_ns() override { return 0.0; }

  double now_s() override { return fake_player().now_s; }
};

}  // namespace

std::unique_ptr<Backend> make_fake_backend(FakeScript script) {
  fake_player() = FakePlayer{};
  fake_player().script = std::move(script);
  return std::make_unique<FakeBackend>();
}

}  // namespace fdbench
