#include "bench/validation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/half.h"

namespace fdbench::bench {

namespace {

constexpr std::uint8_t kNanByte = 0xFF;

template <class T>
std::vector<T> downloaded(Backend& backend, const void* from, std::int64_t count) {
  std::vector<T> host(static_cast<std::size_t>(count));
  backend.download(host.data(), from, count * static_cast<std::int64_t>(sizeof(T)));
  return host;
}

// The largest tolerated |lse - truth|: float32 arithmetic over bf16 inputs, whose scores reach some tens.
constexpr double kLseTolerance = 2e-3;

}  // namespace

Truth compute_truth(Backend& backend, const Variant& oracle, const Problem& problem, const Inputs& inputs) {
  PlanResult planned = make_plan(oracle, problem, backend.device(), {});
  if (const auto* no = std::get_if<Unsupported>(&planned)) {
    throw Error(Exit::failed, std::string(oracle.name) + " can't check this shape: " + no->reason);
  }
  const LaunchPlan& plan = std::get<LaunchPlan>(planned);
  Buffer o(backend, problem.q_elements() * 8), lse(backend, problem.heads * 8);
  Buffer scratch(backend, plan.scratch_bytes), zeroed(backend, plan.zeroed_bytes);
  backend.set_bytes(o.data(), kNanByte, o.bytes());
  backend.set_bytes(zeroed.data(), 0, zeroed.bytes());
  DecodeArgs args = inputs.args();
  args.oracle_o = static_cast<double*>(o.data());
  args.oracle_lse = static_cast<double*>(lse.data());
  args.scratch = scratch.data();
  args.zeroed = zeroed.data();
  const std::unique_ptr<Prepared> prepared = oracle.prepare(args, plan, backend.device());
  prepared->launch(backend.context());
  backend.synchronize();

  Truth truth;
  truth.o = downloaded<double>(backend, o.data(), problem.q_elements());
  truth.lse = downloaded<double>(backend, lse.data(), problem.heads);
  truth.oracle = oracle.name;
  if (!std::all_of(truth.o.begin(), truth.o.end(), [](double x) { return std::isfinite(x); })) {
    throw Error(Exit::failed, std::string(oracle.name) + " gave an output that is not finite");
  }
  return truth;
}

std::optional<std::int64_t> truth_footprint(const Variant& oracle, const Problem& problem,
                                            const DeviceInfo& device) {
  const PlanResult planned = make_plan(oracle, problem, device, {});
  const auto* plan = std::get_if<LaunchPlan>(&planned);
  if (!plan) return std::nullopt;
  return (problem.q_elements() + problem.heads) * 8 + plan->scratch_bytes + plan->zeroed_bytes;
}

Accuracy compare(const std::vector<std::uint16_t>& o, const std::vector<float>& lse, const Truth& truth,
                 Dtype dtype) {
  Accuracy accuracy;
  accuracy.oracle = truth.oracle;
  double error2 = 0.0, norm2 = 0.0;
  bool finite = true;
  for (std::size_t i = 0; i < o.size(); ++i) {
    const double value = dtype == Dtype::bf16 ? bf16_to_float(o[i]) : fp16_to_float(o[i]);
    finite = finite && std::isfinite(value);
    const double difference = value - truth.o[i];
    error2 += difference * difference;
    norm2 += truth.o[i] * truth.o[i];
    accuracy.max_abs = std::max(accuracy.max_abs, std::fabs(difference));
  }
  accuracy.rel_l2 = norm2 > 0.0 ? std::sqrt(error2 / norm2) : std::sqrt(error2);
  if (!finite) accuracy.rel_l2 = accuracy.max_abs = std::numeric_limits<double>::infinity();
  if (!lse.empty()) {
    double worst = 0.0;
    for (std::size_t h = 0; h < lse.size(); ++h) {
      const double value = lse[h];
      // -inf is right where there are no keys.
      const double difference = value == truth.lse[h] ? 0.0 : std::fabs(value - truth.lse[h]);
      worst = std::isnan(difference) ? std::numeric_limits<double>::infinity() : std::max(worst, difference);
    }
    accuracy.lse_max_abs = worst;
  }
  return accuracy;
}

Subject::Subject(Backend& backend, const Variant& variant, const Problem& problem, const Inputs& inputs,
                 LaunchPlan plan)
    : backend_(&backend), variant_(&variant), problem_(problem), inputs_(&inputs), plan_(std::move(plan)) {
  const bool output = variant.role != Role::roof;
  o_ = GuardedBuffer(backend, output ? problem.q_bytes() : 0);
  lse_ = GuardedBuffer(backend, output && variant.writes_lse ? problem.heads * 4 : 0);
  scratch_ = GuardedBuffer(backend, plan_.scratch_bytes);
  zeroed_ = GuardedBuffer(backend, plan_.zeroed_bytes);
  if (zeroed_.bytes() > 0) backend.set_bytes(zeroed_.data(), 0, zeroed_.bytes());
  backend.synchronize();
  const auto start = std::chrono::steady_clock::now();
  prepared_ = prepare_on(inputs);
  backend.synchronize();
  prepare_ns_ = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

DecodeArgs Subject::args_on(const Inputs& inputs, bool with_lse) const {
  DecodeArgs args = inputs.args();
  args.o = o_.data();
  args.lse = with_lse ? static_cast<float*>(lse_.data()) : nullptr;
  args.scratch = scratch_.data();
  args.zeroed = zeroed_.data();
  return args;
}

std::unique_ptr<Prepared> Subject::prepare_on(const Inputs& inputs) const {
  return variant_->prepare(args_on(inputs, false), plan_, backend_->device());
}

Subject::Check Subject::check(const Truth& truth, bool with_lse) {
  Backend& backend = *backend_;
  with_lse = with_lse && lse_.bytes() > 0;
  for (const GuardedBuffer* buffer : {&o_, &lse_, &scratch_}) {
    if (buffer->bytes() > 0) backend.set_bytes(buffer->data(), kNanByte, buffer->bytes());
  }
  backend.synchronize();
  if (with_lse) {
    const auto with = variant_->prepare(args_on(*inputs_, true), plan_, backend.device());
    with->launch(backend.context());
    backend.synchronize();
  } else {
    prepared_->launch(backend.context());
    backend.synchronize();
  }

  Check check;
  const std::pair<const GuardedBuffer*, const char*> guarded[] = {{&o_, "its output"},
                                                                  {&lse_, "its lse"},
                                                                  {&scratch_, "its scratch"},
                                                                  {&zeroed_, "its zeroed workspace"}};
  for (const auto& [buffer, what] : guarded) {
    const std::string where = buffer->broken_guard(backend);
    if (!where.empty()) {
      check.wrong = std::string("it wrote outside ") + what + ", " + where;
      return check;
    }
  }
  if (zeroed_.bytes() > 0) {
    const auto bytes = downloaded<std::uint8_t>(backend, zeroed_.data(), zeroed_.bytes());
    if (std::any_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte != 0; })) {
      check.wrong = "it left its zeroed workspace not zero";
      return check;
    }
  }
  if (variant_->role == Role::roof) return check;

