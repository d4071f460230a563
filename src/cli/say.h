// Printing that does not throw: a full disk under stdout must not end a measurement whose results go
// elsewhere. What stdout did not take is told at the end (cli/app.cpp), from its error flag.
#pragma once

#include <cstdio>
#include <string_view>

namespace fdbench::cli {

inline void say(std::FILE* to, std::string_view text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), to));
}

}  // namespace fdbench::cli
