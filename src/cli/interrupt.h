// Ctrl-C and SIGTERM as a flag that the measuring code looks at.
#pragma once

#include <atomic>

namespace fdbench::cli {

// Set by the first SIGINT or SIGTERM after `watch_for_interrupts`; one that comes seconds later ends the
// process at once.
const std::atomic<bool>& interrupted();
void watch_for_interrupts();

}  // namespace fdbench::cli
