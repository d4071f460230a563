// The runner against workers that behave and workers that don't, played by the shell.
#include "bench/worker_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "io/work_codec.h"

namespace fdbench::bench {
namespace {

using Clock = std::chrono::steady_clock;

std::string line(const WorkEvent& event) {
  return "echo '" + io::encode(event) + "' >&3\n";
}

class Workers : public testing::Test {
 protected:
  Workers() {
    char name[] = "/tmp/fdbench-worker-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~Workers() override { std::filesystem::remove_all(folder_); }

  // Runs a shell script as the worker.
  WorkerOutcome run(const std::string& script, double silence_s = 30.0) {
    return run_program({"/bin/sh", "-c", script}, silence_s);
  }
  WorkerOutcome run_program(std::vector<std::string> argv, double silence_s = 30.0) {
    WorkerProtocol protocol;
    protocol.argv = std::move(argv);
    protocol.encode_request = [](const WorkRequest& request) { return io::encode(request); };
    protocol.decode_event = io::decode_event;
    const Clock::time_point start = Clock::now();
    const WorkerOutcome outcome = run_worker(
        protocol, request_, silence_s, [this](const WorkEvent& event) { events_.push_back(event); },
        interrupted_);
    seconds_ = std::chrono::duration<double>(Clock::now() - start).count();
    return outcome;
  }
  std::string file(const char* name) const { return folder_ + "/" + name; }
  std::string contents(const char* name) const {
    std::ifstream in(file(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Whether the process whose number the worker wrote there is gone: a zombie's is ours to reap, so it would
  // still count.
  bool is_gone(const char* name) const {
    const int pid = std::stoi(contents(name));
    for (int tries = 0; tries < 100; ++tries) {
      if (kill(pid, 0) != 0 && errno == ESRCH) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }
  std::string note_pid(const char* name) const { return "echo $$ > " + file(name) + "\n"; }

  WorkRequest request_;
  std::atomic<bool> interrupted_{false};
  std::vector<WorkEvent> events_;
  double seconds_ = 0.0;
  std::string folder_;
};

TEST_F(Workers, Done) {
  const WorkerOutcome outcome =
      run(line(StepBegins{1, Phase::sample}) + line(WorkDone{"converged", 1.0, {}}));
  EXPECT_EQ(outcome.end, WorkerEnd::done);
  EXPECT_EQ(outcome.last.item, 1);
  EXPECT_EQ(outcome.last.phase, Phase::sample);
  ASSERT_EQ(events_.size(), 2u);
  EXPECT_EQ(std::get<WorkDone>(events_[1]).stop, "converged");
}

TEST_F(Workers, GetsTheWholeRequest) {
  request_.device = "cpu";
  for (int i = 0; i < 5000; ++i) request_.items.push_back({"variant_" + std::to_string(i), {}});
  run("cat > " + file("request") + "\n" + line(WorkDone{}));
  const WorkRequest got = io::decode_request(contents("request"));
  EXPECT_EQ(got.items, request_.items);
  EXPECT_EQ(got.device, "cpu");
}

TEST_F(Workers, OneThatDoesNotListenDoesNotEndUs) {
  for (int i = 0; i < 50000; ++i) request_.items.push_back({"a long enough name for the pipe to fill", {}});
  const WorkerOutcome outcome = run("exec <&-\n" + line(WorkDone{}));
  EXPECT_EQ(outcome.end, WorkerEnd::done);
}

TEST_F(Workers, WhatItSaysLastIsWhatItDiedOf) {
  const WorkerOutcome outcome = run("echo first >&2; echo 'out of memory' >&2; exit 6");
  EXPECT_EQ(outcome.end, WorkerEnd::died);
  EXPECT_EQ(outcome.exit_code, 6);
  EXPECT_EQ(outcome.message, "out of memory");
}

TEST_F(Workers, OnStdoutToo) {
  // Whatever a library prints must not reach our stdout.
  const WorkerOutcome outcome = run("echo 'assertion failed'; exit 1");
  EXPECT_EQ(outcome.message, "assertion failed");
}

TEST_F(Workers, DiedSilently) {
  const WorkerOutcome outcome = run("exit 3");
  EXPECT_EQ(outcome.end, WorkerEnd::died);
  EXPECT_EQ(outcome.message, "it exited with 3, saying nothing");
}

TEST_F(Workers, AGoodExitWithoutItsLastWordIsADeath) {
  const WorkerOutcome outcome = run(line(StepBegins{2, Phase::validate}));
  EXPECT_EQ(outcome.end, WorkerEnd::died);
  EXPECT_EQ(outcome.last.item, 2);
}

TEST_F(Workers, KilledByASignal) {
  const WorkerOutcome outcome = run(line(StepBegins{2, Phase::warm_up}) + "echo why >&2; kill -SEGV $$");
  EXPECT_EQ(outcome.end, WorkerEnd::died);
  EXPECT_EQ(outcome.message, "killed by signal 11 (Segmentation fault): why");
  EXPECT_EQ(outcome.last.phase, Phase::warm_up);
}

TEST_F(Workers, ADeathAfterTheLastWordIsADeath) {
  const WorkerOutcome outcome = run(line(WorkDone{}) + "kill -ABRT $$");
  EXPECT_EQ(outcome.end, WorkerEnd::died);
}

TEST_F(Workers, NoSuchProgram) {
  const WorkerOutcome outcome = run_program({"/no/such/program"});
  EXPECT_EQ(outcome.end, WorkerEnd::died);
  EXPECT_EQ(outcome.exit_code, 127);
}

TEST_F(Workers, SilentIsHung) {
  const WorkerOutcome outcome = run(note_pid("pid") + line(StepBegins{1, Phase::sample}) + "sleep 60", 0.5);
  EXPECT_EQ(outcome.end, WorkerEnd::hung);
  EXPECT_EQ(outcome.message, "no sign of life for 0.5 s");
  EXPECT_EQ(outcome.last.item, 1);
  EXPECT_LT(seconds_, 10.0);
  EXPECT_TRUE(is_gone("pid"));
}

TEST_F(Workers, TalkingIsNotHanging) {
  std::string script;
  for (int i = 0; i < 8; ++i) script += line(StepBegins{i, Phase::sample}) + "sleep 0.25\n";
  const WorkerOutcome outcome = run(script + line(WorkDone{}), 1.5);
  EXPECT_EQ(outcome.end, WorkerEnd::done);
  EXPECT_GT(seconds_, 1.5);
}

TEST_F(Workers, TalkingOnStderrIsHanging) {
  const WorkerOutcome outcome = run("while true; do echo busy >&2; sleep 0.1; done", 0.5);
  EXPECT_EQ(outcome.end, WorkerEnd::hung);
}

TEST_F(Workers, WhatItStartedDoesNotOutliveIt) {
  const WorkerOutcome outcome = run("sleep 60 & echo $! > " + file("pid") + "\n" + line(WorkDone{}), 0.5);
  // The pipes stay open: nobody can tell that it is done until it is silent for too long.
  EXPECT_EQ(outcome.end, WorkerEnd::hung);
  EXPECT_LT(seconds_, 5.0);
  EXPECT_TRUE(is_gone("pid"));
}

TEST_F(Workers, WhatLeftItsGroupIsNotWaitedFor) {
  if (!std::filesystem::exists("/usr/bin/setsid")) GTEST_SKIP() << "needs setsid";
  run("setsid sh -c 'echo $$ > " + file("pid") + "; sleep 15' & sleep 0.3\n" + line(WorkDone{}), 0.5);
  EXPECT_LT(seconds_, 12.0);
  kill(std::stoi(contents("pid")), SIGKILL);
}

TEST_F(Workers, Garbage) {
  for (const char* garbage : {"nonsense", "{}", "[1,2", "{\"event\": \"no_such\"}", "\\0\\377"}) {
    EXPECT_THROW(run(note_pid("pid") + "printf '" + garbage + "\\n' >&3; sleep 60"), Error) << garbage;
    EXPECT_LT(seconds_, 10.0);
    EXPECT_TRUE(is_gone("pid"));
  }
}

TEST_F(Workers, ALineThatWasNotFinishedIsNotRead) {
  const WorkerOutcome outcome =
      run(line(StepBegins{1, Phase::sample}) + "printf '{\"event\": \"ste' >&3; kill -KILL $$");
  EXPECT_EQ(outcome.end, WorkerEnd::died);
  EXPECT_EQ(events_.size(), 1u);
}

TEST_F(Workers, WhateverTheSinkThrowsComesOut) {
  WorkerProtocol protocol;
  protocol.argv = {"/bin/sh", "-c", note_pid("pid") + line(WorkDone{}) + "sleep 60"};
  protocol.encode_request = [](const WorkRequest& request) { return io::encode(request); };
  protocol.decode_event = io::decode_event;
  EXPECT_THROW(run_worker(
                   protocol, request_, 30.0,
                   [](const WorkEvent&) { throw std::out_of_range("no such item"); }, interrupted_),
               std::out_of_range);
  EXPECT_TRUE(is_gone("pid"));
}

TEST_F(Workers, AFloodOnStderrBlocksNobody) {
  const WorkerOutcome outcome =
      run("head -c 3000000 /dev/zero | tr '\\0' 'x' >&2; echo >&2; echo last >&2; exit 1");
  EXPECT_EQ(outcome.end, WorkerEnd::died);
  EXPECT_EQ(outcome.message, "last");
}

TEST_F(Workers, ToldToStopItMayFinish) {
  interrupted_ = true;
  const WorkerOutcome outcome = run("trap '" + std::string("echo stopped > ") + file("told") +
                                    "; exit 0' INT\nwhile true; do sleep 0.05; done");
  EXPECT_EQ(outcome.end, WorkerEnd::interrupted);
  EXPECT_LT(seconds_, 4.0);
}

TEST_F(Workers, ToldToStopAndDeafItIsKilled) {
  interrupted_ = true;
  const WorkerOutcome outcome = run(note_pid("pid") + "trap '' INT\nwhile true; do sleep 0.05; done");
  EXPECT_EQ(outcome.end, WorkerEnd::interrupted);
  EXPECT_LT(seconds_, 9.0);
}

TEST_F(Workers, LeaveNoDescriptorOpen) {
  const auto open = [] {
    int count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
    return count;
  };
  run(line(WorkDone{}));
  const int before = open();
  for (int i = 0; i < 5; ++i) run(line(WorkDone{}));
  EXPECT_EQ(open(), before);
}

}  // namespace
}  // namespace fdbench::bench
