// Hands out work items to ranks: each rank first takes its own contiguous share in order (the memory it
// touched first, and a stream that prefetchers follow), then helps the others finish theirs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "cpu/detail/rows.h"

namespace fdbench::cpu {

class WorkQueue {
 public:
  explicit WorkQueue(int ranks)
      : ranks_(ranks), shares_(std::make_unique<Share[]>(static_cast<std::size_t>(ranks))) {}

  // Items 0 ... count - 1 again. No other thread may be inside next().
  void reset(std::int64_t count) {
    for (int r = 0; r < ranks_; ++r) {
      const Range range = part_of(count, r, ranks_);
      shares_[static_cast<std::size_t>(r)].next.store(range.begin, std::memory_order_relaxed);
      shares_[static_cast<std::size_t>(r)].end = range.end;
    }
  }

  // An item no other call got, or -1 when none is left.
  std::int64_t next(int rank) {
    for (int i = 0; i < ranks_; ++i) {
      Share& share = shares_[static_cast<std::size_t>((rank + i) % ranks_)];
      if (share.next.load(std::memory_order_relaxed) >= share.end) continue;
      const std::int64_t item = share.next.fetch_add(1, std::memory_order_relaxed);
      if (item < share.end) return item;
    }
    return -1;
  }

 private:
  struct alignas(kLine) Share {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };
  int ranks_;
  std::unique_ptr<Share[]> shares_;
};

}  // namespace fdbench::cpu
