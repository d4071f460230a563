#include "backend/cpu/cpu_backend.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

#include "backend/cpu/host_topology.h"
#include "backend/cpu/pinned_team.h"
#include "core/error.h"

namespace fdbench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kLarge = std::int64_t{4} << 20;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kAlignment = 256;
constexpr std::int64_t kLine = 64;

DeviceInfo describe(const HostTopology& host, std::vector<std::string> isas) {
  DeviceInfo info;
  info.kind = BackendKind::cpu;
  info.name = host.cpu_name;
  info.sms = static_cast<int>(host.cpus.size());
  info.l2_bytes = host.llc_bytes;
  info.memory_bytes = host.memory_bytes;
  info.memory_available_bytes = host.memory_available_bytes;
  info.l1d_bytes = host.l1d_bytes;
  info.core_l2_bytes = host.core_l2_bytes;
  info.isas = std::move(isas);
  return info;
}

double ns_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::nano>(to - from).count();
}

// The least step the clock was seen to make.
double measure_timer_step() {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 1000; ++i) {
    const auto from = Clock::now();
    auto to = Clock::now();
    while (to == from) to = Clock::now();
    least = std::min(least, ns_between(from, to));
  }
  return least;
}

long preemptions_of_this_thread() {
  rusage usage{};
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

struct Share {
  std::int64_t begin, end;
};

// Rank's part of `count` things, in whole multiples of `unit` but for the last.
Share share_of(std::int64_t count, std::int64_t unit, int rank, int ranks) {
  const std::int64_t units = (count + unit - 1) / unit;
  const auto bound = [&](int r) { return std::min(count, units * r / ranks * unit); };
  return {bound(rank), bound(rank + 1)};
}

class CpuBackend final : public Backend {
 public:
  CpuBackend(const HostTopology& host, std::vector<std::string> isas)
      : info_(describe(host, std::move(isas))),
        team_(host.cpus),
        counts_(host.cpus.size()),
        timer_step_(measure_timer_step()) {}

  ~CpuBackend() override { std::free(flush_); }
  CpuBackend(const CpuBackend&) = delete;
  CpuBackend& operator=(const CpuBackend&) = delete;

  const DeviceInfo& device() const override { return info_; }

  void* allocate(std::int64_t bytes) override {
    const bool large = bytes >= kLarge;
    void* memory = nullptr;
    if (bytes < 0 || posix_memalign(&memory, large ? kHugePage : kAlignment,
                                    static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1))) != 0) {
      throw Error(Exit::failed, "the system refused " + std::to_string(bytes) + " bytes of memory");
    }
    if (large) {
      madvise(memory, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);  // advice: a refusal costs speed only
      set_bytes(memory, 0, bytes);
    }
    return memory;
  }

  void release(void* memory) override { std::free(memory); }

  void set_bytes(void* memory, std::uint8_t value, std::int64_t bytes) override {
    char* const to = static_cast<char*>(memory);
    in_shares(bytes, static_cast<std::int64_t>(kHugePage), bytes >= kLarge, [&](Share share) {
      std::memset(to + share.begin, value, static_cast<std::size_t>(share.end - share.begin));
    });
  }

  void upload(void* to, const void* from_host, std::int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from_host, static_cast<std::size_t>(bytes));
  }
  void download(void* to_host, const void* from, std::int64_t bytes) override {
    if (bytes > 0) std::memcpy(to_host, from, static_cast<std::size_t>(bytes));
  }

  void fill_input(void* to, std::int64_t elements, Tensor tensor, std::uint64_t seed, Dtype dtype) override {
    auto* const out = static_cast<std::uint16_t*>(to);
    in_shares(elements, 4, elements >= 4096, [&](Share share) {
      for (std::int64_t at = share.begin; at < share.end; at += 4) {
        const InputBlock block = input_block(seed, tensor, static_cast<std::uint64_t>(at / 4));
        const std::int64_t left = std::min<std::int64_t>(4, share.end - at);
        for (std::int64_t i = 0; i < left; ++i) out[at + i] = round_to(dtype, block.value[i]);
      }
    });
  }

  LaunchContext context() override {
    LaunchContext context;
    context.team = &team_;
    return context;
  }
  void synchronize() override {}

  std::int64_t measuring_bytes(CacheMode cache) const override {
    return cache == CacheMode::cold ? flush_bytes() : 0;
  }

  void start_measuring(CacheMode cache) override {
    cache_ = cache;
    void_in_a_row_ = 0;
    busy_ = false;
    if (cache == CacheMode::cold && !flush_) {
      // Written once by allocate: untouched pages would all be the one zero page. The first flush evicts the
      // lines that this left dirty.
      flush_ = static_cast<char*>(allocate(flush_bytes()));
      flush();
    }
  }

  Reading sample(Prepared& prepared, int) override {
    const LaunchContext launch_context = context();
    if (cache_ == CacheMode::cold) {
      flush();
    } else {
      prepared.launch(launch_context);
    }
    // Also wakes the team just before the clock starts.
    const long before = preemptions();
    const auto from = Clock::now();
    prepared.launch(launch_context);
    const auto to = Clock::now();
    Reading reading;
    reading.ns = ns_between(from, to);
    if (preemptions() == before) {
      void_in_a_row_ = 0;
    } else if (!busy_ && ++void_in_a_row_ <= kMostVoid) {
      reading.valid = false;
    } else {
      busy_ = true;
    }
    return reading;
  }

  void spin(double ns) override {
    const auto from = Clock::now();
    while (ns_between(from, Clock::now()) < ns) {
    }
  }
  double spin_overhead_ns() override { return 0.0; }  // some clock readings: far below a launch

  double timer_step_ns() const override { return timer_step_; }
  int rotation(const Problem&) const override { return 0; }
  Reading graph_sample(std::span<Prepared* const>) override {
    throw Error(Exit::usage, "--timer graph: the CPU has no graphs; use --timer events");
  }
  double now_s() override { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

  std::vector<std::string> row_flags() override {
    std::vector<std::string> flags;
    if (cache_ == CacheMode::cold && flush_bytes() < wanted_flush_bytes())
      flags.push_back("flush_below_2x_llc");
    if (busy_) flags.push_back("preempted");
    return flags;
  }

 private:
  struct alignas(kLine) Count {
    long preemptions = 0;
    std::uint64_t sum = 0;
  };

  // work(share of `count`) on every rank, or all of it here when that is not worth the threads.
  template <class Work>
  void in_shares(std::int64_t count, std::int64_t unit, bool parallel, const Work& work) {
    const int ranks = parallel ? team_.size() : 1;
    team_.run(ranks, [&](int rank) { work(share_of(count, unit, rank, ranks)); });
  }

  std::int64_t wanted_flush_bytes() const {
    return 2 * std::max(info_.l2_bytes, info_.sms * info_.core_l2_bytes);
  }
  // A quarter of the memory: inputs, workspace and oracle need the rest. Where that is unknown (0), no cap.
  std::int64_t flush_bytes() const {
    const std::int64_t cap = info_.memory_available_bytes / 4;
    const std::int64_t wanted = wanted_flush_bytes();
    return (cap > 0 ? std::min(wanted, cap) : wanted) / kLine * kLine;
  }

  void flush() {
    const std::int64_t lines = flush_bytes() / kLine;
    team_.run(team_.size(), [&](int rank) {
      const Share share = share_of(lines, 1, rank, team_.size());
      // One word of each line fetches all of it.
      const volatile char* at = flush_ + share.begin * kLine;
      std::uint64_t sum = 0;
      for (std::int64_t line = share.begin; line < share.end; ++line, at += kLine)
        sum += *reinterpret_cast<const volatile std::uint64_t*>(at);
      counts_[static_cast<std::size_t>(rank)].sum = sum;
    });
  }

  // Involuntary context switches of the team's threads so far.
  long preemptions() {
    team_.run(team_.size(), [&](int rank) {
      counts_[static_cast<std::size_t>(rank)].preemptions = preemptions_of_this_thread();
    });
    long sum = 0;
    for (const Count& count : counts_) sum += count.preemptions;
    return sum;
  }

  DeviceInfo info_;
  PinnedTeam team_;
  std::vector<Count> counts_;  // one a rank
  double timer_step_;
  char* flush_ = nullptr;
  CacheMode cache_ = CacheMode::cold;
  int void_in_a_row_ = 0;
  bool busy_ = false;
};

}  // namespace

DeviceInfo cpu_device_info(std::vector<std::string> isas) {
  return describe(probe_host(), std::move(isas));
}

std::unique_ptr<Backend> make_cpu_backend(std::vector<std::string> isas) {
  try {
    return std::make_unique<CpuBackend>(probe_host(), std::move(isas));
  } catch (const std::system_error& error) {
    throw Error(Exit::failed, std::string("the CPU's threads could not be started: ") + error.what());
  }
}

}  // namespace fdbench
