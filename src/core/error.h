// Failures and the exit codes they become. Only main exits.
#pragma once

#include <stdexcept>
#include <string>

namespace fdbench {

enum class Exit : int {
  good = 0,
  regression = 1,
  usage = 2,  // or an unreadable or foreign file
  wrong_result = 3,
  too_noisy = 4,       // only if asked for
  not_comparable = 5,  // or rows gone
  failed = 6,          // a configuration failed, or nothing was measured
  no_device = 7,
  not_written = 8,
  interrupted = 130,
};

// One line: the flag or file, what was wrong, what would be right.
class Error : public std::runtime_error {
 public:
  Error(Exit code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Exit code() const { return code_; }

 private:
  Exit code_;
};

inline Error usage_error(const std::string& message) {
  return Error(Exit::usage, message);
}

}  // namespace fdbench
