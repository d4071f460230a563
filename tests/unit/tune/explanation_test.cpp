#include "tune/explanation.h"

#include <gtest/gtest.h>

#include "made_sweep.h"

namespace fdbench::tune {
namespace {

const Problem kProblem{8192, 32, 8, 128, Dtype::bf16, {}};

LaunchPlan some_plan() {
  LaunchPlan plan = made_plan(kProblem, 16);  // 128 CTAs, 512 tokens each
  plan.tile = 128;
  plan.stages = 2;
  plan.dynamic_smem = 140000;
  plan.scratch_bytes = 1000;
  plan.zeroed_bytes = 24;
  return plan;
}

DeviceInfo h200() {
  DeviceInfo device = made_gpu();
  device.bandwidth_datasheet = 4.8e12;
  return device;
}

TEST(Explain, WavesOccupancyAndBytesInFlight) {
  const KernelResources resources{.kernel = "k", .cc = 90, .registers = 168, .threads = 128};
  const Explanation e = explain(kProblem, h200(), some_plan(), &resources, 1000.0);
  EXPECT_EQ(e.ctas, 128);
  ASSERT_TRUE(e.occupancy);
  EXPECT_EQ(e.occupancy->ctas_per_sm, 1);
  EXPECT_EQ(e.occupancy->limit, rules::OccupancyLimit::shared_memory);
  EXPECT_EQ(e.occupancy->by_registers, 3);
  EXPECT_TRUE(e.registers_known);
  EXPECT_EQ(e.slots, 132);
  EXPECT_DOUBLE_EQ(e.waves, 128.0 / 132.0);
  EXPECT_NEAR(e.tail_idle, 4.0 / 132.0, 1e-12);
  EXPECT_EQ(e.kv_bytes_per_cta, 512 * 2 * 128 * 2);
  EXPECT_EQ(e.last_chunk, 512);
  EXPECT_EQ(e.in_flight, 128 * 2 * 2 * 128 * 2);
  EXPECT_NEAR(*e.needed, 4.8e12 * 1e-6 / 132.0, 1e-6);
  EXPECT_EQ(e.partial_bytes, 2 * 16 * 32 * 130 * 4);
  EXPECT_EQ(e.workspace, 1024);
}

TEST(Explain, TailOfSeveralWaves) {
  LaunchPlan plan = some_plan();
  plan.grid = {35, 8, 1};  // 280 on 132
  plan.splits = 35;
  plan.chunk = 240;
  const Explanation e = explain(kProblem, h200(), plan, nullptr, 1000.0);
  EXPECT_FALSE(e.registers_known);
  EXPECT_DOUBLE_EQ(e.tail_idle, 1.0 - 280.0 / (3 * 132.0));
  EXPECT_EQ(e.last_chunk, 8192 - 34 * 240);
}

TEST(Explain, SlotsAreNoDeeperThanTheGrid) {
  LaunchPlan plan = some_plan();  // 128 CTAs
  plan.dynamic_smem = 20000;      // many fit a multiprocessor
  EXPECT_EQ(explain(kProblem, h200(), plan, nullptr, 1000.0).slots, 132);
  plan.grid = {40, 8, 1};
  EXPECT_EQ(explain(kProblem, h200(), plan, nullptr, 1000.0).slots, 3 * 132);
}

TEST(Explain, NoMoreIsInFlightThanThereIsToRead) {
  Problem shorter = kProblem;
  shorter.seq = 256;
  LaunchPlan plan = some_plan();
  plan.chunk = 16;
  const Explanation e = explain(shorter, h200(), plan, nullptr, 1000.0);
  EXPECT_EQ(e.in_flight, e.kv_bytes_per_cta);
  EXPECT_EQ(e.kv_bytes_per_cta, 16 * 512);
}

TEST(Explain, OneSplitMergesNothingAndAMisfitHasNoSlots) {
  LaunchPlan plan = made_plan(kProblem, 1);
  plan.dynamic_smem = 300000;
  const Explanation e = explain(kProblem, h200(), plan, nullptr, 1000.0);
  EXPECT_EQ(e.partial_bytes, 0);
  EXPECT_EQ(e.slots, 0);
  EXPECT_EQ(e.waves, 0.0);
  EXPECT_FALSE(e.in_flight);
  EXPECT_FALSE(e.occupancy->reason.empty());
}

TEST(Explain, OnACpuAWorkItemReadsAllHeads) {
  DeviceInfo cpu;
  cpu.sms = 6;
  LaunchPlan plan;
  plan.grid = {16, 1, 1};
  plan.block = {4, 1, 1};  // threads
  plan.splits = 16;
  plan.chunk = 512;
  const Explanation e = explain(kProblem, cpu, plan, nullptr, 1000.0);
  EXPECT_FALSE(e.occupancy);
  EXPECT_FALSE(e.in_flight);
  EXPECT_EQ(e.slots, 4);
  EXPECT_DOUBLE_EQ(e.waves, 4.0);
  EXPECT_EQ(e.kv_bytes_per_cta, 512 * 2 * 128 * 2 * 8);
}

TEST(ResourcesFor, TheNearestCapabilityBelow) {
  const KernelResources all[] = {{.kernel = "k", .cc = 90, .registers = 1, .dynamic_smem = 50000},
                                 {.kernel = "combine", .cc = 90, .registers = 2},
                                 {.kernel = "k", .cc = 120, .registers = 3, .dynamic_smem = 50000}};
  Variant variant;
  variant.resources = all;
  EXPECT_EQ(resources_for(variant, 100)->registers, 1);
  EXPECT_EQ(resources_for(variant, 120)->registers, 3);
  EXPECT_EQ(resources_for(variant, 80), nullptr);
}

}  // namespace
}  // namespace fdbench::tune
