#include "cli/interrupt.h"

#include <signal.h>
#include <time.h>

#include <ctime>

namespace fdbench::cli {

namespace {
std::atomic<bool> flag{false};
// timeout(1) and some shells send one request twice, to the process and to its group.
constexpr std::time_t kSameRequestSeconds = 2;
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");
std::atomic<std::time_t> first_s{0};

// Only what a signal handler may call.
void on_signal(int signal) {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (!flag) {
    first_s = now.tv_sec;
    flag = true;
  } else if (now.tv_sec - first_s >= kSameRequestSeconds) {
    // Whoever asks again means it.
    struct sigaction default_action = {};
    default_action.sa_handler = SIG_DFL;
    sigaction(signal, &default_action, nullptr);
    raise(signal);
  }
}
}  // namespace

const std::atomic<bool>& interrupted() {
  return flag;
}

void watch_for_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace fdbench::cli
