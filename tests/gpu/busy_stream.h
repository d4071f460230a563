// Other work on the device while a test runs: kernels on a stream of their own that come and go, and take
// multiprocessors, shared memory and bandwidth away.
#pragma once

#include <cstdint>

namespace fdbench {

class BusyStream {
 public:
  BusyStream();
  ~BusyStream();
  BusyStream(const BusyStream&) = delete;
  BusyStream& operator=(const BusyStream&) = delete;

  // Enqueues a kernel of `ctas` CTAs that lasts about `cycles` multiprocessor cycles. Never waits.
  void enqueue(int ctas, std::int64_t cycles);
  void synchronize();

 private:
  void* stream_ = nullptr;
  unsigned* memory_ = nullptr;
};

}  // namespace fdbench
