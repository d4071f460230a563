// flash_decode_cp_async: split-KV decode attention over cp.async, for GPUs that have no copy engine.
// fdbench: sm_80+
//
// Designed for Ampere and Ada, the A100 (sm_80) foremost: two CTAs of 64 KB each a multiprocessor there, one
// on sm_86 and sm_89. It runs on later ones too.
//
// Work is cut, tiles are computed and chunks are merged as by flash_decode_tma (detail/seed_plan.h,
// seed_tile.cuh, combine.cuh). The tiles, 64 tokens of K or of V, come through a ring of four stages that
// holds K and V in turn: step n works on stage n % 4 while the next three are under way, and every step has
// one CTA barrier, which makes its stage visible and frees the one before.

#include "detail/async_copy.cuh"
#include "detail/seed_launch.cuh"

namespace fdbench {
namespace {

constexpr seed::Kernel kKernel{.name = "flash_decode_cp_async", .k_buffers = 2, .v_buffers = 2, .tma = false};

struct Cache {
  const __nv_bfloat16* base;  // [seq, kv_heads, dim]
  std::int64_t seq_stride;
  std::int64_t head_stride;
};

// Starts the copy of the cursor's tile, every thread its share, as one group; the group is empty past the
// last tile. Rows that are not the item's are written as zeros and not read.
template <int kDim>
__device__ __forceinline__ void load_tile(__nv_bfloat16* tile, const Cache& cache,
                                          const seed::TileCursor& cursor, const seed::Params& params) {
  using L = seed::Layout<kDim>;
  if (!cursor.done(params)) {
    const int column = static_cast<int>(threadIdx.x) % L::kLanes * L::kVector;
    const int first = static_cast<int>(threadIdx.x) / L::kLanes;
    const __nv_bfloat16* const from =
        cache.base + cursor.row() * cache.seq_stride + cursor.kv_head() * cache.head_stride + column;
#pragma unroll
    for (int i = 0; i < L::kRows; ++i) {
      const int row = first + i * L::kRowsAtOnce;
      const bool ours = row < cursor.rows();
      ptx::cp_async_cg_16_zfill(tile + row * kDim + column, ours ? from + row * cache.seq_stride : from,
                                ours ? 16 : 0);
    }
  }
  ptx::cp_async_commit_group();
}

template <int kDim>
__global__ void __launch_bounds__(seed::kThreads)
    flash_decode_cp_async_kernel(const Cache k, const Cache v, const seed::Params params) {
  constexpr int kTileElements = seed::kTile * kDim;
  extern __shared__ __align__(128) unsigned char smem[];
  __nv_bfloat16* const ring = reinterpret_cast<__nv_bfloat16*>(smem);

  seed::TileCursor now(params);
  seed::TileCursor next = now;
  next.advance(params);
  load_tile<kDim>(ring, k, now, params);
  load_tile<kDim>(ring + kTileElements, v, now, params);
  load_tile<kDim>(ring + 2 * kTileElements, k, next, params);

  seed::Attention<kDim> attention;
  bool first = true;  // tile of the item
  for (std::uint32_t tile = 0; !now.done(params); ++tile) {
    // This tile's two stages, and the other tile's two.
    __nv_bfloat16* const here = ring + (tile & 1) * 2 * kTileElements;
    __nv_bfloat16* const there = ring + (~tile & 1) * 2 * kTileElements;
    if (first) attention.begin(params, now.item());
    const bool last = next.item() != now.item();

    ptx::cp_async_wait_group<2>();
    __syncthreads();  // K is here; the last tile's V is free
    load_tile<kDim>(there + kTileElements, v, next, params);
    attention.score(here, now.rows());

    seed::TileCursor after = next;
    if (!after.done(params)) after.advance(params);
    ptx::cp_async_wait_group<2>();
    __syncthreads();  // V is here; K is free
    load_tile<kDim>(here, k, after, params);
    attention.accumulate(here + kTileElements, now.rows());
    if (last) {
      __syncthreads();
      // In V's stage, which the next step's barrier frees as if V had been read until now.
      attention.finish(params, now.item(), reinterpret_cast<float*>(here + kTileElements));
    }

    now = next;
    next = after;
    first = last;
  }
}

class PreparedCpAsync final : public Prepared {
 public:
  PreparedCpAsync(const DecodeArgs& args, const LaunchPlan& plan)
      : kernel_(args.dim == 64 ? flash_decode_cp_async_kernel<64> : flash_decode_cp_async_kernel<128>),
        k_{static_cast<const __nv_bfloat16*>(args.k), args.k_seq_stride, args.k_head_stride},
        v_{static_cast<const __nv_bfloat16*>(args.v), args.v_seq_stride, args.v_head_stride},
        params_(seed::decode_params(args, plan)),
        combine_(args, plan, params_),
        grid_(seed::grid_of(plan)),
        smem_(static_cast<std::size_t>(plan.dynamic_smem)) {
    for (const Cache& cache : {k_, v_}) {
      seed::require_aligned("k and v", cache.base, cache.seq_stride);
      seed::require_aligned("k and v", cache.base, cache.head_stride);
    }
    seed::allow_smem(kernel_, plan.dynamic_smem);
  }

  void launch(const LaunchContext& context) override {
    const cudaStream_t stream = static_cast<cudaStream_t>(context.stream);
    if (params_.seq > 0) {
      kernel_<<<grid_, seed::kThreads, smem_, stream>>>(k_, v_, params_);
      FDBENCH_CUDA_CHECK_LAUNCH(flash_decode_cp_async_kernel);
    }
    combine_.launch(stream);
  }

 private:
  void (*kernel_)(Cache, Cache, seed::Params);
  Cache k_, v_;
  seed::Params params_;
  seed::Combine combine_;
  dim3 grid_;
  std::size_t smem_;
};

constexpr KernelResources kResources[] = {
    seed::resources(kKernel, "flash_decode_cp_async_kernel", 80, 72, 2),   device::combine_resources(80),
    seed::resources(kKernel, "flash_decode_cp_async_kernel", 90, 72, 3),   device::combine_resources(90),
    seed::resources(kKernel, "flash_decode_cp_async_kernel", 100, 128, 3), device::combine_resources(100),
    seed::resources(kKernel, "flash_decode_cp_async_kernel", 120, 136, 1), device::combine_resources(120),
};

std::optional<std::string> unsupported(const Problem& problem, const DeviceInfo& device) {
  return seed::unsupported(kKernel, problem, device);
}

PlanResult plan(const Problem& problem, const DeviceInfo& device, const TuningPoint& tuning) {
  return seed::plan(kKernel, problem, device, tuning);
}

std::unique_ptr<Prepared> prepare(const DecodeArgs& args, const LaunchPlan& launch_plan, const DeviceInfo&) {
  return std::make_unique<PreparedCpAsync>(args, launch_plan);
}

}  // namespace

namespace variants {

extern const Variant flash_decode_cp_async;
constinit const Variant flash_decode_cp_async = {
    .name = kKernel.name,
    .backend = BackendKind::cuda,
    .role = Role::candidate,
    .summary = "the seed's split and merge over cp.async, a ring of four tiles (designed for sm_80)",
    .tolerance = 5e-3,
    .writes_lse = true,
    .axes = seed::kAxes,
    .resources = kResources,
    .unsupported = unsupported,
    .plan = plan,
    .prepare = prepare,
};

}  // namespace variants
}  // namespace fdbench
