// Plans of the seed kernels: every launch parameter, with no GPU.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <variant>

#include "core/variant.h"
#include "cuda/detail/seed_plan.h"
#include "rules/occupancy.h"

namespace fdbench {
namespace {

constexpr seed::Kernel kSingle{.name = "flash_decode_tma", .k_buffers = 1};
constexpr seed::Kernel kDouble{.name = "flash_decode_tma_dbf_k", .k_buffers = 2};

constexpr seed::Kernel kAmpere{.name = "flash_decode_cp_async", .k_buffers = 2, .v_buffers = 2, .tma = false};

DeviceInfo device(int cc, int sms, std::int64_t smem_per_sm, std::int64_t smem_per_block) {
  DeviceInfo info;
  info.kind = BackendKind::cuda;
  info.cc = cc;
  info.sms = sms;
  info.smem_per_sm = smem_per_sm;
  info.smem_per_block = smem_per_block;
  info.regs_per_sm = 65536;
  info.threads_per_sm = cc == 120 ? 1536 : 2048;
  info.ctas_per_sm = cc == 120 ? 24 : 32;
  return info;
}

DeviceInfo h200() {
  return device(90, 132, 228 * 1024, 227 * 1024);
}
DeviceInfo laptop_5060() {
  return device(120, 26, 100 * 1024, 99 * 1024);
}

Problem problem(std::int64_t seq, std::int64_t heads = 32, std::int64_t kv_heads = 32,
                std::int64_t dim = 128) {
  Problem made;
  made.seq = seq;
  made.heads = heads;
  made.kv_heads = kv_heads;
  made.dim = dim;
  return made;
}

TuningPoint point(std::optional<std::int64_t> chunk, std::optional<std::int64_t> sm_multiple = {}) {
  TuningPoint tuning;
  if (chunk) tuning.set("chunk", *chunk);
  if (sm_multiple) tuning.set("sm_multiple", *sm_multiple);
  return tuning;
}

LaunchPlan planned(const PlanResult& result) {
  if (const auto* no = std::get_if<Unsupported>(&result)) {
    ADD_FAILURE() << no->reason;
    return {};
  }
  return std::get<LaunchPlan>(result);
}

std::string refused(const PlanResult& result) {
  if (const auto* no = std::get_if<Unsupported>(&result)) return no->reason;
  ADD_FAILURE() << "a plan where none was expected";
  return {};
}

void expect_in(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

TEST(SeedPlan, EveryFieldAtTheSeedsOwnRule) {
  const LaunchPlan plan = planned(seed::plan(kDouble, problem(8192), h200(), {}));
  // 32 * 8192 / 264 = 992, so 1024.
  EXPECT_EQ(plan.grid, (Extent3{8, 32, 1}));
  EXPECT_EQ(plan.block, (Extent3{128, 1, 1}));
  EXPECT_EQ(plan.cluster, (Extent3{1, 1, 1}));
  EXPECT_EQ(plan.chunk, 1024);
  EXPECT_EQ(plan.splits, 8);
  EXPECT_EQ(plan.tile, 64);
  EXPECT_EQ(plan.stages, 3);  // two tiles of K, one of V
  EXPECT_EQ(plan.dynamic_smem, 3 * 64 * 128 * 2 + 3 * 8);
  EXPECT_FALSE(plan.cooperative);
  EXPECT_EQ(plan.merge, "kernel");
  EXPECT_EQ(plan.scratch_bytes, 8 * 32 * (128 + 1) * 4);
  EXPECT_EQ(plan.zeroed_bytes, 0);
  EXPECT_EQ(plan.rule, "seed");
}

TEST(SeedPlan, SharedMemoryIsTilesAndBarriers) {
  EXPECT_EQ(planned(seed::plan(kSingle, problem(8192), h200(), {})).dynamic_smem, 32784);
  EXPECT_EQ(planned(seed::plan(kDouble, problem(8192), h200(), {})).dynamic_smem, 49176);
  EXPECT_EQ(planned(seed::plan(kSingle, problem(8192, 32, 32, 64), h200(), {})).dynamic_smem, 16400);
  EXPECT_EQ(planned(seed::plan(kDouble, problem(8192, 32, 32, 64), h200(), {})).dynamic_smem, 24600);
}

TEST(SeedPlan, TheSeedRuleTakesTheDevicesMultiprocessors) {
  EXPECT_EQ(planned(seed::plan(kSingle, problem(8192), laptop_5060(), {})).chunk, 2048);
  EXPECT_EQ(planned(seed::plan(kSingle, problem(2048), laptop_5060(), {})).chunk, 2048);  // c = 1260
  EXPECT_EQ(planned(seed::plan(kSingle, problem(2048), h200(), {})).chunk, 256);          // c = 248
  EXPECT_EQ(planned(seed::plan(kSingle, problem(4096), h200(), {})).chunk, 512);          // c = 496
  EXPECT_EQ(planned(seed::plan(kSingle, problem(131072), h200(), {})).grid, (Extent3{64, 32, 1}));
}

TEST(SeedPlan, ChunkAloneCutsEveryHead) {
  for (const std::int64_t chunk : {64, 128, 1024, 4096}) {
    const LaunchPlan plan = planned(seed::plan(kSingle, problem(131073), h200(), point(chunk)));
    EXPECT_EQ(plan.chunk, chunk);
    EXPECT_EQ(plan.splits, 131072 / chunk + 1);
    EXPECT_EQ(plan.grid, (Extent3{plan.splits, 32, 1}));
    EXPECT_EQ(plan.scratch_bytes, plan.splits * 32 * 129 * 4);
    EXPECT_EQ(plan.rule, "");
  }
}

TEST(SeedPlan, SmMultipleAloneSetsTheChunk) {
  // 2 * 132 CTAs over 32 heads: 8 splits of 1024.
  const LaunchPlan plan = planned(seed::plan(kSingle, problem(8192), h200(), point({}, 2)));
  EXPECT_EQ(plan.grid, (Extent3{8, 32, 1}));
  EXPECT_EQ(plan.chunk, 1024);
  EXPECT_EQ(plan.rule, "sm_multiple:2");
  // Query heads count, not KV heads: each has CTAs of its own.
  EXPECT_EQ(planned(seed::plan(kSingle, problem(8192, 32, 8), h200(), point({}, 2))).grid,
            (Extent3{8, 32, 1}));
  // 3 * 132 / 32 = 12 splits of 683 tokens: 704 in whole tiles, and 12 of them still cover.
  const LaunchPlan uneven = planned(seed::plan(kSingle, problem(8192), h200(), point({}, 3)));
  EXPECT_EQ(uneven.chunk, 704);
  EXPECT_EQ(uneven.splits, 12);
  // Fewer multiprocessors than heads: one split a head, longer than the chunk axis goes.
  const LaunchPlan few = planned(seed::plan(kSingle, problem(8192), laptop_5060(), point({}, 1)));
  EXPECT_EQ(few.splits, 1);
  EXPECT_EQ(few.chunk, 8192);
}

TEST(SeedPlan, BothMakeThePersistentGrid) {
  const LaunchPlan plan = planned(seed::plan(kDouble, problem(131072), h200(), point(256, 2)));
  EXPECT_EQ(plan.grid, (Extent3{264, 1, 1}));
  EXPECT_EQ(plan.chunk, 256);
  EXPECT_EQ(plan.splits, 512);
  EXPECT_EQ(plan.scratch_bytes, 512 * 32 * 129 * 4);
  EXPECT_EQ(plan.rule, "");
  // No more CTAs than items.
  EXPECT_EQ(planned(seed::plan(kDouble, problem(300, 4, 4), h200(), point(256, 2))).grid, (Extent3{8, 1, 1}));
}

TEST(SeedPlan, NoSplitIsEmpty) {
  for (const std::int64_t seq : {1, 63, 64, 65, 255, 257, 8191, 8193, 100000}) {
    for (const auto& tuning : {point({}), point(64), point(320), point(4096), point({}, 1), point({}, 7)}) {
      const LaunchPlan plan = planned(seed::plan(kSingle, problem(seq), h200(), tuning));
      EXPECT_EQ(plan.chunk % 64, 0) << seq << " " << tuning.id();
      EXPECT_LT((plan.splits - 1) * plan.chunk, seq) << tuning.id();
      EXPECT_GE(plan.splits * plan.chunk, seq) << tuning.id();
    }
  }
}

TEST(SeedPlan, AnEmptyCacheHasAGridAndScratch) {
  const LaunchPlan plan = planned(seed::plan(kSingle, problem(0), h200(), {}));
  EXPECT_EQ(plan.splits, 1);
  EXPECT_EQ(plan.grid, (Extent3{1, 32, 1}));
  EXPECT_EQ(plan.scratch_bytes, 32 * 129 * 4);
  EXPECT_EQ(planned(seed::plan(kSingle, problem(0), h200(), point(64, 1))).grid, (Extent3{32, 1, 1}));
}

TEST(SeedPlan, SixtyFourHeadsOfSixtyFourMillionTokens) {
  const Problem large = problem(std::int64_t{1} << 26, 64, 8);
  const LaunchPlan plan = planned(seed::plan(kSingle, large, h200(), {}));
  EXPECT_EQ(plan.chunk, 2048);  // 2^32 / 264 tokens a CTA, past the last step
  EXPECT_EQ(plan.grid, (Extent3{32768, 64, 1}));
  EXPECT_EQ(plan.scratch_bytes, (std::int64_t{1} << 21) * 129 * 4);
  const LaunchPlan fine = planned(seed::plan(kSingle, large, h200(), point(64)));
  EXPECT_EQ(fine.grid, (Extent3{std::int64_t{1} << 20, 64, 1}));
  EXPECT_EQ(fine.scratch_bytes, (std::int64_t{1} << 26) * 129 * 4);  // 34.6 GB
}

TEST(SeedPlan, MoreThanTheGridHoldsIsRefused) {
  expect_in(refused(seed::plan(kSingle, problem(64, 70000, 70000, 64), h200(), {})), "65535, not 70000");
  EXPECT_EQ(planned(seed::plan(kSingle, problem(64, 70000, 70000, 64), h200(), point(64, 1))).grid,
            (Extent3{132, 1, 1}));
  // 2^25 - 1 chunks of 128 heads.
  expect_in(refused(seed::plan(kSingle, problem(seed::kMaxSeq, 128, 128), h200(), point(64))),
            "these are " + std::to_string(128 * ((std::int64_t{1} << 25) - 1)));
}

TEST(SeedPlan, WhatDoesNotFitSaysWhatItNeedsAndWhatThereIs) {
  const DeviceInfo small = device(120, 26, 48 * 1024, 48 * 1024);
  const std::string reason = refused(seed::plan(kDouble, problem(8192), small, {}));
  expect_in(reason, "49176");
  expect_in(reason, "49152");
  EXPECT_EQ(planned(seed::plan(kSingle, problem(8192), small, {})).splits, 4);
  EXPECT_EQ(planned(seed::plan(kDouble, problem(8192, 32, 32, 64), small, {})).splits, 4);
  // A CTA may have it, but a multiprocessor keeps 1,024 bytes for itself.
  expect_in(refused(seed::plan(kSingle, problem(8192), device(120, 26, 33000, 33000), {})), "33808");
}

TEST(SeedPlan, NoMultiprocessorsIsAReasonAndNotADivision) {
  const DeviceInfo none = device(120, 0, 100 * 1024, 99 * 1024);
  expect_in(refused(seed::plan(kSingle, problem(8192), none, {})), "num_sms");
  expect_in(refused(seed::plan(kSingle, problem(8192), none, point({}, 1))), "num_sms");
  expect_in(refused(seed::plan(kSingle, problem(8192), none, point(64, 1))), "multiprocessors");
}

TEST(SeedPlan, OddChunksAreRefused) {
  for (const std::int64_t chunk : {0, 32, 100, 4160, -64}) {
    expect_in(refused(seed::plan(kSingle, problem(8192), h200(), point(chunk))),
              "not " + std::to_string(chunk));
  }
  expect_in(refused(seed::plan(kSingle, problem(8192), h200(), point({}, 0))), "sm_multiple");
  expect_in(refused(seed::plan(kSingle, problem(8192), h200(), point(64, 33))), "sm_multiple");
}

TEST(SeedPlan, UnsupportedSaysWhy) {
  EXPECT_FALSE(seed::unsupported(kSingle, problem(8192), h200()));
  EXPECT_FALSE(seed::unsupported(kSingle, problem(8192, 28, 4, 64), laptop_5060()));
  expect_in(seed::unsupported(kSingle, problem(8192), device(86, 84, 100 * 1024, 99 * 1024)).value_or(""),
            "has 8.6");
  expect_in(seed::unsupported(kSingle, problem(8192, 32, 32, 96), h200()).value_or(""), "not 96");
  Problem half = problem(8192);
  half.dtype = Dtype::fp16;
  expect_in(seed::unsupported(kSingle, half, h200()).value_or(""), "not fp16");
  EXPECT_FALSE(seed::unsupported(kSingle, problem(seed::kMaxSeq), h200()));
  expect_in(seed::unsupported(kSingle, problem(seed::kMaxSeq + 1), h200()).value_or(""), "32 bits");
}

TEST(SeedPlan, WithoutTmaItRunsFromAmpereOn) {
  const DeviceInfo a100 = device(80, 108, 164 * 1024, 163 * 1024);
  EXPECT_FALSE(seed::unsupported(kAmpere, problem(8192), a100));
  EXPECT_FALSE(seed::unsupported(kAmpere, problem(8192), h200()));
  expect_in(seed::unsupported(kAmpere, problem(8192), device(75, 40, 64 * 1024, 64 * 1024)).value_or(""),
            "has 7.5");
  const LaunchPlan plan = planned(seed::plan(kAmpere, problem(8192), a100, {}));
  EXPECT_EQ(plan.chunk, 2048);  // c = 1213
  EXPECT_EQ(plan.grid, (Extent3{4, 32, 1}));
  EXPECT_EQ(plan.stages, 4);
  EXPECT_EQ(plan.dynamic_smem, 4 * 64 * 128 * 2);
  EXPECT_EQ(planned(seed::plan(kAmpere, problem(8192), laptop_5060(), {})).dynamic_smem, 65536);
}

#if FDBENCH_HAVE_CUDA

}  // namespace
namespace variants {
extern const Variant flash_decode_cp_async;
extern const Variant flash_decode_tma;
extern const Variant flash_decode_tma_dbf_k;
}  // namespace variants
namespace {

TEST(SeedVariants, PlanThroughTheTablesDoor) {
  const struct {
    const Variant* variant;
    const seed::Kernel* kernel;
  } cases[] = {{&variants::flash_decode_tma, &kSingle},
               {&variants::flash_decode_tma_dbf_k, &kDouble},
               {&variants::flash_decode_cp_async, &kAmpere}};
  for (const auto& [variant, kernel] : cases) {
    EXPECT_EQ(variant->name, kernel->name);
    EXPECT_EQ(planned(make_plan(*variant, problem(8192), h200(), {})).dynamic_smem,
              seed::dynamic_smem(*kernel, 128));
    EXPECT_EQ(planned(make_plan(*variant, problem(8192), h200(), point(256, 4))).grid, (Extent3{528, 1, 1}));
    expect_in(refused(make_plan(*variant, problem(8192), h200(), point(8192))), "chunk=8192");
    expect_in(refused(make_plan(*variant, problem(8192, 32, 32, 80), h200(), {})), "not 80");
  }
}

// No kernel over sm_120's limits, and as many CTAs a multiprocessor as declared.
TEST(SeedVariants, DeclaredResourcesHoldOnEachArchitecture) {
  for (const Variant* variant :
       {&variants::flash_decode_tma, &variants::flash_decode_tma_dbf_k, &variants::flash_decode_cp_async}) {
    for (const int cc : {90, 100, 120}) {
      int kernels = 0;
      for (const KernelResources& declared : variant->resources) {
        EXPECT_LE(declared.static_smem + declared.dynamic_smem, 99 * 1024);
        if (declared.cc != cc) continue;
        ++kernels;
        const auto limits = rules::sm_limits(cc);
        ASSERT_TRUE(limits);
        EXPECT_GE(rules::occupancy(rules::cta_resources(declared), *limits).ctas_per_sm, declared.ctas_per_sm)
            << declared.kernel << " on sm_" << cc;
      }
      EXPECT_EQ(kernels, 2);
    }
  }
}

#endif  // FDBENCH_HAVE_CUDA

}  // namespace
}  // namespace fdbench
