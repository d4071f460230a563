// The vocabulary: problems and their limits, tuning points, plans, ids, names.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/byte_sum.h"
#include "core/decode_args.h"
#include "core/input_recipe.h"
#include "core/measurement.h"
#include "core/result_record.h"
#include "core/variant.h"
#include "core/work_message.h"

namespace fdbench {
namespace {

TEST(Problem, Counts) {
  const Problem problem{1000, 32, 8, 128, Dtype::bf16, {}};
  EXPECT_EQ(problem.group(), 4);
  EXPECT_EQ(problem.q_bytes(), 32 * 128 * 2);
  EXPECT_EQ(problem.kv_bytes(), 1000 * 8 * 128 * 2);
  EXPECT_EQ(problem.logical_bytes(), 2 * (32 * 128 * 2) + 2 * (1000 * 8 * 128 * 2));
  EXPECT_FLOAT_EQ(problem.softmax_scale(), 0.088388347f);
  EXPECT_EQ((Problem{1, 1, 1, 64, Dtype::bf16, 0.5f}).softmax_scale(), 0.5f);
}

TEST(Problem, WhatIsNone) {
  const auto reason = [](std::int64_t seq, std::int64_t heads, std::int64_t kv_heads, std::int64_t dim) {
    return invalid_reason({seq, heads, kv_heads, dim, Dtype::bf16, {}}).value_or("");
  };
  EXPECT_EQ(reason(8192, 32, 8, 128), "");
  EXPECT_EQ(reason(0, 32, 8, 128), "");  // a library input
  EXPECT_NE(reason(-1, 32, 8, 128).find("seq"), std::string::npos);
  EXPECT_NE(reason(1, 0, 8, 128).find("heads"), std::string::npos);
  EXPECT_NE(reason(1, 32, 0, 128).find("kv_heads"), std::string::npos);
  EXPECT_NE(reason(1, 32, -8, 128).find("kv_heads"), std::string::npos);
  EXPECT_NE(reason(1, 32, 8, 0).find("dim"), std::string::npos);
  EXPECT_NE(reason(1, 33, 8, 128).find("33 is not a multiple of kv_heads 8"), std::string::npos);
  // The product overflows 64 bits on the way.
  EXPECT_NE(reason(std::int64_t{1} << 62, std::int64_t{1} << 40, std::int64_t{1} << 40, 128).find("2^62"),
            std::string::npos);
  // One step within the limit every count is still right.
  const Problem large{(std::int64_t{1} << 51) - 1, 1, 1, 256, Dtype::bf16, {}};
  EXPECT_FALSE(invalid_reason(large).has_value());
  EXPECT_GT(large.logical_bytes(), std::int64_t{1} << 60);
}

TEST(Problem, PlansThatCanBeCounted) {
  const auto countable = [](std::int64_t seq, std::int64_t heads, std::int64_t dim) {
    return has_countable_plans({seq, heads, 1, dim, Dtype::bf16, {}});
  };
  EXPECT_TRUE(countable(std::int64_t{1} << 30, 128, 256));
  EXPECT_FALSE(countable(1, std::int64_t{1} << 50, 64));
  EXPECT_FALSE(countable(std::int64_t{1} << 26, std::int64_t{1} << 26, 64));
}

TEST(ByteSum, StaysWhereNoMemoryReaches) {
  EXPECT_EQ(add_bytes(1, 2), 3);
  EXPECT_EQ(add_bytes(kMostBytes - 1, 1), kMostBytes);
  EXPECT_EQ(add_bytes(kMostBytes, kMostBytes), kMostBytes);
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(add_bytes(kLast, kLast), kMostBytes);
}

TEST(Problem, HeadsTimesSeqPast32Bits) {
  const Problem problem{std::int64_t{1} << 26, 64, 64, 128, Dtype::bf16, {}};
  EXPECT_EQ(problem.kv_elements(), std::int64_t{1} << 39);
}

TEST(Ids, AreStable) {
  const Problem problem{8192, 32, 8, 128, Dtype::fp16, {}};
  EXPECT_EQ(shape_id(problem), "seq=8192/heads=32/kv_heads=8/dim=128/fp16");
  TuningPoint point;
  EXPECT_EQ(result_id("v", problem, point, CacheMode::cold, TimerMode::events),
            "v/seq=8192/heads=32/kv_heads=8/dim=128/fp16/default/cold/events");
  point.set("stages", 4);
  point.set("chunk", 512);
  EXPECT_EQ(result_id("v", problem, point, CacheMode::hot, TimerMode::graph),
            "v/seq=8192/heads=32/kv_heads=8/dim=128/fp16/chunk=512,stages=4/hot/graph");
}

TEST(TuningPoint, SortedWhateverTheOrder) {
  TuningPoint a, b;
  a.set("threads", 2);
  a.set("chunk", 256);
  b.set("chunk", 1);
  b.set("threads", 2);
  b.set("chunk", 256);
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.id(), "chunk=256,threads=2");
  EXPECT_EQ(a.get("chunk"), 256);
  EXPECT_FALSE(a.get("chun").has_value());
  EXPECT_FALSE(a.get("chunks").has_value());
  EXPECT_TRUE(TuningPoint{}.empty());
  EXPECT_EQ(TuningPoint{}.id(), "default");
}

constexpr Axis kAxes[] = {{"chunk", "", 16, 64}, {"stages", "", 1, 0}};

constexpr Variant planner() {
  Variant variant;
  variant.name = "planner";
  variant.axes = kAxes;
  variant.unsupported = [](const Problem& problem, const DeviceInfo&) -> std::optional<std::string> {
    if (problem.dim != 128) return "dim must be 128";
    return std::nullopt;
  };
  variant.plan = [](const Problem&, const DeviceInfo&, const TuningPoint& point) -> PlanResult {
    LaunchPlan plan;
    plan.chunk = point.get("chunk").value_or(32);
    return plan;
  };
  return variant;
}

std::string refusal(std::int64_t dim, const char* axis, std::int64_t value) {
  TuningPoint point;
  point.set(axis, value);
  const PlanResult result = make_plan(planner(), {1, 1, 1, dim, Dtype::bf16, {}}, {}, point);
  const auto* no = std::get_if<Unsupported>(&result);
  return no ? no->reason : "";
}

TEST(MakePlan, HoldsPointsToTheAxes) {
  EXPECT_EQ(refusal(128, "chunk", 16), "");
  EXPECT_EQ(refusal(128, "chunk", 64), "");
  EXPECT_EQ(refusal(128, "chunk", 15), "chunk=15 is outside 16 ... 64");
  EXPECT_EQ(refusal(128, "chunk", 65), "chunk=65 is outside 16 ... 64");
  EXPECT_EQ(refusal(128, "stages", 1000000), "");
  EXPECT_EQ(refusal(128, "stages", 0), "stages=0 is outside 1 ... any");
  EXPECT_EQ(refusal(128, "tile", 1), "planner has no axis 'tile'");
  EXPECT_EQ(refusal(64, "chunk", 15), "dim must be 128");  // the problem comes first
}

TEST(DecodeArgs, Dense) {
  const DecodeArgs args = dense_args({1000, 32, 8, 128, Dtype::fp16, {}});
  EXPECT_EQ(args.q_head_stride, 128);
  EXPECT_EQ(args.k_seq_stride, 8 * 128);
  EXPECT_EQ(args.v_head_stride, 128);
  EXPECT_EQ(args.dtype, Dtype::fp16);
  EXPECT_EQ(args.q, nullptr);
  EXPECT_EQ(args.oracle_o, nullptr);
}

TEST(Names, ReadBack) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(parse_status(to_string(static_cast<Status>(i))), static_cast<Status>(i));
    EXPECT_EQ(parse_phase(to_string(static_cast<Phase>(i))), static_cast<Phase>(i));
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(parse_cache_mode(to_string(static_cast<CacheMode>(i))), static_cast<CacheMode>(i));
    EXPECT_EQ(parse_timer_mode(to_string(static_cast<TimerMode>(i))), static_cast<TimerMode>(i));
    EXPECT_EQ(parse_dtype(to_string(static_cast<Dtype>(i))), static_cast<Dtype>(i));
  }
  for (const char* none : {"", "OK", "ok ", "Cold", "?"}) {
    EXPECT_FALSE(parse_status(none).has_value());
    EXPECT_FALSE(parse_phase(none).has_value());
    EXPECT_FALSE(parse_cache_mode(none).has_value());
    EXPECT_FALSE(parse_timer_mode(none).has_value());
    EXPECT_FALSE(parse_dtype(none).has_value());
  }
}

