#include "cli/measure_command.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "backend/fake/fake_backend.h"
#include "bench/session.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/result_writer.h"
#include "cli/resume.h"
#include "cli/run_info.h"
#include "cli/say.h"
#include "cli/variant_table.h"
#include "core/byte_sum.h"
#include "io/file.h"
#include "io/work_codec.h"
#include "report/plot.h"
#include "report/table.h"
#include "tune/search_space.h"

namespace fdbench::cli {

namespace {

std::string names_of(VariantTable table) {
  std::string names;
  for (const Variant* variant : table) {
    if (variant->role != Role::oracle) names += (names.empty() ? "" : ", ") + std::string(variant->name);
  }
  return names;
}

// Every row that any device might measure: the survey leaves out what is not for its own.
std::vector<WorkItem> possible_items(const MeasureCommand& command, VariantTable table) {
  std::vector<WorkItem> items;
  for (const Variant* variant : table) {
    if (variant->role == Role::oracle) continue;
    const bool candidate = variant->role == Role::candidate;
    const auto& names = command.variants;
    const bool named = std::find(names.begin(), names.end(), variant->name) != names.end();
    // Roof and reference always take part as they are; swept, at the points too.
    if (!candidate) items.push_back({std::string(variant->name), {}});
    if (!named && !(candidate && names.empty())) continue;
    for (const TuningPoint& point : command.points) {
      if (candidate || !point.empty()) items.push_back({std::string(variant->name), point});
    }
  }
  return items;
}

void check_names(const MeasureCommand& command, VariantTable table) {
  for (const std::string& name : command.variants) {
    const Variant* variant = find_variant(table, name);
    if (!variant)
      throw usage_error(fmt::format("--variant {}: no such variant; there are {}", name, names_of(table)));
    if (variant->role == Role::oracle) {
      throw usage_error(
          fmt::format("--variant {}: it is what results are checked against, and is never measured; "
                      "there are {}",
                      name, names_of(table)));
    }
  }
}

// The rows of every shape on this device: roof, reference, then the candidates.
std::vector<bench::RowRequest> rows_on(const MeasureCommand& command, VariantTable table,
                                       const DeviceInfo& device) {
  for (const std::string& name : command.variants) {
    const Variant* variant = find_variant(table, name);
    if (variant->backend != device.kind) {
      throw usage_error(
          fmt::format("--variant {}: it runs on {}, and the device is {}; --device {} would measure it", name,
                      to_string(variant->backend), to_string(device.kind), to_string(variant->backend)));
    }
  }
  std::vector<bench::RowRequest> rows;
  for (const Role role : {Role::roof, Role::reference, Role::candidate}) {
    for (const WorkItem& item : possible_items(command, table)) {
      const Variant* variant = find_variant(table, item.variant);
      if (variant->backend != device.kind || variant->role != role) continue;
      rows.push_back({variant, item.tuning, item.tuning.empty() ? "default" : "flag"});
    }
  }
  return rows;
}

// The same with each candidate's rows made for the shape.
std::vector<bench::RowRequest> rows_on_shape(const MeasureCommand& command,
                                             const std::vector<bench::RowRequest>& rows, const Problem& shape,
                                             const DeviceInfo& device) {
  if (!command.rows_for) return rows;
  std::vector<bench::RowRequest> made;
  for (const bench::RowRequest& row : rows) {
    if (row.variant->role != Role::candidate) {
      made.push_back(row);
      continue;
    }
    for (bench::RowRequest& one : command.rows_for(*row.variant, shape, device))
      made.push_back(std::move(one));
  }
  return made;
}

std::string gigabytes(std::int64_t bytes) {
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9);
}

std::int64_t workspace_of(const bench::RowRequest& row, const Problem& shape, const DeviceInfo& device) {
  const PlanResult planned = make_plan(*row.variant, shape, device, row.tuning);
  const auto* plan = std::get_if<LaunchPlan>(&planned);
  return plan ? tune::workspace_bytes(*plan) : 0;
}

// Workspaces of rows that the survey did not know of.
void count_workspaces(const std::vector<bench::RowRequest>& rows, const Problem& shape,
                      const DeviceInfo& device, bench::Survey::Memory& memory) {
  for (const bench::RowRequest& row : rows) {
    if (!row.tuning.empty()) memory.needed = add_bytes(memory.needed, workspace_of(row, shape, device));
  }
}

// What to do about a shape that needs too much: where it would have fitted without the rows that can be left
// out, the one that takes the most of them.
std::string way_out(const bench::ShapeWork& work, const DeviceInfo& device,
                    const bench::Survey::Memory& memory) {
  const bench::RowRequest* largest = nullptr;
  std::int64_t most = 0, all = 0;
  for (const bench::RowRequest& row : work.rows) {
    if (row.variant->role != Role::candidate && row.tuning.empty()) continue;
    const std::int64_t bytes = workspace_of(row, work.problem, device);
    all = add_bytes(all, bytes);
    if (bytes <= most) continue;
    most = bytes;
    largest = &row;
  }
  const bool counted = static_cast<double>(memory.needed) <= bench::kBeyondMemory;
  if (!largest || !counted || memory.needed - all > memory.available) return "choose a smaller shape";
  const std::string name = name_with(largest->variant->name, largest->tuning);
  if (memory.needed - most <= memory.available)
    return fmt::format("{} alone takes {} of it, leave it out", name, gigabytes(most));
  return fmt::format("workspaces take {} of it, most of all {}, {}: leave the largest out", gigabytes(all),
                     name, gigabytes(most));
}

// The table goes to stdout, or to stderr when something else takes stdout.
std::FILE* table_stream(const OutputOptions& output) {
  return output.stdout_taken() ? stderr : stdout;
}

bool use_color(const OutputOptions& output) {
  const char* none = std::getenv("NO_COLOR");
  return !output.no_color && (!none || !*none) && isatty(fileno(table_stream(output)));
}

}  // namespace

