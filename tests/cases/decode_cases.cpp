#include "cases/decode_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "bench/buffers.h"
#include "bench/validation.h"
#include "core/half.h"
#include "core/input_recipe.h"

namespace fdbench::cases {

namespace {

// Q, K and V on the host, for cases that need values of their own. Elements of problem.dtype.
struct Tensors {
  std::vector<std::uint16_t> q, k, v;
};
using Edit = std::function<void(const Problem&, Tensors&)>;
using Look = std::function<void(const LaunchPlan&, const bench::Subject::Check&)>;

Problem problem_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t seq, std::int64_t dim = 128,
                   Dtype dtype = Dtype::bf16) {
  Problem problem;
  problem.seq = seq;
  problem.heads = heads;
  problem.kv_heads = kv_heads;
  problem.dim = dim;
  problem.dtype = dtype;
  return problem;
}

float value_of(const Problem& problem, std::uint16_t bits) {
  return problem.dtype == Dtype::bf16 ? bf16_to_float(bits) : fp16_to_float(bits);
}

template <class T>
std::vector<T> downloaded(Backend& backend, const void* from, std::int64_t count) {
  std::vector<T> host(static_cast<std::size_t>(count));
  backend.download(host.data(), from, count * static_cast<std::int64_t>(sizeof(T)));
  return host;
}

void edit_inputs(Backend& backend, const Problem& problem, const bench::Inputs& inputs, const Edit& edit) {
  const DecodeArgs args = inputs.args();
  Tensors host{downloaded<std::uint16_t>(backend, args.q, problem.q_elements()),
               downloaded<std::uint16_t>(backend, args.k, problem.kv_elements()),
               downloaded<std::uint16_t>(backend, args.v, problem.kv_elements())};
  edit(problem, host);
  backend.upload(const_cast<void*>(args.q), host.q.data(), problem.q_bytes());
  backend.upload(const_cast<void*>(args.k), host.k.data(), problem.kv_bytes());
  backend.upload(const_cast<void*>(args.v), host.v.data(), problem.kv_bytes());
}

bool has_axis(const Variant& variant, std::string_view name) {
  return std::any_of(variant.axes.begin(), variant.axes.end(),
                     [&](const Axis& axis) { return axis.name == name; });
}

TuningPoint point(std::string_view axis, std::int64_t value) {
  TuningPoint tuning;
  tuning.set(axis, value);
  return tuning;
}

// Each way that the variant's axes offer to cut `seq` into `splits`; the default where there is none.
std::vector<TuningPoint> cuts(const Variant& variant, std::int64_t seq, std::int64_t splits) {
  std::vector<TuningPoint> points;
  if (has_axis(variant, "splits")) points.push_back(point("splits", splits));
  if (has_axis(variant, "chunk")) points.push_back(point("chunk", (seq + splits - 1) / splits));
  if (points.empty()) points.emplace_back();
  return points;
}

// The plan, or nothing (and, unless `tuning` was asked for, a skipped shape) where the variant can't.
std::optional<LaunchPlan> planned(const Rig& rig, const Problem& problem, const TuningPoint& tuning) {
  PlanResult result = make_plan(rig.variant, problem, rig.backend.device(), tuning);
  if (const auto* no = std::get_if<Unsupported>(&result)) {
    EXPECT_FALSE(no->reason.empty()) << "a refusal says why";
    return std::nullopt;
  }
  return std::get<LaunchPlan>(result);
}

// Validates the variant at each of `tunings` that it can plan for; `look` sees more of each result than its
// being right.
void run(const Rig& rig, const Problem& problem, const Edit& edit = {}, const Look& look = {},
         bool with_lse = true, const std::vector<TuningPoint>& tunings = {TuningPoint{}}) {
  const bench::Inputs inputs(rig.backend, problem, 5);
  if (edit) edit_inputs(rig.backend, problem, inputs, edit);
  const bench::Truth truth = bench::compute_truth(rig.backend, rig.oracle, problem, inputs);
  for (const TuningPoint& tuning : tunings) {
    const auto plan = planned(rig, problem, tuning);
    if (!plan) continue;
    SCOPED_TRACE(shape_id(problem) + " " + tuning.id());
    bench::Subject subject(rig.backend, rig.variant, problem, inputs, *plan);
    const bench::Subject::Check check = subject.check(truth, with_lse);
    EXPECT_EQ(check.wrong, "");
    if (look && check.accuracy) look(*plan, check);
  }
}

void expect_exact(const LaunchPlan&, const bench::Subject::Check& check) {
  EXPECT_EQ(check.accuracy->max_abs, 0.0);
}

// With one key O is its row of V, bit for bit, and lse the one score.
void one_key(const Rig& rig) {
  run(rig, problem_of(32, 32, 1), {}, expect_exact);
  run(rig, problem_of(32, 8, 1), {}, expect_exact);
}

// With q = 0 every weight is equal: a tail mask that lets zero rows in shifts the mean.
void tail_mean(const Rig& rig) {
  for (const std::int64_t kv_heads : {8, 2, 1}) {
    for (const std::int64_t seq : {255, 256, 257}) {
      run(rig, problem_of(8, kv_heads, seq),
          [](const Problem&, Tensors& host) { std::fill(host.q.begin(), host.q.end(), std::uint16_t{0}); });
    }
  }
}

void constant_v(const Rig& rig) {
  const Problem problem = problem_of(8, 2, 1000);
  const Edit edit = [](const Problem& p, Tensors& host) {
    std::fill(host.v.begin(), host.v.end(), round_to(p.dtype, 0.5f));
  };
  for (const std::int64_t splits : {1, 2, 7, 33, 1000})
    run(rig, problem, edit, expect_exact, true, cuts(rig.variant, problem.seq, splits));
}

// The last token's keys lie along the queries at 40x, so that its row of V is the answer.
void last_key(const Rig& rig) {
  const Problem problem = problem_of(4, 4, 16385);
  const bench::Inputs inputs(rig.backend, problem, 5);
  bench::Truth last_row;
  edit_inputs(rig.backend, problem, inputs, [&](const Problem&, Tensors& host) {
    const std::size_t last = host.k.size() - host.q.size();
    for (std::size_t i = 0; i < host.q.size(); ++i)
      host.k[last + i] = round_to(problem.dtype, 40.0f * value_of(problem, host.q[i]));
    for (std::size_t i = last; i < host.v.size(); ++i)
      last_row.o.push_back(static_cast<double>(value_of(problem, host.v[i])));
  });
  const auto plan = planned(rig, problem, {});
  if (!plan) return;
  bench::Subject subject(rig.backend, rig.variant, problem, inputs, *plan);
  const auto check = subject.check(last_row, false);
  ASSERT_TRUE(check.accuracy) << check.wrong;
  EXPECT_LE(check.accuracy->rel_l2, 1e-2);
}

void poison_tail(const Rig& rig) {
  for (const std::int64_t kv_heads : {8, 2, 1}) {
    for (const std::int64_t seq : {32, 48, 64, 96, 127}) run(rig, problem_of(8, kv_heads, seq));
  }
  // More than 8 query heads a CTA (splits are asked for), and tiles of more tokens.
  for (const std::int64_t dim : {64, 128}) {
    for (const std::int64_t seq : {1, 9, 33, 63, 65, 127}) {
      run(rig, problem_of(12, 1, seq, dim), {}, {}, true, cuts(rig.variant, seq, 1));
    }
  }
}

// Cuts that leave a split with nothing to do, or a token.
void empty_split(const Rig& rig) {
  for (const Problem& problem :
       {problem_of(4, 4, 320), problem_of(4, 4, 65), problem_of(4, 1, 320), problem_of(8, 1, 65)}) {
    std::vector<TuningPoint> tunings = {{}};
    if (has_axis(rig.variant, "splits")) tunings.push_back(point("splits", 4));
    for (const std::int64_t chunk : {64, 100, 128, 4096}) {
      if (has_axis(rig.variant, "chunk")) tunings.push_back(point("chunk", chunk));
    }
    run(rig, problem, {}, {}, true, tunings);
  }
}

void many_splits(const Rig& rig) {
  // The second: shares of unequal size, and more than 8 query heads a KV head.
  for (const Problem& problem : {problem_of(16, 8, 4096), problem_of(16, 1, 4256)}) {
    std::vector<TuningPoint> tunings;
    for (const std::int64_t splits : {1, 2, 3, 16, 17, 32, 64, 129, 256}) {
      for (TuningPoint& tuning : cuts(rig.variant, problem.seq, splits)) tunings.push_back(std::move(tuning));
    }
    // Of query heads in several blocks, of one size and not; groups of 2 have but one.
    for (const std::int64_t row_blocks : {2, 3, 4}) {
      for (const std::int64_t splits : {1, 8, 17, 32}) {
        if (!has_axis(rig.variant, "row_blocks")) break;
        tunings.push_back(point("splits", splits));
        tunings.back().set("row_blocks", row_blocks);
      }
    }
    run(rig, problem, {}, {}, true, tunings);
  }
}

// Plans of their own may share a group out to CTAs of up to 8 query heads; with splits asked for, groups of 9
// to 16 stay together, 31 are blocks of 16 and 15.
void odd_groups(const Rig& rig) {
  const std::int64_t head_counts[][2] = {{40, 8}, {24, 4}, {28, 4}, {64, 4}, {6, 2},  {7, 1},
                                         {5, 1},  {3, 1},  {12, 1}, {20, 1}, {18, 2}, {31, 1}};
  for (const auto& [heads, kv_heads] : head_counts) {
    for (const std::int64_t dim : {128, 64}) {
      const Problem problem = problem_of(heads, kv_heads, 1000, dim);
      std::vector<TuningPoint> tunings = {{}};
      for (const std::int64_t splits : {1, 4, 7}) {
        for (TuningPoint& tuning : cuts(rig.variant, problem.seq, splits))
          tunings.push_back(std::move(tuning));
      }
      for (const std::int64_t merge : {1, 2, 3}) {
        if (!has_axis(rig.variant, "merge")) break;
        tunings.push_back(point("splits", 8));
        tunings.back().set("merge", merge);
      }
      run(rig, problem, {}, {}, true, tunings);
    }
  }
}

void single_kv_head(const Rig& rig) {
  for (const std::int64_t seq : {4096, 512}) {
    run(rig, problem_of(64, 1, seq), {}, [&](const LaunchPlan& plan, const bench::Subject::Check&) {
      // A short sequence may well be left whole on a wide device.
      if (rig.variant.role != Role::candidate || seq < 4096) return;
      if (rig.backend.device().sms == 1) return;
      EXPECT_GT(plan.splits, 1) << "the machine is left idle";
    });
  }
}

void long_sequence(const Rig& rig) {
  run(rig, problem_of(1, 1, 524288));
  run(rig, problem_of(2, 2, 131073));
}

// Powers of two are exact: q and k times 32, so that scores reach 1e4. float32 knows them to 1e-3 at best, so
// lse is not held to its own tolerance here.
void hot_logits(const Rig& rig) {
  run(
      rig, problem_of(8, 8, 4096),
      [](const Problem& problem, Tensors& host) {
        for (auto* tensor : {&host.q, &host.k}) {
          for (std::uint16_t& bits : *tensor) bits = round_to(problem.dtype, 32.0f * value_of(problem, bits));
        }
      },
      {}, false);
}

void seq_zero(const Rig& rig) {
  run(rig, problem_of(8, 2, 0), {}, expect_exact);
}

void dims_and_dtypes(const Rig& rig) {
  for (const std::int64_t dim : {64, 96, 128, 192, 256}) {
    for (const Dtype dtype : {Dtype::bf16, Dtype::fp16}) {
      run(rig, problem_of(8, 2, 777, dim, dtype));
      run(rig, problem_of(3, 3, 1300, dim, dtype));
      run(rig, problem_of(16, 1, 517, dim, dtype));
      run(rig, problem_of(8, 1, 545, dim, dtype));
    }
  }
}

struct Outcome {
  std::vector<std::uint16_t> o;
  std::vector<float> lse;
  bool operator==(const Outcome&) const = default;
};

// One plan made ready on guarded memory, launched as often as a case likes.
class Launches {
 public:
  Launches(const Rig& rig, const Problem& problem, const bench::Inputs& inputs, const LaunchPlan& plan)
      : rig_(rig),
        problem_(problem),
        o_(rig.backend, problem.q_bytes()),
        lse_(rig.backend, problem.heads * 4),
        scratch_(rig.backend, plan.scratch_bytes),
        zeroed_(rig.backend, plan.zeroed_bytes) {
    if (zeroed_.bytes() > 0) rig.backend.set_bytes(zeroed_.data(), 0, zeroed_.bytes());
    if (scratch_.bytes() > 0) rig.backend.set_bytes(scratch_.data(), 0xff, scratch_.bytes());
    DecodeArgs args = inputs.args();
    args.o = o_.data();
    args.lse = rig.variant.writes_lse ? static_cast<float*>(lse_.data()) : nullptr;
    args.scratch = scratch_.data();
    args.zeroed = zeroed_.data();
    prepared_ = rig.variant.prepare(args, plan, rig.backend.device());
  }

