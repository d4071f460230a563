// fdbench: sm_80+
//
// A cold sample, all of it enqueued while the gate is shut, so that the host's launch latency never enters:
//   gate | clock stamps | 0 to 3 empty launches | the launch, untimed | flush | start event | the launch |
//   end event | clock stamps
// and a hot one without the flush. The untimed launch leaves the code as warm for one variant as for another,
// whatever ran before it; the empty ones: see kLaunchPhases.
#include "backend/cuda/cuda_backend.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "backend/cuda/device_steps.h"
#include "backend/cuda/resources.h"
#include "core/error.h"
#include "cuda/check.h"

namespace fdbench {
namespace {

using cuda::Owned;
using OwnedStream = Owned<cudaStream_t, cudaStreamDestroy>;
using OwnedEvent = Owned<cudaEvent_t, cudaEventDestroy>;
using OwnedGraph = Owned<cudaGraph_t, cudaGraphDestroy>;
using OwnedGraphExec = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;
using OwnedDeviceMemory = Owned<void*, cudaFree>;
using OwnedHostMemory = Owned<void*, cudaFreeHost>;

// Times L2 that a flush reads, and that a rotation of inputs must exceed.
constexpr std::int64_t kFlushL2s = 2;
constexpr std::int64_t kRotationL2s = 5;
// A graph sample times at least this many launches.
constexpr int kGraphLaunches = 16;
// Of the launches of a stream every fourth takes longer (H200, driver 580: by 0.3 us for the smallest kernel,
// 1 us for the largest), whatever is launched: with a fixed number of launches a sample, one variant of a
// shape would always meet it and another never. So the timed launch's number, modulo 4, is made the
// round's: all variants of a round meet it or none does, and of four rounds it is one.
constexpr int kLaunchPhases = 4;
// Not the round modulo 4: that would go with the direction of a round, and with which rounds choose a plan.
constexpr int launch_phase(int round) {
  return (round + round / kLaunchPhases) % kLaunchPhases;
}
// Events differ by whole steps of this clock or a coarser one.
constexpr double kFinestEventStepNs = 32.0;

// What host and device both see while a sample runs.
struct Shared {
  cuda::Gate gate;
  cuda::ClockStamp before[cuda::kClockStampSlots];
  cuda::ClockStamp after[cuda::kClockStampSlots];
};

// Makes a device current until it is destroyed, after all that was made on it.
class CurrentDevice {
 public:
  explicit CurrentDevice(int index) {
    FDBENCH_CUDA_CHECK(cudaGetDevice(&previous_));
    FDBENCH_CUDA_CHECK(cudaSetDevice(index));
  }
  ~CurrentDevice() { (void)cudaSetDevice(previous_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int previous_ = 0;
};

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

OwnedEvent make_event() {
  OwnedEvent event;
  FDBENCH_CUDA_CHECK(cudaEventCreate(event.out()));
  return event;
}

double elapsed_ns(const OwnedEvent& start, const OwnedEvent& end) {
  float ms = 0.0f;
  FDBENCH_CUDA_CHECK(cudaEventElapsedTime(&ms, start.get(), end.get()));
  return std::round(1e6 * static_cast<double>(ms));  // whole steps of the clock, but for the float
}

// Launches there are batched by the host, so that what is enqueued need not start when it could.
bool runs_under_wsl() {
  std::ifstream file("/proc/version");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text.find("microsoft") != std::string::npos;
}

class CudaBackend final : public Backend {
 public:
  CudaBackend(int index, FlushKind flush_kind);
  ~CudaBackend() override;

  const DeviceInfo& device() const override { return info_; }

  void* allocate(std::int64_t bytes) override;
  void release(void* memory) override;
  void set_bytes(void* memory, std::uint8_t value, std::int64_t bytes) override;
  void upload(void* to, const void* from_host, std::int64_t bytes) override;
  void download(void* to_host, const void* from, std::int64_t bytes) override;
  void fill_input(void* to, std::int64_t elements, Tensor tensor, std::uint64_t seed, Dtype dtype) override;

  LaunchContext context() override { return {stream_.get(), nullptr}; }
  void synchronize() override;

  std::int64_t measuring_bytes(CacheMode cache) const override;
  void start_measuring(CacheMode cache) override;
  Reading sample(Prepared& prepared, int round) override;
  double timer_step_ns() const override { return timer_step_ns_; }

  int rotation(const Problem& problem) const override;
  Reading graph_sample(std::span<Prepared* const> rotation) override;

  void spin(double ns) override;
  double spin_overhead_ns() override;

  double now_s() override;
  std::vector<std::string> row_flags() override;

 private:
  class OpenGate;

  void require_measuring() const;
  // Shuts the gate ahead of what is enqueued next, and stamps the clocks behind it.
  void begin_sample();
  // Enqueues the end of a sample, lets it all run and reads it.
  Reading end_sample(bool started_early);
  bool start_has_fired();
  void enqueue_flush();
  // What the operation launches, as a capture shows.
  int kernels_of(Prepared& prepared);
  OwnedGraph capture_graph(std::span<Prepared* const> rotation, int rounds);
  OwnedGraphExec capture(std::span<Prepared* const> rotation, int rounds);
  double measure_timer_step();

  // Members are destroyed from the last to the first: the device stays current until all else is gone.
  DeviceInfo info_;
  CurrentDevice current_;
  FlushKind flush_kind_;
  OwnedStream stream_;
  OwnedEvent start_;
  OwnedEvent end_;
  OwnedHostMemory shared_memory_;
  OwnedDeviceMemory sink_;
  OwnedDeviceMemory flush_;
  Shared* shared_ = nullptr;         // as the host sees it
  Shared* shared_device_ = nullptr;  // as the device does
  std::int64_t flush_bytes_ = 0;
  std::uint64_t ticket_ = 0;
  std::map<const Prepared*, int> kernels_;  // of each that was sampled; an address may be another one's later
  int launches_ = 0;                        // to the stream while measuring, modulo kLaunchPhases
  bool measuring_ = false;
  bool cold_ = true;
  bool has_persisting_ = false;
  double timer_step_ns_ = kFinestEventStepNs;
};

// Opens the gate when it goes, so that a launch that throws leaves nobody waiting.
class CudaBackend::OpenGate {
 public:
  explicit OpenGate(CudaBackend& backend) : backend_(backend) {}
  ~OpenGate() { open(); }
  OpenGate(const OpenGate&) = delete;
  OpenGate& operator=(const OpenGate&) = delete;
  void open() { __atomic_store_n(&backend_.shared_->gate.released, backend_.ticket_, __ATOMIC_SEQ_CST); }

 private:
  CudaBackend& backend_;
};

CudaBackend::CudaBackend(int index, FlushKind flush_kind)
    : info_(query_cuda_device(index)), current_(index), flush_kind_(flush_kind) {
  FDBENCH_CUDA_CHECK(cudaStreamCreateWithFlags(stream_.out(), cudaStreamNonBlocking));
  start_ = make_event();
  end_ = make_event();
  FDBENCH_CUDA_CHECK(cudaHostAlloc(shared_memory_.out(), sizeof(Shared), cudaHostAllocMapped));
  void* seen_by_device = nullptr;
  FDBENCH_CUDA_CHECK(cudaHostGetDevicePointer(&seen_by_device, shared_memory_.get(), 0));
  shared_ = new (shared_memory_.get()) Shared{};
  shared_device_ = static_cast<Shared*>(seen_by_device);
  FDBENCH_CUDA_CHECK(cudaMalloc(sink_.out(), 256));
  int persisting_bytes = 0;
  FDBENCH_CUDA_CHECK(cudaDeviceGetAttribute(&persisting_bytes, cudaDevAttrMaxPersistingL2CacheSize, index));
  has_persisting_ = persisting_bytes > 0;

  // Loads our own kernels before one of them can be waiting at the gate: loading may wait for the device.
  cuda::enqueue_gate(&shared_device_->gate, 0, stream_.get());
  cuda::enqueue_clock_stamps(shared_device_->before, info_.sms, stream_.get());
  FDBENCH_CUDA_CHECK(cudaMemsetAsync(sink_.get(), 0, 256, stream_.get()));
  cuda::enqueue_read(sink_.get(), 256, info_.sms, static_cast<unsigned*>(sink_.get()), stream_.get());
  synchronize();
  timer_step_ns_ = measure_timer_step();
}

CudaBackend::~CudaBackend() {
  if (shared_) __atomic_store_n(&shared_->gate.released, ticket_, __ATOMIC_SEQ_CST);
  if (stream_) (void)cudaStreamSynchronize(stream_.get());
}

void* CudaBackend::allocate(std::int64_t bytes) {
  void* memory = nullptr;
  FDBENCH_CUDA_CHECK(cudaMalloc(&memory, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1))));
  return memory;
}

void CudaBackend::release(void* memory) {
  const cudaError_t error = cudaFree(memory);
  // Anything else is an earlier launch's failure, which synchronize() reports: destructors call this.
  if (error == cudaErrorInvalidValue) FDBENCH_CUDA_CHECK(error);
}

// Copies and fills go through our own stream: it does not wait for the default one, nor that for it.
void CudaBackend::set_bytes(void* memory, std::uint8_t value, std::int64_t bytes) {
  if (bytes <= 0) return;
  FDBENCH_CUDA_CHECK(cudaMemsetAsync(memory, value, static_cast<std::size_t>(bytes), stream_.get()));
}

void CudaBackend::upload(void* to, const void* from_host, std::int64_t bytes) {
  if (bytes <= 0) return;
  FDBENCH_CUDA_CHECK(
      cudaMemcpyAsync(to, from_host, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, stream_.get()));
  synchronize();
}

void CudaBackend::download(void* to_host, const void* from, std::int64_t bytes) {
  if (bytes <= 0) return;
  FDBENCH_CUDA_CHECK(
      cudaMemcpyAsync(to_host, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, stream_.get()));
  synchronize();
}

void CudaBackend::fill_input(void* to, std::int64_t elements, Tensor tensor, std::uint64_t seed,
                             Dtype dtype) {
  cuda::enqueue_fill(to, elements, tensor, seed, dtype, info_.sms, stream_.get());
}

void CudaBackend::synchronize() {
  FDBENCH_CUDA_CHECK(cudaStreamSynchronize(stream_.get()));
  FDBENCH_CUDA_CHECK(cudaGetLastError());
}

std::int64_t CudaBackend::measuring_bytes(CacheMode cache) const {
  return cache == CacheMode::cold ? round_up(kFlushL2s * std::max<std::int64_t>(info_.l2_bytes, 1), 1 << 20)
                                  : 0;
}

void CudaBackend::start_measuring(CacheMode cache) {
  cold_ = cache == CacheMode::cold;
  flush_.reset();
  flush_bytes_ = measuring_bytes(cache);
  if (cold_) {
    FDBENCH_CUDA_CHECK(cudaMalloc(flush_.out(), static_cast<std::size_t>(flush_bytes_)));
    FDBENCH_CUDA_CHECK(
        cudaMemsetAsync(flush_.get(), 0, static_cast<std::size_t>(flush_bytes_), stream_.get()));
    // The first reading writes back what the memset left dirty.
    for (int i = 0; i < 3; ++i) enqueue_flush();
  }
  synchronize();
  kernels_.clear();
  measuring_ = true;
}

void CudaBackend::enqueue_flush() {
  if (flush_kind_ == FlushKind::memset) {
    FDBENCH_CUDA_CHECK(
        cudaMemsetAsync(flush_.get(), 0, static_cast<std::size_t>(flush_bytes_), stream_.get()));
  } else {
    cuda::enqueue_read(flush_.get(), flush_bytes_, info_.sms, static_cast<unsigned*>(sink_.get()),
                       stream_.get());
  }
}

void CudaBackend::require_measuring() const {
  if (!measuring_)
    throw Error(Exit::failed, "the CUDA backend was asked for a sample before start_measuring");
}

void CudaBackend::begin_sample() {
  require_measuring();
  synchronize();
  std::memset(shared_->before, 0, sizeof shared_->before);
  std::memset(shared_->after, 0, sizeof shared_->after);
  // Waits for the device, so not behind the gate.
  if (cold_ && has_persisting_) FDBENCH_CUDA_CHECK(cudaCtxResetPersistingL2Cache());
  ++ticket_;
  cuda::enqueue_gate(&shared_device_->gate, ticket_, stream_.get());
  cuda::enqueue_clock_stamps(shared_device_->before, info_.sms, stream_.get());
  launches_ += 2;
}

int CudaBackend::kernels_of(Prepared& prepared) {
  const auto known = kernels_.find(&prepared);
  if (known != kernels_.end()) return known->second;
  const std::array<Prepared*, 1> once = {&prepared};
  const OwnedGraph graph = capture_graph(once, 1);
  std::size_t count = 0;
  FDBENCH_CUDA_CHECK(cudaGraphGetNodes(graph.get(), nullptr, &count));
  // Nodes that are no kernels (a fill, say) are launches to the stream just as well.
  return kernels_[&prepared] = static_cast<int>(count);
}

bool CudaBackend::start_has_fired() {
  const cudaError_t state = cudaEventQuery(start_.get());
  if (state == cudaErrorNotReady) {
    (void)cudaGetLastError();  // an answer, not an error
    return false;
  }
  FDBENCH_CUDA_CHECK(state);
  return true;
}

Reading CudaBackend::end_sample(bool started_early) {
  synchronize();
  Reading reading;
  reading.ns = elapsed_ns(start_, end_);
  reading.sm_mhz = cuda::lowest_mhz(shared_->before, shared_->after);
  const std::uint64_t gave_up = __atomic_load_n(&shared_->gate.gave_up, __ATOMIC_ACQUIRE);
  reading.valid = !started_early && gave_up != ticket_;
  return reading;
}

Reading CudaBackend::sample(Prepared& prepared, int round) {
  require_measuring();
  const int kernels = kernels_of(prepared);
  begin_sample();
  bool started_early = false;
  {
    OpenGate gate(*this);
    const int before = kernels + (cold_ ? 1 : 0);
    while ((launches_ + before) % kLaunchPhases != launch_phase(round)) {
      cuda::enqueue_gate(&shared_device_->gate, 0, stream_.get());  // open: an empty launch
      ++launches_;
    }
    prepared.launch(context());
    if (cold_) enqueue_flush();
    FDBENCH_CUDA_CHECK(cudaEventRecord(start_.get(), stream_.get()));
    prepared.launch(context());
    started_early = start_has_fired();
    FDBENCH_CUDA_CHECK(cudaEventRecord(end_.get(), stream_.get()));
    cuda::enqueue_clock_stamps(shared_device_->after, info_.sms, stream_.get());
    launches_ = (launches_ + before + kernels + 1) % kLaunchPhases;
  }
  return end_sample(started_early);
}

int CudaBackend::rotation(const Problem& problem) const {
  // O is small and written, not read.
  const std::int64_t bytes = std::max<std::int64_t>(problem.q_bytes() + 2 * problem.kv_bytes(), 1);
  const std::int64_t needed = kRotationL2s * std::max<std::int64_t>(info_.l2_bytes, 1);
  return static_cast<int>(
      std::clamp<std::int64_t>((needed + bytes - 1) / bytes, 1, std::numeric_limits<int>::max()));
}

OwnedGraph CudaBackend::capture_graph(std::span<Prepared* const> rotation, int rounds) {
  OwnedGraph graph;
  FDBENCH_CUDA_CHECK(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal));
  try {
    for (int round = 0; round < rounds; ++round) {
      for (Prepared* prepared : rotation) prepared->launch(context());
    }
  } catch (...) {
    (void)cudaStreamEndCapture(stream_.get(), graph.out());
    (void)cudaGetLastError();
    throw;
  }
  FDBENCH_CUDA_CHECK(cudaStreamEndCapture(stream_.get(), graph.out()));
  return graph;
}

OwnedGraphExec CudaBackend::capture(std::span<Prepared* const> rotation, int rounds) {
  const OwnedGraph graph = capture_graph(rotation, rounds);
  OwnedGraphExec exec;
  FDBENCH_CUDA_CHECK(cudaGraphInstantiate(exec.out(), graph.get(), 0));
  FDBENCH_CUDA_CHECK(cudaGraphUpload(exec.get(), stream_.get()));
  return exec;
}

Reading CudaBackend::graph_sample(std::span<Prepared* const> rotation) {
  if (rotation.empty()) throw Error(Exit::failed, "the graph timer was given nothing to launch");
  const int size = static_cast<int>(rotation.size());
  const int rounds = (kGraphLaunches + size - 1) / size;
  // Captured anew for each sample: a Prepared may have gone, and another come, at the same address. One
  // replay leaves the cache as the next finds it; two executables, because one cannot follow itself at once.
  const OwnedGraphExec before = capture(rotation, 1);
  const OwnedGraphExec timed = capture(rotation, rounds);
  begin_sample();
  bool started_early = false;
  {
    OpenGate gate(*this);
    FDBENCH_CUDA_CHECK(cudaGraphLaunch(before.get(), stream_.get()));
    FDBENCH_CUDA_CHECK(cudaEventRecord(start_.get(), stream_.get()));
    FDBENCH_CUDA_CHECK(cudaGraphLaunch(timed.get(), stream_.get()));
    started_early = start_has_fired();
    FDBENCH_CUDA_CHECK(cudaEventRecord(end_.get(), stream_.get()));
    cuda::enqueue_clock_stamps(shared_device_->after, info_.sms, stream_.get());
  }
  Reading reading = end_sample(started_early);
  reading.ns /= static_cast<double>(rounds) * static_cast<double>(size);
  return reading;
}

double CudaBackend::measure_timer_step() {
  // Back-to-back events take nearly the same time each: their intervals differ by whole steps of the clock.
  constexpr int kEvents = 128;
  std::vector<OwnedEvent> events(kEvents);
  for (OwnedEvent& event : events) event = make_event();
  std::vector<double> intervals;
  for (int pass = 0; pass < 2; ++pass) {
    for (const OwnedEvent& event : events) FDBENCH_CUDA_CHECK(cudaEventRecord(event.get(), stream_.get()));
    synchronize();
  }
  for (int i = 1; i < kEvents; ++i) intervals.push_back(elapsed_ns(events[i - 1], events[i]));
  std::sort(intervals.begin(), intervals.end());
  double step = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < intervals.size(); ++i) {
    const double difference = intervals[i] - intervals[i - 1];
    if (difference > 1.0) step = std::min(step, difference);  // below 1 ns: rounding of the float
  }
  // All alike: the step is an interval, or hides below it.
  if (!std::isfinite(step)) step = intervals.front();
  return std::max(step, kFinestEventStepNs);
}

