#include "core/tuning_profile.h"

#include <gtest/gtest.h>

#include <utility>

namespace fdbench {
namespace {

TEST(TuningProfile, AGainIsFoundByWhatItIsOver) {
  ProfileEntry entry;
  EXPECT_EQ(gain_over(entry, "default"), nullptr);
  entry.gains.push_back({"default", {}, 13500.0, 0.033, {}});
  entry.gains.push_back({"rule:fa3", {}, 13100.0, 0.003, {}});
  ASSERT_NE(gain_over(entry, "rule:fa3"), nullptr);
  EXPECT_EQ(gain_over(entry, "rule:fa3")->gain, 0.003);
  EXPECT_EQ(gain_over(entry, "rule:fa"), nullptr);
}

TEST(TuningProfile, AnEnvironmentNamesWhatItHas) {
  EXPECT_EQ(environment_text({"NVIDIA H200", 132, 90, 580, 13}),
            "NVIDIA H200, 132 multiprocessors, sm_90, driver 580, toolkit 13");
  EXPECT_EQ(environment_text({"A CPU", 8, 0, 0, 0}), "A CPU, 8 cores");
}

TEST(TuningProfile, EntriesOfAnEnvironmentComeTogether) {
  TuningProfile profile;
  EXPECT_TRUE(by_environment(profile).empty());
  for (const auto& [driver, heads] : {std::pair{580, 2}, {590, 2}, {580, 4}, {590, 4}}) {
    ProfileEntry entry;
    entry.key.environment.driver_major = driver;
    entry.key.heads = heads;
    profile.entries.push_back(entry);
  }
  const auto groups = by_environment(profile);
  ASSERT_EQ(groups.size(), 2u);
  for (const auto& group : groups) {
    ASSERT_EQ(group.size(), 2u);
    EXPECT_EQ(group[0].key.environment, group[1].key.environment);
    EXPECT_EQ(group[0].key.heads, 2);
    EXPECT_EQ(group[1].key.heads, 4);
  }
  EXPECT_EQ(groups[0][0].key.environment.driver_major, 580);
}

}  // namespace
}  // namespace fdbench
