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
  // A machine that has the set under test alone; beside tiles plain loops, for what tiles don't apply to.
  void SetUp() override {
    if (backend_ && backend_->device().isas.front() == GetParam().target) return;
    std::vector<std::string> isas = {GetParam().target};
    if (isas.front() == cpu::kTilesTarget) isas.push_back("plain");
    backend_.reset();
    backend_ = make_cpu_backend(isas);
  }
  static void TearDownTestSuite() { backend_.reset(); }
  static std::unique_ptr<Backend> backend_;
};
std::unique_ptr<Backend> CpuDecodeCases::backend_;

TEST_P(CpuDecodeCases, Holds) {
  const Variant* const oracle = find_role(variant_table(), BackendKind::cpu, Role::oracle);
  ASSERT_NE(oracle, nullptr);
  GetParam().decode_case->run({*backend_, *GetParam().variant, *oracle});
}

INSTANTIATE_TEST_SUITE_P(Cpu, CpuDecodeCases, testing::ValuesIn(parameters()),
                         [](const testing::TestParamInfo<Parameter>& p) {
                           return std::string(p.param.variant->name) + "_" + p.param.target + "_" +
                                  std::string(p.param.decode_case->name);
                         });

}  // namespace
}  // namespace fdbench
