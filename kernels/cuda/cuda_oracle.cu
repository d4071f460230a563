// fdbench: sm_80+
//
// cuda_oracle: the ground truth on the device, in float64 throughout.
//
// Each warp of a split takes every fourth of its tokens: a lane holds dimensions lane, lane + 32, ..., a
// score is a sum over the warp, and an online softmax in double keeps maximum, sum and weighted V. The warps'
// states go to scratch, and a second kernel merges a head's in their order. How the work is cut depends on
// the problem alone and nothing is added atomically: every run, on every device of one kind, gives the same
// bits.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/half.h"
#include "core/variant.h"
#include "cuda/check.h"

namespace fdbench {
namespace {

constexpr int kWarps = 4;  // a CTA
constexpr int kThreads = 32 * kWarps;
constexpr std::int64_t kMaxDim = 256;
constexpr int kLaneDims = static_cast<int>(kMaxDim / 32);
constexpr std::int64_t kSplitTokens = 1024;  // until there are kMaxSplits of them
constexpr std::int64_t kMaxSplits = 128;
constexpr std::int64_t kMaxHeads = (std::int64_t{1} << 31) - 1;  // the grid's x

// A warp's state in scratch: maximum, sum, then dim weighted sums of V.
FDBENCH_HOST_DEVICE constexpr std::int64_t state_doubles(std::int64_t dim) {
  return dim + 2;
}

__device__ __forceinline__ double warp_sum(double value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

template <Dtype kDtype>
__device__ __forceinline__ double element(const void* base, std::int64_t index) {
  const std::uint16_t bits = static_cast<const std::uint16_t*>(base)[index];
  return static_cast<double>(kDtype == Dtype::bf16 ? bf16_to_float(bits) : fp16_to_float(bits));
}

__device__ __forceinline__ double minus_infinity() {
  return __longlong_as_double(static_cast<long long>(0xfff0000000000000ull));
}

// Grid (heads, splits). states: [heads, splits * kWarps, state_doubles(dim)]
template <Dtype kDtype>
__global__ void __launch_bounds__(kThreads, 4)
    oracle_split_kernel(const DecodeArgs args, const std::int64_t chunk, double* states) {
  const std::int64_t head = blockIdx.x;
  const std::int64_t split = blockIdx.y;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t kv_head = head / (args.heads / args.kv_heads);
  const std::int64_t dim = args.dim;

  double q[kLaneDims];
  double sum[kLaneDims];
#pragma unroll
  for (int i = 0; i < kLaneDims; ++i) {
    const std::int64_t d = lane + 32 * i;
    q[i] = d < dim ? element<kDtype>(args.q, head * args.q_head_stride + d) : 0.0;
    sum[i] = 0.0;
  }
  const double scale = static_cast<double>(args.scale);
  double m = minus_infinity();
  double l = 0.0;

  const std::int64_t begin = split * chunk;
  const std::int64_t end = begin + chunk < args.seq ? begin + chunk : args.seq;
#pragma unroll 1
  for (std::int64_t token = begin + warp; token < end; token += kWarps) {
    const std::int64_t k_at = token * args.k_seq_stride + kv_head * args.k_head_stride;
    const std::int64_t v_at = token * args.v_seq_stride + kv_head * args.v_head_stride;
    double dot = 0.0;
#pragma unroll
    for (int i = 0; i < kLaneDims; ++i) {
      const std::int64_t d = lane + 32 * i;
      if (d < dim) dot = fma(q[i], element<kDtype>(args.k, k_at + d), dot);
    }
    const double score = scale * warp_sum(dot);
    if (score > m) {
      const double shrink = exp(m - score);  // 0 the first time
      l *= shrink;
#pragma unroll
      for (int i = 0; i < kLaneDims; ++i) sum[i] *= shrink;
      m = score;
    }
    const double weight = exp(score - m);
    l += weight;
#pragma unroll
    for (int i = 0; i < kLaneDims; ++i) {
      const std::int64_t d = lane + 32 * i;
      if (d < dim) sum[i] = fma(weight, element<kDtype>(args.v, v_at + d), sum[i]);
    }
  }

  double* const state = states + ((head * gridDim.y + split) * kWarps + warp) * state_doubles(dim);
  if (lane == 0) {
    state[0] = m;
    state[1] = l;
  }
#pragma unroll
  for (int i = 0; i < kLaneDims; ++i) {
    const std::int64_t d = lane + 32 * i;
    if (d < dim) state[2 + d] = sum[i];
  }
}

// Grid heads, a thread a dimension. `count` states a head; those that saw no token weigh nothing.
__global__ void __launch_bounds__(static_cast<int>(kMaxDim))
    oracle_merge_kernel(const DecodeArgs args, const std::int64_t count, const double* states) {
  const std::int64_t head = blockIdx.x;
  const std::int64_t dim = args.dim;
  const double* const own = states + head * count * state_doubles(dim);
  double m = minus_infinity();
  for (std::int64_t i = 0; i < count; ++i) {
    const double* const state = own + i * state_doubles(dim);
    if (state[1] != 0.0) m = fmax(m, state[0]);
  }
  double l = 0.0;
  double sum = 0.0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double* const state = own + i * state_doubles(dim);
    if (state[1] == 0.0) continue;
    const double weight = exp(state[0] - m);
    l = fma(weight, state[1], l);
    if (threadIdx.x < dim) sum = fma(weight, state[2 + threadIdx.x], sum);
  }
  if (threadIdx.x < dim) args.oracle_o[head * dim + threadIdx.x] = l == 0.0 ? 0.0 : sum / l;
  if (threadIdx.x == 0 && args.oracle_lse) args.oracle_lse[head] = l == 0.0 ? minus_infinity() : m + log(l);
}

std::optional<std::string> unsupported(const Problem& problem, const DeviceInfo& device) {
  if (device.cc < 80) return std::string("needs compute capability 8.0 or later");
  if (problem.dim > kMaxDim) {
    return "takes head dimensions up to " + std::to_string(kMaxDim) + ", not " + std::to_string(problem.dim);
  }
  if (problem.heads > kMaxHeads) return "takes up to " + std::to_string(kMaxHeads) + " heads";
  return std::nullopt;
}

PlanResult plan(const Problem& problem, const DeviceInfo&, const TuningPoint&) {
  LaunchPlan out;
  const std::int64_t wanted = problem.seq / kSplitTokens + (problem.seq % kSplitTokens != 0 ? 1 : 0);
  const std::int64_t at_most = std::clamp<std::int64_t>(wanted, 1, kMaxSplits);
  out.chunk = std::max<std::int64_t>(problem.seq / at_most + (problem.seq % at_most != 0 ? 1 : 0), 1);
  out.splits = std::max<std::int64_t>(problem.seq / out.chunk + (problem.seq % out.chunk != 0 ? 1 : 0), 1);
  out.grid = {problem.heads, out.splits, 1};
  out.block.x = kThreads;
  out.merge = "kernel";
  out.scratch_bytes = problem.heads * out.splits * kWarps * state_doubles(problem.dim) *
                      static_cast<std::int64_t>(sizeof(double));
  return out;
}

class Oracle final : public Prepared {
 public:
  Oracle(const DecodeArgs& args, const LaunchPlan& launch_plan) : args_(args), plan_(launch_plan) {}

