// Validation finds what public kernels got wrong: each mistake is made here once, on purpose.
#include "bench/validation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "core/error.h"
#include "core/half.h"
#include "counting_backend.h"

namespace fdbench::bench {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<std::uint16_t> bf16(const std::vector<double>& values) {
  std::vector<std::uint16_t> bits;
  for (const double value : values) bits.push_back(float_to_bf16(static_cast<float>(value)));
  return bits;
}

TEST(Compare, RelativeL2) {
  // Differences 0, 1, 0, -2 against a norm of 5: sqrt(5) / 5.
  const Truth truth{{0.0, 3.0, 4.0, 0.0}, {}, "an oracle"};
  const Accuracy accuracy = compare(bf16({0.0, 4.0, 4.0, -2.0}), {}, truth, Dtype::bf16);
  EXPECT_DOUBLE_EQ(accuracy.rel_l2, std::sqrt(5.0) / 5.0);
  EXPECT_EQ(accuracy.max_abs, 2.0);
  EXPECT_FALSE(accuracy.lse_max_abs.has_value());
  EXPECT_EQ(accuracy.oracle, "an oracle");
}

TEST(Compare, ReadsTheDtypeItIsTold) {
  const Truth truth{{1.5}, {}, ""};
  EXPECT_EQ(compare({float_to_fp16(1.5f)}, {}, truth, Dtype::fp16).rel_l2, 0.0);
  EXPECT_EQ(compare({float_to_bf16(1.5f)}, {}, truth, Dtype::bf16).rel_l2, 0.0);
  EXPECT_GT(compare({float_to_bf16(1.5f)}, {}, truth, Dtype::fp16).rel_l2, 0.1);
}

TEST(Compare, WhatIsNotFiniteIsInfinitelyWrong) {
  const Truth truth{{1.0, 1.0}, {}, ""};
  for (const double bad : {kNan, kInfinity, -kInfinity}) {
    const Accuracy accuracy = compare(bf16({1.0, bad}), {}, truth, Dtype::bf16);
    EXPECT_EQ(accuracy.rel_l2, kInfinity);
    EXPECT_EQ(accuracy.max_abs, kInfinity);
  }
}

TEST(Compare, ATruthOfZeroIsComparedAbsolutely) {
  const Truth truth{{0.0, 0.0}, {}, ""};
  EXPECT_EQ(compare(bf16({0.0, 0.0}), {}, truth, Dtype::bf16).rel_l2, 0.0);
  EXPECT_EQ(compare(bf16({3.0, 4.0}), {}, truth, Dtype::bf16).rel_l2, 5.0);
}

TEST(Compare, Lse) {
  const Truth truth{{1.0}, {1.0, -kInfinity}, ""};
  const float minus_infinity = -std::numeric_limits<float>::infinity();
  const auto lse = [&](float a, float b) {
    return *compare(bf16({1.0}), {a, b}, truth, Dtype::bf16).lse_max_abs;
  };
  EXPECT_EQ(lse(1.0f, minus_infinity), 0.0);  // no keys at all
  EXPECT_EQ(lse(1.25f, minus_infinity), 0.25);
  EXPECT_EQ(lse(1.0f, -100.0f), kInfinity);
  EXPECT_EQ(lse(1.0f, -minus_infinity), kInfinity);
  EXPECT_EQ(lse(std::numeric_limits<float>::quiet_NaN(), minus_infinity), kInfinity);
}

// What the variant under test does at a launch, after it has done it right where `right` says so.
struct Mistake {
  bool right = true;
  std::function<void(const DecodeArgs&)> then = [](const DecodeArgs&) {};
};
Mistake mistake;
LaunchPlan planned;

class Careless final : public Prepared {
 public:
  Careless(const DecodeArgs& args, std::unique_ptr<Prepared> careful)
      : args_(args), careful_(std::move(careful)) {}
  void launch(const LaunchContext& context) override {
    if (mistake.right) careful_->launch(context);
    mistake.then(args_);
  }

