#include "backend/cpu/pinned_team.h"

#include <pthread.h>
#include <sched.h>

#include <chrono>

#include "backend/cpu/host_topology.h"

namespace fdbench {

namespace {

// Long enough that a launch which follows another (or the cache flush) finds its threads awake; short enough
// to leave the cores to others between shapes.
constexpr std::chrono::microseconds kSpin{200};

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

// Waits until `word` is not `old`; returns what it became.
template <class Word>
Word await_change(const std::atomic<Word>& word, Word old) {
  const auto give_up = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 64; ++i) {
      const Word now = word.load(std::memory_order_acquire);
      if (now != old) return now;
      relax();
    }
  } while (std::chrono::steady_clock::now() < give_up);
  for (;;) {
    const Word now = word.load(std::memory_order_acquire);
    if (now != old) return now;
    word.wait(old, std::memory_order_acquire);
  }
}

bool pin(const std::vector<int>& cpus) {
  int most = 0;
  for (const int cpu : cpus) most = cpu > most ? cpu : most;
  const auto count = static_cast<std::size_t>(most) + 1;
  cpu_set_t* const set = CPU_ALLOC(count);
  if (!set) return false;
  const std::size_t bytes = CPU_ALLOC_SIZE(count);
  CPU_ZERO_S(bytes, set);
  for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), bytes, set);
  const bool done = pthread_setaffinity_np(pthread_self(), bytes, set) == 0;
  CPU_FREE(set);
  return done;
}

}  // namespace

PinnedTeam::PinnedTeam(const std::vector<int>& cpus) : old_affinity_(allowed_cpus()) {
  workers_.reserve(cpus.size());
  try {
    for (std::size_t i = 1; i < cpus.size(); ++i)
      workers_.emplace_back([this, rank = static_cast<int>(i), cpu = cpus[i]] { work(rank, cpu); });
  } catch (...) {
    stop();
    throw;
  }
  pin({cpus.front()});
}

PinnedTeam::~PinnedTeam() {
  stop();
  pin(old_affinity_);
}

void PinnedTeam::stop() {
  ticket_.store(0, std::memory_order_release);
  ticket_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void PinnedTeam::run_erased(int threads, void (*call)(void*, int), void* object) {
  if (threads > 1) {
    call_ = call;
    object_ = object;
    running_.store(static_cast<std::uint32_t>(threads) - 1, std::memory_order_relaxed);
    const std::uint64_t job = (ticket_.load(std::memory_order_relaxed) >> 16) + 1;
    ticket_.store((job << 16) | static_cast<std::uint64_t>(threads), std::memory_order_release);
    ticket_.notify_all();
  }
  call(object, 0);
  if (threads > 1) {
    std::uint32_t left = running_.load(std::memory_order_acquire);
    while (left != 0) left = await_change(running_, left);
  }
}

void PinnedTeam::work(int rank, int cpu) {
  pin({cpu});
  std::uint64_t seen = 0x0000ffffu;
  for (;;) {
    seen = await_change(ticket_, seen);
    const int threads = static_cast<int>(seen & 0xffffu);
    if (threads == 0) return;
    if (rank >= threads) continue;
    call_(object_, rank);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

}  // namespace fdbench
