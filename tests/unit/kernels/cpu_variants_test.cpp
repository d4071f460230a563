// The CPU variants' plans, which are pure; the oracle, against values worked out by hand; the parts they
// share.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/pinned_team.h"
#include "cli/variant_table.h"
#include "core/error.h"
#include "core/input_recipe.h"
#include "cpu/detail/power_of_two.h"
#include "cpu/detail/rows.h"
#include "cpu/detail/simd_targets.h"
#include "cpu/detail/split_kv_amx.h"
#include "cpu/detail/split_kv_plan.h"
#include "cpu/detail/touch.h"
#include "cpu/detail/work_queue.h"

namespace fdbench {
namespace {

DeviceInfo eight_cores(std::vector<std::string> isas = cpu::simd_targets()) {
  DeviceInfo device;
  device.isas = std::move(isas);
  device.sms = 8;
  device.l1d_bytes = 32 << 10;
  device.core_l2_bytes = 1 << 20;
  device.l2_bytes = 32 << 20;
  return device;
}

Problem problem_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t seq, std::int64_t dim = 128) {
  Problem problem;
  problem.seq = seq;
  problem.heads = heads;
  problem.kv_heads = kv_heads;
  problem.dim = dim;
  return problem;
}

const Variant& variant(const char* name) {
  return *find_variant(variant_table(), name);
}

LaunchPlan plan_of(const char* name, const Problem& problem, const TuningPoint& tuning = {},
                   const DeviceInfo& device = eight_cores()) {
  return std::get<LaunchPlan>(make_plan(variant(name), problem, device, tuning));
}

std::string refusal_of(const char* name, const Problem& problem, const TuningPoint& tuning = {}) {
  const PlanResult result = make_plan(variant(name), problem, eight_cores(), tuning);
  const auto* no = std::get_if<Unsupported>(&result);
  return no ? no->reason : "";
}

TuningPoint point(const char* axis, std::int64_t value) {
  TuningPoint tuning;
  tuning.set(axis, value);
  return tuning;
}

TEST(CpuPlans, EveryShapeKeepsEveryCoreBusyAndCoversItsTokens) {
  for (const std::int64_t seq : {8, 100, 512, 1024, 2048, 8192, 131072, 1000003}) {
    for (const auto& [heads, kv_heads] : {std::pair{32, 32}, {32, 8}, {64, 1}, {8, 1}, {1, 1}}) {
      const LaunchPlan plan = plan_of("cpu_split_kv", problem_of(heads, kv_heads, seq));
      EXPECT_EQ(plan.block.x, 8) << seq << " " << heads;
      EXPECT_GE(plan.splits, 8) << seq << " " << heads;
      EXPECT_GE(plan.chunk * plan.splits, seq);
      EXPECT_LT(plan.chunk * (plan.splits - 1), seq);
      EXPECT_EQ(plan.tile % 16, 0);
      EXPECT_GT(plan.tile, 0);
    }
  }
}

TEST(CpuPlans, ChunksAreRoundedToMatrixTilesOnlyWhereThoseServe) {
  const auto chunk = [](const Problem& problem) { return plan_of("cpu_split_kv", problem).chunk; };
  EXPECT_EQ(chunk(problem_of(32, 8, 65536)), 528);
  EXPECT_EQ(chunk(problem_of(32, 32, 65536)), 512);   // no group
  EXPECT_EQ(chunk(problem_of(17, 1, 262144)), 2048);  // no equal blocks of heads
  EXPECT_EQ(chunk(problem_of(8, 1, 2048)), 256);      // 8 threads would have 7 chunks and a rest
  Problem fp16 = problem_of(32, 8, 65536);
  fp16.dtype = Dtype::fp16;
  EXPECT_EQ(chunk(fp16), 512);
}

TEST(CpuPlans, EveryDimAndTypeIsTaken) {
  for (const char* name : {"cpu_split_kv", "cpu_three_pass"}) {
    for (const std::int64_t dim : {64, 96, 128, 192, 256}) {
      for (const Dtype dtype : {Dtype::bf16, Dtype::fp16}) {
        Problem problem = problem_of(32, 8, 1000, dim);
        problem.dtype = dtype;
        EXPECT_EQ(refusal_of(name, problem), "");
      }
    }
  }
}

TEST(CpuPlans, NothingOverflowsAtTwoToThe26Tokens) {
  const Problem problem = problem_of(64, 64, std::int64_t{1} << 26);
  const LaunchPlan split = plan_of("cpu_split_kv", problem);
  EXPECT_GT(split.scratch_bytes, 0);
  EXPECT_LT(split.scratch_bytes, problem.kv_bytes() / 30);
  EXPECT_GE(split.chunk * split.splits, problem.seq);
  // One token a chunk: 2^26 partials of 64 heads.
  const LaunchPlan fine = plan_of("cpu_split_kv", problem, point("chunk", 1));
  EXPECT_EQ(fine.splits, problem.seq);
  EXPECT_GT(fine.scratch_bytes, problem.seq * 64 * 128 * 4);
  EXPECT_GE(plan_of("cpu_three_pass", problem).scratch_bytes, problem.seq * 64 * 4);
  EXPECT_EQ(plan_of("cpu_oracle", problem).scratch_bytes, problem.seq * 8 * 8);
  EXPECT_GT(plan_of("cpu_read", problem).grid.x, 0);
}

TEST(CpuPlans, TuningIsTakenAsAsked) {
  const Problem problem = problem_of(32, 8, 1000);
  TuningPoint tuning = point("chunk", 300);
  tuning.set("threads", 3);
  const LaunchPlan plan = plan_of("cpu_split_kv", problem, tuning);
  EXPECT_EQ(plan.chunk, 300);
  EXPECT_EQ(plan.splits, 4);
  EXPECT_EQ(plan.block.x, 3);
  EXPECT_EQ(plan.rule, "");
  EXPECT_NE(plan_of("cpu_split_kv", problem).rule, "");
}

TEST(CpuPlans, RefusalsSayWhatIsNeededAndWhatThereIs) {
  EXPECT_EQ(refusal_of("cpu_split_kv", problem_of(32, 8, 1000), point("threads", 9)),
            "threads=9 exceeds the 8 cores there are");
  EXPECT_EQ(refusal_of("cpu_split_kv", problem_of(32, 8, 1000, 100)),
            "dim must be 64, 96, 128, 192 or 256, not 100");
  EXPECT_EQ(refusal_of("cpu_three_pass", problem_of(32, 8, 1000, 32)),
            "dim must be 64, 96, 128, 192 or 256, not 32");
  EXPECT_NE(refusal_of("cpu_split_kv", problem_of(32, 8, 1000), point("chunk", 0)), "");
  EXPECT_NE(refusal_of("cpu_read", problem_of(32, 8, 1000, 100)), "");
}

// Two keys with scores 0 and ln 3: weights 1/4 and 3/4.
TEST(CpuOracle, TwoKeysByHand) {
  const float ln3 = 1.0986123f;
  Problem problem = problem_of(1, 1, 2, 2);
  problem.scale = ln3;
  const auto bf16 = [](float value) { return float_to_bf16(value); };
  const std::vector<std::uint16_t> q = {bf16(1), bf16(2)}, k = {bf16(2), bf16(-1), bf16(-1), bf16(1)},
                                   v = {bf16(8), bf16(0), bf16(16), bf16(-4)};
  std::vector<double> o(2), lse(1), scratch(2);
  DecodeArgs args = dense_args(problem);
  args.q = q.data();
  args.k = k.data();
  args.v = v.data();
  args.oracle_o = o.data();
  args.oracle_lse = lse.data();
  args.scratch = scratch.data();
  PinnedTeam team({0});
  LaunchContext context;
  context.team = &team;
  LaunchPlan plan = plan_of("cpu_oracle", problem);
  ASSERT_LE(plan.scratch_bytes, 16);
  variant("cpu_oracle").prepare(args, plan, eight_cores())->launch(context);
  EXPECT_NEAR(o[0], 0.25 * 8 + 0.75 * 16, 1e-6);
  EXPECT_NEAR(o[1], -3.0, 1e-6);
  EXPECT_NEAR(lse[0], std::log(4.0), 1e-6);
}

TEST(CpuOracle, NoKeysGiveZeroAndMinusInfinity) {
  const Problem problem = problem_of(2, 1, 0, 4);
  std::vector<std::uint16_t> q(8);
  std::vector<double> o(8, 1.0), lse(2, 1.0);
  DecodeArgs args = dense_args(problem);
  args.q = q.data();
  args.oracle_o = o.data();
  args.oracle_lse = lse.data();
  PinnedTeam team({0});
  LaunchContext context;
  context.team = &team;
  LaunchPlan plan = plan_of("cpu_oracle", problem);
  plan.block.x = 1;
  variant("cpu_oracle").prepare(args, plan, eight_cores())->launch(context);
  EXPECT_EQ(o, std::vector<double>(8, 0.0));
  EXPECT_EQ(lse, std::vector<double>(2, -std::numeric_limits<double>::infinity()));
}

// cpu_split_kv on tensors of its own, one thread.
struct SplitKvRun {
  Problem problem;
  TuningPoint tuning = point("threads", 1);
  std::vector<std::uint16_t> q, k, v, o;

