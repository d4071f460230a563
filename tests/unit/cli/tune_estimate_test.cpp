#include "cli/tune_estimate.h"

#include <gtest/gtest.h>

namespace fdbench::cli {
namespace {

DeviceInfo h200() {
  DeviceInfo device;
  device.kind = BackendKind::cuda;
  device.bandwidth_datasheet = 4.8e12;
  device.l2_bytes = 62'914'560;
  return device;
}

// The shipped profile's 36 shapes took 27 s.
TEST(TuneEstimate, IsWithinTwiceWhatASuiteTook) {
  double seconds = 0.0;
  for (std::int64_t seq = 512; seq <= 131072; seq *= 2) {
    for (const auto& [heads, kv_heads] : {std::pair{32, 32}, {32, 8}, {64, 8}, {8, 1}})
      seconds += expected_seconds({seq, heads, kv_heads, 128, Dtype::bf16, {}}, h200(), CacheMode::cold,
                                  {.rounds = 40});
  }
  EXPECT_GT(seconds, 27.0 / 2.0);
  EXPECT_LT(seconds, 27.0 * 2.0);
}

// 65536 tokens of 64/8 heads, 366 points: 14,740 samples, and 303 by the default search; 20 rounds of gains
// beside.
TEST(TuneEstimate, KnowsTheStrategies) {
  tune::SearchSpace space;
  space.problem = {65536, 64, 8, 128, Dtype::bf16, {}};
  space.points.resize(366);
  space.starts.resize(14);
  const auto all =
      estimate_tuning(space, h200(), CacheMode::cold, {.strategy = tune::Strategy::exhaustive, .rounds = 40});
  const auto some = estimate_tuning(space, h200(), CacheMode::cold, {.rounds = 40});
  EXPECT_NEAR(all.samples, 14740.0, 400.0);
  EXPECT_GT(all.seconds, 8.86 / 2.0);
  EXPECT_LT(all.seconds, 8.86 * 2.0);
  EXPECT_GT(some.samples, 303.0);
  EXPECT_LT(some.samples, 2.0 * (303.0 + 160.0));
  EXPECT_LT(estimate_tuning(space, h200(), CacheMode::hot, {.rounds = 40}).seconds, some.seconds);
}

}  // namespace
}  // namespace fdbench::cli
