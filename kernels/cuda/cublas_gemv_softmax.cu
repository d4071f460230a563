// fdbench: sm_80+
//
// cublas_gemv_softmax: the reference, attention out of library calls and one row kernel.
//
//   scores = scale * K q    cuBLAS, batched over KV heads with the heads' stride; the `group` query heads of
//                           a KV head are the columns of one product; float32 out
//   P = softmax(scores)     here; in the dtype of the inputs, times 1024 so that fp16 holds small weights
//   O = V P / 1024          cuBLAS, likewise
//
// K and V are read where they lie, [seq, kv_heads, dim]: a head's rows are kv_heads * dim apart. An ungrouped
// product is a matrix-vector one, which cuBLAS's matrix product serves too; `gemv` asks for its gemv entry.
//
// Its error is that of P and O rounded to the dtype: in bf16 at most 2^-8 relative each, 1.65e-3 in the norm
// where roundings differ. Weights that are all equal are all rounded the same way, so that P's share is 2^-8
// whole.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/error.h"
#include "core/half.h"
#include "core/input_recipe.h"
#include "core/variant.h"
#include "cuda/check.h"
#include "cuda/cublas.h"
#include "detail/reduce.cuh"

namespace fdbench {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr float kWeightScale = 1024.0f;

constexpr std::int64_t kAlign = 256;                   // bytes, of each part of the scratch
constexpr std::int64_t kOnePartTokens = 2048;          // up to here a head's softmax is one CTA's
constexpr std::int64_t kPartTokens = 1024;             // and beyond, a CTA has at least so many
constexpr std::int64_t kWorkspaceHopper = 32ll << 20;  // what cuBLAS recommends from sm_90 on
constexpr std::int64_t kWorkspaceAmpere = 4ll << 20;   // and before
constexpr std::int64_t kMaxHeads = (1ll << 31) - 1;    // the grid's x
constexpr std::string_view kByGemm = "cublas_gemm";    // LaunchPlan::merge: partial sums meet inside cuBLAS
constexpr std::string_view kByGemv = "cublas_gemv";

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// A row of scores or weights, in elements: rows start on 16 bytes.
std::int64_t row_elements(std::int64_t seq) {
  return round_up(std::max<std::int64_t>(seq, 1), 8);
}

// Parts of the scratch, in bytes from its start.
struct Scratch {
  std::int64_t scores;     // float [heads, row]
  std::int64_t weights;    // dtype [heads, row]
  std::int64_t stats;      // float2 [heads, parts]: maximum and sum of a part
  std::int64_t workspace;  // cuBLAS's
  std::int64_t workspace_bytes;
  std::int64_t bytes;  // all
};

Scratch scratch_layout(std::int64_t heads, std::int64_t seq, std::int64_t parts, int cc) {
  const std::int64_t row = row_elements(seq);
  Scratch at{};
  at.weights = at.scores + round_up(4 * heads * row, kAlign);
  at.stats = at.weights + round_up(2 * heads * row, kAlign);
  at.workspace = at.stats + round_up(8 * heads * parts, kAlign);
  at.workspace_bytes = cc >= 90 ? kWorkspaceHopper : kWorkspaceAmpere;
  at.bytes = at.workspace + at.workspace_bytes;
  return at;
}

struct SoftmaxParams {
  const float* scores;     // [heads, row]
  std::uint16_t* weights;  // [heads, row]
  float2* stats;           // [heads, parts]
  float* lse;              // [heads]; null when not asked for
  std::int64_t seq;
  std::int64_t row;
  std::int64_t chunk;  // tokens a part
  int parts;
};

// Maximum and sum of exp(score - maximum); the sum of nothing has maximum -inf and sum 0.
__device__ __forceinline__ float2 joined(float2 a, float2 b) {
  const float m = fmaxf(a.x, b.x);
  const float from_a = a.y == 0.0f ? 0.0f : a.y * expf(a.x - m);
  const float from_b = b.y == 0.0f ? 0.0f : b.y * expf(b.x - m);
  return {m, from_a + from_b};
}

__device__ __forceinline__ float2 warp_joined(float2 own) {
  const float m = device::lanes_max(own.x);
  return {m, device::lanes_sum(own.y == 0.0f ? 0.0f : own.y * expf(own.x - m))};
}

// Of scores[begin ... end), by the whole CTA; every thread gets it.
__device__ __forceinline__ float2 cta_stats(const float* scores, std::int64_t begin, std::int64_t end) {
  __shared__ float2 of_warp[kWarps];
  const float kNone = __int_as_float(static_cast<int>(0xff800000u));
  float2 own = {kNone, 0.0f};
  for (std::int64_t t = begin + threadIdx.x; t < end; t += kThreads) own = joined(own, {scores[t], 1.0f});
  own = warp_joined(own);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = own;
  __syncthreads();
  float2 all = of_warp[0];
#pragma unroll
  for (int warp = 1; warp < kWarps; ++warp) all = joined(all, of_warp[warp]);
  return all;
}

template <Dtype kDtype>
__device__ __forceinline__ void write_weights(const SoftmaxParams& params, std::int64_t head, float2 stats,
                                              std::int64_t begin, std::int64_t end) {
  const float* const scores = params.scores + head * params.row;
  std::uint16_t* const weights = params.weights + head * params.row;
  const float factor = kWeightScale / stats.y;
  for (std::int64_t t = begin + threadIdx.x; t < end; t += kThreads) {
    weights[t] = round_to(kDtype, expf(scores[t] - stats.x) * factor);
  }
  if (begin == 0 && threadIdx.x == 0 && params.lse) params.lse[head] = stats.x + logf(stats.y);
}

// Grid heads: a whole row a CTA.
template <Dtype kDtype>
__global__ void __launch_bounds__(kThreads) softmax_row_kernel(const SoftmaxParams params) {
  const std::int64_t head = blockIdx.x;
  const float2 stats = cta_stats(params.scores + head * params.row, 0, params.seq);
  write_weights<kDtype>(params, head, stats, 0, params.seq);
}

// Grid (heads, parts): a part's maximum and sum ...
__global__ void __launch_bounds__(kThreads) softmax_stats_kernel(const SoftmaxParams params) {
  const std::int64_t head = blockIdx.x;
  const std::int64_t begin = blockIdx.y * params.chunk;
  const std::int64_t end = begin + params.chunk < params.seq ? begin + params.chunk : params.seq;
  const float2 stats = cta_stats(params.scores + head * params.row, begin, end);
  if (threadIdx.x == 0) params.stats[head * params.parts + blockIdx.y] = stats;
}

// ... and then its weights, every warp joining the row's parts for itself.
template <Dtype kDtype>
__global__ void __launch_bounds__(kThreads) softmax_weights_kernel(const SoftmaxParams params) {
  const std::int64_t head = blockIdx.x;
  const std::int64_t begin = blockIdx.y * params.chunk;
  const std::int64_t end = begin + params.chunk < params.seq ? begin + params.chunk : params.seq;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float2 stats = {__int_as_float(static_cast<int>(0xff800000u)), 0.0f};
  for (int part = lane; part < params.parts; part += 32) {
    stats = joined(stats, params.stats[head * params.parts + part]);
  }
  write_weights<kDtype>(params, head, warp_joined(stats), begin, end);
}

// No tokens: o = 0 and lse = -inf. Grid heads.
__global__ void __launch_bounds__(kThreads) nothing_kernel(const DecodeArgs args) {
  const std::int64_t head = blockIdx.x;
  auto* const o = static_cast<std::uint16_t*>(args.o) + head * args.o_head_stride;
  for (std::int64_t d = threadIdx.x; d < args.dim; d += kThreads) o[d] = 0;
  if (threadIdx.x == 0 && args.lse) args.lse[head] = __int_as_float(static_cast<int>(0xff800000u));
}

constexpr Axis kAxes[] = {
    {"gemv", "1: cuBLAS's gemv entry for ungrouped heads; its matrix product when absent or 0", 0, 1},
    {"parts", "CTAs a row of the softmax; about four a multiprocessor when absent, one for short rows", 1,
     1024},
};

std::optional<std::string> unsupported(const Problem& problem, const DeviceInfo& device) {
  if (device.cc < 80) return std::string("needs compute capability 8.0 or later");
  if (device.cublas.empty()) {
    return "needs cuBLAS " + std::to_string(CUBLAS_VER_MAJOR) + ", which was not found";
  }
  if (problem.heads > kMaxHeads) return "takes up to " + std::to_string(kMaxHeads) + " heads";
  return std::nullopt;
}

PlanResult plan(const Problem& problem, const DeviceInfo& device, const TuningPoint& tuning) {
  const bool gemv = tuning.get("gemv").value_or(0) != 0;
  if (gemv && problem.group() != 1) {
    return Unsupported{"gemv=1 is for ungrouped heads; here " + std::to_string(problem.group()) +
                       " query heads share a KV head"};
  }
  const std::int64_t seq = std::max<std::int64_t>(problem.seq, 1);
  std::int64_t parts = 1;
  if (const auto asked = tuning.get("parts")) {
    parts = *asked;
  } else if (seq > kOnePartTokens) {
    const std::int64_t to_fill = (4 * std::int64_t{device.sms} + problem.heads - 1) / problem.heads;
    parts = std::clamp<std::int64_t>(to_fill, 1, std::min<std::int64_t>((seq - 1) / kPartTokens + 1, 1024));
  }
  LaunchPlan out;
  out.chunk = (seq - 1) / std::min(parts, seq) + 1;
  out.splits = (seq - 1) / out.chunk + 1;  // none is empty
  out.grid = {problem.heads, out.splits, 1};
  out.block.x = kThreads;
  out.merge = gemv ? kByGemv : kByGemm;
  out.scratch_bytes = scratch_layout(problem.heads, problem.seq, out.splits, device.cc).bytes;
  return out;
}

// A cuBLAS handle is slow to make and holds memory of its own: one a device, as long as anyone needs it.
class Handle {
 public:
  Handle() {
    FDBENCH_CUBLAS_CHECK(cuda::cublas().create(&handle_));
    // Partial sums of a split product stay in float32.
    FDBENCH_CUBLAS_CHECK(cuda::cublas().set_math_mode(
        handle_,
        static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)));
  }
  ~Handle() {
    if (handle_) (void)cuda::cublas().destroy(handle_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  cublasHandle_t get() const { return handle_; }

 private:
  cublasHandle_t handle_ = nullptr;
};

std::shared_ptr<Handle> handle_of(int device) {
  static std::map<int, std::weak_ptr<Handle>> handles;
  std::shared_ptr<Handle> handle = handles[device].lock();
  if (!handle) {
    handle = std::make_shared<Handle>();
    handles[device] = handle;
  }
  return handle;
}

class GemvSoftmax final : public Prepared {
 public:
  GemvSoftmax(const DecodeArgs& args, const LaunchPlan& launch_plan, const DeviceInfo& device)
      : args_(args),
        layout_(scratch_layout(args.heads, args.seq, launch_plan.splits, device.cc)),
        handle_(handle_of(device.index)),
        type_(args.dtype == Dtype::bf16 ? CUDA_R_16BF : CUDA_R_16F),
        gemv_(launch_plan.merge == kByGemv) {
    softmax_ = {.scores = at<float>(layout_.scores),
                .weights = at<std::uint16_t>(layout_.weights),
                .stats = at<float2>(layout_.stats),
                .lse = args.lse,
                .seq = args.seq,
                .row = row_elements(args.seq),
                .chunk = launch_plan.chunk,
                .parts = static_cast<int>(launch_plan.splits)};
  }

  void launch(const LaunchContext& context) override {
    const auto stream = static_cast<cudaStream_t>(context.stream);
    if (args_.seq == 0) {
      nothing_kernel<<<static_cast<unsigned>(args_.heads), kThreads, 0, stream>>>(args_);
      FDBENCH_CUDA_CHECK_LAUNCH(nothing_kernel);
      return;
    }
    // Setting a stream puts cuBLAS back on a workspace of its own, which no graph may hold.
    FDBENCH_CUBLAS_CHECK(cuda::cublas().set_stream(handle_->get(), stream));
    FDBENCH_CUBLAS_CHECK(cuda::cublas().set_workspace(handle_->get(), at<void>(layout_.workspace),
                                                      static_cast<std::size_t>(layout_.workspace_bytes)));
    if (gemv_) {
      scores_by_gemv();
    } else {
      scores_by_gemm();
    }
    if (args_.dtype == Dtype::bf16) {
      softmax<Dtype::bf16>(stream);
    } else {
      softmax<Dtype::fp16>(stream);
    }
    if (gemv_) {
      outputs_by_gemv();
    } else {
      outputs_by_gemm();
    }
  }

 private:
  template <class T>
  T* at(std::int64_t bytes) const {
    return reinterpret_cast<T*>(static_cast<char*>(args_.scratch) + bytes);
  }

  // Column-major, as cuBLAS has it: K of a head is [dim, seq], q of its group [dim, group], scores [seq,
  // group], V [dim, seq], P [seq, group], O [dim, group].
  void scores_by_gemm() const {
    const std::int64_t group = args_.heads / args_.kv_heads;
    const float beta = 0.0f;
    FDBENCH_CUBLAS_CHECK(cuda::cublas().gemm_strided_batched_ex(
        handle_->get(), CUBLAS_OP_T, CUBLAS_OP_N, args_.seq, group, args_.dim, &args_.scale, args_.k, type_,
        args_.k_seq_stride, args_.k_head_stride, args_.q, type_, args_.q_head_stride,
        group * args_.q_head_stride, &beta, at<void>(layout_.scores), CUDA_R_32F, softmax_.row,
        group * softmax_.row, args_.kv_heads, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  }

  void outputs_by_gemm() const {
    const std::int64_t group = args_.heads / args_.kv_heads;
    const float alpha = 1.0f / kWeightScale;
    const float beta = 0.0f;
    FDBENCH_CUBLAS_CHECK(cuda::cublas().gemm_strided_batched_ex(
        handle_->get(), CUBLAS_OP_N, CUBLAS_OP_N, args_.dim, group, args_.seq, &alpha, args_.v, type_,
        args_.v_seq_stride, args_.v_head_stride, at<void>(layout_.weights), type_, softmax_.row,
        group * softmax_.row, &beta, args_.o, type_, args_.o_head_stride, group * args_.o_head_stride,
        args_.kv_heads, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  }

  void scores_by_gemv() const {
    const auto call = [&](auto function, auto* element) {
      using Element = std::remove_pointer_t<decltype(element)>;
      const float beta = 0.0f;
      FDBENCH_CUBLAS_CHECK(function(handle_->get(), CUBLAS_OP_T, args_.dim, args_.seq, &args_.scale,
                                    static_cast<const Element*>(args_.k), args_.k_seq_stride,
                                    args_.k_head_stride, static_cast<const Element*>(args_.q), 1,
                                    args_.q_head_stride, &beta, at<float>(layout_.scores), 1, softmax_.row,
                                    args_.kv_heads));
    };
    if (args_.dtype == Dtype::bf16) {
      call(cuda::cublas().gemv_bf16_to_f32, static_cast<__nv_bfloat16*>(nullptr));
    } else {
      call(cuda::cublas().gemv_fp16_to_f32, static_cast<__half*>(nullptr));
    }
  }

  void outputs_by_gemv() const {
    const auto call = [&](auto function, auto* element) {
      using Element = std::remove_pointer_t<decltype(element)>;
      const float alpha = 1.0f / kWeightScale;
      const float beta = 0.0f;
      FDBENCH_CUBLAS_CHECK(function(
          handle_->get(), CUBLAS_OP_N, args_.dim, args_.seq, &alpha, static_cast<const Element*>(args_.v),
          args_.v_seq_stride, args_.v_head_stride, at<const Element>(layout_.weights), 1, softmax_.row, &beta,
          static_cast<Element*>(args_.o), 1, args_.o_head_stride, args_.kv_heads));
    };
    if (args_.dtype == Dtype::bf16) {
      call(cuda::cublas().gemv_bf16, static_cast<__nv_bfloat16*>(nullptr));
    } else {
      call(cuda::cublas().gemv_fp16, static_cast<__half*>(nullptr));
    }
  }

  template <Dtype kDtype>
  void softmax(cudaStream_t stream) const {
    const auto heads = static_cast<unsigned>(args_.heads);
    const auto parts = static_cast<unsigned>(softmax_.parts);
    if (parts == 1) {
      softmax_row_kernel<kDtype><<<heads, kThreads, 0, stream>>>(softmax_);
      FDBENCH_CUDA_CHECK_LAUNCH(softmax_row_kernel);
      return;
    }
    softmax_stats_kernel<<<dim3(heads, parts), kThreads, 0, stream>>>(softmax_);
    FDBENCH_CUDA_CHECK_LAUNCH(softmax_stats_kernel);
    softmax_weights_kernel<kDtype><<<dim3(heads, parts), kThreads, 0, stream>>>(softmax_);
    FDBENCH_CUDA_CHECK_LAUNCH(softmax_weights_kernel);
  }

  DecodeArgs args_;
  Scratch layout_;
  std::shared_ptr<Handle> handle_;
  cudaDataType_t type_;
  bool gemv_;
  SoftmaxParams softmax_{};
};

std::unique_ptr<Prepared> prepare(const DecodeArgs& args, const LaunchPlan& launch_plan,
                                  const DeviceInfo& device) {
  if (cuda::cublas().version.empty()) throw Error(Exit::failed, cuda::cublas().why_none);
  return std::make_unique<GemvSoftmax>(args, launch_plan, device);
}

constexpr KernelResources row_kernel(std::string_view kernel, int cc, int static_smem) {
  return {.kernel = kernel,
          .cc = cc,
          .registers = 40,
          .static_smem = static_smem,
          .threads = kThreads,
          .ctas_per_sm = 5};
}

constexpr int kStatsSmem = kWarps * static_cast<int>(sizeof(float2));

constexpr KernelResources kResources[] = {
    row_kernel("softmax_row_kernel", 80, kStatsSmem),  row_kernel("softmax_stats_kernel", 80, kStatsSmem),
    row_kernel("softmax_weights_kernel", 80, 0),       row_kernel("nothing_kernel", 80, 0),
    row_kernel("softmax_row_kernel", 86, kStatsSmem),  row_kernel("softmax_stats_kernel", 86, kStatsSmem),
    row_kernel("softmax_weights_kernel", 86, 0),       row_kernel("nothing_kernel", 86, 0),
    row_kernel("softmax_row_kernel", 89, kStatsSmem),  row_kernel("softmax_stats_kernel", 89, kStatsSmem),
    row_kernel("softmax_weights_kernel", 89, 0),       row_kernel("nothing_kernel", 89, 0),
    row_kernel("softmax_row_kernel", 90, kStatsSmem),  row_kernel("softmax_stats_kernel", 90, kStatsSmem),
    row_kernel("softmax_weights_kernel", 90, 0),       row_kernel("nothing_kernel", 90, 0),
    row_kernel("softmax_row_kernel", 100, kStatsSmem), row_kernel("softmax_stats_kernel", 100, kStatsSmem),
    row_kernel("softmax_weights_kernel", 100, 0),      row_kernel("nothing_kernel", 100, 0),
    row_kernel("softmax_row_kernel", 120, kStatsSmem), row_kernel("softmax_stats_kernel", 120, kStatsSmem),
    row_kernel("softmax_weights_kernel", 120, 0),      row_kernel("nothing_kernel", 120, 0),
};

}  // namespace

namespace variants {

extern const Variant cublas_gemv_softmax;
constinit const Variant cublas_gemv_softmax = {
    .name = "cublas_gemv_softmax",
    .backend = BackendKind::cuda,
    .role = Role::reference,
    .summary = "cuBLAS batched products around a softmax kernel, scores and weights in memory",
    // Equal weights: 2^-8 of P and 1.65e-3 of O, 4.24e-3 together (seen at q = 0, seq 255).
    .tolerance = 4.5e-3,
    .writes_lse = true,
    .axes = kAxes,
    .resources = kResources,
    .unsupported = unsupported,
    .plan = plan,
    .prepare = prepare,
};

}  // namespace variants
}  // namespace fdbench
