// `fdbench worker`, hidden: one process that measures one shape and says so on a pipe
// (bench/worker_process.h).
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "bench/session.h"
#include "bench/worker_process.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/open_device.h"
#include "io/work_codec.h"

namespace fdbench::cli {

namespace {

// The next line from stdin, or nothing at its end.
class Lines {
 public:
  std::optional<std::string> next() {
    while (true) {
      if (const auto end = text_.find('\n'); end != std::string::npos) {
        std::string line = text_.substr(0, end);
        text_.erase(0, end + 1);
        return line;
      }
      char chunk[65536];
      const ssize_t got = ::read(STDIN_FILENO, chunk, sizeof chunk);
      if (got > 0) text_.append(chunk, static_cast<std::size_t>(got));
      // A signal asks to stop, and nothing more may come.
      if (got < 0 && errno == EINTR && !interrupted()) continue;
      if (got <= 0) return text_.empty() ? std::nullopt : std::optional(std::exchange(text_, {}));
    }
  }

 private:
  std::string text_;
};

void send(const WorkEvent& event) {
  const std::string line = io::encode(event) + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t written = ::write(bench::kWorkerEventFd, line.data() + sent, line.size() - sent);
    if (written > 0) {
      sent += static_cast<std::size_t>(written);
    } else if (errno != EINTR) {
      _exit(static_cast<int>(Exit::failed));  // the runner has gone: nobody listens
    }
  }
}

// Every variant that could take part on `device`: those named, or all.
std::vector<WorkItem> items_on(VariantTable table, BackendKind device, const std::vector<WorkItem>& named) {
  std::vector<WorkItem> items;
  for (const WorkItem& item : named) {
    const Variant* variant = find_variant(table, item.variant);
    if (variant && variant->backend == device) items.push_back(item);
  }
  return items;
}

Exit work() {
  Lines lines;
  const WorkRequest request = io::decode_request(lines.next().value_or(""));
  watch_for_interrupts();
  OpenedDevice opened = open_device(request.device, request.script, request.dirty_flush);
  send(DeviceFound{opened.backend->device(), opened.why});
  if (request.survey) {
    const auto items = items_on(opened.table, opened.backend->device().kind, request.items);
    for (std::size_t s = 0; s < request.shapes.size(); ++s) {
      const std::int64_t needed =
          bench::memory_needed(*opened.backend, opened.table, request.shapes[s], items, request.settings);
      send(MemoryCounted{static_cast<int>(s), needed, opened.backend->device().memory_available_bytes});
    }
    send(WorkDone{});
  } else if (request.steered) {
    const auto next = [&]() -> std::optional<RoundsAsked> {
      const auto line = lines.next();
      if (!line || interrupted()) return std::nullopt;
      return io::decode_rounds_asked(*line);
    };
    bench::run_steered_session(*opened.backend, opened.table, request, next, send, interrupted());
  } else {
    bench::run_session(*opened.backend, opened.table, request, send, interrupted());
  }
  return Exit::good;
}

}  // namespace

Command add_worker(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("worker", "measures one shape for a running fdbench");
  app->group("");
  return {app, work};
}

}  // namespace fdbench::cli
