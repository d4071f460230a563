// The runner's side of a worker: one process, started by exec, that measures one shape. What it says arrives
// as events; how it ends says whose fault it was.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/session.h"
#include "core/work_message.h"

namespace fdbench::bench {

// How to start a worker and speak with it. The worker reads one encoded request from stdin (a steered one
// RoundsAsked after it, a line each) and writes encoded events, a line each, to file descriptor
// kWorkerEventFd. It exits with 0, or with an Exit code and one line on stderr.
struct WorkerProtocol {
  std::vector<std::string> argv;  // argv[0] is the program's path
  std::string (*encode_request)(const WorkRequest&) = nullptr;
  std::string (*encode_rounds)(const RoundsAsked&) = nullptr;  // of steered workers
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

// One worker, started and spoken with; killed with whatever it started when this goes.
class WorkerProcess {
 public:
  // Starts it and sends the request. Throws Error where no process can be started.
  WorkerProcess(const WorkerProtocol& protocol, const WorkRequest& request, double silence_s);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // A further line to its stdin; lost where it has gone.
  void send(std::string_view line);
  // It hears nothing more.
  void close_input();
  // Emits what it says until `last` holds for an event: true. False when it has ended instead; then there is
  // an outcome.
  bool pump(const EventSink& emit, const std::function<bool(const WorkEvent&)>& last,
            const std::atomic<bool>& interrupted);
  // How it ended. Throws what could not be decoded.
  WorkerOutcome outcome();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Starts a worker, sends the request and hears it to its end. Throws Error where no process can be started.
WorkerOutcome run_worker(const WorkerProtocol& protocol, const WorkRequest& request, double silence_s,
                         const EventSink& emit, const std::atomic<bool>& interrupted);

}  // namespace fdbench::bench
