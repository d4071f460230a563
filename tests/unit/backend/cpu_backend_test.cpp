// The CPU as a device: its threads, its memory, its inputs and its clock.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/host_topology.h"
#include "backend/cpu/pinned_team.h"
#include "core/error.h"
#include "core/philox.h"

namespace fdbench {
namespace {

TEST(PinnedTeam, EveryRankOnceInEveryJob) {
  // Four threads whatever the machine.
  const std::vector<int> cpus = allowed_cpus();
  const auto at = [&](std::size_t i) { return cpus[i % cpus.size()]; };
  PinnedTeam team({at(0), at(1), at(2), at(3)});
  ASSERT_EQ(team.size(), 4);
  std::array<std::int64_t, 4> calls{};  // not atomic: a rank that ran twice at once would be a race
  std::int64_t expected[4] = {};
  for (int job = 0; job < 4000; ++job) {
    const int threads = 1 + job % 4;
    team.run(threads, [&](int rank) { ++calls[static_cast<std::size_t>(rank)]; });
    for (int rank = 0; rank < threads; ++rank) ++expected[rank];
  }
  for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(calls[rank], expected[rank]);
}

TEST(PinnedTeam, WakesAfterItHasGoneToSleep) {
  const int cpu = allowed_cpus().front();
  PinnedTeam team({cpu, cpu, cpu});
  std::atomic<int> ran{0};
  for (int job = 0; job < 20; ++job) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // beyond any spinning
    team.run(3, [&](int) { ++ran; });
    ASSERT_EQ(ran.load(), 3 * (job + 1));
  }
}

TEST(PinnedTeam, WaitsForItsSlowestRank) {
  const int cpu = allowed_cpus().front();
  PinnedTeam team({cpu, cpu});
  bool done = false;
  team.run(2, [&](int rank) {
    if (rank == 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    done = true;
  });
  EXPECT_TRUE(done);
}

TEST(PinnedTeam, GivesTheAffinityBack) {
  const auto before = allowed_cpus();
  {
    PinnedTeam team({before.back()});
    EXPECT_EQ(allowed_cpus(), (std::vector<int>{before.back()}));
  }
  EXPECT_EQ(allowed_cpus(), before);
}

TEST(PinnedTeam, StartsAndStopsManyTimes) {
  const int cpu = allowed_cpus().front();
  for (int i = 0; i < 200; ++i) {
    PinnedTeam team({cpu, cpu, cpu});
    if (i % 2) team.run(3, [](int) {});
  }
}

// Random123's known answers: philox4x32-10.
TEST(Inputs, PhiloxKnownAnswers) {
  constexpr PhiloxWords zero = philox4x32(0, 0, 0, 0, 0, 0);
  EXPECT_EQ(zero.w[0], 0x6627e8d5u);
  EXPECT_EQ(zero.w[1], 0xe169c58du);
  EXPECT_EQ(zero.w[2], 0xbc57ac4cu);
  EXPECT_EQ(zero.w[3], 0x9b00dbd8u);
  constexpr std::uint32_t f = 0xffffffffu;
  constexpr PhiloxWords ones = philox4x32(f, f, f, f, f, f);
  EXPECT_EQ(ones.w[0], 0x408f276du);
  EXPECT_EQ(ones.w[1], 0x41c83b0eu);
  EXPECT_EQ(ones.w[2], 0xa20bc7c6u);
  EXPECT_EQ(ones.w[3], 0x6d5451fdu);
}

TEST(Inputs, Bf16RoundsToNearestEven) {
  EXPECT_EQ(float_to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(float_to_bf16(bits_float(0x3f808000u)), 0x3f80);  // a tie goes to even
  EXPECT_EQ(float_to_bf16(bits_float(0x3f818000u)), 0x3f82);
  EXPECT_EQ(float_to_bf16(bits_float(0x3f808001u)), 0x3f81);
  EXPECT_EQ(float_to_bf16(bits_float(0x7f7fffffu)), 0x7f80);  // beyond the largest: infinity
  EXPECT_EQ(float_to_bf16(bits_float(0x7f800001u)) & 0x7fff, 0x7fc0);
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const bool nan = (bits & 0x7fffu) > 0x7f80u;
    ASSERT_EQ(float_to_bf16(bf16_to_float(half)), nan ? bits | 0x40u : bits);
  }
}

TEST(Inputs, Fp16RoundsToNearestEven) {
  EXPECT_EQ(float_to_fp16(1.0f), 0x3c00);
  EXPECT_EQ(float_to_fp16(-2.0f), 0xc000);
  EXPECT_EQ(float_to_fp16(65504.0f), 0x7bff);
  EXPECT_EQ(float_to_fp16(65519.0f), 0x7bff);
  EXPECT_EQ(float_to_fp16(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_fp16(0x1p-24f), 0x0001);
  EXPECT_EQ(float_to_fp16(0x1p-25f), 0x0000);  // a tie goes to even
  EXPECT_EQ(float_to_fp16(0x1.8p-24f), 0x0002);
  EXPECT_EQ(float_to_fp16(0x1.ff8p-15f), 0x03ff);  // the largest subnormal
  EXPECT_EQ(float_to_fp16(1.0f + 0x1p-11f), 0x3c00);
  EXPECT_EQ(float_to_fp16(1.0f + 0x1.8p-10f), 0x3c02);
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if ((bits & 0x7fffu) > 0x7c00u) continue;
    ASSERT_EQ(float_to_fp16(fp16_to_float(half)), bits);
  }
}

class CpuBackendTest : public testing::Test {
 protected:
  std::unique_ptr<Backend> backend_ = make_cpu_backend({});
};

TEST_F(CpuBackendTest, DescribesTheMachine) {
  const DeviceInfo& device = backend_->device();
  EXPECT_EQ(device.kind, BackendKind::cpu);
  EXPECT_GE(device.sms, 1);
  EXPECT_LE(device.sms, static_cast<int>(std::thread::hardware_concurrency()));
  EXPECT_GT(device.l1d_bytes, 0);
  EXPECT_GE(device.l2_bytes, device.l1d_bytes);
  EXPECT_GT(device.memory_available_bytes, 0);
  EXPECT_LE(device.memory_available_bytes, device.memory_bytes);
  EXPECT_FALSE(device.name.empty());
  EXPECT_EQ(backend_->rotation(Problem{}), 0);
  EXPECT_THROW(backend_->graph_sample({}), Error);
}

TEST_F(CpuBackendTest, MemoryIsAlignedAtEverySize) {
  for (const std::int64_t bytes : {0ll, 1ll, 255ll, 4096ll, 5ll << 20, (8ll << 20) + 3}) {
    void* const memory = backend_->allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0u);
    backend_->set_bytes(memory, 0xab, bytes);
    if (bytes > 0) {
      EXPECT_EQ(static_cast<unsigned char*>(memory)[0], 0xab);
      EXPECT_EQ(static_cast<unsigned char*>(memory)[bytes - 1], 0xab);
    }
    backend_->release(memory);
  }
}

TEST_F(CpuBackendTest, RefusesMemoryThatCannotBe) {
  EXPECT_THROW(backend_->allocate(std::int64_t{1} << 60), Error);
}

// The recipe element by element, at counts that end inside a block of four and that are shared by threads.
TEST_F(CpuBackendTest, InputsFollowTheRecipe) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16}) {
    for (const std::int64_t count : {1, 7, 4095, 100003}) {
      std::vector<std::uint16_t> got(static_cast<std::size_t>(count) + 1, 0xdead);
      backend_->fill_input(got.data(), count, Tensor::k, 9, dtype);
      for (std::int64_t i = 0; i < count; ++i) {
        const PhiloxWords words = philox4x32(static_cast<std::uint32_t>(i / 4), 0, 1, 1, 9, 0);
        const float value = static_cast<float>(centred_byte_sum(words.w[i % 4])) / 128.0f;
        ASSERT_EQ(got[static_cast<std::size_t>(i)], round_to(dtype, value)) << i;
      }
      EXPECT_EQ(got.back(), 0xdead) << "wrote past the end";
    }
  }
}

