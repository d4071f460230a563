// Owners of what the CUDA backend takes from the runtime. Destructors swallow errors: after a device fault
// nothing can be given back but by the process's end. For .cu files only.
#pragma once

#include <cstdint>
#include <utility>

namespace fdbench::cuda {

// A handle of the runtime's and the function that ends it.
template <class Handle, auto kDestroy>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() { reset(); }

  Handle get() const { return handle_; }
  explicit operator bool() const { return handle_ != Handle{}; }
  // Where a creating function writes its handle.
  Handle* out() {
    reset();
    return &handle_;
  }
  void reset() {
    if (handle_ != Handle{}) (void)kDestroy(handle_);
    handle_ = Handle{};
  }

 private:
  Handle handle_{};
};

}  // namespace fdbench::cuda
