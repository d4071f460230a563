// Rounds: their order, how they end, and what becomes of a contestant that fails in one.
#include "bench/rounds.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.h"

namespace fdbench::bench {
namespace {

class Rounds : public testing::Test {
 protected:
  // A contestant whose nth sample (from 0) is sample(n).
  Contestant contestant(int item, std::function<Reading(int)> sample) {
    return {item, [this, item, sample = std::move(sample)](int) {
              order_.push_back(item);
              return sample(taken_[item]++);
            }};
  }
  Contestant steady(int item, double ns) {
    return contestant(item, [ns](int) { return Reading{ns, true, 0.0}; });
  }

  std::string run(std::vector<Contestant> contestants, const MeasureSettings& settings) {
    return run_rounds(
        std::move(contestants), settings, 1.0, [this] { return now_s_ += second_a_look_; },
        [this] { return usable_; },
        [this](const WorkEvent& event) {
          if (const auto* round = std::get_if<RoundDone>(&event)) rounds_.push_back(*round);
          if (const auto* ended = std::get_if<ItemEnded>(&event)) ended_.push_back(*ended);
          if (const auto* step = std::get_if<StepBegins>(&event)) steps_.push_back(*step);
        },
        interrupted_);
  }
  static MeasureSettings fixed(int rounds) {
    MeasureSettings settings;
    settings.rounds = rounds;
    return settings;
  }