VariantTable table_for(const bench::RunSettings& settings) {
  return settings.script.empty() ? variant_table() : fake_variant_table();
}

void check_memory(const bench::Survey& survey, const std::vector<bench::ShapeWork>& shapes) {
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    const auto& memory = survey.memory[s];
    if (memory.needed > memory.available) {
      const Problem& p = shapes[s].problem;
      throw usage_error(fmt::format(
          "--seq {} --heads {} --kv-heads {} --dim {}: {} {} of memory (inputs, flush buffer, "
          "workspaces, oracle), and {} has {} available; {}",
          p.seq, p.heads, p.kv_heads, p.dim, memory.needed < kMostBytes ? "needs" : "could need more than",
          gigabytes(memory.needed), survey.device.name, gigabytes(memory.available),
          way_out(shapes[s], survey.device, memory)));
    }
  }
}

bench::WorkerProtocol worker_protocol() {
  bench::WorkerProtocol protocol;
  // This very binary, also when another has been built over it meanwhile.
  protocol.argv = {"/proc/self/exe", "worker"};
  protocol.encode_request = [](const WorkRequest& request) { return io::encode(request); };
  protocol.encode_rounds = [](const RoundsAsked& asked) { return io::encode(asked); };
  protocol.decode_event = io::decode_event;
  return protocol;
}

Exit exit_for_rows(const std::vector<ResultRecord>& rows, bool fail_noisy) {
  const auto any = [&](const auto& holds) { return std::any_of(rows.begin(), rows.end(), holds); };
  if (any([](const ResultRecord& row) { return row.status == Status::incorrect; })) return Exit::wrong_result;
  if (fail_noisy && any([](const ResultRecord& row) {
        return row.time && row.time->stop != "converged" && row.time->stop != "fixed_rounds";
      })) {
    return Exit::too_noisy;
  }
  if (any([](const ResultRecord& row) {
        return row.status == Status::failed || row.status == Status::timeout;
      })) {
    return Exit::failed;
  }
  // Roof and reference alone are something only where no candidate was asked for.
  const bool candidates = any([](const ResultRecord& row) { return row.role == Role::candidate; });
  const bool measured = any([&](const ResultRecord& row) {
    return row.status == Status::ok && (row.role == Role::candidate || !candidates);
  });
  return measured ? Exit::good : Exit::failed;
}

