// fdbench: sm_80+
//
// cuda_bulk_read: the roof. Reads exactly the bytes of K and V, once each, and computes nothing.
//
// From sm_90 on by the copy engine: one thread of each CTA keeps a ring of contiguous bulk copies in flight,
// 4 x 16 KB a multiprocessor, and waits for them in turn; nobody reads what has landed, so that a stage is
// free as soon as it is full. Copies go round the CTAs, and what is left of the last round is cut into equal
// shares, so that all of them end together and a short read too keeps every multiprocessor busy. Below sm_90,
// and where `plain` asks for it, by 16-byte loads of every thread.
//
// Measured elsewhere on one H200: 910 GB/s at 4 MB, 3050 at 32 MB, 4130 at 128 MB, 4550 at 1 GB, launch
// included; plain loads up to 11 % less.
// Two CTAs a multiprocessor, 128 KB in flight, from 32 MB on: 32.45 us against 32.93 at 134 MB and 11.26
// against 11.36 at 34 MB (H200, 60 rounds); below that one was the faster or the same.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/error.h"
#include "core/variant.h"
#include "cuda/check.h"
#include "detail/bulk_copy.cuh"
#include "detail/mbarrier.cuh"

namespace fdbench {
namespace {

constexpr int kBulkThreads = 32;
constexpr int kPlainThreads = 512;
constexpr int kPlainUnroll = 4;

constexpr std::int64_t kPieceBytes = 16384;  // a copy, at most
constexpr std::int64_t kMaxStages = 12;
constexpr std::int64_t kDefaultStages = 4;
constexpr std::int64_t kMaxSmMultiple = 4;
constexpr std::int64_t kBarrierBytes = 8;
constexpr std::int64_t kReservedSmem = 1024;  // the system's own in every CTA
constexpr std::int64_t kShareUnit = 128;      // bytes; shares of the last round are whole cache lines

// Two tensors read as one stretch of 2 * even_bytes, then what is left of each.
struct Stretch {
  const char* k;
  const char* v;
  std::int64_t even_bytes;  // of each tensor, a multiple of 16
  int odd_bytes;            // of each tensor behind them, 0 ... 15
};

// How the CTAs share a stretch: `rounds` in which each copies one piece, then `rest` bytes, `share` a CTA.
struct Cut {
  std::int64_t rounds;
  std::int64_t rest;
  std::int64_t share;
  int piece;  // bytes
  int stages;
};

Cut cut_stretch(std::int64_t total, std::int64_t ctas, int piece, int stages) {
  Cut cut{.rounds = total / (ctas * piece), .rest = 0, .share = 0, .piece = piece, .stages = stages};
  cut.rest = total - cut.rounds * ctas * piece;
  const std::int64_t units = ctas * kShareUnit;
  cut.share = (cut.rest + units - 1) / units * kShareUnit;
  return cut;
}

// The last bytes, too few for a wide access: one CTA, a byte a thread.
__device__ __forceinline__ void read_odd_bytes(const Stretch& stretch) {
  if (blockIdx.x != 0 || threadIdx.x >= 32) return;
  const int byte = static_cast<int>(threadIdx.x % 16);
  if (byte >= stretch.odd_bytes) return;
  const volatile char* base = threadIdx.x < 16 ? stretch.k : stretch.v;
  [[maybe_unused]] const char seen = base[stretch.even_bytes + byte];
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
// `bytes` of the stretch from `offset` on, into `to`, completing on `full`.
__device__ __forceinline__ void copy_piece(unsigned char* to, const Stretch& stretch, std::int64_t offset,
                                           std::int64_t bytes, ptx::Mbarrier* full) {
  ptx::mbarrier_arrive_expect_tx(full, static_cast<std::uint32_t>(bytes));
  std::int64_t from_k = stretch.even_bytes - offset;  // bytes of the piece that are K's
  from_k = from_k < 0 ? 0 : (from_k > bytes ? bytes : from_k);
  if (from_k > 0) ptx::cp_async_bulk(to, stretch.k + offset, static_cast<std::uint32_t>(from_k), full);
  if (from_k < bytes) {
    ptx::cp_async_bulk(to + from_k, stretch.v + (offset + from_k - stretch.even_bytes),
                       static_cast<std::uint32_t>(bytes - from_k), full);
  }
}
#endif

// Dynamic shared memory: `stages` pieces of kPieceBytes or less, then a barrier for each.
__global__ void __launch_bounds__(kBulkThreads) bulk_read_kernel(const Stretch stretch, const Cut cut) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) unsigned char ring[];
  read_odd_bytes(stretch);
  if (threadIdx.x == 0) {
    ptx::Mbarrier* const full = reinterpret_cast<ptx::Mbarrier*>(ring + cut.stages * cut.piece);
    for (int i = 0; i < cut.stages; ++i) ptx::mbarrier_init(full + i, 1);
    ptx::fence_mbarrier_init();
    ptx::fence_proxy_async();

    const std::int64_t share_at = std::int64_t{blockIdx.x} * cut.share;
    std::int64_t own_rest = cut.rest - share_at;
    own_rest = own_rest < 0 ? 0 : (own_rest > cut.share ? cut.share : own_rest);
    const std::int64_t round_bytes = std::int64_t{gridDim.x} * cut.piece;
    const std::int64_t copies = cut.rounds + (own_rest > 0 ? 1 : 0);
    // A copy's turn waits for the one that had the stage before it; the turns past the last copy wait for the
    // stages still open, since a CTA must not end before what it asked for has landed.
    int stage = 0;
    std::uint32_t parity = 0;  // of the stage's use before this one
    for (std::int64_t copy = 0; copy < copies + cut.stages; ++copy) {
      if (copy >= cut.stages) ptx::mbarrier_wait_parity(full + stage, parity);
      if (copy < cut.rounds) {
        copy_piece(ring + stage * cut.piece, stretch,
                   copy * round_bytes + std::int64_t{blockIdx.x} * cut.piece, cut.piece, full + stage);
      } else if (copy < copies) {
        copy_piece(ring + stage * cut.piece, stretch, cut.rounds * round_bytes + share_at, own_rest,
                   full + stage);
      }
      if (++stage == cut.stages) {
        stage = 0;
        if (copy >= cut.stages) parity ^= 1;
      }
    }
  }
#endif
}

// What the CTAs' threads read of `lines`, all bits of it mixed.
__device__ __forceinline__ unsigned read_lines(const uint4* lines, std::int64_t count) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  unsigned seen = 0;
#pragma unroll 1
  for (; i + (kPlainUnroll - 1) * stride < count; i += kPlainUnroll * stride) {
    uint4 line[kPlainUnroll];
#pragma unroll
    for (int j = 0; j < kPlainUnroll; ++j) line[j] = __ldcg(lines + i + j * stride);
#pragma unroll
    for (int j = 0; j < kPlainUnroll; ++j) seen ^= line[j].x ^ line[j].y ^ line[j].z ^ line[j].w;
  }
#pragma unroll 1
  for (; i < count; i += stride) {
    const uint4 line = __ldcg(lines + i);
    seen ^= line.x ^ line.y ^ line.z ^ line.w;
  }
  return seen;
}

