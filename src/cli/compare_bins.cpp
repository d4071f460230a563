#include "cli/compare_bins.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>

#include "core/error.h"
#include "io/file.h"
#include "io/result_json.h"
#include "io/suite.h"

namespace fdbench::cli {

namespace {

namespace fs = std::filesystem;

constexpr auto kPollEvery = std::chrono::milliseconds(100);

struct Ended {
  int exit_code = 0;
  std::string said;  // the last line on stderr
};

std::string last_line(const std::string& path) {
  std::string text;
  try {
    text = io::read_file(path);
  } catch (const Error&) {
    return {};
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const auto at = text.rfind('\n');
  return at == std::string::npos ? text : text.substr(at + 1);
}

Ended run_program(const std::vector<std::string>& words, const std::string& stderr_path,
                  const std::atomic<bool>& interrupted) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, stderr_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  pid_t pid = -1;
  const int failure = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0)
    throw usage_error(fmt::format("--bin {}: can't be started: {}", words[0], std::strerror(failure)));
  int status = 0;
  bool told = false;
  for (pid_t got; (got = waitpid(pid, &status, WNOHANG)) != pid;) {
    if (got < 0 && errno != EINTR) break;
    if (interrupted && !told) {
      told = true;
      kill(pid, SIGINT);
    }
    std::this_thread::sleep_for(kPollEvery);
  }
  if (interrupted) throw Error(Exit::interrupted, "interrupted before there was anything to compare");
  Ended ended;
  ended.said = last_line(stderr_path);
  if (WIFSIGNALED(status)) {
    throw usage_error(fmt::format("--bin {}: killed by signal {} ({}) {}", words[0], WTERMSIG(status),
                                  strsignal(WTERMSIG(status)), ended.said));
  }
  ended.exit_code = WEXITSTATUS(status);
  return ended;
}

// What a run that ended so has left can be compared; else throws.
void hold_to(const std::string& program, const Ended& ended) {
  switch (static_cast<Exit>(ended.exit_code)) {
    case Exit::good:
    case Exit::wrong_result:
    case Exit::too_noisy:
    case Exit::failed:
      return;
    case Exit::no_device:
      throw Error(Exit::no_device, fmt::format("--bin {}: {}", program, ended.said));
    default:
      throw usage_error(fmt::format("--bin {}: exit code {}: {}", program, ended.exit_code,
                                    ended.said.empty() ? "it said nothing" : ended.said));
  }
}

}  // namespace

BuildResults measure_in_turn(const Builds& builds, const std::string& stage, int processes,
                             const std::vector<Problem>& shapes, const std::vector<std::string>& variants,
                             const std::function<void(int done, int of)>& progress,
                             const std::atomic<bool>& interrupted) {
  const std::string prefix = builds.folder + "/" + stage;
  // Both measure the same shapes, whatever suites each was built with.
  const std::string suite = prefix + "-shapes.json";
  io::write_atomically(suite, io::to_json(io::Suite{"compare", "what is compared", shapes}));
  std::string names;
  for (const std::string& variant : variants) names += (names.empty() ? "" : ",") + variant;

  BuildResults results;
  const auto measure = [&](bool is_new, int process) {
    const std::string& program = is_new ? builds.now : builds.base;
    const std::string name = fmt::format("{}-{}-{}", prefix, is_new ? "new" : "base", process);
    const std::string json = name + ".json";
    std::vector<std::string> words{program, "run", "--suite", suite, "--json", json, "--quiet"};
    if (!names.empty()) words.insert(words.end(), {"--variant", names});
    words.insert(words.end(), builds.arguments.begin(), builds.arguments.end());
    if (is_new) words.insert(words.end(), builds.only_new.begin(), builds.only_new.end());
    std::error_code ignored;
    fs::remove(json, ignored);
    const Ended ended = run_program(words, name + ".stderr", interrupted);
    hold_to(program, ended);
    if (!fs::exists(json, ignored))
      throw usage_error(fmt::format("--bin {}: wrote no results; is it fdbench?", program));
    (is_new ? results.now : results.base).push_back(io::read_result_file(json));
    (is_new ? results.new_names : results.base_names).push_back(json);
  };
  for (int process = 0; process < processes; ++process) {
    const bool new_first = process % 2 == 1;
    progress(2 * process, 2 * processes);
    measure(new_first, process);
    progress(2 * process + 1, 2 * processes);
    measure(!new_first, process);
  }
  return results;
}

ScratchFolder::ScratchFolder() {
  std::error_code none;
  fs::path base = fs::temp_directory_path(none);
  if (none) base = "/tmp";
  std::string pattern = (base / "fdbench-compare-XXXXXX").string();
  if (!mkdtemp(pattern.data()))
    throw Error(Exit::not_written, fmt::format("{}: no folder could be made for what the builds write: {}",
                                               pattern, std::strerror(errno)));
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace fdbench::cli