  void launch() { prepared_->launch(rig_.backend.context()); }

  Outcome launch_on_poison() {
    rig_.backend.set_bytes(o_.data(), 0xff, o_.bytes());
    rig_.backend.set_bytes(lse_.data(), 0, lse_.bytes());
    launch();
    return outcome();
  }

  Outcome outcome() {
    rig_.backend.synchronize();
    return {downloaded<std::uint16_t>(rig_.backend, o_.data(), problem_.q_elements()),
            downloaded<float>(rig_.backend, lse_.data(), problem_.heads)};
  }

  void expect_whole() {
    for (const auto* buffer : {&o_, &lse_, &scratch_, &zeroed_})
      EXPECT_EQ(buffer->broken_guard(rig_.backend), "");
    const auto zeros = downloaded<std::uint8_t>(rig_.backend, zeroed_.data(), zeroed_.bytes());
    EXPECT_TRUE(std::all_of(zeros.begin(), zeros.end(), [](std::uint8_t byte) { return byte == 0; }));
  }

 private:
  const Rig& rig_;
  Problem problem_;
  bench::GuardedBuffer o_, lse_, scratch_, zeroed_;
  std::unique_ptr<Prepared> prepared_;
};

void repeat(const Rig& rig) {
  for (const std::int64_t kv_heads : {32, 8, 4}) {
    const Problem problem = problem_of(32, kv_heads, 8192);
    const auto plan = planned(rig, problem, {});
    if (!plan || !rig.variant.deterministic) return;
    SCOPED_TRACE(shape_id(problem));
    const bench::Inputs inputs(rig.backend, problem, 5);
    Launches launches(rig, problem, inputs, *plan);
    const Outcome first = launches.launch_on_poison();
    const int count = kv_heads == 32 ? 100 : 20;  // minutes under the address sanitizer
    for (int i = 1; i < count; ++i) ASSERT_TRUE(launches.launch_on_poison() == first) << "launch " << i;
    launches.expect_whole();
  }
}

// 1 to 9 tiles a chunk, tens of thousands of launches in all: no hang, no difference.
void pipeline(const Rig& rig) {
  for (std::int64_t tiles = 1; tiles <= 9; ++tiles) {
    const Problem problem = problem_of(2, 2, 64 * tiles - tiles % 2);
    const bench::Inputs inputs(rig.backend, problem, 5);
    std::vector<TuningPoint> tunings = {{}};
    if (has_axis(rig.variant, "chunk")) tunings.push_back(point("chunk", problem.seq));
    for (const TuningPoint& tuning : tunings) {
      const auto plan = planned(rig, problem, tuning);
      if (!plan) continue;
      SCOPED_TRACE(shape_id(problem) + " " + tuning.id());
      Launches launches(rig, problem, inputs, *plan);
      const Outcome first = launches.launch_on_poison();
      for (int i = 0; i < 1000; ++i) launches.launch();
      EXPECT_TRUE(!rig.variant.deterministic || launches.outcome() == first);
      EXPECT_TRUE(!rig.variant.deterministic || launches.launch_on_poison() == first)
          << "the last wrote less";
      launches.expect_whole();
    }
  }
}

// Plans that alternate from launch to launch, each on its scratch as its own last launch left it.
void merge_stress(const Rig& rig) {
  for (const std::int64_t heads : {1, 3, 8, 64}) {
    const Problem problem = problem_of(heads, 1, 264);
    const bench::Inputs inputs(rig.backend, problem, 5);
    std::vector<std::unique_ptr<Launches>> plans;
    std::vector<Outcome> first;
    for (const std::int64_t splits : {1, 2, 5, 33, 132}) {
      for (const TuningPoint& tuning : cuts(rig.variant, problem.seq, splits)) {
        const auto plan = planned(rig, problem, tuning);
        if (!plan) continue;
        plans.push_back(std::make_unique<Launches>(rig, problem, inputs, *plan));
        first.push_back(plans.back()->launch_on_poison());
      }
    }
    for (int i = 0; i < 500; ++i) {
      for (auto& plan : plans) plan->launch();
    }
    for (std::size_t i = 0; i < plans.size(); ++i) {
      EXPECT_TRUE(!rig.variant.deterministic || plans[i]->outcome() == first[i]) << "heads " << heads;
      EXPECT_TRUE(!rig.variant.deterministic || plans[i]->launch_on_poison() == first[i])
          << "heads " << heads << ": the last wrote less";
      plans[i]->expect_whole();
    }
  }
}

constexpr DecodeCase kCases[] = {
    {"one_key", one_key},
    {"tail_mean", tail_mean},
    {"constant_v", constant_v},
    {"last_key", last_key},
    {"poison_tail", poison_tail},
    {"empty_split", empty_split},
    {"many_splits", many_splits},
    {"odd_groups", odd_groups},
    {"single_kv_head", single_kv_head},
    {"long", long_sequence},
    {"hot_logits", hot_logits},
    {"seq_zero", seq_zero},
    {"dims_and_dtypes", dims_and_dtypes},
    {"repeat", repeat},
    {"pipeline", pipeline},
    {"merge_stress", merge_stress},
};

}  // namespace

std::span<const DecodeCase> decode_cases() {
  return kCases;
}

}  // namespace fdbench::cases
