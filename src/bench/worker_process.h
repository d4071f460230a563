// The runner's side of a worker: one process, started by exec, that measures one shape. What it says arrives
// as events; how it ends says whose fault it was.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "bench/session.h"
#include "core/work_message.h"

namespace fdbench::bench {

// How to start a worker and speak with it. The worker reads one encoded request from stdin and writes encoded
// events, a line each, to file descriptor kWorkerEventFd. It exits with 0, or with an Exit code and one line
// on stderr.
struct WorkerProtocol {
  std::vector<std::string> argv;  // argv[0] is the program's path
  std::string (*encode_request)(const WorkRequest&) = nullptr;
  WorkEvent (*decode_event)(std::string_view line) = nullptr;
};

inline constexpr int kWorkerEventFd = 3;

enum class WorkerEnd {
  done,         // it said all it had to say
  died,         // a signal, or a non-zero exit
  hung,         // no sign of life for `silence_s`: it was killed
  interrupted,  // it was told to stop, and did, or was killed a little later
};

struct WorkerOutcome {
  WorkerEnd end = WorkerEnd::done;
  StepBegins last;      // the step it was in: the culprit of a death or a hang
  int exit_code = 0;    // of a worker that died by exiting
  std::string message;  // what it died of, in a sentence
};

// Throws Error where no process can be started.
WorkerOutcome run_worker(const WorkerProtocol& protocol, const WorkRequest& request, double silence_s,
                         const EventSink& emit, const std::atomic<bool>& interrupted);

}  // namespace fdbench::bench