 private:
  DecodeArgs args_;
  std::unique_ptr<Prepared> careful_;
};

constexpr Variant careless_variant(Role role) {
  Variant variant;
  variant.name = "careless";
  variant.backend = BackendKind::fake;
  variant.role = role;
  variant.tolerance = 1e-2;
  variant.writes_lse = role != Role::roof;
  variant.unsupported = [](const Problem&, const DeviceInfo&) -> std::optional<std::string> {
    return std::nullopt;
  };
  variant.plan = [](const Problem&, const DeviceInfo&, const TuningPoint&) -> PlanResult { return planned; };
  variant.prepare = [](const DecodeArgs& args, const LaunchPlan& plan,
                       const DeviceInfo& device) -> std::unique_ptr<Prepared> {
    const Variant* careful = find_variant(fake_variant_table(), "fake_candidate");
    return std::make_unique<Careless>(args, careful->prepare(args, plan, device));
  };
  return variant;
}
constexpr Variant kCareless = careless_variant(Role::candidate);
constexpr Variant kCarelessRoof = careless_variant(Role::roof);

class Checks : public testing::Test {
 protected:
  Checks() : backend_(small_fake()), inputs_(backend_, problem_, 1) {
    mistake = {};
    planned = {};
    planned.scratch_bytes = 256;
    planned.zeroed_bytes = 16;
    truth_ = compute_truth(backend_, *find_variant(fake_variant_table(), "fake_oracle"), problem_, inputs_);
  }
  Subject::Check check(bool with_lse = true, const Variant& variant = kCareless) {
    Subject subject(backend_, variant, problem_, inputs_, planned);
    return subject.check(truth_, with_lse);
  }

