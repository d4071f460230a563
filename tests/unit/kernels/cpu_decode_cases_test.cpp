// Every decode case on every CPU variant, cpu_split_kv on each instruction set that this machine can run.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "cases/decode_cases.h"
#include "cli/variant_table.h"
#include "cpu/detail/simd_targets.h"
#include "cpu/detail/split_kv_amx.h"
#include "cpu/detail/split_kv_plan.h"

namespace fdbench {
namespace {

struct Parameter {
  const Variant* variant;
  std::string target;
  const cases::DecodeCase* decode_case;
};

std::vector<Parameter> parameters() {
  std::vector<Parameter> all;
  for (const Variant* variant : variant_table()) {
    if (variant->backend != BackendKind::cpu ||
        (variant->role != Role::candidate && variant->role != Role::reference)) {
      continue;
    }
    const auto targets =
        variant->role == Role::candidate ? cpu::simd_targets() : std::vector<std::string>{"plain"};
    for (const std::string& target : targets) {
      for (const cases::DecodeCase& decode_case : cases::decode_cases())
        all.push_back({variant, target, &decode_case});
    }
  }
  return all;
}

class CpuDecodeCases : public testing::TestWithParam<Parameter> {
 protected:
  static void SetUpTestSuite() { backend_ = make_cpu_backend(); }
  static void TearDownTestSuite() { backend_.reset(); }
  static std::unique_ptr<Backend> backend_;
};
std::unique_ptr<Backend> CpuDecodeCases::backend_;

// cpu_split_kv with the instruction set under test, whatever the problem; tiles where they apply.
std::string target_under_test;
PlanResult plan_for_target(const Problem& problem, const DeviceInfo& device, const TuningPoint& tuning) {
  const bool vectors =
      target_under_test == cpu::kTilesTarget && !cpu::amx_applies(problem.dtype, problem.group());
  return cpu::plan_split_kv(problem, device, tuning, vectors ? cpu::best_vectors() : target_under_test);
}

TEST_P(CpuDecodeCases, Holds) {
  const Variant* const oracle = find_role(variant_table(), BackendKind::cpu, Role::oracle);
  ASSERT_NE(oracle, nullptr);
  Variant variant = *GetParam().variant;
  if (variant.role == Role::candidate) {
    target_under_test = GetParam().target;
    variant.plan = plan_for_target;
  }
  GetParam().decode_case->run({*backend_, variant, *oracle});
}

INSTANTIATE_TEST_SUITE_P(Cpu, CpuDecodeCases, testing::ValuesIn(parameters()),
                         [](const testing::TestParamInfo<Parameter>& p) {
                           return std::string(p.param.variant->name) + "_" + p.param.target + "_" +
                                  std::string(p.param.decode_case->name);
                         });

}  // namespace
}  // namespace fdbench
