// flash_decode_tma: split-KV decode attention with one tile of K and one of V in shared memory.
//
// Designed for a small Blackwell part, an RTX 5060 laptop GPU (sm_120: 26 multiprocessors, 384 GB/s, 99 KB of
// shared memory a CTA, 100 KB a multiprocessor), which several CTAs of it together keep busy; runs on
// everything from sm_90 up. It is the seed kernel: a baseline, not a contender on a large GPU.
//
// A CTA takes chunks of one query head (detail/seed_plan.h), 64 tokens at a time: TMA brings the box of K and
// the box of V, each completing on its own mbarrier; 128 threads score K, add V to a running softmax in base
// 2 (detail/seed_tile.cuh) and write a normalised partial output with its log2-sum. A second kernel merges
// the chunks (detail/combine.cuh). Grouped heads read their KV head once for each query head.
//
// A tile is loaded anew only behind a CTA barrier that its last reader has passed: the next K travels while V
// is added, the next V while K is scored.

#include "detail/seed_launch.cuh"

namespace fdbench {
namespace {

constexpr seed::Kernel kKernel{.name = "flash_decode_tma", .k_buffers = 1};

template <int kDim>
__global__ void __launch_bounds__(seed::kThreads)
    flash_decode_tma_kernel(const __grid_constant__ CUtensorMap k_map,
                            const __grid_constant__ CUtensorMap v_map, const seed::Params params) {
  constexpr int kTileElements = seed::kTile * kDim;
  extern __shared__ __align__(128) unsigned char smem[];
  __nv_bfloat16* const k_tile = reinterpret_cast<__nv_bfloat16*>(smem);
  __nv_bfloat16* const v_tile = k_tile + kTileElements;
  ptx::Mbarrier* const k_full = reinterpret_cast<ptx::Mbarrier*>(v_tile + kTileElements);
  ptx::Mbarrier* const v_full = k_full + 1;
  const bool loads = threadIdx.x == 0;

  seed::TileCursor now(params);
  seed::TileCursor next = now;
  next.advance(params);
  if (loads) {
    ptx::mbarrier_init(k_full, 1);
    ptx::mbarrier_init(v_full, 1);
    ptx::fence_mbarrier_init();
    ptx::fence_proxy_async();
    seed::load_tile<kDim>(k_tile, &k_map, now, k_full);
    seed::load_tile<kDim>(v_tile, &v_map, now, v_full);
  }
  __syncthreads();

  seed::Attention<kDim> attention;
  std::uint32_t parity = 0;
  bool first = true;  // tile of the item
  while (!now.done(params)) {
    if (first) attention.begin(params, now.item());
    const bool last = next.item() != now.item();

    ptx::mbarrier_wait_parity(k_full, parity);
    attention.score(k_tile, now.rows());
    __syncthreads();  // K is free
    if (loads && !next.done(params)) seed::load_tile<kDim>(k_tile, &k_map, next, k_full);

    ptx::mbarrier_wait_parity(v_full, parity);
    attention.accumulate(v_tile, now.rows());
    __syncthreads();  // V is free
    if (last) {
      attention.finish(params, now.item(), reinterpret_cast<float*>(v_tile));
      ptx::fence_proxy_async();  // V was written by the threads, and the copy engine comes next
      __syncthreads();
    }
    if (loads && !next.done(params)) seed::load_tile<kDim>(v_tile, &v_map, next, v_full);

    now = next;
    next.advance(params);
    first = last;
    parity ^= 1;
  }
}

constexpr KernelResources kResources[] = {
    seed::resources(kKernel, "flash_decode_tma_kernel", 90, 64, 6),  device::combine_resources(90),
    seed::resources(kKernel, "flash_decode_tma_kernel", 100, 72, 6), device::combine_resources(100),
    seed::resources(kKernel, "flash_decode_tma_kernel", 120, 80, 3), device::combine_resources(120),
};

std::optional<std::string> unsupported(const Problem& problem, const DeviceInfo& device) {
  return seed::unsupported(kKernel, problem, device);
}

PlanResult plan(const Problem& problem, const DeviceInfo& device, const TuningPoint& tuning) {
  return seed::plan(kKernel, problem, device, tuning);
}

std::unique_ptr<Prepared> prepare(const DecodeArgs& args, const LaunchPlan& launch_plan, const DeviceInfo&) {
  return std::make_unique<seed::PreparedTma>(
      args.dim == 64 ? flash_decode_tma_kernel<64> : flash_decode_tma_kernel<128>, args, launch_plan);
}

}  // namespace

namespace variants {

extern const Variant flash_decode_tma;
constinit const Variant flash_decode_tma = {
    .name = kKernel.name,
    .backend = BackendKind::cuda,
    .role = Role::candidate,
    .summary = "the seed kernel: TMA, one K and one V tile, second kernel merges (designed for sm_120)",
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
