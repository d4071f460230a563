// Streams memory through one core and keeps nothing.
#pragma once

#include <cstdint>

namespace fdbench::cpu {

// A digest of the bytes from `from` (64-byte aligned), `bytes` a multiple of 64: it depends on every word, so
// that no read can be left out.
using ReadBytes = std::uint64_t (*)(const void* from, std::int64_t bytes);

ReadBytes read_bytes_plain();

}  // namespace fdbench::cpu
