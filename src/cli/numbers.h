// Numbers as flags take them. Every message begins with the flag and what was typed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fdbench::cli {

// A whole number in [least, most]. Throws Error (usage).
std::int64_t parse_whole(std::string_view flag, const std::string& text, std::int64_t least,
                         std::int64_t most);

// A number above 0, at most 1e9. Throws Error (usage).
double parse_positive(std::string_view flag, const std::string& text);

}  // namespace fdbench::cli