Exit measure(const MeasureCommand& command) {
  watch_for_interrupts();
  const VariantTable table = table_for(command.settings);
  check_names(command, table);
  const bench::WorkerProtocol protocol = worker_protocol();
  bench::Survey survey = bench::survey(protocol, command.settings, command.shapes,
                                       possible_items(command, table), interrupted());
  const std::vector<bench::RowRequest> rows = rows_on(command, table, survey.device);
  std::vector<bench::ShapeWork> work;
  for (const Problem& shape : command.shapes) {
    work.push_back({shape, rows_on_shape(command, rows, shape, survey.device)});
    if (command.rows_for)
      count_workspaces(work.back().rows, shape, survey.device, survey.memory[work.size() - 1]);
  }
  check_memory(survey, work);

  ResultFile file;
  file.run = make_run_info(command.name, command.argv, survey.device, command.settings.measure,
                           command.settings.processes);
  if (!command.resume.empty()) {
    // Going on in the same file is fine; its rows as CSV or Markdown in its place would lose it.
    for (const auto& [flag, path] : {std::pair<const char*, const std::string&>{"--csv", command.output.csv},
                                     {"--md", command.output.md}})
      io::refuse_overwriting(path, flag, {command.resume}, "--resume");
  }
  const Resumed resumed(command.resume, file.run, work);
  ResultWriter writer(command.output, file.run);

  std::FILE* out = table_stream(command.output);
  const report::TableStyle style{use_color(command.output), report::shown_of(file.run)};
  const std::string remark = command.remark ? command.remark() : std::string();
  if (!command.output.quiet) {
    say(out, report::device_line(file.run, survey.why) + (remark.empty() ? "" : "; " + remark) + "\n");
    if (!command.resume.empty())
      say(out, fmt::format("shapes taken over from {}: {} of {}\n", command.resume, resumed.shapes_kept(),
                           command.shapes.size()));
  }
  std::fflush(out);  // also into a pipe: what is measured is said before it is
  Progress progress(work, command.settings,
                    (command.quiet_progress || !command.output.quiet) && isatty(fileno(stderr)));

  std::set<std::string> printed;
  // The tables of shapes that have not been printed yet; of `only` where it is given.
  const auto print_tables = [&](const std::vector<ResultRecord>& all, const Problem* only) {
    if (command.output.quiet || !command.shape_tables) return;
    progress.clear();
    report::for_each_shape(all, [&](std::span<const ResultRecord> shape) {
      const Problem& problem = shape.front().problem;
      if (only && !(problem == *only)) return;
      if (printed.insert(shape_id(problem)).second) say(out, "\n" + report::shape_table(shape, style));
    });
    std::fflush(out);
  };
  int current_shape = 0, current_process = 0;
  bench::RunObserver observer;
  observer.shape_begins = [&](int shape, int process) {
    current_shape = shape;
    current_process = process;
    progress.shape_begins(shape, process);
  };
  observer.event = [&](const WorkEvent& event) { progress.event(event); };
  observer.rows_changed = [&](const std::vector<ResultRecord>& all) {
    file.results = resumed.with(all);
    file.run.interrupted = interrupted();
    writer.write(file);
    // A shape's table is complete with its last process.
    if (current_process + 1 == command.settings.processes)
      print_tables(all, &work[static_cast<std::size_t>(current_shape)].problem);
  };
  int left_out = 0;
  observer.budget_spent = [&](int shapes) { left_out = shapes; };

  file.results = resumed.with(bench::run_shapes(protocol, command.settings, work, observer, interrupted()));
  file.run.interrupted = interrupted();
  // Those whose last process was not reached.
  print_tables(file.results, nullptr);
  progress.clear();
  if (command.output.plot) {
    const std::string plot = report::plot_text(file.results, {});
    say(out, plot.empty() ? "\nNothing to plot: it takes two sequence lengths, or a sweep\n" : "\n" + plot);
  }
  writer.write(file);
  writer.write_stdout(file);
  if (command.finish) command.finish(file, out);
  if (left_out > 0)
    say(stderr, fmt::format("fdbench: --budget was spent; measurements of a shape left out: {}\n", left_out));
  if (!command.output.quiet && !writer.failed()) {
    for (std::size_t i = 0; i < writer.paths().size(); ++i)
      say(out, fmt::format("{}wrote {}\n", i == 0 ? "\n" : "", writer.paths()[i]));
  }
  if (interrupted()) {
    say(stderr, fmt::format("fdbench: interrupted; {} rows were kept\n", file.results.size()));
    return Exit::interrupted;
  }
  if (writer.failed()) return Exit::not_written;
  return exit_for_rows(file.results, command.fail_noisy);
}

}  // namespace fdbench::cli