  const auto o = downloaded<std::uint16_t>(backend, o_.data(), problem_.q_elements());
  const auto lse = with_lse ? downloaded<float>(backend, lse_.data(), problem_.heads) : std::vector<float>{};
  check.accuracy = compare(o, lse, truth, problem_.dtype);
  if (!std::isfinite(check.accuracy->rel_l2)) {
    check.wrong = "its output is not finite";
  } else if (!(check.accuracy->rel_l2 <= variant_->tolerance)) {
    check.wrong = "relative L2 error " + std::to_string(check.accuracy->rel_l2) + " is over its tolerance " +
                  std::to_string(variant_->tolerance);
  } else if (check.accuracy->lse_max_abs && !(*check.accuracy->lse_max_abs <= kLseTolerance)) {
    check.wrong = "lse is off by " + std::to_string(*check.accuracy->lse_max_abs) + ", over " +
                  std::to_string(kLseTolerance);
  }
  return check;
}

std::int64_t Subject::footprint(const Variant& variant, const Problem& problem, const LaunchPlan& plan) {
  const bool output = variant.role != Role::roof;
  return GuardedBuffer::footprint(output ? problem.q_bytes() : 0) +
         GuardedBuffer::footprint(output && variant.writes_lse ? problem.heads * 4 : 0) +
         GuardedBuffer::footprint(plan.scratch_bytes) + GuardedBuffer::footprint(plan.zeroed_bytes);
}

}  // namespace fdbench::bench
