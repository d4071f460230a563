#include "bench/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <optional>
#include <sstream>
#include <utility>

#include "core/error.h"
#include "core/seconds_since.h"

namespace fdbench::bench {

namespace {

using Clock = std::chrono::steady_clock;

// How long a worker that was told to stop may take to finish its sample.
constexpr double kGraceSeconds = 5.0;
constexpr std::size_t kKeptStderr = 4096;

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_, O_CLOEXEC) != 0)
      throw Error(Exit::failed, std::string("no pipe to a worker: ") + std::strerror(errno));
  }
  ~Pipe() {
    close_read();
    close_write();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_read() { close_end(0); }
  void close_write() { close_end(1); }

 private:
  void close_end(int i) {
    if (ends_[i] >= 0) ::close(std::exchange(ends_[i], -1));
  }
  int ends_[2] = {-1, -1};
};

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return;  // the worker has gone; its end tells more than this would
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Puts `fd` at number `to` in the child, whatever numbers the two have.
void place(int fd, int to) {
  if (fd == to) {
    fcntl(fd, F_SETFD, 0);
  } else {
    dup2(fd, to);
  }
}

pid_t start(const std::vector<std::string>& argv, const Pipe& in, const Pipe& events, const Pipe& errors) {
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw Error(Exit::failed, std::string("no worker could be started: ") + std::strerror(errno));
  if (pid > 0) {
    setpgid(pid, pid);  // here too: nobody knows who comes first
    return pid;
  }
  // A group of its own: Ctrl-C reaches the runner alone, which then asks the worker to stop.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  // Clear of the numbers about to be taken.
  const int in_fd = fcntl(in.read_end(), F_DUPFD, 16), event_fd = fcntl(events.write_end(), F_DUPFD, 16),
            error_fd = fcntl(errors.write_end(), F_DUPFD, 16);
  place(in_fd, STDIN_FILENO);
  place(event_fd, kWorkerEventFd);
  place(error_fd, STDERR_FILENO);
  place(error_fd, STDOUT_FILENO);
  ::close(in_fd);
  ::close(event_fd);
  ::close(error_fd);
  execv(arguments[0], arguments.data());
  _exit(127);
}

// With whatever it started itself, which would hold its pipes open.
void kill_group(pid_t pid) {
  if (kill(-pid, SIGKILL) != 0) kill(pid, SIGKILL);
}

// The last line of what the worker said on stderr: programs say last what they died of.
std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  const auto at = text.rfind('\n');
  return at == std::string::npos ? text : text.substr(at + 1);
}

// Reads what there is; false at the end of the stream.
bool read_some(int fd, std::string& into) {
  char chunk[65536];
  const ssize_t got = ::read(fd, chunk, sizeof chunk);
  if (got > 0) into.append(chunk, static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN));
}

}  // namespace

struct WorkerProcess::State {
  const WorkerProtocol protocol;
  const double silence_s;
  Pipe in, events, errors;
  pid_t pid = -1;
  WorkerOutcome outcome;
  std::string line, said;
  Clock::time_point life = Clock::now();
  std::optional<Clock::time_point> told, killed;
  bool finished = false, hung = false, events_open = true, errors_open = true, waited = false;
  int status = 0;
  std::exception_ptr undecodable;

  State(const WorkerProtocol& with, double silence) : protocol(with), silence_s(silence) {}

  void end_it() {
    if (!killed) killed = Clock::now();
    kill_group(pid);
  }

  void wait() {
    if (waited) return;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    waited = true;
  }

  // Emits the whole lines that have come; true where `last` is among them.
  bool take_lines(const EventSink& emit, const std::function<bool(const WorkEvent&)>& last) {
    bool found = false;
    std::size_t begin = 0;
    for (std::size_t end; (end = line.find('\n', begin)) != std::string::npos; begin = end + 1) {
      life = Clock::now();
      if (undecodable) continue;
      try {
        const WorkEvent event = protocol.decode_event(std::string_view(line).substr(begin, end - begin));
        if (const auto* step = std::get_if<StepBegins>(&event)) outcome.last = *step;
        if (std::holds_alternative<WorkDone>(event)) finished = true;
        emit(event);
        found = found || last(event);
      } catch (...) {
        undecodable = std::current_exception();
        end_it();
      }
    }
    line.erase(0, begin);
    return found;
  }
};