__global__ void __launch_bounds__(kPlainThreads, 3) plain_read_kernel(const Stretch stretch, unsigned* sink) {
  const std::int64_t count = stretch.even_bytes / 16;
  const unsigned seen = read_lines(reinterpret_cast<const uint4*>(stretch.k), count) ^
                        read_lines(reinterpret_cast<const uint4*>(stretch.v), count);
  read_odd_bytes(stretch);
  // Keeps the loads: whether it holds, only they can tell. The scratch it writes is nobody's.
  if (seen == 0x5eed1e55u) *sink = seen;
}

constexpr Axis kAxes[] = {
    {"piece", "bytes of a bulk copy, rounded down to a multiple of 128; 16384 when absent", 128, kPieceBytes},
    {"stages", "bulk copies in flight a CTA; 4 when absent", 1, kMaxStages},
    {"sm_multiple", "CTAs a multiprocessor; when absent 1, 2 from 32 MB on, and 3 with plain loads", 1,
     kMaxSmMultiple},
    {"plain", "1: 16-byte loads in place of bulk copies (always below sm_90)", 0, 1},
};

std::optional<std::string> unsupported(const Problem&, const DeviceInfo& device) {
  if (device.cc >= 80) return std::nullopt;
  return "needs compute capability 8.0 or later; this device has " + std::to_string(device.cc / 10) + "." +
         std::to_string(device.cc % 10);
}

// CTAs a multiprocessor, of rings of `ring_bytes`: see the head of this file.
std::int64_t default_sm_multiple(const Problem& problem, const DeviceInfo& device, std::int64_t ring_bytes) {
  constexpr std::int64_t kLongRead = 32 << 20;
  const bool fits = 2 * (ring_bytes + kReservedSmem) <= device.smem_per_sm;
  return 2 * problem.kv_bytes() >= kLongRead && fits ? 2 : 1;
}

PlanResult plan(const Problem& problem, const DeviceInfo& device, const TuningPoint& tuning) {
  LaunchPlan out;
  out.merge = "none";
  const std::int64_t asked_plain = tuning.get("plain").value_or(device.cc >= 90 ? 0 : 1);
  if (asked_plain == 0 && device.cc < 90) return Unsupported{"bulk copies need compute capability 9.0"};
  if (asked_plain != 0) {
    out.grid.x = device.sms * tuning.get("sm_multiple").value_or(3);
    out.block.x = kPlainThreads;
    out.scratch_bytes = 256;
    return out;
  }
  const std::int64_t piece = tuning.get("piece").value_or(kPieceBytes) / kShareUnit * kShareUnit;
  out.stages = tuning.get("stages").value_or(kDefaultStages);
  out.block.x = kBulkThreads;
  out.dynamic_smem = out.stages * (piece + kBarrierBytes);
  const std::int64_t sm_multiple =
      tuning.get("sm_multiple").value_or(default_sm_multiple(problem, device, out.dynamic_smem));
  out.grid.x = device.sms * sm_multiple;
  const std::int64_t on_sm = sm_multiple * (out.dynamic_smem + kReservedSmem);
  if (out.dynamic_smem > device.smem_per_block || on_sm > device.smem_per_sm) {
    return Unsupported{std::to_string(out.stages) + " stages of " + std::to_string(piece) + " bytes, " +
                       std::to_string(sm_multiple) + " CTAs a multiprocessor, need " +
                       std::to_string(out.dynamic_smem) + " bytes of shared memory a CTA and " +
                       std::to_string(on_sm) + " a multiprocessor; the device has " +
                       std::to_string(device.smem_per_block) + " and " + std::to_string(device.smem_per_sm)};
  }
  return out;
}

