// fdbench: sm_80+
#include "busy_stream.h"

#include "cuda/check.h"

namespace fdbench {
namespace {

constexpr unsigned kWords = 8u << 20;  // 32 MB
constexpr int kThreads = 256;
constexpr int kSmem = 40 << 10;

__global__ void __launch_bounds__(kThreads) busy_kernel(unsigned* memory, long long cycles) {
  extern __shared__ unsigned shared[];
  const long long start = clock64();
  unsigned at = (blockIdx.x * 977u + threadIdx.x) % kWords;
  while (clock64() - start < cycles) {
    shared[threadIdx.x] = memory[at] + at;
    at = (at + 7919u * 32u) % kWords;
  }
  if (shared[threadIdx.x] == 0xffffffffu) memory[0] = 0;  // never: words are 0 and at is below kWords
}

}  // namespace

BusyStream::BusyStream() {
  cudaStream_t stream = nullptr;
  FDBENCH_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  stream_ = stream;
  FDBENCH_CUDA_CHECK(cudaMalloc(&memory_, kWords * sizeof(unsigned)));
  FDBENCH_CUDA_CHECK(cudaMemsetAsync(memory_, 0, kWords * sizeof(unsigned), stream));
  synchronize();
}

BusyStream::~BusyStream() {
  (void)cudaStreamSynchronize(static_cast<cudaStream_t>(stream_));
  (void)cudaFree(memory_);
  (void)cudaStreamDestroy(static_cast<cudaStream_t>(stream_));
}

void BusyStream::enqueue(int ctas, std::int64_t cycles) {
  busy_kernel<<<static_cast<unsigned>(ctas), kThreads, kSmem, static_cast<cudaStream_t>(stream_)>>>(memory_,
                                                                                                    cycles);
  FDBENCH_CUDA_CHECK_LAUNCH(busy_kernel);
}

void BusyStream::synchronize() {
  FDBENCH_CUDA_CHECK(cudaStreamSynchronize(static_cast<cudaStream_t>(stream_)));
}

}  // namespace fdbench
