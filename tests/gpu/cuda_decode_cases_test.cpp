// The cases of tests/cases on every CUDA variant, and shapes that only a GPU has the memory for.
#include <algorithm>
#include <string>
#include <vector>

#include "cases/decode_cases.h"
#include "core/half.h"
#include "gpu_test.h"

namespace fdbench {
namespace {

struct Parameter {
  const Variant* variant;
  const cases::DecodeCase* decode_case;
};

std::vector<Parameter> parameters() {
  std::vector<Parameter> all;
  for (const Variant* variant : attention_variants()) {
    for (const cases::DecodeCase& decode_case : cases::decode_cases()) all.push_back({variant, &decode_case});
  }
  return all;
}

class CudaDecodeCases : public GpuTest, public testing::WithParamInterface<Parameter> {};

TEST_P(CudaDecodeCases, Holds) {
  GetParam().decode_case->run({backend(), *GetParam().variant, cuda_oracle()});
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaDecodeCases, testing::ValuesIn(parameters()), [](const auto& param_info) {
  return std::string(param_info.param.variant->name) + "_" + std::string(param_info.param.decode_case->name);
});

class CudaShapes : public GpuTest {};

// K beyond 2^31 elements; the answer is in the last row.
TEST_F(CudaShapes, WideOffset) {
  const Problem problem = problem_of(32, 32, (std::int64_t{1} << 31) / (32 * 128) + 129);
  const std::int64_t needed = 2 * problem.kv_bytes() + (std::int64_t{4} << 30);
  if (device().memory_available_bytes < needed) GTEST_SKIP() << "needs " << needed << " bytes of memory";
  const bench::Inputs inputs(backend(), problem, 5);
  const DecodeArgs args = inputs.args();
  auto last_k = downloaded<std::uint16_t>(backend(), args.q, problem.q_elements());
  for (std::uint16_t& bits : last_k) bits = round_to(problem.dtype, 40.0f * bf16_to_float(bits));
  const std::int64_t last_at = problem.kv_elements() - problem.q_elements();
  const auto* const k = static_cast<const std::uint16_t*>(args.k);
  const auto* const v = static_cast<const std::uint16_t*>(args.v);
  backend().upload(const_cast<std::uint16_t*>(k + last_at), last_k.data(), problem.q_bytes());
  const auto last_v = downloaded<std::uint16_t>(backend(), v + last_at, problem.q_elements());

  bench::Truth last_row;
  for (const std::uint16_t bits : last_v) last_row.o.push_back(bf16_to_float(bits));
  const bench::Truth truth = bench::compute_truth(backend(), cuda_oracle(), problem, inputs);
  for (std::size_t i = 0; i < truth.o.size(); ++i) ASSERT_NEAR(truth.o[i], last_row.o[i], 1e-9);
  for (const Variant* variant : attention_variants()) {
    const PlanResult planned = make_plan(*variant, problem, device(), {});
    const auto* plan = std::get_if<LaunchPlan>(&planned);
    if (!plan) continue;
    bench::Subject subject(backend(), *variant, problem, inputs, *plan);
    EXPECT_EQ(subject.check(truth, true).wrong, "") << variant->name;
  }
}

// The reference by either of cuBLAS's entries, its softmax cut in any way.
TEST_F(CudaShapes, ReferenceByEveryPath) {
  const Variant& reference = *find_role(variant_table(), BackendKind::cuda, Role::reference);
  std::vector<TuningPoint> tunings(6);
  tunings[1].set("gemv", 1);
  tunings[2].set("parts", 1);
  tunings[3].set("parts", 2);
  tunings[4].set("parts", 37);
  tunings[5].set("parts", 1024);
  for (const std::int64_t kv_heads : {8, 2}) {
    for (const std::int64_t seq : {1, 5, 999, 4096}) {
      for (const Dtype dtype : {Dtype::bf16, Dtype::fp16}) {
        const Problem problem = problem_of(8, kv_heads, seq, 128, dtype);
        const bench::Inputs inputs(backend(), problem, 5);
        const bench::Truth truth = bench::compute_truth(backend(), cuda_oracle(), problem, inputs);
        for (const TuningPoint& tuning : tunings) {
          const PlanResult planned = make_plan(reference, problem, device(), tuning);
          const auto* plan = std::get_if<LaunchPlan>(&planned);
          if (!plan) continue;
          bench::Subject subject(backend(), reference, problem, inputs, *plan);
          EXPECT_EQ(subject.check(truth, true).wrong, "") << shape_id(problem) << " " << tuning.id();
        }
      }
    }
  }
}

// The roof reads whatever the shape is, tails of fewer than 16 bytes too, at every way of cutting it.
TEST_F(CudaShapes, RoofReadsAnyShape) {
  const Variant& roof = *find_role(variant_table(), BackendKind::cuda, Role::roof);
  const Problem problems[] = {problem_of(1, 1, 1, 1),    problem_of(3, 3, 7, 5),  problem_of(1, 1, 0),
                              problem_of(8, 8, 1),       problem_of(8, 2, 1023),  problem_of(32, 32, 8192),
                              problem_of(1, 1, 4097, 9), problem_of(5, 5, 131, 3)};
  std::vector<TuningPoint> tunings(6);
  tunings[1].set("plain", 1);
  tunings[2].set("stages", 1);
  tunings[3].set("piece", 128);
  tunings[4].set("sm_multiple", 2);
  tunings[5].set("stages", 3);
  tunings[5].set("piece", 2048);
  for (const Problem& problem : problems) {
    const bench::Inputs inputs(backend(), problem, 5);
    for (const TuningPoint& tuning : tunings) {
      const PlanResult planned = make_plan(roof, problem, device(), tuning);
      const auto* plan = std::get_if<LaunchPlan>(&planned);
      if (!plan) continue;
      bench::Subject subject(backend(), roof, problem, inputs, *plan);
      EXPECT_EQ(subject.check({}, false).wrong, "") << shape_id(problem) << " " << tuning.id();
    }
  }
}

}  // namespace
}  // namespace fdbench