  explicit SplitKvRun(const Problem& shape)
      : problem(shape),
        q(static_cast<std::size_t>(shape.q_elements()), round_to(shape.dtype, 0.5f)),
        k(static_cast<std::size_t>(shape.kv_elements()), round_to(shape.dtype, 0.25f)),
        v(k),
        o(q.size()) {}

  void on(const std::string& target) {
    const bool tiles = target == cpu::kTilesTarget && cpu::amx_applies(problem.dtype, problem.group());
    std::vector<std::string> isas = {target};
    if (target == cpu::kTilesTarget) isas.push_back("plain");
    const LaunchPlan plan = plan_of("cpu_split_kv", problem, tuning, eight_cores(isas));
    ASSERT_EQ(plan.isa, tiles ? target : isas.back());
    ASSERT_EQ(plan.tile == cpu::kMostTileTokens, tiles);
    std::vector<std::byte> scratch(static_cast<std::size_t>(plan.scratch_bytes) + 64);
    DecodeArgs args = dense_args(problem);
    args.q = q.data();
    args.k = k.data();
    args.v = v.data();
    args.o = o.data();
    void* aligned = scratch.data();
    std::size_t room = scratch.size();
    args.scratch = std::align(64, static_cast<std::size_t>(plan.scratch_bytes), aligned, room);
    PinnedTeam team({0});
    LaunchContext context;
    context.team = &team;
    std::fill(o.begin(), o.end(), std::uint16_t{0});
    variant("cpu_split_kv").prepare(args, plan, eight_cores())->launch(context);
  }
};

// A key that is read and should not be must not pass unseen: rows of NaN follow K in every validation.
TEST(CpuSplitKv, AKeyOfNaNMakesEveryOutputNaN) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16}) {
    Problem problem = problem_of(8, 1, 600);
    problem.dtype = dtype;
    SplitKvRun run(problem);
    for (const std::int64_t token : {0, 1, 15, 16, 255, 528, 599}) {
      std::uint16_t& poisoned = run.k[static_cast<std::size_t>(token * 128 + 5)];
      poisoned = 0x7fc0;
      for (const std::string& target : cpu::simd_targets()) {
        run.on(target);
        EXPECT_TRUE(std::all_of(run.o.begin(), run.o.end(),
                                [&](std::uint16_t x) {
                                  return std::isnan(dtype == Dtype::bf16 ? bf16_to_float(x)
                                                                         : fp16_to_float(x));
                                }))
            << target << ", token " << token << ", " << to_string(dtype);
      }
      poisoned = round_to(dtype, 0.25f);
    }
  }
}

