// fdbench: sm_80+
#include "backend/cuda/device_steps.h"

#include <cuda/ptx>

#include <algorithm>
#include <cmath>

#include "cuda/check.h"

namespace fdbench::cuda {
namespace {

constexpr int kFillThreads = 256;
constexpr int kReadThreads = 512;
constexpr int kReadUnroll = 4;

// A grid that strides over `items`: enough CTAs to fill the device, no more than there is work for.
unsigned strided_grid(std::int64_t items, int threads, int sms, int ctas_per_sm) {
  const std::int64_t wanted = (items + threads - 1) / threads;
  return static_cast<unsigned>(std::clamp<std::int64_t>(wanted, 1, std::int64_t{sms} * ctas_per_sm));
}

template <Dtype kDtype>
__global__ void __launch_bounds__(kFillThreads)
    fill_input_kernel(std::uint16_t* to, std::int64_t elements, Tensor tensor, std::uint64_t seed) {
  const std::int64_t blocks = (elements + 3) / 4;
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t block = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; block < blocks;
       block += stride) {
    const InputBlock values = input_block(seed, tensor, static_cast<std::uint64_t>(block));
    const ushort4 rounded =
        make_ushort4(round_to(kDtype, values.value[0]), round_to(kDtype, values.value[1]),
                     round_to(kDtype, values.value[2]), round_to(kDtype, values.value[3]));
    const std::int64_t first = 4 * block;
    if (first + 4 <= elements) {
      *reinterpret_cast<ushort4*>(to + first) = rounded;
    } else {
      to[first] = rounded.x;
      if (first + 1 < elements) to[first + 1] = rounded.y;
      if (first + 2 < elements) to[first + 2] = rounded.z;
    }
  }
}

__global__ void gate_kernel(Gate* gate, std::uint64_t ticket) {
  const volatile std::uint64_t* released = &gate->released;
  const std::uint64_t start = ::cuda::ptx::get_sreg_globaltimer();
  while (*released < ticket) {
    if (::cuda::ptx::get_sreg_globaltimer() - start > kGateBoundNs) {
      *const_cast<volatile std::uint64_t*>(&gate->gave_up) = ticket;
      return;
    }
    __nanosleep(100);
  }
}

__global__ void spin_kernel(std::uint64_t ns) {
  const std::uint64_t start = ::cuda::ptx::get_sreg_globaltimer();
  while (::cuda::ptx::get_sreg_globaltimer() - start < ns) {
  }
}

__global__ void clock_stamp_kernel(ClockStamp* slots) {
  // The timer advances in steps (32 ns on some devices, 1 us on others): stamp where one begins.
  constexpr std::uint64_t kGiveUpCycles = 8192;
  const std::uint64_t first_ns = ::cuda::ptx::get_sreg_globaltimer();
  const std::uint64_t first_cycles = ::cuda::ptx::get_sreg_clock64();
  std::uint64_t ns = first_ns;
  std::uint64_t cycles = first_cycles;
  do {
    ns = ::cuda::ptx::get_sreg_globaltimer();
    cycles = ::cuda::ptx::get_sreg_clock64();
  } while (ns == first_ns && cycles - first_cycles < kGiveUpCycles);
  const std::uint32_t sm = ::cuda::ptx::get_sreg_smid();
  // One 16-byte store: two CTAs of one multiprocessor may both write, but leave a pair that belongs together.
  if (sm < kClockStampSlots) *reinterpret_cast<ulonglong2*>(slots + sm) = make_ulonglong2(cycles, ns);
}

__global__ void __launch_bounds__(kReadThreads, 3)
    read_lines_kernel(const uint4* lines, std::int64_t count, unsigned* sink) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  unsigned seen = 0;
#pragma unroll 1
  for (; i + (kReadUnroll - 1) * stride < count; i += kReadUnroll * stride) {
    uint4 line[kReadUnroll];
#pragma unroll
    for (int j = 0; j < kReadUnroll; ++j) line[j] = __ldcg(lines + i + j * stride);
#pragma unroll
    for (int j = 0; j < kReadUnroll; ++j) seen |= line[j].x | line[j].y | line[j].z | line[j].w;
  }
#pragma unroll 1
  for (; i < count; i += stride) {
    const uint4 line = __ldcg(lines + i);
    seen |= line.x | line.y | line.z | line.w;
  }
  // The buffer holds zeros, which the compiler cannot know: it must load, and nothing is ever written.
  if (seen != 0) *sink = seen;
}

}  // namespace

void enqueue_fill(void* to, std::int64_t elements, Tensor tensor, std::uint64_t seed, Dtype dtype, int sms,
                  Stream stream) {
  if (elements <= 0) return;
  const unsigned grid = strided_grid((elements + 3) / 4, kFillThreads, sms, 8);
  auto* words = static_cast<std::uint16_t*>(to);
  if (dtype == Dtype::bf16) {
    fill_input_kernel<Dtype::bf16><<<grid, kFillThreads, 0, stream>>>(words, elements, tensor, seed);
  } else {
    fill_input_kernel<Dtype::fp16><<<grid, kFillThreads, 0, stream>>>(words, elements, tensor, seed);
  }
  FDBENCH_CUDA_CHECK_LAUNCH(fill_input_kernel);
}

void enqueue_gate(Gate* gate, std::uint64_t ticket, Stream stream) {
  gate_kernel<<<1, 1, 0, stream>>>(gate, ticket);
  FDBENCH_CUDA_CHECK_LAUNCH(gate_kernel);
}

void enqueue_clock_stamps(ClockStamp* slots, int sms, Stream stream) {
  // On an idle device CTAs are handed out breadth first: one a multiprocessor.
  clock_stamp_kernel<<<static_cast<unsigned>(sms), 1, 0, stream>>>(slots);
  FDBENCH_CUDA_CHECK_LAUNCH(clock_stamp_kernel);
}

void enqueue_spin(std::uint64_t ns, Stream stream) {
  spin_kernel<<<1, 1, 0, stream>>>(ns);
  FDBENCH_CUDA_CHECK_LAUNCH(spin_kernel);
}

double lowest_mhz(const ClockStamp* before, const ClockStamp* after) {
  double lowest = 0.0;
  for (int sm = 0; sm < kClockStampSlots; ++sm) {
    const ClockStamp& a = before[sm];
    const ClockStamp& b = after[sm];
    if (a.ns == 0 || b.ns <= a.ns || b.cycles <= a.cycles) continue;
    const double mhz = 1e3 * static_cast<double>(b.cycles - a.cycles) / static_cast<double>(b.ns - a.ns);
    if (lowest == 0.0 || mhz < lowest) lowest = mhz;
  }
  return std::round(10.0 * lowest) / 10.0;  // what the stamps can tell
}

void enqueue_read(const void* lines, std::int64_t bytes, int sms, unsigned* sink, Stream stream) {
  const std::int64_t count = bytes / 16;
  const unsigned grid = strided_grid(count, kReadThreads, sms, 3);
  read_lines_kernel<<<grid, kReadThreads, 0, stream>>>(static_cast<const uint4*>(lines), count, sink);
  FDBENCH_CUDA_CHECK_LAUNCH(read_lines_kernel);
}

}  // namespace fdbench::cuda