  const Problem problem_{48, 4, 2, 64, Dtype::bf16, {}};
  CountingBackend backend_;
  Inputs inputs_;
  Truth truth_;
};

TEST_F(Checks, Right) {
  const auto result = check();
  EXPECT_EQ(result.wrong, "");
  ASSERT_TRUE(result.accuracy.has_value());
  EXPECT_LT(result.accuracy->rel_l2, 4e-3);
  EXPECT_GT(result.accuracy->rel_l2, 0.0);
  EXPECT_LT(*result.accuracy->lse_max_abs, 1e-5);
  EXPECT_EQ(result.accuracy->oracle, "fake_oracle");
  EXPECT_FALSE(check(false).accuracy->lse_max_abs.has_value());
}

TEST_F(Checks, OutputThatWasNeverWritten) {
  mistake.right = false;
  EXPECT_EQ(check().wrong, "its output is not finite");
}

TEST_F(Checks, OneElementThatWasNotWritten) {
  mistake.right = false;
  mistake.then = [this](const DecodeArgs& args) {
    for (std::int64_t i = 0; i + 1 < problem_.q_elements(); ++i)
      static_cast<std::uint16_t*>(args.o)[i] =
          float_to_bf16(static_cast<float>(truth_.o[static_cast<std::size_t>(i)]));
  };
  EXPECT_EQ(check().wrong, "its output is not finite");
}

TEST_F(Checks, ARightOutputOfTheWrongHead) {
  mistake.then = [this](const DecodeArgs& args) {
    auto* o = static_cast<std::uint16_t*>(args.o);
    std::swap_ranges(o, o + problem_.dim, o + problem_.dim);
  };
  EXPECT_NE(check().wrong.find("relative L2 error"), std::string::npos);
}

TEST_F(Checks, ATailThatLetsAnotherRowIn) {
  // Row `seq` of V is NaN: whatever weight it gets shows.
  mistake.then = [this](const DecodeArgs& args) {
    const auto* v = static_cast<const std::uint16_t*>(args.v);
    auto* o = static_cast<std::uint16_t*>(args.o);
    const float past = bf16_to_float(v[problem_.seq * args.v_seq_stride]);
    o[0] = float_to_bf16(bf16_to_float(o[0]) + 1e-9f * past);
  };
  EXPECT_EQ(check().wrong, "its output is not finite");
}

TEST_F(Checks, ScratchReadBeforeItIsWritten) {
  mistake.then = [](const DecodeArgs& args) {
    auto* o = static_cast<std::uint16_t*>(args.o);
    o[0] = float_to_bf16(bf16_to_float(o[0]) + static_cast<const float*>(args.scratch)[63]);
  };
  EXPECT_EQ(check().wrong, "its output is not finite");
}

TEST_F(Checks, WritesOutside) {
  const auto writes = [this](auto pointer, std::int64_t at) {
    mistake.then = [=](const DecodeArgs& args) { static_cast<std::uint8_t*>(pointer(args))[at] = 0; };
    return check().wrong;
  };
  const auto o = [](const DecodeArgs& args) { return args.o; };
  const auto scratch = [](const DecodeArgs& args) { return args.scratch; };
  const auto zeroed = [](const DecodeArgs& args) { return args.zeroed; };
  const auto lse = [](const DecodeArgs& args) -> void* { return args.lse; };
  EXPECT_EQ(writes(o, problem_.q_bytes()), "it wrote outside its output, 0 bytes past its end");
  EXPECT_EQ(writes(o, -2), "it wrote outside its output, 2 bytes before its start");
  EXPECT_EQ(writes(scratch, 256 + 31), "it wrote outside its scratch, 31 bytes past its end");
  EXPECT_EQ(writes(zeroed, 16), "it wrote outside its zeroed workspace, 0 bytes past its end");
  EXPECT_EQ(writes(lse, 4 * problem_.heads), "it wrote outside its lse, 0 bytes past its end");
}

TEST_F(Checks, ZeroedBytesAreZeroBeforeAndAfter) {
  bool zero = false;
  mistake.then = [&](const DecodeArgs& args) {
    const auto* bytes = static_cast<const std::uint8_t*>(args.zeroed);
    zero = std::all_of(bytes, bytes + 16, [](std::uint8_t byte) { return byte == 0; });
  };
  EXPECT_EQ(check().wrong, "");
  EXPECT_TRUE(zero);
  mistake.then = [](const DecodeArgs& args) { static_cast<std::uint8_t*>(args.zeroed)[15] = 1; };
  EXPECT_EQ(check().wrong, "it left its zeroed workspace not zero");
}

TEST_F(Checks, Lse) {
  mistake.then = [](const DecodeArgs& args) {
    if (args.lse) args.lse[3] += 0.01f;
  };
  EXPECT_NE(check().wrong.find("lse is off by"), std::string::npos);
  EXPECT_EQ(check(false).wrong, "");  // not asked for
  // Base 2 in place of base e, a usual mistake.
  mistake.then = [](const DecodeArgs& args) {
    if (args.lse) args.lse[0] *= 1.442695f;
  };
  EXPECT_NE(check().wrong, "");
}

TEST_F(Checks, WorkspaceThatWasNotAskedForIsNotThere) {
  planned.scratch_bytes = planned.zeroed_bytes = 0;
  mistake.then = [](const DecodeArgs& args) {
    EXPECT_EQ(args.scratch, nullptr);
    EXPECT_EQ(args.zeroed, nullptr);
  };
  EXPECT_EQ(check().wrong, "");
}

TEST_F(Checks, ARoofHasNothingToCompareButMayWriteNowhere) {
  mistake.right = false;
  auto result = check(true, kCarelessRoof);
  EXPECT_EQ(result.wrong, "");
  EXPECT_FALSE(result.accuracy.has_value());
  mistake.then = [](const DecodeArgs& args) {
    EXPECT_EQ(args.o, nullptr);
    static_cast<std::uint8_t*>(args.scratch)[256] = 1;
  };
  EXPECT_EQ(check(true, kCarelessRoof).wrong, "it wrote outside its scratch, 0 bytes past its end");
}

TEST_F(Checks, FootprintIsWhatASubjectTakes) {
  for (const Variant* variant : {&kCareless, &kCarelessRoof}) {
    const std::int64_t before = backend_.held();
    const Subject subject(backend_, *variant, problem_, inputs_, planned);
    EXPECT_EQ(backend_.held() - before, Subject::footprint(*variant, problem_, planned));
  }
}

TEST_F(Checks, AnOracleThatIsNotFiniteIsNoOracle) {
  FakeScript script = small_fake();
  script.variants["fake_oracle"].error = kInfinity;
  CountingBackend backend(script);
  const Inputs inputs(backend, problem_, 1);
  EXPECT_THROW(compute_truth(backend, *find_variant(fake_variant_table(), "fake_oracle"), problem_, inputs),
               Error);
}

}  // namespace
}  // namespace fdbench::bench