// Runs for at least a millisecond.
class Slow final : public Prepared {
 public:
  void launch(const LaunchContext& context) override {
    EXPECT_NE(context.team, nullptr);
    ++launches;
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
    while (std::chrono::steady_clock::now() < until) {
    }
  }
  int launches = 0;
};

TEST_F(CpuBackendTest, AHotSampleTimesTheSecondOfTwoLaunches) {
  Slow slow;
  backend_->start_measuring(CacheMode::hot);
  EXPECT_EQ(backend_->measuring_bytes(CacheMode::hot), 0);
  const Reading reading = backend_->sample(slow, 0);
  EXPECT_EQ(slow.launches, 2);
  EXPECT_GE(reading.ns, 1e6);
  EXPECT_GT(backend_->timer_step_ns(), 0.0);
  EXPECT_LT(backend_->timer_step_ns(), 1e6);
}

TEST_F(CpuBackendTest, AColdSampleTimesTheOnlyLaunch) {
  Slow slow;
  EXPECT_GT(backend_->measuring_bytes(CacheMode::cold), 0);
  backend_->start_measuring(CacheMode::cold);
  const Reading reading = backend_->sample(slow, 0);
  EXPECT_EQ(slow.launches, 1);
  EXPECT_GE(reading.ns, 1e6);
}

// Rivals on the core of rank 0 (they inherit its pin) make every switch away from it an involuntary one.
TEST_F(CpuBackendTest, VoidSamplesEndOnABusyMachine) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> rivals;
  for (int i = 0; i < 2; ++i) {
    rivals.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) {
      }
    });
  }
  class Long final : public Prepared {
   public:
    void launch(const LaunchContext&) override {
      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(30);
      while (std::chrono::steady_clock::now() < until) {
      }
    }
  } work;
  backend_->start_measuring(CacheMode::hot);
  int voids = 0;
  for (int i = 0; i < 3 * kMostVoid; ++i) voids += backend_->sample(work, i).valid ? 0 : 1;
  stop = true;
  for (std::thread& rival : rivals) rival.join();
  EXPECT_LT(voids, 3 * kMostVoid);
  const auto flags = backend_->row_flags();
  const bool flagged = std::find(flags.begin(), flags.end(), "preempted") != flags.end();
  // A rival on the same core takes it within 30 ms, so each sample is void until the backend gives in.
  EXPECT_TRUE(flagged);
  EXPECT_GE(voids, kMostVoid);
}

}  // namespace
}  // namespace fdbench
