// Results on disk: schema fdbench.result/1.0, every field in docs/results.md.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/result_record.h"

namespace fdbench::io {

inline constexpr std::string_view kResultSchema = "fdbench.result/1.0";
inline constexpr std::size_t kMaxResultBytes = std::size_t{128} << 20;

// Reads back exactly: doubles in their shortest round-trip form. What is not finite becomes null; text that
// is not UTF-8 has the bytes in question replaced.
std::string to_json(const ResultFile& file);

// Any fdbench.result/1.x; unknown fields are ignored. `name` is the file, for messages. Throws Error (usage),
// one line that names file, line and column (syntax) or file and path (content) and says what would be right.
ResultFile parse_result(std::string_view text, const std::string& name);

// The same from a file; also throws where it can't be read, or is larger than kMaxResultBytes.
ResultFile read_result_file(const std::string& path);

}  // namespace fdbench::io
