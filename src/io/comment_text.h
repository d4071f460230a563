// Text for the generated headers.
#pragma once

#include <string>

namespace fdbench::io {

// What came from elsewhere, for a comment: on one line, with nothing that ends it or begins a trigraph.
inline std::string comment_text(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c == '\\' || c == '?') c = ' ';
  }
  return text;
}

}  // namespace fdbench::io
