// Asks the memory for the rows of a chunk some way ahead of their reading. Hardware prefetchers stop at each
// page, know nothing of the change between K and V, and see no stream in rows that lie far apart.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/detail/rows.h"
#include "cpu/detail/split_kv.h"

namespace fdbench::cpu {

// A tile's rows are read, or at least asked for, as four streams, each a quarter of its tokens: the memory
// answers several streams faster than one, which idles wherever it enters a page.
inline constexpr int kStreams = 4;

// Walks passes: a tile of K, its tile of V, the next tile, and past the chunk's end a tile of what is likely
// the same thread's next chunk. The last tokens of a tile that is no multiple of kStreams are left out.
class Ahead {
 public:
  // A step is a row of each stream, of one KV head; of V, `visit` tokens of a stream before the next head.
  Ahead(const ChunkJob& job, std::int64_t visit)
      : job_(job),
        args_(*job.args),
        asked_visit_(visit),
        row_bytes_(args_.dim * element_bytes(args_.dtype)),
        first_(job.begin),
        last_(std::min(args_.seq, job.end + job.tile)) {
    begin_pass();
  }

  void steps(std::int64_t count) {
    for (; count > 0; --count) step();
  }

  void step() {
    if (quarter_ == 0) return;  // the walk is over
    for (std::int64_t line = 0; line < row_bytes_; line += kLine) {
#pragma GCC unroll 4
      for (int r = 0; r < kStreams; ++r) __builtin_prefetch(at_ + r * stream_bytes_ + line, 0, 2);
    }
    if (++done_ < visit_) {
      at_ += token_bytes_;
      return;
    }
    done_ = 0;
    if (++kv_ < args_.kv_heads) {
      at_ = block_ + kv_ * head_bytes_;
    } else {
      next_block();
    }
  }

 private:
  void begin_pass() {
    const std::int64_t element = element_bytes(args_.dtype);
    // Within the chunk as it is read; past its end as far as a tile goes.
    const std::int64_t end = first_ < job_.end ? job_.end : last_;
    count_ = std::max<std::int64_t>(0, std::min(job_.tile, end - first_));
    quarter_ = count_ / kStreams;
    token_bytes_ = element * (in_v_ ? args_.v_seq_stride : args_.k_seq_stride);
    head_bytes_ = element * (in_v_ ? args_.v_head_stride : args_.k_head_stride);
    stream_bytes_ = quarter_ * token_bytes_;
    block_ = static_cast<const char*>(in_v_ ? args_.v : args_.k) + first_ * token_bytes_;
    t_ = 0;
    begin_block();
  }
  void begin_block() {
    visit_ = in_v_ ? std::min(quarter_ - t_, asked_visit_) : 1;
    at_ = block_;
    kv_ = done_ = 0;
  }
  void next_block() {
    t_ += visit_;
    block_ += visit_ * token_bytes_;
    if (t_ < quarter_) return begin_block();
    if (in_v_) first_ += count_;
    in_v_ = !in_v_;
    begin_pass();
  }

  const ChunkJob& job_;
  const DecodeArgs& args_;
  std::int64_t asked_visit_, row_bytes_;
  const char* at_ = nullptr;
  std::int64_t stream_bytes_ = 0, token_bytes_ = 0, head_bytes_ = 0;
  std::int64_t done_ = 0, visit_ = 0, kv_ = 0;
  const char* block_ = nullptr;
  std::int64_t count_ = 0, quarter_ = 0, t_ = 0, first_, last_;
  bool in_v_ = false;
};

}  // namespace fdbench::cpu
