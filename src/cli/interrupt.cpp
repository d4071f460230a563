#include "cli/interrupt.h"

#include <signal.h>

namespace fdbench::cli {

namespace {
std::atomic<bool> flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");
}  // namespace

const std::atomic<bool>& interrupted() {
  return flag;
}

void watch_for_interrupts() {
  struct sigaction action = {};
  action.sa_handler = [](int) { flag = true; };
  // Back to the default for the second: whoever presses twice means it.
  action.sa_flags = SA_RESETHAND;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace fdbench::cli
