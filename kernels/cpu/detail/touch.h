// Brings the rows of a chunk to the first-level cache a few visits ahead of their use on matrix tiles.
//
// A tile load waits for a line buffer for each of its rows that is not in that cache, behind all the lines
// that the memory still owes; so lines are asked for once, straight to it, evenly spread over the arithmetic,
// and as many streams as a tile has rows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/detail/rows.h"
#include "cpu/detail/split_kv.h"

namespace fdbench::cpu {

// Rows of a visit: one of each stream. A tile's streams are the sixteenths of its tokens.
inline constexpr std::int64_t kVisitRows = 16;

// Long streams count for more than scores that are near.
inline constexpr std::int64_t kMostStreamRows = 33;
inline constexpr std::int64_t kMostTileTokens = kMostStreamRows * kVisitRows;

// Rows of each stream of the next tile, when `tokens` of a chunk are left; 0: too few for a visit. Odd, as
// streams a multiple of 4 KiB apart would share a few sets of the cache.
inline std::int64_t stream_rows(std::int64_t tokens) {
  const std::int64_t rows = std::min(tokens / kVisitRows, kMostStreamRows);
  return rows > 1 ? (rows - 1) / 2 * 2 + 1 : rows;
}

// Tokens rounded up to a tile of odd streams, unless they are several tiles.
inline std::int64_t whole_tile(std::int64_t tokens) {
  const std::int64_t rows = round_up(tokens, kVisitRows) / kVisitRows / 2 * 2 + 1;
  return rows <= kMostStreamRows ? rows * kVisitRows : tokens;
}

// Walks the visits of a chunk: position by position of a tile of K, head by head; of its tile of V; of the
// next tile. Past the chunk's end, those of what is likely the same thread's next chunk.
class Touch {
 public:
  explicit Touch(const ChunkJob& job)
      : args_(*job.args),
        end_(job.end),
        next_end_(std::min(args_.seq, job.end + (job.end - job.begin))),
        lines_(args_.dim * element_bytes(args_.dtype) / kLine),
        first_(job.begin) {
    begin_pass();
  }

  std::int64_t lines() const { return lines_; }

  // A line of each row of the visit.
  void step() {
    if (rows_ == 0) return;  // the walk is over
    const char* const at = at_ + line_ * kLine;
#pragma GCC unroll 16
    for (std::int64_t s = 0; s < kVisitRows; ++s) __builtin_prefetch(at + s * stream_bytes_, 0, 3);
    if (++line_ == lines_) next_visit();
  }
  void steps(std::int64_t count) {
    for (; count > 0; --count) step();
  }

 private:
  void begin_pass() {
    const std::int64_t element = element_bytes(args_.dtype);
    const std::int64_t end = first_ < end_ ? end_ : next_end_;
    rows_ = first_ < end ? stream_rows(end - first_) : 0;
    token_bytes_ = element * (in_v_ ? args_.v_seq_stride : args_.k_seq_stride);
    head_bytes_ = element * (in_v_ ? args_.v_head_stride : args_.k_head_stride);
    stream_bytes_ = rows_ * token_bytes_;
    row_ = static_cast<const char*>(in_v_ ? args_.v : args_.k) + first_ * token_bytes_;
    at_ = row_;
    position_ = kv_ = line_ = 0;
  }
  void next_visit() {
    line_ = 0;
    at_ += head_bytes_;
    if (++kv_ < args_.kv_heads) return;
    kv_ = 0;
    row_ += token_bytes_;
    at_ = row_;
    if (++position_ < rows_) return;
    if (in_v_) {
      first_ += rows_ * kVisitRows;
      // What fills no visit is not asked for.
      if (first_ < end_ && end_ - first_ < kVisitRows) first_ = end_;
    }
    in_v_ = !in_v_;
    begin_pass();
  }

  const DecodeArgs& args_;
  std::int64_t end_, next_end_, lines_;
  std::int64_t first_ = 0, rows_ = 0, position_ = 0, kv_ = 0, line_ = 0;
  std::int64_t token_bytes_ = 0, head_bytes_ = 0, stream_bytes_ = 0;
  const char* row_ = nullptr;
  const char* at_ = nullptr;
  bool in_v_ = false;
};

}  // namespace fdbench::cpu
