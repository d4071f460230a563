#include "io/work_codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "core/error.h"

namespace fdbench {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// There and back; the line is one line, and a second trip changes nothing.
template <class Event>
Event trip(const Event& event) {
  const std::string line = io::encode(WorkEvent{event});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const WorkEvent back = io::decode_event(line);
  EXPECT_EQ(io::encode(back), line);
  return std::get<Event>(back);
}

TEST(WorkCodec, Request) {
  WorkRequest request;
  request.device = "cuda:1";
  request.script = "dir/with \"quotes\"\nand lines.json";
  request.dirty_flush = true;
  request.problem = {131073, 32, 8, 128, Dtype::fp16, 0.1f};
  request.items = {{"cpu_read", {}}, {"cpu_split_kv", {}}};
  request.items[1].tuning.set("chunk", 256);
  request.items[1].tuning.set("threads", -2);
  request.settings.cache = CacheMode::hot;
  request.settings.timer = TimerMode::graph;
  request.settings.max_noise = 0.1 + 0.2;
  request.settings.max_time_s = kInfinity;
  request.settings.rounds = 7;
  request.settings.seed = std::numeric_limits<std::uint64_t>::max();
  request.settings.measure = false;
  const std::string line = io::encode(request);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const WorkRequest back = io::decode_request(line);
  EXPECT_EQ(back.device, request.device);
  EXPECT_EQ(back.script, request.script);
  EXPECT_TRUE(back.dirty_flush);
  EXPECT_FALSE(back.survey);
  EXPECT_EQ(back.problem, request.problem);
  EXPECT_EQ(back.items, request.items);
  EXPECT_EQ(back.settings.cache, CacheMode::hot);
  EXPECT_EQ(back.settings.timer, TimerMode::graph);
  EXPECT_EQ(back.settings.max_noise, 0.1 + 0.2);
  EXPECT_EQ(back.settings.max_time_s, kInfinity);
  EXPECT_EQ(back.settings.rounds, 7);
  EXPECT_EQ(back.settings.seed, request.settings.seed);
  EXPECT_FALSE(back.settings.measure);
}

TEST(WorkCodec, SurveyRequestHasShapesAndNoProblem) {
  WorkRequest request;
  request.survey = true;
  request.shapes = {{1, 2, 1, 64, Dtype::bf16, std::nullopt}, {8192, 32, 8, 128, Dtype::fp16, std::nullopt}};
  const WorkRequest back = io::decode_request(io::encode(request));
  EXPECT_TRUE(back.survey);
  EXPECT_EQ(back.shapes, request.shapes);
  EXPECT_EQ(back.problem, Problem{});
  EXPECT_FALSE(back.settings.rounds);
  EXPECT_FALSE(back.dirty_flush);
}

TEST(WorkCodec, DeviceFound) {
  DeviceFound found;
  found.device.kind = BackendKind::cpu;
  found.device.name = "a CPU";
  found.device.sms = 16;
  found.device.l1d_bytes = 49152;
  found.device.isas = {"AVX2", "plain"};
  found.device.memory_available_bytes = 123;
  found.why = "no CUDA device: no driver";
  const DeviceFound back = trip(found);
  EXPECT_EQ(back.device.name, "a CPU");
  EXPECT_EQ(back.device.sms, 16);
  EXPECT_EQ(back.device.isas, found.device.isas);
  EXPECT_EQ(back.device.l1d_bytes, 49152);
  EXPECT_EQ(back.device.memory_available_bytes, 123);
  EXPECT_FALSE(back.device.mig || back.device.power_limit_w);
  EXPECT_EQ(back.why, found.why);
}

TEST(WorkCodec, MemoryCounted) {
  const MemoryCounted back = trip(MemoryCounted{2, std::int64_t{1} << 62, 5});
  EXPECT_EQ(back.shape, 2);
  EXPECT_EQ(back.needed, std::int64_t{1} << 62);
  EXPECT_EQ(back.available, 5);
}

TEST(WorkCodec, StepBegins) {
  for (const Phase phase : {Phase::prepare, Phase::validate, Phase::warm_up, Phase::sample, Phase::recheck}) {
    const StepBegins back = trip(StepBegins{-1, phase});
    EXPECT_EQ(back.item, -1);
    EXPECT_EQ(back.phase, phase);
  }
}

TEST(WorkCodec, ItemPlanned) {
  ItemPlanned planned;
  planned.item = 3;
  planned.plan.grid = {1, 2, 3};
  planned.plan.cooperative = true;
  planned.plan.merge = "last_cta";
  planned.plan.scratch_bytes = 1 << 20;
  planned.plan.rule = "seed";
  planned.prepare_ns = 1234.5;
  const ItemPlanned back = trip(planned);
  EXPECT_EQ(back.item, 3);
  EXPECT_EQ(back.plan.grid, (Extent3{1, 2, 3}));
  EXPECT_TRUE(back.plan.cooperative);
  EXPECT_EQ(back.plan.merge, "last_cta");
  EXPECT_EQ(back.plan.scratch_bytes, 1 << 20);
  EXPECT_EQ(back.plan.rule, "seed");
  EXPECT_EQ(back.prepare_ns, 1234.5);
}

TEST(WorkCodec, ItemEnded) {
  const ItemEnded back = trip(ItemEnded{1, Status::timeout, "took\nlonger \"than\" 3 s"});
  EXPECT_EQ(back.item, 1);
  EXPECT_EQ(back.status, Status::timeout);
  EXPECT_EQ(back.reason, "took\nlonger \"than\" 3 s");
}

TEST(WorkCodec, AccuracyThatIsNotFiniteSurvives) {
  const ItemChecked back = trip(ItemChecked{0, {kInfinity, std::nan(""), kInfinity, "cpu_oracle"}});
  EXPECT_EQ(back.accuracy.rel_l2, kInfinity);
  EXPECT_TRUE(std::isnan(back.accuracy.max_abs));
  EXPECT_EQ(back.accuracy.lse_max_abs, kInfinity);
  EXPECT_EQ(back.accuracy.oracle, "cpu_oracle");
  EXPECT_FALSE(trip(ItemChecked{0, {0.5, 0.25, std::nullopt, ""}}).accuracy.lse_max_abs);
}

TEST(WorkCodec, RoundDone) {
  const RoundDone back = trip(RoundDone{12, {0, 2}, {1.0 / 3.0, -kInfinity}, {1980.0, 0.0}, {0, 1}});
  EXPECT_EQ(back.round, 12);
  EXPECT_EQ(back.items, (std::vector<int>{0, 2}));
  EXPECT_EQ(back.ns, (std::vector<double>{1.0 / 3.0, -kInfinity}));
  EXPECT_EQ(back.sm_mhz, (std::vector<double>{1980.0, 0.0}));
  EXPECT_EQ(back.void_samples, (std::vector<int>{0, 1}));
}

TEST(WorkCodec, SteeredRounds) {
  WorkRequest request;
  request.steered = true;
  EXPECT_TRUE(io::decode_request(io::encode(request)).steered);
  const RoundsAsked back = io::decode_rounds_asked(io::encode(RoundsAsked{{3, 0}, 12}));
  EXPECT_EQ(back.items, (std::vector<int>{3, 0}));
  EXPECT_EQ(back.rounds, 12);
  EXPECT_EQ(trip(RoundsTaken{0.25}).elapsed_s, 0.25);
}

TEST(WorkCodec, WorkDone) {
  const WorkDone back = trip(WorkDone{"converged", 0.5, {"preempted", "b"}});
  EXPECT_EQ(back.stop, "converged");
  EXPECT_EQ(back.timer_step_ns, 0.5);
  EXPECT_EQ(back.flags, (std::vector<std::string>{"preempted", "b"}));
}

std::string refusal(const std::string& line) {
  try {
    io::decode_event(line);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::failed);
    return error.what();
  }
  return "was read";
}

TEST(WorkCodec, WhatIsNoEventIsRefused) {
  EXPECT_EQ(refusal("Killed"),
            "worker event:1:1: not JSON here: unexpected \"Killed\"; expected an event of the same build");
  EXPECT_EQ(refusal("{\"event\": \"party\"}"),
            "worker event: event must be the name of an event, not the string \"party\"");
  EXPECT_EQ(refusal("{\"event\": \"step\", \"item\": -2, \"phase\": \"sample\"}"),
            "worker event: item must be an integer of at least -1 and at most 2147483647, not -2");
  EXPECT_EQ(
      refusal(
          R"({"event": "round", "round": 0, "items": [0, 1], "ns": [1], "sm_mhz": [0, 0], "void_samples": [0, 0]})"),
      "worker event: must have lists of one length");
  EXPECT_THROW(io::decode_request("{}"), Error);
}

}  // namespace
}  // namespace fdbench
