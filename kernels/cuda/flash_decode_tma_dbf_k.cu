// flash_decode_tma_dbf_k: split-KV decode attention with two tiles of K and one of V in shared memory.
//
// Designed for a small Blackwell part, an RTX 5060 laptop GPU (sm_120: 26 multiprocessors, 384 GB/s, 99 KB of
// shared memory a CTA, 100 KB a multiprocessor): its 49,176 bytes at dim 128 are above the 48 KB that a CTA
// gets unasked, so that the launch opts in, and two CTAs still fit a multiprocessor. Runs on everything from
// sm_90 up. It is the seed kernel that the article ends on: a baseline, not a contender on a large GPU.
//
// As flash_decode_tma, but K is double-buffered: a tile of K is asked for two tiles ahead, so that scoring
// never waits for what was just released, and one CTA barrier a tile is enough. Behind it the tile's K buffer
// and V are free: the next V travels while the next K, long there, is scored.

#include "detail/seed_launch.cuh"

namespace fdbench {
namespace {

constexpr seed::Kernel kKernel{.name = "flash_decode_tma_dbf_k", .k_buffers = 2};

template <int kDim>
__global__ void __launch_bounds__(seed::kThreads)
    flash_decode_tma_dbf_k_kernel(const __grid_constant__ CUtensorMap k_map,
                                  const __grid_constant__ CUtensorMap v_map, const seed::Params params) {
  constexpr int kTileElements = seed::kTile * kDim;
  extern __shared__ __align__(128) unsigned char smem[];
  __nv_bfloat16* const k_tiles = reinterpret_cast<__nv_bfloat16*>(smem);  // two
  __nv_bfloat16* const v_tile = k_tiles + 2 * kTileElements;
  ptx::Mbarrier* const k_full = reinterpret_cast<ptx::Mbarrier*>(v_tile + kTileElements);  // two
  ptx::Mbarrier* const v_full = k_full + 2;
  const bool loads = threadIdx.x == 0;

  seed::TileCursor now(params);
  seed::TileCursor next = now;
  next.advance(params);
  if (loads) {
    ptx::mbarrier_init(&k_full[0], 1);
    ptx::mbarrier_init(&k_full[1], 1);
    ptx::mbarrier_init(v_full, 1);
    ptx::fence_mbarrier_init();
    ptx::fence_proxy_async();
    seed::load_tile<kDim>(k_tiles, &k_map, now, &k_full[0]);
    seed::load_tile<kDim>(v_tile, &v_map, now, v_full);
    if (!next.done(params)) seed::load_tile<kDim>(k_tiles + kTileElements, &k_map, next, &k_full[1]);
  }
  __syncthreads();

  seed::Attention<kDim> attention;
  bool first = true;  // tile of the item
  for (std::uint32_t tile = 0; !now.done(params); ++tile) {
    const std::uint32_t buffer = tile & 1;
    __nv_bfloat16* const k_tile = k_tiles + buffer * kTileElements;
    if (first) attention.begin(params, now.item());
    const bool last = next.item() != now.item();

    ptx::mbarrier_wait_parity(&k_full[buffer], (tile >> 1) & 1);
    attention.score(k_tile, now.rows());
    ptx::mbarrier_wait_parity(v_full, tile & 1);
    attention.accumulate(v_tile, now.rows());
    __syncthreads();  // this K and V are free

    seed::TileCursor after = next;
    if (!after.done(params)) after.advance(params);
    if (loads && !after.done(params)) seed::load_tile<kDim>(k_tile, &k_map, after, &k_full[buffer]);
    if (last) {
      attention.finish(params, now.item(), reinterpret_cast<float*>(v_tile));
      ptx::fence_proxy_async();  // V was written by the threads, and the copy engine comes next
      __syncthreads();
    }
    if (loads && !next.done(params)) seed::load_tile<kDim>(v_tile, &v_map, next, v_full);

    now = next;
    next = after;
    first = last;
  }
}

constexpr KernelResources kResources[] = {
    seed::resources(kKernel, "flash_decode_tma_dbf_k_kernel", 90, 64, 4),  device::combine_resources(90),
    seed::resources(kKernel, "flash_decode_tma_dbf_k_kernel", 100, 72, 4), device::combine_resources(100),
    seed::resources(kKernel, "flash_decode_tma_dbf_k_kernel", 120, 72, 2), device::combine_resources(120),
};

std::optional<std::string> unsupported(const Problem& problem, const DeviceInfo& device) {
  return seed::unsupported(kKernel, problem, device);
}

PlanResult plan(const Problem& problem, const DeviceInfo& device, const TuningPoint& tuning) {
  return seed::plan(kKernel, problem, device, tuning);
}

std::unique_ptr<Prepared> prepare(const DecodeArgs& args, const LaunchPlan& launch_plan, const DeviceInfo&) {
  return std::make_unique<seed::PreparedTma>(
      args.dim == 64 ? flash_decode_tma_dbf_k_kernel<64> : flash_decode_tma_dbf_k_kernel<128>, args,
      launch_plan);
}

}  // namespace

namespace variants {

extern const Variant flash_decode_tma_dbf_k;
constinit const Variant flash_decode_tma_dbf_k = {
    .name = kKernel.name,
    .backend = BackendKind::cuda,
    .role = Role::candidate,
    .summary = "the seed kernel: TMA, two K tiles and one V tile, second kernel merges (designed for sm_120)",
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
