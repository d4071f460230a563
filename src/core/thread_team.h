// The CPU backend's threads, as a kernel sees them.
#pragma once

#include <type_traits>

namespace fdbench {

class ThreadTeam {
 public:
  virtual ~ThreadTeam() = default;
  virtual int size() const = 0;

  // Calls work(rank) for rank 0 ... threads - 1, one thread each, and returns when all have. 1 <= threads <=
  // size(). The caller is rank 0. `work` must not throw.
  template <class Work>
  void run(int threads, Work&& work) {
    run_erased(
        threads, [](void* object, int rank) { (*static_cast<std::remove_reference_t<Work>*>(object))(rank); },
        &work);
  }

 protected:
  virtual void run_erased(int threads, void (*call)(void* object, int rank), void* object) = 0;
};

}  // namespace fdbench
