#include "bench/buffers.h"

#include <algorithm>
#include <utility>

namespace fdbench::bench {

namespace {
constexpr std::uint8_t kGuardPattern = 0xA5;
constexpr std::uint8_t kNanByte = 0xFF;  // 0xFFFF is a NaN as bf16 and as fp16, 0xFFFFFFFF as float
}  // namespace

Buffer::Buffer(Backend& backend, std::int64_t bytes) : backend_(&backend), bytes_(bytes) {
  data_ = backend.allocate(std::max<std::int64_t>(bytes, 1));
}

Buffer::~Buffer() {
  if (data_) backend_->release(data_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : backend_(other.backend_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(backend_, other.backend_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

GuardedBuffer::GuardedBuffer(Backend& backend, std::int64_t bytes)
    : memory_(backend, footprint(bytes)), bytes_(bytes) {
  backend.set_bytes(memory_.data(), kGuardPattern, memory_.bytes());
}

void* GuardedBuffer::data() const {
  return bytes_ == 0 ? nullptr : static_cast<std::uint8_t*>(memory_.data()) + kGuardBytes;
}

std::string GuardedBuffer::broken_guard(Backend& backend) const {
  std::vector<std::uint8_t> guard(kGuardBytes);
  const auto* start = static_cast<const std::uint8_t*>(memory_.data());
  const auto broken = [](std::uint8_t byte) { return byte != kGuardPattern; };
  backend.download(guard.data(), start, kGuardBytes);
  if (const auto at = std::find_if(guard.begin(), guard.end(), broken); at != guard.end()) {
    return std::to_string(guard.end() - at) + " bytes before its start";
  }
  backend.download(guard.data(), start + kGuardBytes + bytes_, kGuardBytes);
  if (const auto at = std::find_if(guard.begin(), guard.end(), broken); at != guard.end()) {
    return std::to_string(at - guard.begin()) + " bytes past its end";
  }
  return {};
}

Inputs::Inputs(Backend& backend, const Problem& problem, std::uint64_t seed)
    : problem_(problem), q_(backend, problem.q_bytes()) {
  backend.fill_input(q_.data(), problem.q_elements(), Tensor::q, seed, problem.dtype);
  const std::int64_t poison = kPoisonRows * problem.kv_heads * problem.dim * element_bytes(problem.dtype);
  for (const Tensor tensor : {Tensor::k, Tensor::v}) {
    Buffer& buffer = tensor == Tensor::k ? k_ : v_;
    buffer = Buffer(backend, problem.kv_bytes() + poison);
    backend.fill_input(buffer.data(), problem.kv_elements(), tensor, seed, problem.dtype);
    backend.set_bytes(static_cast<std::uint8_t*>(buffer.data()) + problem.kv_bytes(), kNanByte, poison);
  }
}

DecodeArgs Inputs::args() const {
  DecodeArgs args = dense_args(problem_);
  args.q = q_.data();
  args.k = k_.data();
  args.v = v_.data();
  return args;
}

std::int64_t Inputs::footprint(const Problem& problem) {
  const std::int64_t poison = kPoisonRows * problem.kv_heads * problem.dim * element_bytes(problem.dtype);
  return problem.q_bytes() + 2 * (problem.kv_bytes() + poison);
}

}  // namespace fdbench::bench
