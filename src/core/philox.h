// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
// easy as 1, 2, 3" (SC11). Integers only, so that every device gives the same words.
#pragma once

#include <cstdint>

#include "core/host_device.h"

namespace fdbench {

struct PhiloxWords {
  std::uint32_t w[4];
};

// The ten rounds. counter: 4 words, key: 2 words.
FDBENCH_HOST_DEVICE constexpr PhiloxWords philox4x32(std::uint32_t c0, std::uint32_t c1, std::uint32_t c2,
                                                     std::uint32_t c3, std::uint32_t k0, std::uint32_t k1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0;
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c2;
    const std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const std::uint32_t n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<std::uint32_t>(p1);
    c3 = static_cast<std::uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;  // golden ratio
    k1 += 0xBB67AE85u;  // sqrt(3) - 1
  }
  return {{c0, c1, c2, c3}};
}

}  // namespace fdbench