void CudaBackend::spin(double ns) {
  cuda::enqueue_spin(static_cast<std::uint64_t>(std::max(ns, 0.0)), stream_.get());
}

double CudaBackend::spin_overhead_ns() {
  // What a second empty spin adds to a first.
  struct Spins final : Prepared {
    Spins(CudaBackend* backend, int count) : backend_(backend), count_(count) {}
    void launch(const LaunchContext&) override {
      for (int i = 0; i < count_; ++i) backend_->spin(0.0);
    }
    CudaBackend* backend_;
    int count_;
  };
  constexpr int kSamples = 21;
  const auto median_of = [this](int count) {
    Spins spins(this, count);
    spins.launch(context());
    std::vector<double> ns;
    for (int i = 0; i < kSamples; ++i) ns.push_back(sample(spins, i).ns);
    std::nth_element(ns.begin(), ns.begin() + kSamples / 2, ns.end());
    return ns[kSamples / 2];
  };
  const double one = median_of(1);
  return std::max(0.0, median_of(2) - one);
}

double CudaBackend::now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<std::string> CudaBackend::row_flags() {
  static const bool kBatched = runs_under_wsl();
  return kBatched ? std::vector<std::string>{"launches_batched"} : std::vector<std::string>{};
}

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(int index, FlushKind flush) {
  return std::make_unique<CudaBackend>(index, flush);
}

}  // namespace fdbench