WorkerProcess::WorkerProcess(const WorkerProtocol& protocol, const WorkRequest& request, double silence_s)
    : state_(std::make_unique<State>(protocol, silence_s)) {
  State& s = *state_;
  s.pid = start(protocol.argv, s.in, s.events, s.errors);
  s.in.close_read();
  s.events.close_write();
  s.errors.close_write();
  send(protocol.encode_request(request));
}

WorkerProcess::~WorkerProcess() {
  if (!state_->waited) {
    kill_group(state_->pid);
    state_->wait();
  }
}

void WorkerProcess::send(std::string_view text) {
  struct sigaction ignore = {}, before = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &before);
  write_all(state_->in.write_end(), std::string(text) + "\n");
  sigaction(SIGPIPE, &before, nullptr);
}

void WorkerProcess::close_input() {
  state_->in.close_write();
}

bool WorkerProcess::pump(const EventSink& emit, const std::function<bool(const WorkEvent&)>& last,
                         const std::atomic<bool>& interrupted) {
  State& s = *state_;
  s.life = Clock::now();
  while (s.events_open || s.errors_open) {
    pollfd waiting[2] = {{s.events_open ? s.events.read_end() : -1, POLLIN, 0},
                         {s.errors_open ? s.errors.read_end() : -1, POLLIN, 0}};
    poll(waiting, 2, 100);
    if (interrupted && !s.told) {
      s.told = Clock::now();
      kill(s.pid, SIGINT);
      close_input();
    }
    if (s.told && seconds_since(*s.told) > kGraceSeconds) s.end_it();
    if (!s.told && !s.hung && seconds_since(s.life) > s.silence_s) {
      s.hung = true;
      s.end_it();
    }
    // What left the group may hold the pipes for ever.
    if (s.killed && seconds_since(*s.killed) > kGraceSeconds) break;
    if (waiting[0].revents != 0) {
      s.events_open = read_some(s.events.read_end(), s.line);
      if (s.take_lines(emit, last) && !s.told) return true;
    }
    if (waiting[1].revents != 0) {
      s.errors_open = read_some(s.errors.read_end(), s.said);
      if (s.said.size() > 2 * kKeptStderr) s.said.erase(0, s.said.size() - kKeptStderr);
    }
  }
  return false;
}

WorkerOutcome WorkerProcess::outcome() {
  State& s = *state_;
  s.wait();
  if (s.undecodable) std::rethrow_exception(s.undecodable);
  WorkerOutcome& outcome = s.outcome;
  if (s.told) {
    outcome.end = WorkerEnd::interrupted;
  } else if (s.hung) {
    outcome.end = WorkerEnd::hung;
    std::ostringstream seconds;
    seconds << s.silence_s;
    outcome.message = "no sign of life for " + seconds.str() + " s";
  } else if (WIFSIGNALED(s.status)) {
    outcome.end = WorkerEnd::died;
    outcome.message = std::string("killed by signal ") + std::to_string(WTERMSIG(s.status)) + " (" +
                      strsignal(WTERMSIG(s.status)) + ")";
    if (const std::string why = last_line(s.said); !why.empty()) outcome.message += ": " + why;
  } else if (WEXITSTATUS(s.status) != 0 || !s.finished) {
    outcome.end = WorkerEnd::died;
    outcome.exit_code = WEXITSTATUS(s.status);
    outcome.message = last_line(s.said);
    if (outcome.message.empty())
      outcome.message = "it exited with " + std::to_string(WEXITSTATUS(s.status)) + ", saying nothing";
  }
  return outcome;
}

WorkerOutcome run_worker(const WorkerProtocol& protocol, const WorkRequest& request, double silence_s,
                         const EventSink& emit, const std::atomic<bool>& interrupted) {
  WorkerProcess worker(protocol, request, silence_s);
  worker.close_input();
  worker.pump(
      emit, [](const WorkEvent&) { return false; }, interrupted);
  return worker.outcome();
}

}  // namespace fdbench::bench
