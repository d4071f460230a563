// Device memory with owners: plain, guarded, and the inputs of one problem.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "core/decode_args.h"
#include "core/problem.h"

namespace fdbench::bench {

// Rows of NaN after the last of K and V: a kernel that reads past the end and lets it count is found out.
inline constexpr std::int64_t kPoisonRows = 128;
// On each side of what a kernel may write, bytes.
inline constexpr std::int64_t kGuardBytes = 4096;

class Buffer {
 public:
  Buffer() = default;
  Buffer(Backend& backend, std::int64_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  Backend* backend_ = nullptr;
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

// `bytes` of memory with kGuardBytes of a pattern on each side.
class GuardedBuffer {
 public:
  GuardedBuffer() = default;
  GuardedBuffer(Backend& backend, std::int64_t bytes);

  void* data() const;  // null when there are no bytes: nothing may be written
  std::int64_t bytes() const { return bytes_; }
  static std::int64_t footprint(std::int64_t bytes) { return bytes + 2 * kGuardBytes; }

  // Where the guards were written over: "3 bytes before", "from byte 16 after"; empty when they are whole.
  std::string broken_guard(Backend& backend) const;

 private:
  Buffer memory_;
  std::int64_t bytes_ = 0;
};

// Q, K and V of the standard recipe, K and V followed by kPoisonRows rows of NaN.
class Inputs {
 public:
  Inputs(Backend& backend, const Problem& problem, std::uint64_t seed);
  // dense_args with q, k and v set.
  DecodeArgs args() const;
  static std::int64_t footprint(const Problem& problem);

 private:
  Problem problem_;
  Buffer q_, k_, v_;
};

}  // namespace fdbench::bench
