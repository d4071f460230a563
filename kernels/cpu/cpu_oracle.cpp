// The ground truth: float64, two passes over the scores (their maximum, then the weights), one thread a query
// head. Nothing here is meant to be fast.
#include <cmath>
#include <limits>

#include "core/variant.h"
#include "cpu/detail/rows.h"

namespace fdbench::variants {
namespace {

double value_at(const void* tensor, std::int64_t index, Dtype dtype) {
  const std::uint16_t bits = static_cast<const std::uint16_t*>(tensor)[index];
  return static_cast<double>(dtype == Dtype::bf16 ? bf16_to_float(bits) : fp16_to_float(bits));
}

void attend(const DecodeArgs& args, std::int64_t head, double* scores) {
  const std::int64_t kv_head = head / (args.heads / args.kv_heads);
  double* const o = args.oracle_o + head * args.dim;
  double max = -std::numeric_limits<double>::infinity();
  for (std::int64_t t = 0; t < args.seq; ++t) {
    double dot = 0.0;
    for (std::int64_t d = 0; d < args.dim; ++d) {
      dot += value_at(args.q, head * args.q_head_stride + d, args.dtype) *
             value_at(args.k, t * args.k_seq_stride + kv_head * args.k_head_stride + d, args.dtype);
    }
    scores[t] = static_cast<double>(args.scale) * dot;
    max = std::max(max, scores[t]);
  }
  double sum = 0.0;
  for (std::int64_t d = 0; d < args.dim; ++d) o[d] = 0.0;
  for (std::int64_t t = 0; t < args.seq; ++t) {
    const double weight = std::exp(scores[t] - max);
    sum += weight;
    for (std::int64_t d = 0; d < args.dim; ++d)
      o[d] += weight * value_at(args.v, t * args.v_seq_stride + kv_head * args.v_head_stride + d, args.dtype);
  }
  if (args.seq > 0) {
    for (std::int64_t d = 0; d < args.dim; ++d) o[d] /= sum;
  }
  if (args.oracle_lse) args.oracle_lse[head] = args.seq > 0 ? max + std::log(sum) : max;
}

class Oracle final : public Prepared {
 public:
  Oracle(const DecodeArgs& args, const LaunchPlan& plan) : args_(args), plan_(plan) {}
  void launch(const LaunchContext& context) override {
    const int threads = static_cast<int>(plan_.block.x);
    context.team->run(threads, [&](int rank) {
      double* const scores = static_cast<double*>(args_.scratch) + rank * args_.seq;
      for (std::int64_t head = rank; head < args_.heads; head += threads) attend(args_, head, scores);
    });
  }

 private:
  DecodeArgs args_;
  LaunchPlan plan_;
};

PlanResult plan_oracle(const Problem& problem, const DeviceInfo& device, const TuningPoint&) {
  LaunchPlan plan;
  plan.grid.x = problem.heads;
  plan.block.x = std::clamp<std::int64_t>(device.sms, 1, problem.heads);
  plan.chunk = problem.seq;
  plan.merge = "none";
  plan.scratch_bytes = plan.block.x * problem.seq * static_cast<std::int64_t>(sizeof(double));
  return plan;
}

}  // namespace

extern const Variant cpu_oracle;
constinit const Variant cpu_oracle = {
    .name = "cpu_oracle",
    .backend = BackendKind::cpu,
    .role = Role::oracle,
    .summary = "float64 ground truth, one thread a query head",
    .writes_lse = true,
    .unsupported = [](const Problem&, const DeviceInfo&) -> std::optional<std::string> {
      return std::nullopt;
    },
    .plan = plan_oracle,
    .prepare = [](const DecodeArgs& args, const LaunchPlan& plan, const DeviceInfo&)
        -> std::unique_ptr<Prepared> { return std::make_unique<Oracle>(args, plan); },
};

}  // namespace fdbench::variants
