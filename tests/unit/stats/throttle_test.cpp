#include "stats/throttle.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace fdbench::stats {
namespace {

using Clocks = std::vector<double>;
using Flags = std::vector<bool>;

TEST(SetAsideRounds, DropsRoundsBelowThreeQuartersOfTheBest) {
  // Best 2000, so the line is 1500: 1500 itself stays, 1499 goes. Seven of eight remain.
  const SetAside r = set_aside_rounds(Clocks{2000, 1900, 1500, 1499, 1950, 1800, 1980, 1990});
  EXPECT_EQ(r.set_aside, (Flags{false, false, false, true, false, false, false, false}));
  EXPECT_EQ(r.count, 1u);
  EXPECT_FALSE(r.throttled);
}

TEST(SetAsideRounds, KeepsAllAndSaysSoWhenTooFewWouldRemain) {
  // Two of seven are slow: five remain, fewer than six.
  const Clocks clocks{2000, 1000, 2000, 1000, 2000, 2000, 2000};
  const SetAside r = set_aside_rounds(clocks);
  EXPECT_EQ(r.set_aside, Flags(7, false));
  EXPECT_EQ(r.count, 0u);
  EXPECT_TRUE(r.throttled);
  // Exactly min_kept remain: set aside.
  const SetAside five = set_aside_rounds(clocks, 5);
  EXPECT_EQ(five.count, 2u);
  EXPECT_FALSE(five.throttled);
}

TEST(SetAsideRounds, AnEarlyBoostMakesTheRestSlow) {
  // One round at 2000 and nine at 1400 (70 %): one would remain.
  Clocks clocks(10, 1400.0);
  clocks[0] = 2000;
  EXPECT_TRUE(set_aside_rounds(clocks).throttled);
  // With min_kept = 0 the nine go.
  const SetAside strict = set_aside_rounds(clocks, 0);
  EXPECT_EQ(strict.count, 9u);
  EXPECT_FALSE(strict.throttled);
}

TEST(SetAsideRounds, FewRoundsAtAGoodClockAreNotThrottled) {
  const SetAside r = set_aside_rounds(Clocks{2000, 1990});
  EXPECT_FALSE(r.throttled);
  EXPECT_EQ(r.count, 0u);
}

TEST(SetAsideRounds, KeepsRoundsOfUnknownClock) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  // Known: 2000 and 1000; the line is 1500.
  const SetAside r = set_aside_rounds(Clocks{0, 2000, 1000, 0, -1, nan, inf}, 1);
  EXPECT_EQ(r.set_aside, (Flags{false, false, true, false, false, false, false}));
  EXPECT_EQ(set_aside_rounds(Clocks(8, 0.0)).count, 0u);
  EXPECT_FALSE(set_aside_rounds(Clocks(8, 0.0)).throttled);
}

TEST(SetAsideRounds, TakesAnotherFraction) {
  // 0.95 of 2000 is 1900.
  EXPECT_EQ(set_aside_rounds(Clocks{2000, 1899, 1901}, 1, 0.95).set_aside, (Flags{false, true, false}));
}

TEST(SetAsideRounds, OfNothingIsNothing) {
  const SetAside r = set_aside_rounds(Clocks{});
  EXPECT_TRUE(r.set_aside.empty());
  EXPECT_FALSE(r.throttled);
}

}  // namespace
}  // namespace fdbench::stats
