#include "rules/occupancy.h"

#include <gtest/gtest.h>

#include "core/variant.h"

namespace fdbench::rules {
namespace {

SmLimits limits_of(int cc) {
  return sm_limits(cc).value();
}

TEST(SmLimits, IsTheTable) {
  struct Row {
    int cc, threads, ctas;
    std::int64_t smem_kib, cta_kib;
  };
  for (const Row& row :
       {Row{80, 2048, 32, 164, 163}, Row{86, 1536, 16, 100, 99}, Row{89, 1536, 24, 100, 99},
        Row{90, 2048, 32, 228, 227}, Row{100, 2048, 32, 228, 227}, Row{120, 1536, 24, 100, 99}}) {
    const SmLimits limits = limits_of(row.cc);
    EXPECT_EQ(limits.cc, row.cc);
    EXPECT_EQ(limits.threads_per_sm, row.threads) << row.cc;
    EXPECT_EQ(limits.ctas_per_sm, row.ctas) << row.cc;
    EXPECT_EQ(limits.regs_per_sm, 65536) << row.cc;
    EXPECT_EQ(limits.smem_per_sm, row.smem_kib * 1024) << row.cc;
    EXPECT_EQ(limits.smem_per_cta, row.cta_kib * 1024) << row.cc;
  }
  EXPECT_FALSE(sm_limits(75).has_value());
  EXPECT_FALSE(sm_limits(0).has_value());
}

TEST(Occupancy, RegistersAreGivenOutByTheWarpWithinAQuarter) {
  // 40 registers: 1280 a warp, 12 warps a quarter, 48 in all; CTAs of 4 warps: 12.
  Occupancy result = occupancy({.regs_per_thread = 40, .threads = 128}, limits_of(90));
  EXPECT_EQ(result.ctas_per_sm, 12);
  EXPECT_EQ(result.limit, OccupancyLimit::registers);
  EXPECT_EQ(result.warps_per_sm, 48);
  EXPECT_DOUBLE_EQ(result.warp_share, 0.75);
  // 33 registers are 1056, rounded up to 1280: the same.
  EXPECT_EQ(occupancy({.regs_per_thread = 33, .threads = 128}, limits_of(90)).by_registers, 12);
  // 32: 1024 a warp, 64 warps.
  EXPECT_EQ(occupancy({.regs_per_thread = 32, .threads = 128}, limits_of(90)).by_registers, 16);
  // 168 registers, 12 warps: 5376 a warp, 3 a quarter, 12: one CTA, where 65536 / 5376 would have said 12.19
  // all the same.
  EXPECT_EQ(occupancy({.regs_per_thread = 168, .threads = 384}, limits_of(90)).ctas_per_sm, 1);
  // 255 registers, 5 warps: 8192 a warp, 2 a quarter, 8: one.
  EXPECT_EQ(occupancy({.regs_per_thread = 255, .threads = 160}, limits_of(90)).ctas_per_sm, 1);
  // 80 registers, 7 warps: 2560 a warp, 6 a quarter, 24 warps: 3 CTAs (25.6 warps undivided give 3 too); 3
  // warps: 8.
  EXPECT_EQ(occupancy({.regs_per_thread = 80, .threads = 96}, limits_of(90)).by_registers, 8);
}

TEST(Occupancy, SharedMemoryCountsTheReservedPartAndGoesBy128) {
  // 233472 / (49176 + 64 + 1024 = 50264 -> 50304) = 4.6.
  Occupancy result = occupancy({.threads = 128, .static_smem = 64, .dynamic_smem = 49176}, limits_of(90));
  EXPECT_EQ(result.ctas_per_sm, 4);
  EXPECT_EQ(result.limit, OccupancyLimit::shared_memory);
  // On sm_120: 102400 / 50304 = 2.03; 32784 + 576 + 1024 = 34384 -> 34432: 2.97.
  EXPECT_EQ(occupancy({.threads = 128, .static_smem = 64, .dynamic_smem = 49176}, limits_of(120)).ctas_per_sm,
            2);
  EXPECT_EQ(
      occupancy({.threads = 128, .static_smem = 576, .dynamic_smem = 32784}, limits_of(120)).ctas_per_sm, 2);
  // 102400 = 2 * 51200: 50176 fit twice, one byte more does not.
  EXPECT_EQ(occupancy({.threads = 128, .dynamic_smem = 50176}, limits_of(86)).by_shared_memory, 2);
  EXPECT_EQ(occupancy({.threads = 128, .dynamic_smem = 50177}, limits_of(86)).by_shared_memory, 1);
}

TEST(Occupancy, ThreadsAndCtasLimitToo) {
  // 1000 threads are 32 warps: 2 of 64 on sm_90, 1 of 48 on sm_89.
  EXPECT_EQ(occupancy({.threads = 1000}, limits_of(90)).ctas_per_sm, 2);
  const Occupancy one = occupancy({.threads = 1000}, limits_of(89));
  EXPECT_EQ(one.ctas_per_sm, 1);
  EXPECT_EQ(one.limit, OccupancyLimit::threads);
  // One warp, nothing else: the CTA slots.
  EXPECT_EQ(occupancy({.threads = 32}, limits_of(86)).ctas_per_sm, 16);
  EXPECT_EQ(occupancy({.threads = 32}, limits_of(89)).ctas_per_sm, 24);
  const Occupancy slots = occupancy({.threads = 1}, limits_of(90));
  EXPECT_EQ(slots.ctas_per_sm, 32);
  EXPECT_EQ(slots.limit, OccupancyLimit::ctas);
  EXPECT_EQ(slots.by_registers, 32);  // not known
  // 64 threads on sm_90: threads and slots both give 32; the first in the enum's order is named.
  EXPECT_EQ(occupancy({.threads = 64}, limits_of(90)).limit, OccupancyLimit::ctas);
}

TEST(Occupancy, EdgesOfWhatFits) {
  EXPECT_EQ(occupancy({.threads = 128, .dynamic_smem = 227 * 1024}, limits_of(90)).ctas_per_sm, 1);
  const Occupancy over = occupancy({.threads = 128, .dynamic_smem = 227 * 1024 + 1}, limits_of(90));
  EXPECT_EQ(over.ctas_per_sm, 0);
  EXPECT_EQ(over.reason, "a CTA needs 232449 bytes of shared memory, and it can have at most 232448");
  EXPECT_EQ(occupancy({.threads = 1024, .static_smem = 1}, limits_of(80)).ctas_per_sm, 2);
  EXPECT_EQ(occupancy({.threads = 1025}, limits_of(80)).reason,
            "a CTA needs 1025 threads, and it can have at most 1024");
  EXPECT_EQ(occupancy({.regs_per_thread = 256, .threads = 32}, limits_of(80)).reason,
            "a CTA needs 256 registers a thread, and it can have at most 255");
  // 128 registers, 17 warps: 4096 a warp, 4 a quarter, 16 warps: not one CTA.
  const Occupancy wide = occupancy({.regs_per_thread = 128, .threads = 544}, limits_of(90));
  EXPECT_EQ(wide.ctas_per_sm, 0);
  EXPECT_EQ(wide.limit, OccupancyLimit::registers);
  EXPECT_EQ(wide.reason, "a CTA needs 69632 registers, and a multiprocessor has 65536");
}

TEST(Occupancy, NonsenseHasAReason) {
  EXPECT_FALSE(occupancy({.threads = 0}, limits_of(90)).reason.empty());
  EXPECT_FALSE(occupancy({.threads = -1}, limits_of(90)).reason.empty());
  EXPECT_FALSE(occupancy({.regs_per_thread = -1, .threads = 1}, limits_of(90)).reason.empty());
  EXPECT_FALSE(occupancy({.threads = 1, .dynamic_smem = -1}, limits_of(90)).reason.empty());
  const std::int64_t huge = std::int64_t{1} << 62;
  EXPECT_EQ(occupancy({.threads = 1, .static_smem = huge, .dynamic_smem = huge}, limits_of(90)).ctas_per_sm,
            0);
  EXPECT_EQ(occupancy({.threads = 32}, SmLimits{}).reason, "the device states no multiprocessor limits");
}

TEST(Occupancy, TakesADevicesOwnLimits) {
  DeviceInfo device;
  EXPECT_EQ(occupancy({.threads = 32}, device).reason, "the device states no multiprocessor limits");
  device.kind = BackendKind::fake;
  device.sms = 26;
  device.threads_per_sm = 1536;
  device.ctas_per_sm = 24;
  device.regs_per_sm = 65536;
  device.smem_per_sm = 100 * 1024;
  device.smem_per_block = 48 * 1024;
  EXPECT_EQ(occupancy({.threads = 128, .dynamic_smem = 32784}, device).ctas_per_sm, 3);
  EXPECT_EQ(occupancy({.threads = 128, .static_smem = 64, .dynamic_smem = 49176}, device).reason,
            "a CTA needs 49240 bytes of shared memory, and it can have at most 49152");
}

TEST(Occupancy, TakesWhatAVariantDeclares) {
  KernelResources declared;
  declared.registers = 40;
  declared.threads = 128;
  declared.static_smem = 64;
  declared.dynamic_smem = 49176;
  const CtaResources cta = cta_resources(declared);
  EXPECT_EQ(cta.regs_per_thread, 40);
  EXPECT_EQ(cta.threads, 128);
  EXPECT_EQ(cta.static_smem, 64);
  EXPECT_EQ(cta.dynamic_smem, 49176);
}

TEST(Occupancy, LimitsHaveNames) {
  EXPECT_EQ(to_string(OccupancyLimit::ctas), "ctas");
  EXPECT_EQ(to_string(OccupancyLimit::threads), "threads");
  EXPECT_EQ(to_string(OccupancyLimit::registers), "registers");
  EXPECT_EQ(to_string(OccupancyLimit::shared_memory), "shared memory");
}

}  // namespace
}  // namespace fdbench::rules
