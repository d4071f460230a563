#include "io/run_json.h"

#include <utility>

#include "io/json_text.h"
#include "io/record_json.h"

namespace fdbench::io {

nlohmann::ordered_json json_of(const RunInfo& run) {
  nlohmann::ordered_json tool;
  tool["version"] = run.tool.version;
  tool["commit"] = text_or_null(run.tool.commit);
  tool["dirty"] = run.tool.dirty;
  tool["compiler"] = run.tool.compiler;
  tool["cuda"] = text_or_null(run.tool.cuda);
  tool["flags"] = run.tool.flags;
  tool["sources"] = text_or_null(run.tool.sources);
  nlohmann::ordered_json host;
  host["cpu"] = run.host.cpu;
  host["cores"] = run.host.cores;
  host["os"] = run.host.os;
  host["kernel"] = run.host.kernel;
  nlohmann::ordered_json out;
  out["id"] = run.id;
  out["command"] = run.command;
  out["started"] = run.started;
  out["argv"] = run.argv;
  if (!run.environment.empty()) out["environment"] = run.environment;
  out["cache"] = std::string(to_string(run.cache));
  out["timer"] = std::string(to_string(run.timer));
  out["seed"] = run.seed;
  out["inputs"] = run.inputs;
  out["processes"] = run.processes;
  out["interrupted"] = run.interrupted;
  out["tool"] = std::move(tool);
  out["host"] = std::move(host);
  out["device"] = io::json_of(run.device);
  return out;
}

RunInfo read_run(const Cursor& from) {
  RunInfo run;
  run.id = from.at("id").text();
  run.command = text_or(from, "command");
  run.started = text_or(from, "started");
  if (const auto argv = from.find("argv")) run.argv = texts(*argv);
  if (const auto environment = from.find("environment")) {
    environment->object();
    for (const auto& item : environment->node().items())
      run.environment[item.key()] = environment->at(item.key().c_str()).text();
  }
  run.cache = read_cache_mode(from.at("cache"));
  run.timer = read_timer_mode(from.at("timer"));
  run.seed = from.at("seed").unsigned_integer();
  run.inputs = from.at("inputs").text();
  run.processes = small_count_or(from, "processes", 1);
  run.interrupted = boolean_or(from, "interrupted", false);
  if (const auto tool = from.find("tool")) {
    run.tool.version = text_or(*tool, "version");
    run.tool.commit = text_or(*tool, "commit");
    run.tool.dirty = boolean_or(*tool, "dirty", false);
    run.tool.compiler = text_or(*tool, "compiler");
    run.tool.cuda = text_or(*tool, "cuda");
    run.tool.flags = text_or(*tool, "flags");
    run.tool.sources = text_or(*tool, "sources");
  }
  if (const auto host = from.find("host")) {
    run.host.cpu = text_or(*host, "cpu");
    run.host.cores = small_count_or(*host, "cores", 0);
    run.host.os = text_or(*host, "os");
    run.host.kernel = text_or(*host, "kernel");
  }
  const Cursor device = from.at("device");
  run.device = read_device(device);
  return run;
}

}  // namespace fdbench::io
