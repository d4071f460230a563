// A session: what is said before each step, who takes no further part, and the memory counted before any is
// taken.
#include "bench/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "bench/buffers.h"
#include "core/error.h"
#include "counting_backend.h"

namespace fdbench::bench {
namespace {

class Sessions : public testing::Test {
 protected:
  Sessions() {
    request_.problem = {16, 2, 2, 64, Dtype::bf16, {}};
    request_.items = {{"fake_roof", {}}, {"fake_reference", {}}, {"fake_candidate", {}}};
    request_.settings.rounds = 2;
  }
  void run(CountingBackend& backend) {
    run_session(
        backend, fake_variant_table(), request_,
        [this](const WorkEvent& event) {
          events_.push_back(event);
          if (std::holds_alternative<StepBegins>(event) && ++steps_ == interrupt_at_) interrupted_ = true;
        },
        interrupted_);
  }
  void run(FakeScript script = small_fake()) {
    CountingBackend backend(std::move(script));
    run(backend);
    peak_ = backend.peak();
  }
  template <class Event>
  std::vector<Event> all() const {
    std::vector<Event> found;
    for (const WorkEvent& event : events_) {
      if (const auto* one = std::get_if<Event>(&event)) found.push_back(*one);
    }
    return found;
  }
  // "prepare 0", "sample 2", ... of one item, or of all.
  std::vector<std::string> steps(int item) const {
    std::vector<std::string> found;
    for (const StepBegins& step : all<StepBegins>()) {
      if (step.item == item) found.emplace_back(to_string(step.phase));
    }
    return found;
  }

