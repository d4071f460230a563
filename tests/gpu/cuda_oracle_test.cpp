// The oracle of the device against the oracle of the CPU.
#include <cmath>

#include "backend/cpu/cpu_backend.h"
#include "gpu_test.h"

namespace fdbench {
namespace {

class CudaOracleTest : public GpuTest {};

bench::Truth truth_of(Backend& backend, const Problem& problem, std::uint64_t seed) {
  const bench::Inputs inputs(backend, problem, seed);
  return bench::compute_truth(backend, *find_role(variant_table(), backend.device().kind, Role::oracle),
                              problem, inputs);
}

double relative_l2(const std::vector<double>& got, const std::vector<double>& want) {
  double error = 0.0;
  double norm = 0.0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    error += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  return norm == 0.0 ? std::sqrt(error) : std::sqrt(error / norm);
}

TEST_F(CudaOracleTest, AgreesWithTheCpu) {
  const auto cpu = make_cpu_backend({});
  const Problem problems[] = {
      problem_of(1, 1, 1),          problem_of(4, 4, 2),
      problem_of(8, 2, 1000),       problem_of(7, 1, 1023),
      problem_of(6, 2, 1025),       problem_of(40, 8, 2049),
      problem_of(4, 4, 5000, 64),   problem_of(2, 1, 3000, 256),
      problem_of(3, 3, 777, 80),    problem_of(2, 2, 500, 1),
      problem_of(2, 2, 501, 33),    problem_of(8, 8, 4096, 128, Dtype::fp16),
      problem_of(1, 1, 200000, 32), problem_of(5, 1, 131, 128, Dtype::fp16),
  };
  for (const Problem& problem : problems) {
    const bench::Truth want = truth_of(*cpu, problem, 7);
    const bench::Truth got = truth_of(backend(), problem, 7);
    EXPECT_LE(relative_l2(got.o, want.o), 1e-12) << shape_id(problem);
    EXPECT_LE(relative_l2(got.lse, want.lse), 1e-12) << shape_id(problem);
  }
}

TEST_F(CudaOracleTest, NoTokensGiveNothing) {
  const bench::Truth got = truth_of(backend(), problem_of(4, 2, 0), 1);
  for (const double value : got.o) EXPECT_EQ(value, 0.0);
  for (const double value : got.lse) EXPECT_EQ(value, -std::numeric_limits<double>::infinity());
}

TEST_F(CudaOracleTest, GivesTheSameBitsEveryTime) {
  const Problem problem = problem_of(32, 8, 70001);
  const bench::Truth first = truth_of(backend(), problem, 3);
  for (int i = 0; i < 5; ++i) {
    const bench::Truth again = truth_of(backend(), problem, 3);
    EXPECT_EQ(again.o, first.o);
    EXPECT_EQ(again.lse, first.lse);
  }
}

}  // namespace
}  // namespace fdbench
