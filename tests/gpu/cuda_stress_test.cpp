// Launches by the ten thousand, plans that alternate, other streams busy: no hang, no stale partial result,
// no difference. A race that shows once in a thousand launches shows here.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "busy_stream.h"
#include "gpu_test.h"

namespace fdbench {
namespace {

constexpr int kLaunches = 10000;
constexpr int kMostPlans = 40;

class CudaStressTest : public GpuTest {
 protected:
  struct Case {
    Problem problem;
    LaunchPlan plan;
    std::string what;
  };

  // One plan of a case, with an output of its own.
  struct Runner {
    const Case* of = nullptr;
    const bench::Truth* truth = nullptr;
    bench::Buffer o;
    std::unique_ptr<Prepared> prepared;
    std::vector<std::uint16_t> first;
  };

  void add(const Variant& variant, const Problem& problem, const TuningPoint& tuning,
           std::vector<Case>& cases) {
    const PlanResult planned = make_plan(variant, problem, device(), tuning);
    const auto* plan = std::get_if<LaunchPlan>(&planned);
    if (plan) cases.push_back({problem, *plan, shape_id(problem) + " " + tuning.id()});
  }

  static bool has_axis(const Variant& variant, std::string_view name) {
    return std::any_of(variant.axes.begin(), variant.axes.end(),
                       [&](const Axis& axis) { return axis.name == name; });
  }

  // At most kMostPlans of them, picked at random but the same every time.
  static std::vector<Case> thinned(std::vector<Case> cases) {
    std::mt19937 random(7);
    std::shuffle(cases.begin(), cases.end(), random);
    if (cases.size() > kMostPlans) cases.resize(kMostPlans);
    return cases;
  }

  // `tuning` with every value of the variant's axis "merge", where it has one and the plan can be made.
  void add_merges(const Variant& variant, const Problem& problem, const TuningPoint& tuning,
                  std::vector<Case>& cases) {
    add(variant, problem, tuning, cases);
    for (const Axis& axis : variant.axes) {
      if (axis.name != "merge") continue;
      for (std::int64_t value = axis.min; value <= axis.max; ++value) {
        TuningPoint merged = tuning;
        merged.set("merge", value);
        add(variant, problem, merged, cases);
      }
    }
  }