  std::vector<int> order_;
  std::map<int, int> taken_;
  std::vector<RoundDone> rounds_;
  std::vector<ItemEnded> ended_;
  std::vector<StepBegins> steps_;
  double now_s_ = 0.0, second_a_look_ = 0.001;
  bool usable_ = true;
  std::atomic<bool> interrupted_{false};
};

TEST_F(Rounds, AbbaOrder) {
  EXPECT_EQ(run({steady(4, 10.0), steady(7, 20.0), steady(9, 30.0)}, fixed(4)), "fixed_rounds");
  EXPECT_EQ(order_, (std::vector{4, 7, 9, 9, 7, 4, 4, 7, 9, 9, 7, 4}));
  ASSERT_EQ(rounds_.size(), 4u);
  for (std::size_t r = 0; r < 4; ++r) {
    EXPECT_EQ(rounds_[r].round, static_cast<int>(r));
    for (std::size_t i = 0; i < 3; ++i) {
      const int item = rounds_[r].items.at(i);
      EXPECT_EQ(rounds_[r].ns.at(i), item == 4 ? 10.0 : item == 7 ? 20.0 : 30.0);
    }
  }
}

TEST_F(Rounds, SaysWhoComesBeforeEachSample) {
  run({steady(4, 10.0), steady(7, 20.0)}, fixed(2));
  ASSERT_EQ(steps_.size(), order_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) {
    EXPECT_EQ(steps_[i].item, order_[i]);
    EXPECT_EQ(steps_[i].phase, Phase::sample);
  }
}

TEST_F(Rounds, ConvergeTogether) {
  // The second is noisy for its first ten samples: the median's interval is narrow only once the calm ones
  // are many.
  const auto noisy = contestant(1, [](int n) {
    return Reading{n < 10 ? 1000.0 + 100.0 * n : 500.0, true, 0.0};
  });
  MeasureSettings settings;
  settings.max_time_s = 1e6;
  EXPECT_EQ(run({steady(0, 1000.0), noisy}, settings), "converged");
  EXPECT_GT(rounds_.size(), 20u);
  EXPECT_EQ(taken_[0], taken_[1]);
}

TEST_F(Rounds, TimeIsForEachRow) {
  second_a_look_ = 1.0;
  const auto noisy = [this](int item) {
    return contestant(item, [](int n) { return Reading{n % 2 == 0 ? 1000.0 : 2000.0, true, 0.0}; });
  };
  MeasureSettings settings;
  settings.max_time_s = 10.0;
  EXPECT_EQ(run({noisy(0)}, settings), "max_time");
  EXPECT_EQ(rounds_.size(), 10u);
  rounds_.clear();
  EXPECT_EQ(run({noisy(1), noisy(2), noisy(3)}, settings), "max_time");
  EXPECT_EQ(rounds_.size(), 30u);
}

TEST_F(Rounds, EndAfterTheMostThereMayBe) {
  second_a_look_ = 0.0;
  const auto noisy = contestant(0, [](int n) { return Reading{n % 2 == 0 ? 1000.0 : 2000.0, true, 0.0}; });
  EXPECT_EQ(run({noisy}, {}), "max_rounds");
  EXPECT_EQ(rounds_.size(), kMaxRounds);
}

TEST_F(Rounds, SlowRoundsDoNotCountTowardsConvergence) {
  // Every other round runs at half the clock, and takes twice as long.
  const auto jumping = contestant(0, [](int n) {
    return n % 2 == 0 ? Reading{1000.0, true, 2000.0} : Reading{2000.0, true, 1000.0};
  });
  MeasureSettings settings;
  settings.max_time_s = 1e6;
  EXPECT_EQ(run({jumping}, settings), "converged");
  EXPECT_EQ(rounds_.size(), 11u);  // six at the full clock
}

TEST_F(Rounds, FixedRoundsEndThoughTheClockStaysLow) {
  const auto falling = contestant(0, [](int n) { return Reading{1000.0, true, n == 0 ? 2000.0 : 1000.0}; });
  EXPECT_EQ(run({falling}, fixed(8)), "fixed_rounds");
  EXPECT_EQ(rounds_.size(), 8u);
}

TEST_F(Rounds, AFailureRepeatsTheRoundWithoutTheOneThatFailed) {
  const auto failing = contestant(1, [](int n) -> Reading {
    if (n == 2) throw Error(Exit::failed, "no more");
    return {20.0, true, 0.0};
  });
  EXPECT_EQ(run({steady(0, 10.0), failing, steady(2, 30.0)}, fixed(4)), "fixed_rounds");
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_EQ(ended_[0].item, 1);
  EXPECT_EQ(ended_[0].status, Status::failed);
  EXPECT_EQ(ended_[0].reason, "no more");
  ASSERT_EQ(rounds_.size(), 4u);
  for (std::size_t r = 0; r < 4; ++r) {
    EXPECT_EQ(rounds_[r].round, static_cast<int>(r));
    EXPECT_EQ(rounds_[r].items.size(), r < 2 ? 3u : 2u);
  }
  // The broken round's samples of the others are thrown away: they are in no round.
  EXPECT_EQ(taken_[0], 5);
  EXPECT_EQ(taken_[2], 5);
}

TEST_F(Rounds, SeveralMayFailInOneRound) {
  const auto failing = [this](int item) {
    return contestant(item, [](int) -> Reading { throw std::runtime_error("never"); });
  };
  EXPECT_EQ(run({failing(0), steady(1, 10.0), failing(2), failing(3)}, fixed(2)), "fixed_rounds");
  EXPECT_EQ(ended_.size(), 3u);
  ASSERT_EQ(rounds_.size(), 2u);
  EXPECT_EQ(rounds_[0].items, std::vector{1});
}

TEST_F(Rounds, NobodyLeft) {
  const auto failing = contestant(0, [](int) -> Reading { throw std::runtime_error("never"); });
  EXPECT_EQ(run({failing}, {}), "nothing left to measure");
  EXPECT_TRUE(rounds_.empty());
  EXPECT_EQ(run({}, {}), "nothing left to measure");
}

TEST_F(Rounds, ALostDeviceIsThrownAfterItsCulpritIsNamed) {
  const auto failing = contestant(1, [this](int n) -> Reading {
    if (n == 1) {
      usable_ = false;
      throw Error(Exit::failed, "an illegal memory access");
    }
    return {10.0, true, 0.0};
  });
  EXPECT_THROW(run({steady(0, 10.0), failing, steady(2, 10.0)}, fixed(4)), Error);
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_EQ(ended_[0].item, 1);
  EXPECT_EQ(rounds_.size(), 1u);
  EXPECT_EQ(steps_.back().item, 1);
}

TEST_F(Rounds, VoidSamplesAreTakenAgain) {
  const auto late = contestant(0, [](int n) { return Reading{n % 3 == 2 ? 10.0 : 999.0, n % 3 == 2, 0.0}; });
  EXPECT_EQ(run({late, steady(1, 20.0)}, fixed(2)), "fixed_rounds");
  ASSERT_EQ(rounds_.size(), 2u);
  for (const RoundDone& round : rounds_) {
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(round.void_samples[i], round.items[i] == 0 ? 2 : 0);
      EXPECT_EQ(round.ns[i], round.items[i] == 0 ? 10.0 : 20.0);
    }
  }
}

TEST_F(Rounds, VoidSamplesAreNotTakenForEver) {
  const auto late = contestant(0, [](int) { return Reading{10.0, false, 0.0}; });
  EXPECT_EQ(run({late, steady(1, 20.0)}, fixed(2)), "fixed_rounds");
  EXPECT_EQ(taken_[0], kMaxVoidSamples);
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_EQ(ended_[0].item, 0);
  EXPECT_EQ(ended_[0].reason, "no valid sample in 50 tries: the host was late each time");
  ASSERT_EQ(rounds_.size(), 2u);
  EXPECT_EQ(rounds_[0].items, std::vector{1});
}

TEST_F(Rounds, TheLastTryMayBeTheValidOne) {
  const auto late = contestant(0, [](int n) { return Reading{10.0, n + 1 == kMaxVoidSamples, 0.0}; });
  EXPECT_EQ(run({late}, fixed(1)), "fixed_rounds");
  ASSERT_EQ(rounds_.size(), 1u);
  EXPECT_EQ(rounds_[0].void_samples[0], kMaxVoidSamples - 1);
}

TEST_F(Rounds, AnInterruptLeavesNoHalfRound) {
  const auto interrupting = contestant(1, [this](int n) {
    if (n == 2) interrupted_ = true;
    return Reading{10.0, true, 0.0};
  });
  // In the third round it is sampled before the third one, so that the round is half done.
  EXPECT_EQ(run({steady(0, 10.0), interrupting, steady(2, 10.0)}, fixed(100)), "interrupted");
  EXPECT_EQ(rounds_.size(), 2u);
  EXPECT_EQ(taken_[2], 2);
}

TEST_F(Rounds, AnInterruptEndsTheTriesForAValidSample) {
  const auto late = contestant(0, [this](int n) {
    if (n == 3) interrupted_ = true;
    return Reading{10.0, false, 0.0};
  });
  EXPECT_EQ(run({late}, fixed(1)), "interrupted");
  EXPECT_EQ(taken_[0], 4);
  EXPECT_TRUE(ended_.empty());
}

}  // namespace
}  // namespace fdbench::bench
