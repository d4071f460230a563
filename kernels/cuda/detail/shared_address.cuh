// The 32-bit shared-window address that PTX instructions on .shared take.
#pragma once

#include <cstdint>

namespace fdbench::ptx {

// `pointer` must point into this CTA's shared memory. No memory access.
__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

}  // namespace fdbench::ptx