// Keys that score -inf weigh nothing, whether others share their chunk or not.
TEST(CpuSplitKv, ChunksThatScoreMinusInfinityWeighNothing) {
  for (const std::int64_t chunk : {1, 16, 600}) {
    SplitKvRun run(problem_of(8, 1, 600));
    run.tuning.set("chunk", chunk);
    for (const std::int64_t token : {0, 1, 2, 100, 599}) {
      run.k[static_cast<std::size_t>(token * 128 + 5)] = 0xff80;
      std::fill_n(run.v.begin() + token * 128, 128, float_to_bf16(7.0f));
    }
    for (const std::string& target : cpu::simd_targets()) {
      run.on(target);
      for (const std::uint16_t x : run.o) ASSERT_EQ(bf16_to_float(x), 0.25f) << target << ", chunk " << chunk;
    }
  }
}

// The first key lies against the queries, the last along them: a negative scale prefers that one, 0 none.
TEST(CpuSplitKv, AnyScaleIsTaken) {
  for (const std::int64_t seq : {5, 600}) {
    for (const float scale : {-1.0f, 0.0f, 1.0f}) {
      Problem problem = problem_of(8, 1, seq);
      problem.scale = scale;
      SplitKvRun run(problem);
      for (std::int64_t t = 0; t < seq; ++t) {
        for (std::int64_t d = 0; d < 128; ++d) {
          const auto at = static_cast<std::size_t>(t * 128 + d);
          run.k[at] = float_to_bf16(t == 0 ? -1.0f : t == seq - 1 ? 1.0f : 0.0f);
          run.v[at] = float_to_bf16(t == 0 ? 3.0f : t == seq - 1 ? 5.0f : 1.0f);
        }
      }
      const float mean = (3.0f + 5.0f + static_cast<float>(seq - 2)) / static_cast<float>(seq);
      const float expected = scale < 0.0f ? 3.0f : scale > 0.0f ? 5.0f : mean;
      for (const std::string& target : cpu::simd_targets()) {
        run.on(target);
        for (const std::uint16_t x : run.o)
          ASSERT_NEAR(bf16_to_float(x), expected, 0.01f) << target << ", scale " << scale << ", " << seq;
      }
    }
  }
}

