// The reference: attention as three passes over memory on all cores, in plain loops that a compiler can
// vectorise. Scores of every head and token go to memory, softmax reads and rewrites them, PV reads them
// again.
#include <cmath>
#include <limits>

#include "core/variant.h"
#include "cpu/detail/rows.h"

namespace fdbench::variants {
namespace {

using cpu::kLanes;

// Scratch, in this order; each part starts on a cache line. Elements are floats.
struct Layout {
  std::int64_t scores = 0;    // [heads, seq], then weights
  std::int64_t sums = 0;      // [heads]
  std::int64_t query = 0;     // [heads, dim]
  std::int64_t partials = 0;  // [threads, heads, dim]
  std::int64_t end = 0;
};

Layout lay_out(std::int64_t seq, std::int64_t heads, std::int64_t dim, std::int64_t threads) {
  const auto lines = [](std::int64_t floats) { return cpu::round_up(floats, kLanes); };
  Layout at;
  at.sums = lines(heads * seq);
  at.query = at.sums + lines(heads);
  at.partials = at.query + lines(heads * dim);
  at.end = at.partials + threads * heads * dim;
  return at;
}

template <Dtype dtype>
float dot(const float* q, const std::uint16_t* k, std::int64_t dim) {
  float sums[kLanes] = {};
  for (std::int64_t d = 0; d < dim; d += kLanes) {
    for (std::int64_t i = 0; i < kLanes; ++i) sums[i] += q[d + i] * cpu::element_value<dtype>(k[d + i]);
  }
  float sum = 0.0f;
  for (std::int64_t i = 0; i < kLanes; ++i) sum += sums[i];
  return sum;
}

class ThreePass final : public Prepared {
 public:
  ThreePass(const DecodeArgs& args, const LaunchPlan& plan)
      : args_(args),
        threads_(static_cast<int>(plan.block.x)),
        group_(args.heads / args.kv_heads),
        at_(lay_out(args.seq, args.heads, args.dim, threads_)),
        base_(static_cast<float*>(args.scratch)) {}

  void launch(const LaunchContext& context) override {
    if (args_.dtype == Dtype::bf16) {
      launch_as<Dtype::bf16>(*context.team);
    } else {
      launch_as<Dtype::fp16>(*context.team);
    }
  }

 private:
  template <Dtype dtype>
  void launch_as(ThreadTeam& team) {
    for (std::int64_t h = 0; h < args_.heads; ++h) {
      const auto* const q = static_cast<const std::uint16_t*>(args_.q) + h * args_.q_head_stride;
      for (std::int64_t d = 0; d < args_.dim; ++d)
        base_[at_.query + h * args_.dim + d] = args_.scale * cpu::element_value<dtype>(q[d]);
    }
    team.run(threads_, [this](int rank) { score<dtype>(cpu::part_of(args_.seq, rank, threads_)); });
    team.run(threads_, [this](int rank) { normalise(cpu::part_of(args_.heads, rank, threads_)); });
    team.run(threads_, [this](int rank) { weigh<dtype>(rank, cpu::part_of(args_.seq, rank, threads_)); });
    team.run(threads_, [this](int rank) { finish(cpu::part_of(args_.heads, rank, threads_)); });
  }

  template <Dtype dtype>
  void score(cpu::Range tokens) {
    for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
      for (std::int64_t h = 0; h < args_.heads; ++h) {
        const auto* const k = static_cast<const std::uint16_t*>(args_.k) + t * args_.k_seq_stride +
                              h / group_ * args_.k_head_stride;
        base_[at_.scores + h * args_.seq + t] = dot<dtype>(base_ + at_.query + h * args_.dim, k, args_.dim);
      }
    }
  }

  void normalise(cpu::Range heads) {
    for (std::int64_t h = heads.begin; h < heads.end; ++h) {
      float* const scores = base_ + at_.scores + h * args_.seq;
      float max = -std::numeric_limits<float>::infinity();
      for (std::int64_t t = 0; t < args_.seq; ++t) max = std::max(max, scores[t]);
      double sum = 0.0;
      for (std::int64_t t = 0; t < args_.seq; ++t) {
        scores[t] = std::exp(scores[t] - max);
        sum += static_cast<double>(scores[t]);
      }
      base_[at_.sums + h] = static_cast<float>(sum);
      if (args_.lse)
        args_.lse[h] = args_.seq > 0 ? static_cast<float>(static_cast<double>(max) + std::log(sum)) : max;
    }
  }

  template <Dtype dtype>
  void weigh(int rank, cpu::Range tokens) {
    float* const o = base_ + at_.partials + rank * args_.heads * args_.dim;
    std::fill(o, o + args_.heads * args_.dim, 0.0f);
    for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
      for (std::int64_t h = 0; h < args_.heads; ++h) {
        const auto* const v = static_cast<const std::uint16_t*>(args_.v) + t * args_.v_seq_stride +
                              h / group_ * args_.v_head_stride;
        const float weight = base_[at_.scores + h * args_.seq + t];
        float* const row = o + h * args_.dim;
        for (std::int64_t d = 0; d < args_.dim; ++d) row[d] += weight * cpu::element_value<dtype>(v[d]);
      }
    }
  }

  void finish(cpu::Range heads) {
    for (std::int64_t h = heads.begin; h < heads.end; ++h) {
      auto* const o = static_cast<std::uint16_t*>(args_.o) + h * args_.o_head_stride;
      const float inverse = args_.seq > 0 ? 1.0f / base_[at_.sums + h] : 0.0f;
      for (std::int64_t d = 0; d < args_.dim; ++d) {
        float sum = 0.0f;
        for (std::int64_t rank = 0; rank < threads_; ++rank)
          sum += base_[at_.partials + (rank * args_.heads + h) * args_.dim + d];
        o[d] = cpu::round_element(args_.dtype, sum * inverse);
      }
    }
  }

  DecodeArgs args_;
  int threads_;
  std::int64_t group_;
  Layout at_;
  float* base_;
};

PlanResult plan_three_pass(const Problem& problem, const DeviceInfo& device, const TuningPoint&) {
  LaunchPlan plan;
  plan.block.x = std::max(1, device.sms);
  plan.grid.x = plan.block.x;
  plan.chunk = (problem.seq + plan.block.x - 1) / plan.block.x;
  plan.splits = plan.block.x;
  plan.merge = "team";
  plan.scratch_bytes = lay_out(problem.seq, problem.heads, problem.dim, plan.block.x).end *
                       static_cast<std::int64_t>(sizeof(float));
  return plan;
}

}  // namespace

extern const Variant cpu_three_pass;
constinit const Variant cpu_three_pass = {
    .name = "cpu_three_pass",
    .backend = BackendKind::cpu,
    .role = Role::reference,
    .summary = "scores, softmax, PV: three passes over memory on all cores, plain loops",
    .tolerance = 4e-3,
    .writes_lse = true,
    .unsupported = cpu::unsupported_dim,
    .plan = plan_three_pass,
    .prepare = [](const DecodeArgs& args, const LaunchPlan& plan, const DeviceInfo&)
        -> std::unique_ptr<Prepared> { return std::make_unique<ThreePass>(args, plan); },
};

}  // namespace fdbench::variants
