// The backend's own kernels, each enqueued on a stream by a function here. Free of CUDA headers.
#pragma once

#include <cstdint>

#include "core/input_recipe.h"

struct CUstream_st;  // what a cudaStream_t points to

namespace fdbench::cuda {

using Stream = CUstream_st*;

// input_block() of every block of `tensor`; `to` 8-byte aligned.
void enqueue_fill(void* to, std::int64_t elements, Tensor tensor, std::uint64_t seed, Dtype dtype, int sms,
                  Stream stream);

// Holds a stream back until the host lets it go. In page-locked memory that both see; the fields lie on
// cache lines of their own, since host and device each write one.
struct Gate {
  alignas(64) std::uint64_t released;  // host: the last ticket let go
  alignas(64) std::uint64_t gave_up;   // device: the last ticket that waited in vain
};
inline constexpr std::uint64_t kGateBoundNs = 50'000'000;

// What is enqueued behind waits until gate->released >= ticket, but at most kGateBoundNs.
void enqueue_gate(Gate* gate, std::uint64_t ticket, Stream stream);

// One multiprocessor's cycle counter and the device's nanosecond timer, read together; zero: not written.
struct ClockStamp {
  std::uint64_t cycles;
  std::uint64_t ns;
};
inline constexpr int kClockStampSlots = 1024;  // by multiprocessor id

void enqueue_clock_stamps(ClockStamp* slots, int sms, Stream stream);

// The lowest clock between two sets of stamps, over the multiprocessors that are in both, in MHz; 0 when none
// is.
double lowest_mhz(const ClockStamp* before, const ClockStamp* after);

// Keeps one thread busy for `ns` of the device's nanosecond timer.
void enqueue_spin(std::uint64_t ns, Stream stream);

// Reads `bytes` (a multiple of 16) once, by every multiprocessor. Writes nothing.
void enqueue_read(const void* lines, std::int64_t bytes, int sms, unsigned* sink, Stream stream);

}  // namespace fdbench::cuda
