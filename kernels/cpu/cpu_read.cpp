// The roof: reads the bytes of K and V once on all cores and computes nothing.
#include <atomic>

#include "core/error.h"
#include "core/variant.h"
#include "cpu/detail/simd_targets.h"
#include "cpu/detail/work_queue.h"

namespace fdbench::variants {
namespace {

// Bytes of each tensor that a rank takes at a time: eight blocks a rank where that is less than 256 KiB.
std::int64_t block_bytes(std::int64_t tensor_bytes, std::int64_t threads) {
  constexpr std::int64_t kLeast = 4096, kMost = std::int64_t{1} << 18;
  return std::clamp(cpu::round_up(tensor_bytes / (threads * 8), kLeast), kLeast, kMost);
}

class Read final : public Prepared {
 public:
  Read(const DecodeArgs& args, const LaunchPlan& plan)
      : tensors_{static_cast<const char*>(args.k), static_cast<const char*>(args.v)},
        bytes_(args.seq * args.kv_heads * args.dim * element_bytes(args.dtype)),
        threads_(static_cast<int>(plan.block.x)),
        block_(block_bytes(bytes_, threads_)),
        queue_(threads_),
        read_(cpu::read_bytes_kernel(plan.isa)),
        digest_(static_cast<std::uint64_t*>(args.scratch)) {}

  void launch(const LaunchContext& context) override {
    const std::int64_t blocks = (bytes_ + block_ - 1) / block_;
    queue_.reset(blocks);
    std::atomic<std::uint64_t> digest{0};
    context.team->run(threads_, [&](int rank) {
      std::uint64_t sum = 0;
      for (std::int64_t block; (block = queue_.next(rank)) >= 0;) {
        const std::int64_t from = block * block_;
        const std::int64_t count = std::min(block_, bytes_ - from);
        for (const char* tensor : tensors_) sum += read_(tensor + from, count);
      }
      digest.fetch_add(sum, std::memory_order_relaxed);
    });
    *digest_ = digest.load(std::memory_order_relaxed);
  }

 private:
  const char* tensors_[2];
  std::int64_t bytes_;  // of each tensor
  int threads_;
  std::int64_t block_;
  cpu::WorkQueue queue_;
  cpu::ReadBytes read_;
  std::uint64_t* digest_;  // the sum of all words: shows that each was read
};

PlanResult plan_read(const Problem& problem, const DeviceInfo& device, const TuningPoint&) {
  LaunchPlan plan;
  plan.block.x = std::max(1, device.sms);
  const std::int64_t block = block_bytes(problem.kv_bytes(), plan.block.x);
  plan.grid.x = std::max<std::int64_t>(1, (problem.kv_bytes() + block - 1) / block);
  plan.merge = "none";
  plan.isa = cpu::best_vectors(device);
  plan.scratch_bytes = sizeof(std::uint64_t);
  return plan;
}

std::unique_ptr<Prepared> prepare_read(const DecodeArgs& args, const LaunchPlan& plan, const DeviceInfo&) {
  const std::int64_t row = args.kv_heads * args.dim;
  if (args.k_seq_stride != row || args.v_seq_stride != row || args.k_head_stride != args.dim ||
      args.v_head_stride != args.dim) {
    throw Error(Exit::failed, "cpu_read reads dense K and V, not strided ones");
  }
  return std::make_unique<Read>(args, plan);
}

}  // namespace

extern const Variant cpu_read;
constinit const Variant cpu_read = {
    .name = "cpu_read",
    .backend = BackendKind::cpu,
    .role = Role::roof,
    .summary = "streams the bytes of K and V on all cores",
    .unsupported = [](const Problem& problem, const DeviceInfo&) -> std::optional<std::string> {
      if (problem.dim % 32 == 0) return std::nullopt;
      return "dim must be a multiple of 32, not " + std::to_string(problem.dim);
    },
    .plan = plan_read,
    .prepare = prepare_read,
};

}  // namespace fdbench::variants
