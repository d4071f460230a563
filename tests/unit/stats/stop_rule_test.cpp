#include "stats/stop_rule.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <vector>

namespace fdbench::stats {
namespace {

using Values = std::vector<double>;
using Series = std::vector<Values>;

// +-1 %; 10 s; 6 to 100 rounds.
StopSettings settings() {
  return {.max_noise = 0.01, .max_time_s = 10, .min_rounds = 6, .max_rounds = 100};
}

// Of six values the interval is min..max: 99.5..100.5 about 100 is +-0.5 %, 98..102 is +-2 %.
const Values kQuiet{99.5, 99.8, 100, 100, 100.2, 100.5};
const Values kNoisy{98, 99, 100, 100, 101, 102};

TEST(StopRule, ConvergesWhenEveryEntryIsQuiet) {
  EXPECT_EQ(evaluate(settings(), Series{kQuiet}, 0, 1), StopReason::converged);
  EXPECT_EQ(evaluate(settings(), Series{kQuiet, kQuiet}, 0, 1), StopReason::converged);
  EXPECT_EQ(evaluate(settings(), Series{kQuiet, kNoisy}, 0, 1), StopReason::none);
  EXPECT_EQ(evaluate(settings(), Series{kNoisy, kQuiet}, 0, 1), StopReason::none);
}

TEST(StopRule, NeedsAnIntervalAndMinRounds) {
  StopSettings s = settings();
  EXPECT_EQ(evaluate(s, Series{Values(5, 100.0)}, 0, 1), StopReason::none);
  s.min_rounds = 2;  // five equal values still have no interval
  EXPECT_EQ(evaluate(s, Series{Values(5, 100.0)}, 0, 1), StopReason::none);
  s.min_rounds = 7;
  EXPECT_EQ(evaluate(s, Series{kQuiet}, 0, 1), StopReason::none);
  EXPECT_EQ(evaluate(s, Series{Values(7, 100.0)}, 0, 1), StopReason::converged);
  // The shortest series counts.
  EXPECT_EQ(evaluate(s, Series{Values(7, 100.0), Values(6, 100.0)}, 0, 1), StopReason::none);
}

TEST(StopRule, AcceptsWhatTheTimerCannotResolve) {
  // 96 and 128 with a step of 32: the interval is 32 wide, +-14 % of the median 112, and can't get narrower.
  const Values coarse{96, 128, 96, 128, 96, 128};
  EXPECT_EQ(evaluate(settings(), Series{coarse}, 32, 1), StopReason::converged);
  EXPECT_EQ(evaluate(settings(), Series{coarse}, 0, 1), StopReason::none);
  // Two steps apart, it can.
  const Values two_steps{96, 160, 96, 160, 96, 160};
  EXPECT_EQ(evaluate(settings(), Series{two_steps}, 32, 1), StopReason::none);
  // All in one step.
  EXPECT_EQ(evaluate(settings(), Series{Values(6, 96.0)}, 32, 1), StopReason::converged);
  // A step that passed through float milliseconds.
  const Values rounded{96, 128.0001, 96, 128.0001, 96, 128.0001};
  EXPECT_EQ(evaluate(settings(), Series{rounded}, 32, 1), StopReason::converged);
}

TEST(StopRule, EndsAtMaxTimeOnceMinRoundsAreThere) {
  EXPECT_EQ(evaluate(settings(), Series{kNoisy}, 0, 9.9), StopReason::none);
  EXPECT_EQ(evaluate(settings(), Series{kNoisy}, 0, 10), StopReason::max_time);
  // Converged is the better news.
  EXPECT_EQ(evaluate(settings(), Series{kQuiet}, 0, 10), StopReason::converged);
}

TEST(StopRule, ASlowRowMayOverrunFivefoldForItsInterval) {
  const Series five{Values(5, 3e9)};
  EXPECT_EQ(evaluate(settings(), five, 0, 10), StopReason::none);
  EXPECT_EQ(evaluate(settings(), five, 0, 49.9), StopReason::none);
  EXPECT_EQ(evaluate(settings(), five, 0, 50), StopReason::max_time);
  EXPECT_EQ(evaluate(settings(), Series{{6e10}}, 0, 60), StopReason::max_time);
}

TEST(StopRule, WaitsForTheFirstRoundWhateverTheTime) {
  EXPECT_EQ(evaluate(settings(), Series{{}, {}}, 0, 1e6), StopReason::none);
}

TEST(StopRule, AnEntryWithoutSamplesDoesNotHoldTheOthersForever) {
  EXPECT_EQ(evaluate(settings(), Series{kQuiet, {}}, 0, 49), StopReason::none);
  EXPECT_EQ(evaluate(settings(), Series{kQuiet, {}}, 0, 50), StopReason::max_time);
}

TEST(StopRule, EndsAtMaxRounds) {
  StopSettings s = settings();
  s.max_time_s = std::numeric_limits<double>::infinity();
  s.max_rounds = 6;
  EXPECT_EQ(evaluate(s, Series{kNoisy}, 0, 1e9), StopReason::max_rounds);
  EXPECT_EQ(evaluate(s, Series{Values(kNoisy.begin(), kNoisy.end() - 1)}, 0, 1e9), StopReason::none);
}

TEST(StopRule, FixedRoundsLooksAtNothingElse) {
  StopSettings s = settings();
  s.fixed_rounds = 7;
  EXPECT_EQ(evaluate(s, Series{kQuiet}, 0, 1e9), StopReason::none);
  EXPECT_EQ(evaluate(s, Series{Values(7, 100.0)}, 0, 0), StopReason::fixed_rounds);
  EXPECT_EQ(evaluate(s, Series{Values(7, 100.0), Values(6, 100.0)}, 0, 0), StopReason::none);
  s.fixed_rounds = 1;
  EXPECT_EQ(evaluate(s, Series{{}}, 0, 0), StopReason::none);
  EXPECT_EQ(evaluate(s, Series{{100}}, 0, 0), StopReason::fixed_rounds);
}

TEST(StopRule, HasNothingToWaitForWithoutEntries) {
  EXPECT_EQ(evaluate(settings(), Series{}, 0, 0), StopReason::converged);
}

TEST(StopRule, RejectsASampleThatIsNotFinite) {
  Values bad = kQuiet;
  bad[2] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(evaluate(settings(), Series{bad}, 0, 0), std::invalid_argument);
}

TEST(StopReason, NamesAreReadBack) {
  for (const auto reason : {StopReason::none, StopReason::converged, StopReason::fixed_rounds,
                            StopReason::max_time, StopReason::max_rounds, StopReason::interrupted})
    EXPECT_EQ(parse_stop_reason(to_string(reason)), reason);
  EXPECT_EQ(to_string(StopReason::max_time), "max_time");
  EXPECT_EQ(parse_stop_reason("bored"), std::nullopt);
}

}  // namespace
}  // namespace fdbench::stats