// What this machine has beside tiles.
std::vector<std::string> vectors_here() {
  std::vector<std::string> names = cpu::simd_targets();
  std::erase(names, cpu::kTilesTarget);
  return names;
}

// The roof may leave no byte out: its digest is the sum of all words, whatever the instruction set and tail.
TEST(CpuRead, DigestIsTheSumOfEveryWord) {
  for (const std::int64_t words : {8, 16, 8 * 100, 4096, 8 * 1237}) {
    std::vector<std::uint64_t> data(static_cast<std::size_t>(words));
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = philox4x32(static_cast<std::uint32_t>(i), 0, 0, 0, 7, 0).w[0] * 0x100000001ull;
    const std::uint64_t sum = std::accumulate(data.begin(), data.end(), std::uint64_t{0});
    for (const std::string& target : vectors_here())
      EXPECT_EQ(cpu::read_bytes_kernel(target)(data.data(), words * 8), sum) << target << " " << words;
  }
}

TEST(CpuRead, EveryWordOfKAndVIsRead) {
  const Problem problem = problem_of(32, 3, 1237, 96);  // no whole number of blocks
  std::vector<std::uint64_t> k(static_cast<std::size_t>(problem.kv_bytes() / 8)), v(k.size());
  for (std::size_t i = 0; i < k.size(); ++i) {
    const auto random = philox4x32(static_cast<std::uint32_t>(i), 0, 0, 0, 7, 0);
    k[i] = random.w[0] * 0x100000001ull;
    v[i] = random.w[1] * 0x100000001ull;
  }
  std::uint64_t digest = 0;
  DecodeArgs args = dense_args(problem);
  args.k = k.data();
  args.v = v.data();
  args.scratch = &digest;
  LaunchPlan plan = plan_of("cpu_read", problem);
  ASSERT_EQ(plan.scratch_bytes, 8);
  plan.block.x = 2;
  PinnedTeam team({0, 0});
  LaunchContext context;
  context.team = &team;
  const auto prepared = variant("cpu_read").prepare(args, plan, eight_cores());
  for (int launch = 0; launch < 2; ++launch) {
    prepared->launch(context);
    EXPECT_EQ(digest, std::accumulate(k.begin(), k.end(), std::uint64_t{0}) +
                          std::accumulate(v.begin(), v.end(), std::uint64_t{0}));
    digest = 0;
  }
}

