// Flash decoding on all cores. The sequence is cut into chunks; a rank takes a chunk and streams its rows of
// K and V once, for all heads, with online softmax; the chunks' partials are merged in order, so that the
// result does not depend on which rank took what.
#include <limits>

#include "core/variant.h"
#include "cpu/detail/simd_targets.h"
#include "cpu/detail/split_kv_amx.h"
#include "cpu/detail/touch.h"
#include "cpu/detail/work_queue.h"

namespace fdbench::variants {
namespace {

// Scratch, in this order; each part starts on a cache line. Elements are floats.
struct Layout {
  std::int64_t acc = 0;   // [splits, heads, dim]
  std::int64_t max = 0;   // [splits, heads]
  std::int64_t sum = 0;   // [splits, heads]
  std::int64_t rank = 0;  // [threads] of rank_size
  // Of one rank:
  std::int64_t query = 0;   // query_floats
  std::int64_t scores = 0;  // work_floats
  std::int64_t row = 0;     // [dim]
  std::int64_t rank_size = 0;
  std::int64_t end = 0;
};

Layout lay_out(std::int64_t heads, std::int64_t kv_heads, std::int64_t dim, const LaunchPlan& plan) {
  const auto lines = [](std::int64_t floats) { return cpu::round_up(floats, cpu::kLine / 4); };
  Layout at;
  at.max = plan.splits * heads * dim;
  at.sum = at.max + lines(plan.splits * heads);
  at.rank = at.sum + lines(plan.splits * heads);
  at.scores = lines(cpu::query_floats(heads, kv_heads, dim));
  at.row = at.scores + lines(cpu::work_floats(heads, kv_heads, dim, plan.tile));
  at.rank_size = lines(at.row + dim);
  at.end = at.rank + plan.block.x * at.rank_size;
  return at;
}

class SplitKv final : public Prepared {
 public:
  SplitKv(const DecodeArgs& args, const LaunchPlan& plan)
      : args_(args),
        plan_(plan),
        threads_(static_cast<int>(plan.block.x)),
        at_(lay_out(args.heads, args.kv_heads, args.dim, plan)),
        base_(static_cast<float*>(args.scratch)),
        kernels_(cpu::split_kv_kernels(args)),
        queue_(threads_) {}

  void launch(const LaunchContext& context) override {
    if (args_.seq == 0) {
      write_nothing();
      return;
    }
    queue_.reset(plan_.splits);
    context.team->run(threads_, [this](int rank) { attend(rank); });
    context.team->run(threads_, [this](int rank) { merge(rank); });
  }

 private:
  void attend(int rank) {
    float* const own = base_ + at_.rank + rank * at_.rank_size;
    kernels_.load_query(args_, own + at_.query);
    for (std::int64_t split; (split = queue_.next(rank)) >= 0;) {
      cpu::ChunkJob job;
      job.args = &args_;
      job.begin = split * plan_.chunk;
      job.end = std::min(args_.seq, job.begin + plan_.chunk);
      job.tile = plan_.tile;
      job.query = own + at_.query;
      job.scores = own + at_.scores;
      job.max = base_ + at_.max + split * args_.heads;
      job.sum = base_ + at_.sum + split * args_.heads;
      job.acc = base_ + at_.acc + split * args_.heads * args_.dim;
      kernels_.run_chunk(job);
    }
  }

  void merge(int rank) {
    const cpu::Range heads = cpu::part_of(args_.heads, rank, threads_);
    cpu::MergeJob job;
    job.args = &args_;
    job.splits = plan_.splits;
    job.head_begin = heads.begin;
    job.head_end = heads.end;
    job.max = base_ + at_.max;
    job.sum = base_ + at_.sum;
    job.acc = base_ + at_.acc;
    job.row = base_ + at_.rank + rank * at_.rank_size + at_.row;
    kernels_.merge(job);
  }

  void write_nothing() {
    for (std::int64_t h = 0; h < args_.heads; ++h) {
      auto* const o = static_cast<std::uint16_t*>(args_.o) + h * args_.o_head_stride;
      std::fill(o, o + args_.dim, std::uint16_t{0});
      if (args_.lse) args_.lse[h] = -std::numeric_limits<float>::infinity();
    }
  }

