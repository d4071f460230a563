#include "io/result_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>

#include "core/error.h"
#include "example_result.h"
#include "io/file.h"
#include "io/result_csv.h"

namespace fdbench {
namespace {

using io_test::example_result;
using io_test::golden;

void expect_same(const Bounds& a, const Bounds& b) {
  EXPECT_EQ(a.lo, b.lo);
  EXPECT_EQ(a.hi, b.hi);
}

void expect_same(const std::optional<Bounds>& a, const std::optional<Bounds>& b) {
  ASSERT_EQ(a.has_value(), b.has_value());
  if (a) expect_same(*a, *b);
}

void expect_same(const DeviceInfo& a, const DeviceInfo& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.index, b.index);
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.uuid, b.uuid);
  EXPECT_EQ(a.cc, b.cc);
  EXPECT_EQ(a.sms, b.sms);
  EXPECT_EQ(a.l2_bytes, b.l2_bytes);
  EXPECT_EQ(a.memory_bytes, b.memory_bytes);
  EXPECT_EQ(a.memory_available_bytes, b.memory_available_bytes);
  EXPECT_EQ(a.bandwidth_datasheet, b.bandwidth_datasheet);
  EXPECT_EQ(a.smem_per_sm, b.smem_per_sm);
  EXPECT_EQ(a.smem_per_block, b.smem_per_block);
  EXPECT_EQ(a.regs_per_sm, b.regs_per_sm);
  EXPECT_EQ(a.threads_per_sm, b.threads_per_sm);
  EXPECT_EQ(a.ctas_per_sm, b.ctas_per_sm);
  EXPECT_EQ(a.cooperative_launch, b.cooperative_launch);
  EXPECT_EQ(a.l1d_bytes, b.l1d_bytes);
  EXPECT_EQ(a.core_l2_bytes, b.core_l2_bytes);
  EXPECT_EQ(a.isas, b.isas);
  EXPECT_EQ(a.driver, b.driver);
  EXPECT_EQ(a.cublas, b.cublas);
  EXPECT_EQ(a.power_limit_w, b.power_limit_w);
  EXPECT_EQ(a.mig, b.mig);
}

void expect_same(const RunInfo& a, const RunInfo& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.command, b.command);
  EXPECT_EQ(a.started, b.started);
  EXPECT_EQ(a.argv, b.argv);
  EXPECT_EQ(a.cache, b.cache);
  EXPECT_EQ(a.timer, b.timer);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.inputs, b.inputs);
  EXPECT_EQ(a.processes, b.processes);
  EXPECT_EQ(a.interrupted, b.interrupted);
  EXPECT_EQ(a.tool.version, b.tool.version);
  EXPECT_EQ(a.tool.commit, b.tool.commit);
  EXPECT_EQ(a.tool.compiler, b.tool.compiler);
  EXPECT_EQ(a.tool.cuda, b.tool.cuda);
  EXPECT_EQ(a.tool.flags, b.tool.flags);
  EXPECT_EQ(a.tool.dirty, b.tool.dirty);
  EXPECT_EQ(a.tool.sources, b.tool.sources);
  EXPECT_EQ(a.host.cpu, b.host.cpu);
  EXPECT_EQ(a.host.os, b.host.os);
  EXPECT_EQ(a.host.kernel, b.host.kernel);
  EXPECT_EQ(a.host.cores, b.host.cores);
  expect_same(a.device, b.device);
}

void expect_same(const LaunchPlan& a, const LaunchPlan& b) {
  EXPECT_EQ(a.grid, b.grid);
  EXPECT_EQ(a.block, b.block);
  EXPECT_EQ(a.cluster, b.cluster);
  EXPECT_EQ(a.chunk, b.chunk);
  EXPECT_EQ(a.splits, b.splits);
  EXPECT_EQ(a.tile, b.tile);
  EXPECT_EQ(a.stages, b.stages);
  EXPECT_EQ(a.dynamic_smem, b.dynamic_smem);
  EXPECT_EQ(a.cooperative, b.cooperative);
  EXPECT_EQ(a.merge, b.merge);
  EXPECT_EQ(a.isa, b.isa);
  EXPECT_EQ(a.scratch_bytes, b.scratch_bytes);
  EXPECT_EQ(a.zeroed_bytes, b.zeroed_bytes);
  EXPECT_EQ(a.rule, b.rule);
}

void expect_same(const TimeSummary& a, const TimeSummary& b) {
  EXPECT_EQ(a.n, b.n);
  EXPECT_EQ(a.min, b.min);
  EXPECT_EQ(a.q1, b.q1);
  EXPECT_EQ(a.median, b.median);
  EXPECT_EQ(a.q3, b.q3);
  EXPECT_EQ(a.max, b.max);
  expect_same(a.ci95, b.ci95);
  EXPECT_EQ(a.stop, b.stop);
  EXPECT_EQ(a.void_samples, b.void_samples);
  EXPECT_EQ(a.set_aside, b.set_aside);
  ASSERT_EQ(a.samples.size(), b.samples.size());
  for (std::size_t i = 0; i < a.samples.size(); ++i) {
    EXPECT_EQ(a.samples[i].process, b.samples[i].process);
    EXPECT_EQ(a.samples[i].round, b.samples[i].round);
    EXPECT_EQ(a.samples[i].ns, b.samples[i].ns);
    EXPECT_EQ(a.samples[i].sm_mhz, b.samples[i].sm_mhz);
    EXPECT_EQ(a.samples[i].set_aside, b.samples[i].set_aside);
  }
}