// Each has code of its own. Highway's SCALAR is the plain loops.
TEST(SimdTargets, EachHasItsOwnCode) {
  const DecodeArgs args = dense_args(problem_of(8, 1, 600));
  std::vector<void (*)(const cpu::ChunkJob&)> kernels;
  for (const std::string& target : cpu::simd_targets()) {
    if (target != "SCALAR") kernels.push_back(cpu::split_kv_kernels(target, args).run_chunk);
  }
  for (std::size_t i = 0; i < kernels.size(); ++i)
    EXPECT_EQ(std::count(kernels.begin(), kernels.end(), kernels[i]), 1) << i;
  EXPECT_EQ(cpu::simd_targets().back(), "plain");
}

// From problem and device alone, whatever runs this test: tiles for groups that gain by them.
TEST(SimdTargets, ThePlanChoosesOfWhatTheDeviceHas) {
  const DeviceInfo tiles = eight_cores({"AMX", "AVX3", "AVX2", "plain"});
  const auto isa = [&](const char* name, const Problem& problem, const DeviceInfo& device) {
    return plan_of(name, problem, {}, device).isa;
  };
  const auto split_kv = [&](const Problem& problem) { return isa("cpu_split_kv", problem, tiles); };
  EXPECT_EQ(split_kv(problem_of(8, 1, 600)), "AMX");
  EXPECT_EQ(split_kv(problem_of(8, 8, 600)), "AVX3") << "no group";
  EXPECT_EQ(split_kv(problem_of(8, 4, 600)), "AVX3") << "a group that vectors keep up with";
  EXPECT_EQ(split_kv(problem_of(17, 1, 600)), "AVX3") << "no equal blocks of heads";
  EXPECT_EQ(split_kv(problem_of(4, 1, 600)), "AVX3") << "too short for a group of 4";
  EXPECT_EQ(split_kv(problem_of(4, 1, 1 << 20)), "AMX");
  Problem fp16 = problem_of(8, 1, 600);
  fp16.dtype = Dtype::fp16;
  EXPECT_EQ(split_kv(fp16), "AVX3");
  EXPECT_EQ(isa("cpu_read", problem_of(8, 1, 600), tiles), "AVX3");
  EXPECT_EQ(isa("cpu_three_pass", problem_of(8, 1, 600), tiles), "");
  EXPECT_EQ(isa("cpu_oracle", problem_of(8, 1, 600), tiles), "");

  for (const std::string one : {"AVX2", "NEON", "plain"}) {
    EXPECT_EQ(isa("cpu_split_kv", problem_of(8, 1, 600), eight_cores({one})), one);
    EXPECT_EQ(isa("cpu_read", problem_of(8, 1, 600), eight_cores({one})), one);
  }
  EXPECT_EQ(isa("cpu_split_kv", problem_of(4, 1, 600), eight_cores({"AMX", "plain"})), "AMX")
      << "tiles always pay beside plain loops";
  EXPECT_EQ(isa("cpu_split_kv", problem_of(8, 1, 600), eight_cores({})), "") << "not known";
}

TEST(SimdTargets, TileAndScratchAreThoseOfTheCode) {
  const auto on = [](const char* one, const Problem& problem) {
    return plan_of("cpu_split_kv", problem, point("chunk", 600), eight_cores({one}));
  };
  const Problem problem = problem_of(8, 1, 6000);
  EXPECT_EQ(on("AMX", problem).tile, 528);
  EXPECT_EQ(on("AVX3", problem).tile, 256);
  // Partials of 10 chunks; of 8 ranks: q as floats, 256 scores a head, a row of output.
  EXPECT_EQ(on("AVX3", problem).scratch_bytes, 4 * (10 * 8 * 128 + 2 * 80 + 8 * (8 * 128 + 8 * 256 + 128)));
  EXPECT_GT(on("AMX", problem).scratch_bytes, on("AVX3", problem).scratch_bytes);
  EXPECT_EQ(on("AVX2", problem).scratch_bytes, on("AVX3", problem).scratch_bytes);
}

