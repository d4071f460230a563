// What the CUDA modules do on the host: asked on a machine with or without a GPU.
#ifdef FDBENCH_HAVE_CUDA

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/device_steps.h"
#include "cli/variant_table.h"
#include "core/error.h"
#include "cuda/nvml.h"

namespace fdbench {
namespace {

TEST(CudaDevices, AreCountedOrSaidToBeMissing) {
  const CudaDeviceCount devices = cuda_device_count();
  if (devices.count > 0) {
    EXPECT_EQ(devices.why_none, "");
    return;
  }
  EXPECT_EQ(devices.count, 0);
  EXPECT_GT(devices.why_none.size(), 20u) << devices.why_none;
  EXPECT_EQ(devices.why_none.find('\n'), std::string::npos);
  try {
    make_cuda_backend(0);
    FAIL() << "a backend on no device";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::no_device);
    EXPECT_NE(std::string(error.what()).find(devices.why_none), std::string::npos);
  }
}

TEST(CudaDevices, NoneIsNegative) {
  EXPECT_THROW(query_cuda_device(-1), Error);
}

TEST(ClockStamps, LowestClockOverThoseSeenTwice) {
  std::vector<cuda::ClockStamp> before(cuda::kClockStampSlots, cuda::ClockStamp{0, 0});
  std::vector<cuda::ClockStamp> after(cuda::kClockStampSlots, cuda::ClockStamp{0, 0});
  EXPECT_EQ(cuda::lowest_mhz(before.data(), after.data()), 0.0);
  before[0] = {1'000'000, 5'000};
  after[0] = {1'198'000, 105'000};  // 198,000 cycles in 100,000 ns
  before[7] = {50, 5'100};
  after[7] = {150'050, 105'100};  // 150,000 in 100,000
  before[9] = {77, 5'000};        // not seen again
  after[11] = {99, 105'000};      // not seen before
  before[12] = {900, 5'000};      // a counter that went back
  after[12] = {100, 105'000};
  EXPECT_DOUBLE_EQ(cuda::lowest_mhz(before.data(), after.data()), 1500.0);
}

TEST(Nvml, ThrottleReasonsInWords) {
  EXPECT_TRUE(cuda::throttle_reasons(0).empty());
  EXPECT_TRUE(cuda::throttle_reasons(1).empty()) << "an idle GPU is not throttled";
  EXPECT_EQ(cuda::throttle_reasons(0x44), (std::vector<std::string>{"power cap", "thermal, hardware"}));
}

TEST(Nvml, AnUnknownDeviceIsNoReading) {
  EXPECT_FALSE(cuda::read_nvml("GPU-00000000-0000-0000-0000-000000000000").has_value());
}

// A device as its data sheet has it, for plans.
DeviceInfo h200() {
  DeviceInfo device;
  device.kind = BackendKind::cuda;
  device.cc = 90;
  device.sms = 132;
  device.l2_bytes = 60 << 20;
  device.smem_per_sm = 228 << 10;
  device.smem_per_block = 227 << 10;
  device.threads_per_sm = 2048;
  device.ctas_per_sm = 32;
  device.regs_per_sm = 65536;
  device.cooperative_launch = true;
  device.cublas = "13.0.0";
  return device;
}

Problem problem_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t seq) {
  Problem problem;
  problem.heads = heads;
  problem.kv_heads = kv_heads;
  problem.seq = seq;
  problem.dim = 128;
  return problem;
}

LaunchPlan plan_of(std::string_view name, const Problem& problem, const DeviceInfo& device,
                   const TuningPoint& tuning = {}) {
  const PlanResult result = make_plan(*find_variant(variant_table(), name), problem, device, tuning);
  if (const auto* no = std::get_if<Unsupported>(&result)) throw usage_error(no->reason);
  return std::get<LaunchPlan>(result);
}

std::string refusal(std::string_view name, const Problem& problem, const DeviceInfo& device,
                    const TuningPoint& tuning = {}) {
  const PlanResult result = make_plan(*find_variant(variant_table(), name), problem, device, tuning);
  const auto* no = std::get_if<Unsupported>(&result);
  return no ? no->reason : std::string();
}

TuningPoint point(std::initializer_list<std::pair<std::string_view, std::int64_t>> values) {
  TuningPoint tuning;
  for (const auto& [axis, value] : values) tuning.set(axis, value);
  return tuning;
}

TEST(CudaBulkReadPlan, ARingACtaAndTwoCtasAMultiprocessorForLongReads) {
  const LaunchPlan plan = plan_of("cuda_bulk_read", problem_of(32, 8, 4096), h200());
  EXPECT_EQ(plan.grid, (Extent3{132, 1, 1}));
  EXPECT_EQ(plan.stages, 4);
  EXPECT_EQ(plan.dynamic_smem, 4 * (16384 + 8));
  EXPECT_EQ(plan.scratch_bytes, 0);
  EXPECT_EQ(plan_of("cuda_bulk_read", problem_of(32, 8, 8191), h200()).grid.x, 132);
  EXPECT_EQ(plan_of("cuda_bulk_read", problem_of(32, 8, 8192), h200()).grid.x, 264);  // 32 MB
  DeviceInfo narrow = h200();
  narrow.smem_per_sm = 128 << 10;  // two rings and what the system keeps are more
  EXPECT_EQ(plan_of("cuda_bulk_read", problem_of(32, 8, 8192), narrow).grid.x, 132);
}

TEST(CudaBulkReadPlan, RefusesWhatDoesNotFit) {
  DeviceInfo small = h200();
  small.cc = 120;
  small.sms = 26;
  small.smem_per_sm = 100 << 10;
  small.smem_per_block = 99 << 10;
  EXPECT_EQ(refusal("cuda_bulk_read", problem_of(32, 8, 8192), small), "");
  const std::string why = refusal("cuda_bulk_read", problem_of(32, 8, 8192), small, point({{"stages", 12}}));
  EXPECT_NE(why.find(std::to_string(12 * (16384 + 8))), std::string::npos) << why;
  EXPECT_NE(why.find(std::to_string(99 << 10)), std::string::npos) << why;
  EXPECT_NE(refusal("cuda_bulk_read", problem_of(32, 8, 8192), small, point({{"sm_multiple", 2}})), "");
}

TEST(CudaBulkReadPlan, PlainLoadsBeforeSm90) {
  DeviceInfo old = h200();
  old.cc = 80;
  old.sms = 108;
  const LaunchPlan plan = plan_of("cuda_bulk_read", problem_of(32, 8, 8192), old);
  EXPECT_EQ(plan.dynamic_smem, 0);
  EXPECT_EQ(plan.grid.x, 3 * 108);
  EXPECT_NE(refusal("cuda_bulk_read", problem_of(32, 8, 8192), old, point({{"plain", 0}})), "");
  old.cc = 75;
  EXPECT_NE(refusal("cuda_bulk_read", problem_of(32, 8, 8192), old).find("7.5"), std::string::npos);
}

TEST(CudaOraclePlan, SplitsCoverTheSequenceOnce) {
  for (const std::int64_t seq : {0, 1, 1023, 1024, 1025, 131072, 131073, 524288}) {
    const LaunchPlan plan = plan_of("cuda_oracle", problem_of(32, 8, seq), h200());
    EXPECT_GE(plan.chunk * plan.splits, seq);
    EXPECT_LT(plan.chunk * (plan.splits - 1), std::max<std::int64_t>(seq, 1));
    EXPECT_LE(plan.splits, 128);
    EXPECT_EQ(plan.grid, (Extent3{32, plan.splits, 1}));
    EXPECT_EQ(plan.scratch_bytes, 32 * plan.splits * 4 * (128 + 2) * 8);
  }
  const std::int64_t far = (std::int64_t{1} << 31) * 16;
  EXPECT_GE(plan_of("cuda_oracle", problem_of(64, 64, far), h200()).chunk * 128, far);
}

TEST(CublasPlan, SoftmaxPartsCoverTheSequenceOnce) {
  for (const std::int64_t seq : {0, 1, 7, 2048, 2049, 8192, 131073, 524288}) {
    for (const std::int64_t parts : {0, 1, 3, 1000}) {
      const TuningPoint tuning = parts == 0 ? TuningPoint{} : point({{"parts", parts}});
      const LaunchPlan plan = plan_of("cublas_gemv_softmax", problem_of(32, 8, seq), h200(), tuning);
      const std::int64_t tokens = std::max<std::int64_t>(seq, 1);
      EXPECT_GE(plan.chunk * plan.splits, tokens);
      EXPECT_LT(plan.chunk * (plan.splits - 1), tokens);
      // Scores in float32, weights in bf16, and cuBLAS's own.
      EXPECT_GE(plan.scratch_bytes, 32 * tokens * 6 + (32 << 20));
    }
  }
  EXPECT_EQ(plan_of("cublas_gemv_softmax", problem_of(32, 8, 2048), h200()).splits, 1);
}

TEST(CublasPlan, SaysWhatIsMissing) {
  DeviceInfo without = h200();
  without.cublas.clear();
  EXPECT_NE(refusal("cublas_gemv_softmax", problem_of(32, 8, 100), without).find("cuBLAS"),
            std::string::npos);
  EXPECT_NE(refusal("cublas_gemv_softmax", problem_of(32, 8, 100), h200(), point({{"gemv", 1}})).find("4"),
            std::string::npos);
  EXPECT_EQ(refusal("cublas_gemv_softmax", problem_of(32, 32, 100), h200(), point({{"gemv", 1}})), "");
}

}  // namespace
}  // namespace fdbench

#endif  // FDBENCH_HAVE_CUDA