  WorkRequest request_;
  std::vector<WorkEvent> events_;
  std::atomic<bool> interrupted_{false};
  int steps_ = 0, interrupt_at_ = -1;
  std::int64_t peak_ = 0;
};

TEST_F(Sessions, EveryStepIsAnnounced) {
  run();
  const std::vector<std::string> each{"prepare", "prepare", "validate", "warm_up",
                                      "sample",  "sample",  "recheck"};
  for (int item = 0; item < 3; ++item) EXPECT_EQ(steps(item), each) << item;
  EXPECT_EQ(steps(-1), (std::vector<std::string>{"prepare", "validate", "warm_up", "warm_up"}));
  EXPECT_EQ(all<ItemPlanned>().size(), 3u);
  EXPECT_EQ(all<ItemChecked>().size(), 2u);  // the roof has nothing to check
  EXPECT_EQ(all<RoundDone>().size(), 2u);
  ASSERT_EQ(all<WorkDone>().size(), 1u);
  EXPECT_TRUE(std::holds_alternative<WorkDone>(events_.back()));
  EXPECT_EQ(all<WorkDone>()[0].stop, "fixed_rounds");
}

TEST_F(Sessions, ASteeredOneMeasuresWhatIsAskedFor) {
  request_.steered = true;
  CountingBackend backend(small_fake());
  std::vector<RoundsAsked> asked{{{2}, 3}, {{0, 2}, 2}, {{2}, 1}};
  std::size_t at = 0;
  run_steered_session(
      backend, fake_variant_table(), request_,
      [&]() -> std::optional<RoundsAsked> {
        if (at == asked.size()) return std::nullopt;
        return asked[at++];
      },
      [this](const WorkEvent& event) { events_.push_back(event); }, interrupted_);
  const auto rounds = all<RoundDone>();
  ASSERT_EQ(rounds.size(), 6u);
  EXPECT_EQ(rounds[2].items, std::vector<int>{2});
  EXPECT_EQ(rounds[3].round, 0);
  EXPECT_EQ(rounds[3].items.size(), 2u);
  EXPECT_EQ(all<RoundsTaken>().size(), 3u);
  // Checked when first asked for, and once more at the end; who was not asked for is left alone.
  EXPECT_EQ(steps(2),
            (std::vector<std::string>{"prepare", "prepare", "validate", "warm_up", "sample", "sample",
                                      "sample", "sample", "sample", "sample", "recheck"}));
  EXPECT_TRUE(steps(1).empty());
  EXPECT_TRUE(std::holds_alternative<WorkDone>(events_.back()));
}

TEST_F(Sessions, TheBackendsFlagsHoldForAllRows) {
  CountingBackend backend(small_fake());
  backend.flags = {"launches_batched"};
  run(backend);
  EXPECT_EQ(all<WorkDone>().at(0).flags, std::vector<std::string>{"launches_batched"});
}

TEST_F(Sessions, WhoFailsTakesNoFurtherPart) {
  struct Case {
    FakeVariantScript script;
    const char* last;
    Status status;
  };
  std::vector<Case> cases(6);
  for (Case& one : cases) one.status = Status::failed;
  for (int i : {0, 1, 2, 3}) cases[static_cast<std::size_t>(i)].script.behaviour = FakeBehaviour::throws;
  cases[0].script.at_prepare = true;
  cases[0].last = "prepare";
  cases[1].last = "validate";
  cases[2].script.after = 1;
  cases[2].last = "warm_up";
  cases[3].script.after = 2;
  cases[3].last = "sample";
  cases[4].script.behaviour = FakeBehaviour::nan;
  cases[4].last = "validate";
  cases[4].status = Status::incorrect;
  cases[5].script.behaviour = FakeBehaviour::unsupported;
  cases[5].last = "prepare";
  cases[5].status = Status::unsupported;
  for (const Case& one : cases) {
    events_.clear();
    FakeScript script = small_fake();
    script.variants["fake_candidate"] = one.script;
    run(script);
    EXPECT_EQ(steps(2).back(), one.last);
    ASSERT_EQ(all<ItemEnded>().size(), 1u) << one.last;
    EXPECT_EQ(all<ItemEnded>()[0].item, 2);
    EXPECT_EQ(all<ItemEnded>()[0].status, one.status);
    // The others go on.
    EXPECT_EQ(steps(1).back(), "recheck");
    EXPECT_EQ(all<RoundDone>().size(), 2u);
  }
}

TEST_F(Sessions, NobodyLeftIsNoError) {
  FakeScript script = small_fake();
  for (const char* name : {"fake_roof", "fake_reference", "fake_candidate"}) {
    script.variants[name].behaviour = FakeBehaviour::throws;
    script.variants[name].after = std::string(name) == "fake_roof" ? 0 : 1;
  }
  run(script);
  EXPECT_EQ(all<ItemEnded>().size(), 3u);
  EXPECT_TRUE(all<RoundDone>().empty());
  EXPECT_TRUE(std::holds_alternative<WorkDone>(events_.back()));
}

TEST_F(Sessions, ALostDeviceEndsItAllAfterTheCulpritIsNamed) {
  FakeScript script = small_fake();
  script.variants["fake_reference"].behaviour = FakeBehaviour::lost_device;
  script.variants["fake_reference"].reason = "an illegal memory access";
  EXPECT_THROW(run(script), Error);
  ASSERT_EQ(all<ItemEnded>().size(), 1u);
  EXPECT_EQ(all<ItemEnded>()[0].item, 1);
  EXPECT_EQ(all<ItemEnded>()[0].reason, "an illegal memory access");
  EXPECT_TRUE(all<WorkDone>().empty());
}

TEST_F(Sessions, CheckingOnlyTimesNothing) {
  request_.settings.measure = false;
  run();
  EXPECT_TRUE(all<RoundDone>().empty());
  EXPECT_EQ(all<ItemChecked>().size(), 2u);
  EXPECT_TRUE(all<ItemChecked>()[0].accuracy.lse_max_abs.has_value());
  EXPECT_EQ(all<WorkDone>().at(0).stop, "");
}

TEST_F(Sessions, InterruptedAnywhereItSaysSo) {
  run();
  const int steps = steps_;
  ASSERT_GT(steps, 20);
  for (int at = 1; at <= steps; ++at) {
    events_.clear();
    interrupted_ = false;
    steps_ = 0;
    interrupt_at_ = at;
    run();
    ASSERT_FALSE(events_.empty());
    ASSERT_TRUE(std::holds_alternative<WorkDone>(events_.back())) << at;
    if (all<RoundDone>().size() < 2) {
      EXPECT_EQ(all<WorkDone>()[0].stop, "interrupted") << at;
    }
  }
}

TEST_F(Sessions, RequestsThatMakeNoSense) {
  request_.items.push_back({"nobody", {}});
  EXPECT_THROW(run(), Error);
  request_.items.pop_back();
  request_.problem.kv_heads = 3;
  EXPECT_THROW(run(), Error);
}

TEST_F(Sessions, NoGraphTimer) {
  request_.settings.timer = TimerMode::graph;
  CountingBackend backend(small_fake());
  backend.graph_timer = false;
  const auto refusal = [&](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::usage);
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  const std::string expected = "--timer graph: this device has no graph timer; use --timer events";
  EXPECT_EQ(refusal([&] { run(backend); }), expected);
  EXPECT_EQ(refusal([&] {
              memory_needed(backend, fake_variant_table(), request_.problem, request_.items,
                            request_.settings);
            }),
            expected);
}

class Memory : public Sessions {
 protected:
  std::int64_t needed(const FakeScript& script = small_fake()) {
    CountingBackend backend(script);
    return memory_needed(backend, fake_variant_table(), request_.problem, request_.items, request_.settings);
  }
};

TEST_F(Memory, IsWhatASessionTakes) {
  for (const Problem& problem :
       {Problem{16, 2, 2, 64, Dtype::bf16, {}}, Problem{500, 8, 1, 128, Dtype::fp16, {}}}) {
    for (const CacheMode cache : {CacheMode::cold, CacheMode::hot}) {
      for (const TimerMode timer : {TimerMode::events, TimerMode::graph}) {
        request_.problem = problem;
        request_.settings.cache = cache;
        request_.settings.timer = timer;
        run();
        if (timer == TimerMode::events) {
          EXPECT_EQ(peak_, needed()) << problem.seq << to_string(cache);
        } else {  // the rotation may stop growing early
          EXPECT_LE(peak_, needed()) << problem.seq << to_string(cache);
          EXPECT_GT(peak_, 2 * Inputs::footprint(problem)) << problem.seq << to_string(cache);
        }
      }
    }
  }
}

TEST_F(Memory, OfCheckingOnly) {
  request_.settings.measure = false;
  run();
  // The oracle's and the subjects' memory are not held together.
  EXPECT_EQ(peak_, needed());
  const std::int64_t checking = needed();
  request_.settings.measure = true;
  EXPECT_EQ(needed() - checking, 2 * small_fake().device.l2_bytes);
}

TEST_F(Memory, EachItemCounts) {
  const std::int64_t three = needed();
  request_.items.push_back({"fake_other", {}});
  const std::int64_t four = needed();
  EXPECT_GT(four, three);
  FakeScript script = small_fake();
  script.variants["fake_other"].behaviour = FakeBehaviour::unsupported;
  EXPECT_EQ(needed(script), three);  // what can't run takes nothing
}

TEST_F(Memory, HoldsTheOracleWhereThatIsMore) {
  // Many heads and one key, checked alone: the oracle's doubles outweigh the one roof.
  request_.problem = {1, 4096, 1, 64, Dtype::bf16, {}};
  request_.items = {{"fake_roof", {}}};
  request_.settings.measure = false;
  EXPECT_GE(needed(), Inputs::footprint(request_.problem) + (64 + 1) * 4096 * 8);
  run();
  EXPECT_EQ(peak_, needed());
}

TEST_F(Memory, NeverOverflows) {
  const std::int64_t big = std::int64_t{1} << 52;
  for (const Problem& problem :
       {Problem{1, big, big, 64, Dtype::bf16, {}}, Problem{1, big, 1, 64, Dtype::bf16, {}},
        Problem{big, 1, 1, 64, Dtype::bf16, {}}}) {
    ASSERT_FALSE(invalid_reason(problem).has_value());
    request_.problem = problem;
    EXPECT_GT(needed(), std::int64_t{1} << 54) << problem.seq << " " << problem.heads;
  }
}

}  // namespace
}  // namespace fdbench::bench