class BulkRead final : public Prepared {
 public:
  BulkRead(const Stretch& stretch, const LaunchPlan& launch_plan)
      : stretch_(stretch),
        cut_(cut_stretch(2 * stretch.even_bytes, launch_plan.grid.x,
                         static_cast<int>(launch_plan.dynamic_smem / launch_plan.stages - kBarrierBytes),
                         static_cast<int>(launch_plan.stages))),
        grid_(static_cast<unsigned>(launch_plan.grid.x)),
        smem_(static_cast<std::size_t>(launch_plan.dynamic_smem)) {
    FDBENCH_CUDA_CHECK(cudaFuncSetAttribute(bulk_read_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(smem_)));
  }
  void launch(const LaunchContext& context) override {
    bulk_read_kernel<<<grid_, kBulkThreads, smem_, static_cast<cudaStream_t>(context.stream)>>>(stretch_,
                                                                                                cut_);
    FDBENCH_CUDA_CHECK_LAUNCH(bulk_read_kernel);
  }

 private:
  Stretch stretch_;
  Cut cut_;
  unsigned grid_;
  std::size_t smem_;
};

class PlainRead final : public Prepared {
 public:
  PlainRead(const Stretch& stretch, const LaunchPlan& launch_plan, void* scratch)
      : stretch_(stretch),
        grid_(static_cast<unsigned>(launch_plan.grid.x)),
        sink_(static_cast<unsigned*>(scratch)) {}
  void launch(const LaunchContext& context) override {
    plain_read_kernel<<<grid_, kPlainThreads, 0, static_cast<cudaStream_t>(context.stream)>>>(stretch_,
                                                                                              sink_);
    FDBENCH_CUDA_CHECK_LAUNCH(plain_read_kernel);
  }

 private:
  Stretch stretch_;
  unsigned grid_;
  unsigned* sink_;
};

std::unique_ptr<Prepared> prepare(const DecodeArgs& args, const LaunchPlan& launch_plan, const DeviceInfo&) {
  const std::int64_t row = args.kv_heads * args.dim;
  if (args.k_head_stride != args.dim || args.v_head_stride != args.dim || args.k_seq_stride != row ||
      args.v_seq_stride != row) {
    throw Error(Exit::failed, "cuda_bulk_read reads K and V as one stretch each: they must be dense");
  }
  const std::int64_t bytes = args.seq * row * element_bytes(args.dtype);
  const Stretch stretch{static_cast<const char*>(args.k), static_cast<const char*>(args.v), bytes / 16 * 16,
                        static_cast<int>(bytes % 16)};
  if (launch_plan.dynamic_smem == 0) return std::make_unique<PlainRead>(stretch, launch_plan, args.scratch);
  return std::make_unique<BulkRead>(stretch, launch_plan);
}

constexpr KernelResources bulk_resources(int cc, int dynamic_smem) {
  return {.kernel = "bulk_read_kernel",
          .cc = cc,
          .registers = 40,
          .dynamic_smem = dynamic_smem,
          .threads = kBulkThreads,
          .ctas_per_sm = 1};
}
constexpr KernelResources plain_resources(int cc) {
  return {
      .kernel = "plain_read_kernel", .cc = cc, .registers = 40, .threads = kPlainThreads, .ctas_per_sm = 3};
}

constexpr int kLargestRing = static_cast<int>(kMaxStages * (kPieceBytes + kBarrierBytes));
constexpr int kBlockLimit120 = 99 * 1024;

constexpr KernelResources kResources[] = {
    plain_resources(80),  plain_resources(86),
    plain_resources(89),  bulk_resources(90, kLargestRing),
    plain_resources(90),  bulk_resources(100, kLargestRing),
    plain_resources(100), bulk_resources(120, kBlockLimit120),
    plain_resources(120),
};

}  // namespace

namespace variants {

extern const Variant cuda_bulk_read;
constinit const Variant cuda_bulk_read = {
    .name = "cuda_bulk_read",
    .backend = BackendKind::cuda,
    .role = Role::roof,
    .summary = "reads K and V once by contiguous bulk copies (plain loads below sm_90) and computes nothing",
    .axes = kAxes,
    .resources = kResources,
    .unsupported = unsupported,
    .plan = plan,
    .prepare = prepare,
};

}  // namespace variants
}  // namespace fdbench
