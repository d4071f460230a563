// Flash decoding on all cores. The sequence is cut into chunks; a rank takes a chunk and streams its rows of
// K and V once, for all heads, with online softmax; the chunks' partials are merged in order, so that the
// result does not depend on which rank took what.
#include <limits>

#include "core/variant.h"
#include "cpu/detail/simd_targets.h"
#include "cpu/detail/split_kv_plan.h"
#include "cpu/detail/work_queue.h"

namespace fdbench::variants {
namespace {

class SplitKv final : public Prepared {
 public:
  SplitKv(const DecodeArgs& args, const LaunchPlan& plan)
      : args_(args),
        plan_(plan),
        threads_(static_cast<int>(plan.block.x)),
        at_(cpu::lay_out_split_kv(args.heads, args.kv_heads, args.dim, plan)),
        base_(static_cast<float*>(args.scratch)),
        kernels_(cpu::split_kv_kernels(plan.isa, args)),
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
  cpu::SplitKvLayout at_;
  float* base_;
  cpu::SplitKvKernels kernels_;
  cpu::WorkQueue queue_;
};

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
    .plan = cpu::plan_split_kv,
    .prepare = [](const DecodeArgs& args, const LaunchPlan& plan, const DeviceInfo&)
        -> std::unique_ptr<Prepared> { return std::make_unique<SplitKv>(args, plan); },
};

}  // namespace fdbench::variants