// What the recipe's comment promises: mean 0, standard deviation 2.31 of q and 1.155 of k and v.
TEST(InputRecipe, MeanAndDeviation) {
  for (const auto& [tensor, deviation] :
       {std::pair{Tensor::q, 2.309}, std::pair{Tensor::k, 1.1547}, std::pair{Tensor::v, 1.1547}}) {
    double sum = 0.0, squares = 0.0, largest = 0.0;
    constexpr int kBlocks = 50000;
    for (std::uint64_t b = 0; b < kBlocks; ++b) {
      for (const float value : input_block(1, tensor, b).value) {
        sum += value;
        squares += static_cast<double>(value) * value;
        largest = std::max(largest, std::fabs(static_cast<double>(value)));
      }
    }
    constexpr double kCount = 4.0 * kBlocks;
    EXPECT_NEAR(sum / kCount, 0.0, 5.0 * deviation / std::sqrt(kCount));
    EXPECT_NEAR(std::sqrt(squares / kCount), deviation, 0.01 * deviation);
    EXPECT_LE(largest, 510.0 * (tensor == Tensor::q ? 0x1p-6 : 0x1p-7));
  }
}

TEST(InputRecipe, BlocksSeedsAndTensorsDiffer) {
  const auto differs = [](const InputBlock& a, const InputBlock& b) {
    return a.value[0] != b.value[0] || a.value[1] != b.value[1] || a.value[2] != b.value[2] ||
           a.value[3] != b.value[3];
  };
  EXPECT_TRUE(differs(input_block(1, Tensor::k, 0), input_block(1, Tensor::k, 1)));
  EXPECT_TRUE(differs(input_block(1, Tensor::k, 0), input_block(1, Tensor::v, 0)));
  EXPECT_TRUE(differs(input_block(1, Tensor::k, 0), input_block(2, Tensor::k, 0)));
  // The upper halves of block and seed count too.
  EXPECT_TRUE(differs(input_block(1, Tensor::k, 0), input_block(1, Tensor::k, std::uint64_t{1} << 32)));
  EXPECT_TRUE(differs(input_block(1, Tensor::k, 0), input_block(1 + (std::uint64_t{1} << 32), Tensor::k, 0)));
}

}  // namespace
}  // namespace fdbench
