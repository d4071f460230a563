#include "compare/judge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "compare/student_t.h"

namespace fdbench::compare {
namespace {

// Critical values from the tables of Student's distribution.
TEST(StudentT, UpperTailAgreesWithTables) {
  EXPECT_NEAR(student_t_upper(12.7062047, 1), 0.025, 1e-9);
  EXPECT_NEAR(student_t_upper(2.3060041, 8), 0.025, 1e-8);
  EXPECT_NEAR(student_t_upper(2.7637694, 10), 0.01, 1e-8);
  EXPECT_NEAR(student_t_upper(3.2317093, 120), 0.0008, 1e-5);
  EXPECT_DOUBLE_EQ(student_t_upper(0.0, 5), 0.5);
  // One degree is Cauchy's distribution, two have a closed form.
  for (const double t : {0.1, 1.0, 5.0, 1e3, 1e6}) {
    EXPECT_NEAR(student_t_upper(t, 1) / (std::atan(1.0 / t) / std::acos(-1.0)), 1.0, 1e-10) << t;
    const double two = 0.5 - t / (2.0 * std::sqrt(2.0 + t * t));
    if (t < 1e3) {
      EXPECT_NEAR(student_t_upper(t, 2), two, 1e-12) << t;
    }
  }
}

TEST(StudentT, IsSymmetricAndFallsWithT) {
  for (const double v : {1.0, 2.5, 8.0, 1e5}) {
    double before = 1.0;
    for (double t = -30.0; t <= 30.0; t += 0.7) {
      const double p = student_t_upper(t, v);
      EXPECT_LT(p, before + 1e-15);
      EXPECT_NEAR(p + student_t_upper(-t, v), 1.0, 1e-12);
      before = p;
    }
  }
}

TEST(StudentT, QuantileIsTheInverse) {
  for (const double v : {1.0, 2.0, 4.7, 8.0, 18.0, 1000.0}) {
    for (const double p : {0.5, 0.25, 0.025, 1e-3, 1e-6, 1e-9})
      EXPECT_NEAR(student_t_upper(student_t_quantile(p, v), v) / p, 1.0, 1e-7) << v << " " << p;
  }
}

TEST(Estimate, IsStudentsTwoSampleTest) {
  // By hand: means 2 and 5, squares 2 and 2, variance 4 / 4 = 1, error sqrt(2 / 3).
  const Estimate e = estimate({{{1.0, 2.0, 3.0}}, {4.0, 5.0, 6.0}, 0.0});
  EXPECT_DOUBLE_EQ(e.effect, 3.0);
  EXPECT_DOUBLE_EQ(e.sd, 1.0);
  EXPECT_DOUBLE_EQ(e.degrees, 4.0);
  EXPECT_NEAR(e.error, std::sqrt(2.0 / 3.0), 1e-15);
  EXPECT_NEAR(e.p_slower, student_t_upper(3.0 / std::sqrt(2.0 / 3.0), 4.0), 1e-15);
  EXPECT_NEAR(e.p_slower + e.p_faster, 1.0, 1e-12);
  EXPECT_NEAR(e.ci95.hi - e.effect, 2.7764451 * e.error, 1e-6);
}

TEST(Estimate, TheFloorHolds) {
  const Estimate e = estimate({{{1.0, 1.0, 1.0}}, {1.1, 1.1, 1.1}, 0.5});
  EXPECT_DOUBLE_EQ(e.sd, 0.5);
  EXPECT_TRUE(e.sd_is_floor);
  EXPECT_GT(e.p_slower, 0.3);
}

TEST(Estimate, SessionsThatDifferWidenIt) {
  const std::vector<double> now{1.0, 1.1, 0.9, 1.05, 0.95};
  const Estimate alike = estimate({{{0.0, 0.1, -0.1, 0.05, -0.05}, {0.0, 0.1, -0.1, 0.05, -0.05}}, now, 0.0});
  const Estimate apart = estimate({{{-1.0, -0.9, -1.1}, {1.0, 1.1, 0.9}, {0.0, 0.1, -0.1}}, now, 0.0});
  EXPECT_LT(alike.p_slower, 1e-6);
  EXPECT_GT(apart.p_slower, 0.05);
  EXPECT_LT(apart.degrees, 3.0);
}

TEST(Estimate, WithoutAnyNoiseADifferenceIsADifference) {
  EXPECT_EQ(estimate({{{1.0, 1.0}}, {2.0, 2.0}, 0.0}).p_slower, 0.0);
  EXPECT_EQ(estimate({{{1.0, 1.0}}, {1.0, 1.0}, 0.0}).p_slower, 1.0);
}

TEST(Holm, IsTheStepDownMethod) {
  const std::vector<double> p{0.01, 0.04, 0.03, 0.005};
  const std::vector<double> corrected = holm(p);
  EXPECT_NEAR(corrected[3], 0.02, 1e-15);
  EXPECT_NEAR(corrected[0], 0.03, 1e-15);
  EXPECT_NEAR(corrected[2], 0.06, 1e-15);
  EXPECT_NEAR(corrected[1], 0.06, 1e-15);  // not below the one before it
  EXPECT_TRUE(holm(std::vector<double>{}).empty());
  EXPECT_EQ(holm(std::vector<double>{0.9, 0.8})[0], 1.0);
}

TEST(SmallestEffect, GrowsWithNoiseAndRowsAndFallsWithProcesses) {
  const double one = smallest_effect(0.01, 5, 1, 0.005, 0.95);
  EXPECT_NEAR(one, 0.01 * std::sqrt(0.4) * (student_t_quantile(0.005, 8) + student_t_quantile(0.05, 8)),
              1e-12);
  EXPECT_NEAR(smallest_effect(0.02, 5, 1, 0.005, 0.95), 2 * one, 1e-12);
  EXPECT_GT(smallest_effect(0.01, 5, 40, 0.005, 0.95), one);
  EXPECT_LT(smallest_effect(0.01, 10, 1, 0.005, 0.95), one);
}

}  // namespace
}  // namespace fdbench::compare