void expect_same(const ResultRecord& a, const ResultRecord& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.problem, b.problem);
  EXPECT_EQ(a.variant, b.variant);
  EXPECT_EQ(a.role, b.role);
  EXPECT_EQ(a.tuning_version, b.tuning_version);
  EXPECT_EQ(a.tuning, b.tuning);
  ASSERT_EQ(a.plan.has_value(), b.plan.has_value());
  if (a.plan) expect_same(*a.plan, *b.plan);
  EXPECT_EQ(a.source, b.source);
  EXPECT_EQ(a.status, b.status);
  EXPECT_EQ(a.reason, b.reason);
  EXPECT_EQ(a.flags, b.flags);
  ASSERT_EQ(a.accuracy.has_value(), b.accuracy.has_value());
  if (a.accuracy) {
    EXPECT_EQ(a.accuracy->rel_l2, b.accuracy->rel_l2);
    EXPECT_EQ(a.accuracy->max_abs, b.accuracy->max_abs);
    EXPECT_EQ(a.accuracy->lse_max_abs, b.accuracy->lse_max_abs);
    EXPECT_EQ(a.accuracy->oracle, b.accuracy->oracle);
  }
  ASSERT_EQ(a.time.has_value(), b.time.has_value());
  if (a.time) expect_same(*a.time, *b.time);
  EXPECT_EQ(a.prepare_ns, b.prepare_ns);
  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_EQ(a.bytes_per_s, b.bytes_per_s);
  EXPECT_EQ(a.roof_share, b.roof_share);
  expect_same(a.roof_share_ci95, b.roof_share_ci95);
  EXPECT_EQ(a.speedup, b.speedup);
  expect_same(a.speedup_ci95, b.speedup_ci95);
}

void expect_same(const ResultFile& a, const ResultFile& b) {
  expect_same(a.run, b.run);
  ASSERT_EQ(a.results.size(), b.results.size());
  for (std::size_t i = 0; i < a.results.size(); ++i) expect_same(a.results[i], b.results[i]);
}

TEST(ResultJson, EveryFieldReadsBackAsItWas) {
  const ResultFile file = example_result();
  expect_same(io::parse_result(io::to_json(file), "example"), file);
}

TEST(ResultJson, DefaultsReadBackAsTheyWere) {
  ResultFile file;
  expect_same(io::parse_result(io::to_json(file), "empty"), file);
  file.results.emplace_back();
  file.results[0].problem = {1, 1, 1, 64, Dtype::bf16, std::nullopt};
  file.results[0].time = TimeSummary{};
  for (double* ns : {&file.results[0].time->min, &file.results[0].time->q1, &file.results[0].time->median,
                     &file.results[0].time->q3, &file.results[0].time->max})
    *ns = 1.0;  // a time of 0 is refused
  file.results[0].plan = LaunchPlan{};
  file.results[0].accuracy = Accuracy{};
  file.run.device.l1d_bytes = 49152;
  file.run.device.core_l2_bytes = 1 << 20;
  file.run.interrupted = true;
  expect_same(io::parse_result(io::to_json(file), "defaults"), file);
}

TEST(ResultJson, ExtremesReadBackAsTheyWere) {
  ResultFile file = example_result();
  file.run.seed = std::numeric_limits<std::uint64_t>::max();
  file.run.device.memory_bytes = std::numeric_limits<std::int64_t>::max();
  using namespace std::string_literals;
  file.run.host.cpu = "tab\t, quote \", backslash \\, line\nfeed, NUL \0, snowman \u2603"s;
  file.run.argv = {"", "\x01", "--tag=\xf0\x9f\x8d\x8e"};
  ResultRecord& row = file.results[0];
  row.tuning.set("odd", std::numeric_limits<std::int64_t>::min());
  row.roof_share = 5e-324;
  row.speedup = std::numeric_limits<double>::max();
  row.prepare_ns = -0.0;
  const ResultFile back = io::parse_result(io::to_json(file), "extremes");
  expect_same(back, file);
  EXPECT_TRUE(std::signbit(*back.results[0].prepare_ns));
}

