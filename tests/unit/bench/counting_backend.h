// The fake device, counting what memory is taken of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/fake/fake_backend.h"

namespace fdbench::bench {

class CountingBackend final : public Backend {
 public:
  explicit CountingBackend(FakeScript script) : inner_(make_fake_backend(std::move(script))) {}
  ~CountingBackend() override {
    if (flush_) CountingBackend::release(flush_);
  }

  std::int64_t held() const { return held_; }
  std::int64_t peak() const { return peak_; }

  const DeviceInfo& device() const override { return inner_->device(); }
  void* allocate(std::int64_t bytes) override {
    void* memory = inner_->allocate(bytes);
    sizes_[memory] = bytes;
    held_ += bytes;
    peak_ = std::max(peak_, held_);
    return memory;
  }
  void release(void* memory) override {
    held_ -= sizes_.at(memory);
    sizes_.erase(memory);
    inner_->release(memory);
  }
  void set_bytes(void* memory, std::uint8_t value, std::int64_t bytes) override {
    inner_->set_bytes(memory, value, bytes);
  }
  void upload(void* to, const void* from, std::int64_t bytes) override { inner_->upload(to, from, bytes); }
  void download(void* to, const void* from, std::int64_t bytes) override {
    inner_->download(to, from, bytes);
  }
  void fill_input(void* to, std::int64_t elements, Tensor tensor, std::uint64_t seed, Dtype dtype) override {
    inner_->fill_input(to, elements, tensor, seed, dtype);
  }
  LaunchContext context() override { return inner_->context(); }
  void synchronize() override { inner_->synchronize(); }
  std::int64_t measuring_bytes(CacheMode cache) const override { return inner_->measuring_bytes(cache); }
  // As a device with a flush buffer does.
  void start_measuring(CacheMode cache) override {
    if (measuring_bytes(cache) > 0) flush_ = allocate(measuring_bytes(cache));
    inner_->start_measuring(cache);
  }
  Reading sample(Prepared& prepared, int round) override { return inner_->sample(prepared, round); }
  double timer_step_ns() const override { return inner_->timer_step_ns(); }
  int rotation(const Problem& problem) const override { return graph_timer ? inner_->rotation(problem) : 0; }
  Reading graph_sample(std::span<Prepared* const> rotation) override {
    return inner_->graph_sample(rotation);
  }
  double now_s() override { return inner_->now_s(); }
  void spin(double ns) override { inner_->spin(ns); }
  double spin_overhead_ns() override { return inner_->spin_overhead_ns(); }
  std::vector<std::string> row_flags() override { return flags; }

  bool graph_timer = true;
  std::vector<std::string> flags;

 private:
  std::unique_ptr<Backend> inner_;
  std::map<void*, std::int64_t> sizes_;
  std::int64_t held_ = 0, peak_ = 0;
  void* flush_ = nullptr;
};

// A small fake device: 1 MiB of cache, so that flushing takes 2 MiB.
inline FakeScript small_fake() {
  FakeScript script;
  script.device.kind = BackendKind::fake;
  script.device.name = "Small";
  script.device.l2_bytes = std::int64_t{1} << 20;
  script.device.memory_available_bytes = std::int64_t{1} << 30;
  return script;
}

}  // namespace fdbench::bench
