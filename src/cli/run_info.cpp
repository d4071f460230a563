#include "cli/run_info.h"

#include <fmt/core.h>
#include <sys/utsname.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <random>

#include "backend/cpu/cpu_backend.h"
#include "cli/build_info.h"
#include "core/input_recipe.h"

namespace fdbench::cli {

namespace {

std::string utc_now(const char* format) {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[64];
  std::strftime(text, sizeof text, format, &utc);
  return text;
}

std::string os_name() {
  std::ifstream release("/etc/os-release");
  constexpr std::string_view key = "PRETTY_NAME=\"";
  for (std::string line; std::getline(release, line);) {
    if (line.rfind(key, 0) == 0) return line.substr(key.size(), line.rfind('"') - key.size());
  }
  return "unknown";
}

// What flags of measuring are also taken from.
constexpr const char* kVariables[] = {"FDBENCH_ROUNDS", "FDBENCH_MAX_NOISE", "FDBENCH_MAX_TIME",
                                      "FDBENCH_CACHE",  "FDBENCH_TIMER",     "FDBENCH_SEED",
                                      "FDBENCH_DEVICE", "FDBENCH_PROCESSES", "FDBENCH_BUDGET"};

}  // namespace

RunInfo make_run_info(const std::string& command, const std::vector<std::string>& argv,
                      const DeviceInfo& device, const MeasureSettings& settings, int processes) {
  RunInfo run;
  std::random_device random;
  run.id = fmt::format("{:08x}{:08x}", random(), random());
  run.command = command;
  run.started = utc_now("%Y-%m-%dT%H:%M:%SZ");
  run.argv = argv;
  // The program's name, not where it lies.
  if (!run.argv.empty()) run.argv.front() = "fdbench";
  for (const char* name : kVariables) {
    if (const char* value = std::getenv(name)) run.environment[name] = value;
  }
  run.cache = settings.cache;
  run.timer = settings.timer;
  run.seed = settings.seed;
  run.inputs = fmt::format("{}/{}", kInputRecipeName, kInputRecipeVersion);
  run.processes = processes;
  run.tool = build_info();
  const DeviceInfo cpu = cpu_device_info({});
  run.host.cpu = cpu.name;
  run.host.cores = cpu.sms;
  run.host.os = os_name();
  utsname kernel = {};
  if (uname(&kernel) == 0) run.host.kernel = kernel.release;
  run.device = device;
  return run;
}

std::string dated_name(const RunInfo& run) {
  std::string stamp;
  for (const char c : run.started) {
    if (c != '-' && c != ':') stamp += c;
  }
  return fmt::format("{}-{}-{}", stamp, run.command, run.tool.commit);
}

}  // namespace fdbench::cli