  void launch(const LaunchContext& context) override {
    const auto stream = static_cast<cudaStream_t>(context.stream);
    const auto heads = static_cast<unsigned>(args_.heads);
    const dim3 grid(heads, static_cast<unsigned>(plan_.splits));
    auto* states = static_cast<double*>(args_.scratch);
    if (args_.dtype == Dtype::bf16) {
      oracle_split_kernel<Dtype::bf16><<<grid, kThreads, 0, stream>>>(args_, plan_.chunk, states);
    } else {
      oracle_split_kernel<Dtype::fp16><<<grid, kThreads, 0, stream>>>(args_, plan_.chunk, states);
    }
    FDBENCH_CUDA_CHECK_LAUNCH(oracle_split_kernel);
    const unsigned threads = static_cast<unsigned>((args_.dim + 31) / 32 * 32);
    oracle_merge_kernel<<<heads, threads, 0, stream>>>(args_, plan_.splits * kWarps, states);
    FDBENCH_CUDA_CHECK_LAUNCH(oracle_merge_kernel);
  }

 private:
  DecodeArgs args_;
  LaunchPlan plan_;
};

std::unique_ptr<Prepared> prepare(const DecodeArgs& args, const LaunchPlan& launch_plan, const DeviceInfo&) {
  return std::make_unique<Oracle>(args, launch_plan);
}

constexpr KernelResources split_resources(int cc) {
  return {.kernel = "oracle_split_kernel", .cc = cc, .registers = 96, .threads = kThreads, .ctas_per_sm = 5};
}
constexpr KernelResources merge_resources(int cc) {
  return {.kernel = "oracle_merge_kernel",
          .cc = cc,
          .registers = 64,
          .threads = static_cast<int>(kMaxDim),
          .ctas_per_sm = 3};
}

constexpr KernelResources kResources[] = {
    split_resources(80),  merge_resources(80),  split_resources(86),  merge_resources(86),
    split_resources(89),  merge_resources(89),  split_resources(90),  merge_resources(90),
    split_resources(100), merge_resources(100), split_resources(120), merge_resources(120),
};

}  // namespace

namespace variants {

extern const Variant cuda_oracle;
constinit const Variant cuda_oracle = {
    .name = "cuda_oracle",
    .backend = BackendKind::cuda,
    .role = Role::oracle,
    .summary = "the ground truth in float64, split over the sequence",
    .tolerance = 1e-12,
    .writes_lse = true,
    .resources = kResources,
    .unsupported = unsupported,
    .plan = plan,
    .prepare = prepare,
};

}  // namespace variants
}  // namespace fdbench
