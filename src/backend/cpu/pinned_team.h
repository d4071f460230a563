// Persistent threads, each pinned to one CPU, that run one job together.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "core/thread_team.h"

namespace fdbench {

// The constructing thread is rank 0: it is pinned too, gets its old affinity back from the destructor, and is
// the only one that may call run() or destroy the team. (Processes and threads it starts meanwhile inherit
// the pin.) A CPU that refuses the pin leaves its thread unpinned. Throws std::system_error when a thread
// can't be started.
class PinnedTeam final : public ThreadTeam {
 public:
  // One thread for each CPU of `cpus` (at least one, at most 65535).
  explicit PinnedTeam(const std::vector<int>& cpus);
  ~PinnedTeam() override;
  PinnedTeam(const PinnedTeam&) = delete;
  PinnedTeam& operator=(const PinnedTeam&) = delete;

  int size() const override { return static_cast<int>(workers_.size()) + 1; }

 protected:
  void run_erased(int threads, void (*call)(void* object, int rank), void* object) override;

 private:
  void work(int rank, int cpu);
  void stop();

  std::vector<int> old_affinity_;
  // Written by rank 0 while no worker runs; read by workers of the job that `ticket_` announced.
  void (*call_)(void*, int) = nullptr;
  void* object_ = nullptr;
  // From bit 16 on: job number; below: its threads, 0 to stop. One word, so that a worker that has no part in
  // a job learns so without touching call_ and object_, which may already be the next job's. Numbers don't
  // come round again: a worker without a part may sleep through any number of jobs.
  alignas(64) std::atomic<std::uint64_t> ticket_{0x0000ffffu};
  alignas(64) std::atomic<std::uint32_t> running_{0};  // workers of the present job that have not finished
  std::vector<std::thread> workers_;
};

}  // namespace fdbench