  void stress(const Variant& variant, const std::vector<Case>& cases) {
    SCOPED_TRACE(std::string(variant.name));
    if (cases.empty()) return;  // nothing of this is for this variant or device
    // Scratch and counters are everyone's in turn, as they may be: each launch leaves the counters at zero.
    std::int64_t scratch_bytes = 0;
    std::int64_t zeroed_bytes = 0;
    for (const Case& one : cases) {
      scratch_bytes = std::max(scratch_bytes, one.plan.scratch_bytes);
      zeroed_bytes = std::max(zeroed_bytes, one.plan.zeroed_bytes);
    }
    bench::Buffer scratch(backend(), scratch_bytes);
    bench::Buffer zeroed(backend(), zeroed_bytes);
    backend().set_bytes(scratch.data(), 0xff, scratch_bytes);
    backend().set_bytes(zeroed.data(), 0, zeroed_bytes);

    std::map<std::string, std::unique_ptr<bench::Inputs>> inputs;
    std::map<std::string, bench::Truth> truths;
    std::vector<Runner> runners;
    for (const Case& one : cases) {
      const std::string shape = shape_id(one.problem);
      if (!inputs.count(shape)) {
        inputs[shape] = std::make_unique<bench::Inputs>(backend(), one.problem, 11);
        truths[shape] = bench::compute_truth(backend(), cuda_oracle(), one.problem, *inputs[shape]);
      }
      Runner runner;
      runner.of = &one;
      runner.truth = &truths[shape];
      runner.o = bench::Buffer(backend(), one.problem.q_bytes());
      DecodeArgs args = inputs[shape]->args();
      args.o = runner.o.data();
      args.scratch = scratch.data();
      args.zeroed = zeroed.data();
      runner.prepared = variant.prepare(args, one.plan, device());
      runners.push_back(std::move(runner));
    }

    BusyStream busy;
    std::mt19937 random(20260);
    std::vector<std::size_t> order(runners.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    int launches = 0;
    for (int round = 0; launches < kLaunches; ++round) {
      for (Runner& runner : runners) backend().set_bytes(runner.o.data(), 0xff, runner.o.bytes());
      std::shuffle(order.begin(), order.end(), random);
      for (const std::size_t i : order) {
        if (round % 2 == 1 && i % 5 == 0) {
          busy.enqueue(1 + static_cast<int>(random() % static_cast<unsigned>(2 * device().sms)),
                       static_cast<std::int64_t>(random() % 60000));
        }
        runners[i].prepared->launch(backend().context());
        ++launches;
      }
      for (Runner& runner : runners) {
        const auto o = downloaded<std::uint16_t>(backend(), runner.o.data(), runner.of->problem.q_elements());
        if (runner.first.empty()) {
          const Accuracy accuracy = bench::compare(o, {}, *runner.truth, runner.of->problem.dtype);
          ASSERT_LE(accuracy.rel_l2, variant.tolerance) << runner.of->what;
          runner.first = o;
        } else if (variant.deterministic) {
          ASSERT_TRUE(o == runner.first) << runner.of->what << ", launch " << launches << " or just before";
        } else {
          const Accuracy accuracy = bench::compare(o, {}, *runner.truth, runner.of->problem.dtype);
          ASSERT_LE(accuracy.rel_l2, variant.tolerance) << runner.of->what << ", launch " << launches;
        }
      }
    }
    busy.synchronize();
    const auto counters = downloaded<std::uint8_t>(backend(), zeroed.data(), zeroed_bytes);
    EXPECT_TRUE(std::all_of(counters.begin(), counters.end(), [](std::uint8_t byte) { return byte == 0; }))
        << "the zeroed workspace is not zero";
  }
};

TuningPoint point(std::initializer_list<std::pair<std::string_view, std::int64_t>> values) {
  TuningPoint tuning;
  for (const auto& [axis, value] : values) tuning.set(axis, value);
  return tuning;
}

// One to nine tiles of 64 tokens a CTA, whole and with a rest.
TEST_F(CudaStressTest, Pipeline) {
  for (const Variant* variant : attention_variants()) {
    if (variant->role != Role::candidate) continue;
    std::vector<Case> cases;
    for (std::int64_t tiles = 1; tiles <= 9; ++tiles) {
      const std::int64_t chunk = 64 * tiles;
      for (const std::int64_t seq : {chunk, 3 * chunk + 17, 2 * chunk}) {
        for (const std::int64_t kv_heads : {2, 8}) {
          const Problem problem = problem_of(8, kv_heads, seq, tiles % 3 == 0 ? 64 : 128);
          const TuningPoint tuning = has_axis(*variant, "chunk") ? point({{"chunk", chunk}}) : TuningPoint{};
          add(*variant, problem, tuning, cases);
        }
      }
    }
    stress(*variant, thinned(std::move(cases)));
    if (HasFatalFailure()) return;
  }
}

// One to 132 splits, one to 64 heads, in plans that follow each other at random.
TEST_F(CudaStressTest, Merge) {
  const std::int64_t head_counts[][2] = {{1, 1},  {2, 2},  {7, 1},  {8, 1},   {16, 1},
                                         {13, 1}, {16, 2}, {32, 8}, {32, 32}, {64, 64}};
  for (const Variant* variant : attention_variants()) {
    if (variant->role != Role::candidate) continue;
    std::vector<Case> cases;
    for (const auto& [heads, kv_heads] : head_counts) {
      for (const std::int64_t splits : {1, 2, 3, 8, 9, 16, 17, 33, 64, 66, 129, 132}) {
        const Problem problem = problem_of(heads, kv_heads, 64 * splits - 5, splits % 3 == 0 ? 64 : 128);
        if (has_axis(*variant, "splits")) {
          add_merges(*variant, problem, point({{"splits", splits}}), cases);
          if (has_axis(*variant, "row_blocks") && splits % 8 == 0) {
            add_merges(*variant, problem, point({{"splits", splits}, {"row_blocks", 2}}), cases);
          }
        } else if (has_axis(*variant, "chunk")) {
          add_merges(*variant, problem, point({{"chunk", 64}}), cases);
        } else {
          add_merges(*variant, problem, {}, cases);
        }
      }
      add_merges(*variant, problem_of(heads, kv_heads, 4096), {}, cases);
    }
    stress(*variant, thinned(std::move(cases)));
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace fdbench
