// `fdbench worker`, hidden: one process that measures one shape and says so on a pipe
// (bench/worker_process.h).
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <iterator>
#include <string>

#include "bench/session.h"
#include "bench/worker_process.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/open_device.h"
#include "io/work_codec.h"

namespace fdbench::cli {

namespace {

std::string read_stdin() {
  std::string text;
  char chunk[65536];
  for (ssize_t got; (got = ::read(STDIN_FILENO, chunk, sizeof chunk)) != 0;) {
    if (got > 0) text.append(chunk, static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) break;
  }
  return text;
}

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
  const WorkRequest request = io::decode_request(read_stdin());
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