TEST(SimdTargets, PreparedCodeIsThePlans) {
  const LaunchPlan grouped = plan_of("cpu_split_kv", problem_of(8, 1, 600));
  const auto refusal = [&](const char* name, const std::string& isa) -> std::string {
    LaunchPlan plan = grouped;
    plan.isa = isa;
    try {
      variant(name).prepare(dense_args(problem_of(8, 1, 600)), plan, eight_cores());
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  for (const std::string wrong : {"ABACUS", ""}) {
    for (const char* name : {"cpu_split_kv", "cpu_read"})
      EXPECT_EQ(refusal(name, wrong).find("no code for the instruction set '" + wrong + "' here; there is "),
                0u)
          << refusal(name, wrong);
  }
  for (const std::string& name : vectors_here()) EXPECT_EQ(refusal("cpu_read", name), "");
  // Tiles multiply; reading has no code for them, and does not name them.
  EXPECT_EQ(refusal("cpu_read", "AMX").find(", AMX"), std::string::npos);
  EXPECT_NE(refusal("cpu_read", "AMX"), "");
  if (cpu::simd_targets().front() == cpu::kTilesTarget) {
    const DecodeArgs ungrouped = dense_args(problem_of(8, 8, 600));
    EXPECT_THROW(cpu::split_kv_kernels(std::string(cpu::kTilesTarget), ungrouped), Error);
  } else {
    EXPECT_NE(refusal("cpu_split_kv", "AMX"), "");
  }
}

TEST(PowerOfTwo, IsExactAtIntegersAndCloseBetween) {
  for (int i = -100; i <= 0; ++i) EXPECT_EQ(cpu::power_of_two(static_cast<float>(i)), std::ldexp(1.0f, i));
  for (float x = -99.9f; x < 0.0f; x += 0.0137f) {
    const double truth = std::exp2(static_cast<double>(x));
    EXPECT_NEAR(static_cast<double>(cpu::power_of_two(x)) / truth, 1.0, 3e-7) << x;
  }
  EXPECT_EQ(cpu::power_of_two(-100.5f), 0.0f);
  EXPECT_EQ(cpu::power_of_two(-std::numeric_limits<float>::infinity()), 0.0f);
  EXPECT_TRUE(std::isnan(cpu::power_of_two(std::numeric_limits<float>::quiet_NaN())));
}

// Branch-free conversion against core/half.h's, on every bit pattern.
TEST(Rows, Fp16WithoutBranchesAgreesOnEveryPattern) {
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    ASSERT_EQ(float_bits(cpu::fp16_value(half)), float_bits(fp16_to_float(half))) << bits;
  }
}

TEST(WorkQueue, EveryItemGoesOutOnceToAnyRank) {
  for (const int ranks : {1, 2, 3, 7}) {
    for (const std::int64_t count : {0, 1, 5, 64, 1000}) {
      cpu::WorkQueue queue(ranks);
      for (int again = 0; again < 2; ++again) {
        queue.reset(count);
        std::vector<std::int64_t> got;
        // The last rank alone empties everyone's share.
        for (std::int64_t item; (item = queue.next(ranks - 1)) >= 0;) got.push_back(item);
        std::sort(got.begin(), got.end());
        std::vector<std::int64_t> all(static_cast<std::size_t>(count));
        std::iota(all.begin(), all.end(), 0);
        EXPECT_EQ(got, all);
      }
    }
  }
}

TEST(WorkQueue, RanksThatDrawTogetherShareNothing) {
  const std::int64_t count = 20000;
  PinnedTeam team({0, 0, 0, 0});
  cpu::WorkQueue queue(4);
  queue.reset(count);
  std::vector<int> taken(static_cast<std::size_t>(count), 0);
  team.run(4, [&](int rank) {
    for (std::int64_t item; (item = queue.next(rank)) >= 0;) ++taken[static_cast<std::size_t>(item)];
  });
  EXPECT_EQ(std::count(taken.begin(), taken.end(), 1), count);
}

}  // namespace
}  // namespace fdbench
