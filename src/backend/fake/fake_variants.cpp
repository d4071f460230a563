// The fake device's variants: plain attention in double on the host, then whatever the script wants done to
// it.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "backend/fake/fake_backend.h"
#include "backend/fake/fake_player.h"
#include "core/error.h"
#include "core/half.h"

namespace fdbench {

namespace {

double element(const void* tensor, std::int64_t at, Dtype dtype) {
  const std::uint16_t bits = static_cast<const std::uint16_t*>(tensor)[at];
  return dtype == Dtype::bf16 ? bf16_to_float(bits) : fp16_to_float(bits);
}

// o [dim] and lse of one query head.
struct HeadResult {
  std::vector<double> o;
  double lse = -std::numeric_limits<double>::infinity();
};

HeadResult attend(const DecodeArgs& a, std::int64_t head) {
  HeadResult result;
  result.o.assign(static_cast<std::size_t>(a.dim), 0.0);
  const std::int64_t kv_head = head / (a.heads / a.kv_heads);
  std::vector<double> scores(static_cast<std::size_t>(a.seq));
  for (std::int64_t t = 0; t < a.seq; ++t) {
    double dot = 0.0;
    for (std::int64_t d = 0; d < a.dim; ++d) {
      dot += element(a.q, head * a.q_head_stride + d, a.dtype) *
             element(a.k, t * a.k_seq_stride + kv_head * a.k_head_stride + d, a.dtype);
    }
    scores[static_cast<std::size_t>(t)] = dot * static_cast<double>(a.scale);
  }
  if (scores.empty()) return result;
  const double top = *std::max_element(scores.begin(), scores.end());
  double sum = 0.0;
  for (double& score : scores) sum += score = std::exp(score - top);
  result.lse = top + std::log(sum);
  for (std::int64_t t = 0; t < a.seq; ++t) {
    const double weight = scores[static_cast<std::size_t>(t)] / sum;
    for (std::int64_t d = 0; d < a.dim; ++d) {
      result.o[static_cast<std::size_t>(d)] +=
          weight * element(a.v, t * a.v_seq_stride + kv_head * a.v_head_stride + d, a.dtype);
    }
  }
  return result;
}

class FakePrepared final : public Prepared {
 public:
  FakePrepared(const char* name, Role role, const DecodeArgs& args, int chunk)
      : name_(name), role_(role), args_(args), chunk_(chunk) {
    if (script().at_prepare) misbehave();
  }

  void launch(const LaunchContext&) override {
    FakePlayer& player = fake_player();
    player.last_launched = name_;
    player.last_chunk = chunk_;
    if (player.launches[name_]++ >= script().after && !script().at_prepare) misbehave();
    if (role_ == Role::roof) return;
    const bool poison =
        script().behaviour == FakeBehaviour::nan && is_bad() && player.launches[name_] > script().after;
    for (std::int64_t h = 0; h < args_.heads; ++h) {
      const HeadResult result = attend(args_, h);
      for (std::int64_t d = 0; d < args_.dim; ++d) {
        const double value = result.o[static_cast<std::size_t>(d)] * (1.0 + script().error);
        if (args_.oracle_o) args_.oracle_o[h * args_.dim + d] = value;
        if (args_.o) {
          static_cast<std::uint16_t*>(args_.o)[h * args_.o_head_stride + d] =
              poison ? kQuietNan16 : round_to(args_.dtype, static_cast<float>(value));
        }
      }
      if (args_.oracle_lse) args_.oracle_lse[h] = result.lse;
      if (args_.lse) args_.lse[h] = static_cast<float>(result.lse);
    }
  }

 private:
  const FakeVariantScript& script() const { return fake_player().of(name_); }

  bool is_bad() const { return script().bad_chunk == 0 || script().bad_chunk == chunk_; }

  void misbehave() {
    if (!is_bad()) return;
    switch (script().behaviour) {
      case FakeBehaviour::ok:
      case FakeBehaviour::unsupported:
      case FakeBehaviour::nan:
        return;
      case FakeBehaviour::lost_device:
        fake_player().lost = true;
        [[fallthrough]];
      case FakeBehaviour::throws:
        throw Error(Exit::failed, script().reason);
      case FakeBehaviour::crash:
        std::abort();
      case FakeBehaviour::hang:
        while (true) pause();
      case FakeBehaviour::writes_guard:
        static_cast<char*>(args_.scratch)[-1] = 0;
        return;
      case FakeBehaviour::dirty_zeroed:
        *static_cast<char*>(args_.zeroed) = 1;
        return;
    }
  }

  const char* name_;
  Role role_;
  DecodeArgs args_;
  int chunk_;
};

struct Fake {
  const char* name;
  Role role;
};
constexpr Fake kFakes[] = {{"fake_candidate", Role::candidate},
                           {"fake_oracle", Role::oracle},
                           {"fake_other", Role::candidate},
                           {"fake_reference", Role::reference},
                           {"fake_roof", Role::roof}};

constexpr Axis kAxes[] = {{"chunk", "KV tokens a work item owns; absent: the whole sequence", 1, 0}};

template <std::size_t Index>
constexpr Variant make_variant() {
  Variant variant;
  variant.name = kFakes[Index].name;
  variant.backend = BackendKind::fake;
  variant.role = kFakes[Index].role;
  variant.summary = "plays a script";
  variant.tolerance = 1e-2;
  variant.writes_lse = variant.role != Role::roof;
  if (Index == 2) variant.axes = kAxes;
  variant.unsupported = [](const Problem&, const DeviceInfo&) -> std::optional<std::string> {
    const FakeVariantScript& script = fake_player().of(kFakes[Index].name);
    if (script.behaviour == FakeBehaviour::unsupported) return script.reason;
    return std::nullopt;
  };
  variant.plan = [](const Problem& problem, const DeviceInfo&, const TuningPoint& tuning) -> PlanResult {
    LaunchPlan plan;
    plan.chunk = tuning.get("chunk").value_or(std::max<std::int64_t>(problem.seq, 1));
    plan.splits = (problem.seq + plan.chunk - 1) / plan.chunk;
    plan.grid.x = plan.splits * problem.heads;
    plan.merge = "none";
    plan.scratch_bytes = 64;
    plan.zeroed_bytes = 16;
    return plan;
  };
  variant.prepare = [](const DecodeArgs& args, const LaunchPlan& plan,
                       const DeviceInfo&) -> std::unique_ptr<Prepared> {
    return std::make_unique<FakePrepared>(kFakes[Index].name, kFakes[Index].role, args,
                                          static_cast<int>(plan.chunk));
  };
  return variant;
}

constexpr Variant kCandidate = make_variant<0>(), kOracle = make_variant<1>(), kOther = make_variant<2>(),
                  kReference = make_variant<3>(), kRoof = make_variant<4>();

}  // namespace

VariantTable fake_variant_table() {
  static constexpr const Variant* kTable[] = {&kCandidate, &kOracle, &kOther, &kReference, &kRoof};
  return kTable;
}

}  // namespace fdbench