  DecodeArgs args_;
  LaunchPlan plan_;
  int threads_;
  Layout at_;
  float* base_;
  cpu::SplitKvKernels kernels_;
  cpu::WorkQueue queue_;
};

// About sixteen chunks a thread, so that one thread held up leaves little for the others to wait for; but at
// least 32 tokens for each query head of a group, which keeps the partials (4 bytes a dim and query head,
// against 4 for a token of K and V) within 3 % of the traffic, and 512 KiB of K and V, over which the start
// of the streams is spread; and no longer than a thread's even share. Long chunks are rounded up to what
// matrix tiles take at once, where those would be used and every thread has so many chunks that shares stay
// even. x86 machines without tiles plan alike.
std::int64_t default_chunk(const Problem& problem, std::int64_t threads) {
  const auto ceil_div = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  const std::int64_t token = 2 * problem.kv_heads * problem.dim * element_bytes(problem.dtype);
  const std::int64_t balanced = ceil_div(problem.seq, threads * 16);
  const std::int64_t thrifty = std::max(32 * problem.group(), ceil_div(std::int64_t{512} << 10, token));
  const std::int64_t parallel = ceil_div(problem.seq, threads);
  const std::int64_t chunk = std::max<std::int64_t>(1, std::min(std::max(balanced, thrifty), parallel));
  const bool tiles =
      cpu::amx_applies(problem.dtype, problem.group()) && cpu::amx_pays(problem.group(), problem.kv_bytes());
  const std::int64_t whole = cpu::whole_tile(chunk);
  return tiles && chunk >= 128 && ceil_div(problem.seq, whole) >= 8 * threads ? whole : chunk;
}

// Tokens whose scores are kept at once. Ungrouped: scores take a quarter of the first-level cache. Grouped
// rows bring more work each, and long streams count for more than scores that are near.
std::int64_t tile_tokens(const Problem& problem, const DeviceInfo& device) {
  constexpr std::int64_t kLeast = 16, kMost = 256;
  if (problem.group() > 1) return kMost;
  return std::clamp(device.l1d_bytes / 4 / (problem.heads * 4) / 16 * 16, kLeast, kMost);
}

PlanResult plan_split_kv(const Problem& problem, const DeviceInfo& device, const TuningPoint& tuning) {
  const std::int64_t cores = std::max(1, device.sms);
  const std::int64_t threads = tuning.get("threads").value_or(cores);
  if (threads > cores) {
    return Unsupported{"threads=" + std::to_string(threads) + " exceeds the " + std::to_string(cores) +
                       " cores there are"};
  }
  LaunchPlan plan;
  const auto chunk = tuning.get("chunk");
  plan.chunk = chunk.value_or(default_chunk(problem, threads));
  plan.rule = chunk ? "" : "cpu_balanced";
  plan.splits = problem.seq == 0 ? 1 : (problem.seq - 1) / plan.chunk + 1;
  plan.tile = tile_tokens(problem, device);
  plan.grid.x = plan.splits;
  plan.block.x = std::min(threads, plan.splits);
  plan.merge = "team";
  plan.scratch_bytes = lay_out(problem.heads, problem.kv_heads, problem.dim, plan).end *
                       static_cast<std::int64_t>(sizeof(float));
  return plan;
}

constexpr Axis kAxes[] = {
    {"chunk", "tokens a work item covers; from sequence and threads when absent", 1, 0},
    {"threads", "threads of the team; all cores when absent", 1, 0},
};

}  // namespace

extern const Variant cpu_split_kv;
constinit const Variant cpu_split_kv = {
    .name = "cpu_split_kv",
    .backend = BackendKind::cpu,
    .role = Role::candidate,
    .summary = "flash decoding: chunks of the sequence on all cores, one read of K and V for all heads",
    .tolerance = 4e-3,
    .writes_lse = true,
    .axes = kAxes,
    .unsupported = cpu::unsupported_dim,
    .plan = plan_split_kv,
    .prepare = [](const DecodeArgs& args, const LaunchPlan& plan, const DeviceInfo&)
        -> std::unique_ptr<Prepared> { return std::make_unique<SplitKv>(args, plan); },
};

}  // namespace fdbench::variants
