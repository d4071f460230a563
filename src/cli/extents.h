// Lists of extents as the command line takes them: 8192 | 1024,8192 | 1024:131072*2 | 4096:16384:4096, and
// mixtures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fdbench::cli {

// The values in the order given, each at least 1. `flag` begins every message. Throws Error (usage).
std::vector<std::int64_t> parse_extents(std::string_view flag, std::string_view text);

// "chunk=64:4096*2" as axis name and values.
struct AxisValues {
  std::string name;
  std::vector<std::int64_t> values;
};
AxisValues parse_axis(std::string_view flag, std::string_view text);

// No list may hold more values than this.
inline constexpr std::size_t kMaxExtents = 4096;

}  // namespace fdbench::cli