TEST(ResultJson, WhatIsNotFiniteBecomesNull) {
  ResultFile file = example_result();
  ResultRecord& row = file.results[0];
  row.roof_share = std::nan("");
  row.speedup = std::numeric_limits<double>::infinity();
  row.speedup_ci95 = Bounds{1.0, std::numeric_limits<double>::infinity()};
  row.accuracy->lse_max_abs = std::nan("");
  const std::string text = io::to_json(file);
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_EQ(text.find("inf\""), std::string::npos);
  const ResultFile back = io::parse_result(text, "x");
  EXPECT_FALSE(back.results[0].roof_share);
  EXPECT_FALSE(back.results[0].speedup);
  EXPECT_FALSE(back.results[0].speedup_ci95);
  EXPECT_FALSE(back.results[0].accuracy->lse_max_abs);
  // The error of an output that holds NaN is infinite, and stays so.
  EXPECT_EQ(back.results[2].accuracy->rel_l2, std::numeric_limits<double>::infinity());
}

TEST(ResultJson, BytesThatAreNotUtf8AreReplaced) {
  ResultFile file = example_result();
  file.run.host.cpu = "bad \xff byte";
  EXPECT_EQ(io::parse_result(io::to_json(file), "x").run.host.cpu, "bad \xef\xbf\xbd byte");
}

TEST(ResultJson, TextIsTheGolden) {
  const std::string text = io::to_json(example_result());
  EXPECT_EQ(text, golden("results.json", text));
}

TEST(ResultJson, InstructionSetsAreThereWhereThereIsAChoice) {
  ResultFile file = example_result();
  EXPECT_EQ(io::to_json(file).find("\"isa"), std::string::npos);
  file.results[0].plan->isa = "AVX2";
  file.run.device.isas = {"AMX", "AVX2", "plain"};
  expect_same(io::parse_result(io::to_json(file), "with"), file);
  EXPECT_NE(io::to_csv(file).find(",AVX2,"), std::string::npos);
}

TEST(ResultJson, LaterMinorVersionsAreRead) {
  std::string text = io::to_json(example_result());
  const std::string schema = "fdbench.result/1.0", run = "\"run\": {";
  text.replace(text.find(schema), schema.size(), "fdbench.result/1.42");
  text.replace(text.find(run), run.size(),
               "\"news\": [1, {\"a\": null}],\n  \"run\": {\n    \"later\": \"x\",");
  expect_same(io::parse_result(text, "later"), example_result());
}

TEST(ResultJson, TheFieldsThatMayBeAbsentTakeTheirDefaults) {
  const ResultFile file = io::parse_result(R"({"schema": "fdbench.result/1.0",
    "run": {"id": "a", "cache": "hot", "timer": "graph", "seed": 3, "inputs": "i/1",
            "device": {"kind": "cpu", "name": "c"}},
    "results": [{"id": "x", "problem": {"seq": 1, "heads": 2, "kv_heads": 1, "dim": 64, "dtype": "fp16"},
                 "variant": "v", "role": "roof", "status": "ok"}]})",
                                           "sparse");
  EXPECT_EQ(file.run.cache, CacheMode::hot);
  EXPECT_EQ(file.run.timer, TimerMode::graph);
  EXPECT_EQ(file.run.processes, 1);
  const ResultRecord& row = file.results.at(0);
  EXPECT_EQ(row.source, "default");
  EXPECT_EQ(row.bytes, row.problem.logical_bytes());
  EXPECT_FALSE(row.time || row.plan || row.accuracy);
}

// docs/results.md

std::string document() {
  return io::read_file(FDBENCH_REPO "/docs/results.md");
}

// Every name that stands as "name": in the text.
std::set<std::string> keys_of(const std::string& text) {
  std::set<std::string> keys;
  for (std::size_t end = text.find("\":"); end != std::string::npos; end = text.find("\":", end + 1)) {
    const std::size_t begin = text.rfind('"', end - 1) + 1;
    keys.insert(text.substr(begin, end - begin));
  }
  return keys;
}

TEST(ResultDocument, NamesEveryKeyOfTheJson) {
  const std::string page = document();
  const std::set<std::string> keys = keys_of(io::to_json(example_result()));
  ASSERT_GT(keys.size(), 80u);
  // The example at its end names them too, but says nothing of them.
  const std::string prose = page.substr(0, page.find("## Example"));
  for (const std::string& name : keys) {
    EXPECT_NE(prose.find('`' + name + '`'), std::string::npos) << name << " is not in docs/results.md";
  }
}

TEST(ResultDocument, NamesEveryColumnOfTheCsv) {
  const std::string page = document();
  const std::size_t section = page.find("## CSV");
  ASSERT_NE(section, std::string::npos);
  for (const std::string_view column : io::csv_columns()) {
    EXPECT_NE(page.find('`' + std::string(column) + '`', section), std::string::npos)
        << column << " is not in docs/results.md";
  }
}

TEST(ResultDocument, ItsExampleIsWhatTheWriterWrites) {
  EXPECT_NE(document().find("```json\n" + io::to_json(example_result()) + "```"), std::string::npos)
      << "docs/results.md: the example is not tests/data/io/results.json";
}

}  // namespace
}  // namespace fdbench
