#include "cli/app.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <system_error>
#include <vector>

#include "cli/build_info.h"
#include "cli/commands.h"
#include "cli/say.h"

namespace fdbench::cli {

namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  fdbench run --seq 8192 --heads 32\n"
    "  fdbench run --suite seed --out results/\n"
    "  fdbench sweep --variant cpu_split_kv --seq 8192 --heads 32 -a chunk=64:4096*2\n"
    "  fdbench tune --heads 32 --kv-heads 8 --seq 512:131072*2\n"
    "  fdbench verify --seq 1,255,4096 --heads 32 --kv-heads 8\n"
    "\n"
    "Exit codes: 0 good, 1 a regression (compare), 2 usage, 3 a wrong result, 4 too noisy (only with\n"
    "--fail-noisy), 5 results not comparable, 6 a configuration failed or nothing was measured, 7 no such "
    "device,\n"
    "8 a result could not be written, 130 interrupted (partial results kept).";

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

// " (did you mean --heads?)" where one of `known` is close.
std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t distance = 3;
  for (const std::string& candidate : known) {
    const std::size_t d = edit_distance(word, candidate);
    if (d < distance) {
      distance = d;
      best = candidate;
    }
  }
  return best.empty() ? "" : "; did you mean " + best + "?";
}

// `message` with a flag's name in front replaced by the variable that stood in for it.
std::string blame_environment(std::string message, const std::vector<std::string>& argv,
                              const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string flag = option->get_name() + " ", variable = option->get_envname();
    if (!variable.empty() && message.rfind(flag, 0) == 0 && !is_typed(*option, argv))
      message.replace(0, flag.size(), variable + "=");
  }
  return message;
}

// What a user typed may hold anything, and a message is one line.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (std::iscntrl(static_cast<unsigned char>(c))) c = ' ';
  }
  return text;
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

// A flag whose value was forgotten takes the next flag for it, and the parser stumbles over what comes after.
std::string forgotten_value(const std::vector<std::string>& argv, const CLI::App& command) {
  for (std::size_t i = 0; i + 1 < argv.size(); ++i) {
    if (argv[i + 1].rfind("--", 0) != 0) continue;
    for (const CLI::Option* option : command.get_options()) {
      if (takes_value(*option) && option->check_name(argv[i]))
        return argv[i] + ": its value is missing before " + argv[i + 1] + ": " + option->get_description();
    }
  }
  return {};
}

// One line for what the parser refused.
std::string explain(const CLI::ParseError& error, const std::vector<std::string>& argv, const CLI::App& app,
                    const CLI::App* chosen) {
  const std::string see =
      chosen ? " (see fdbench " + chosen->get_name() + " --help)" : " (see fdbench --help)";
  const CLI::App& where = chosen ? *chosen : app;
  std::vector<std::string> flags, commands;
  for (const CLI::Option* option : where.get_options()) {
    if (!option->get_group().empty()) {
      for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    }
  }
  for (const CLI::App* command :
       app.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); })) {
    commands.push_back(command->get_name());
  }
  if (!chosen && argv.size() > 1 && argv[1].rfind('-', 0) != 0) {
    return "unknown command '" + argv[1] + "'" + suggestion(argv[1], commands) + see;
  }
  if (const std::string forgotten = forgotten_value(argv, where); !forgotten.empty()) return forgotten + see;
  if (const auto extras = where.remaining(); !extras.empty()) {
    const std::string flag = extras.front().substr(0, extras.front().find('='));
    if (flag.rfind('-', 0) != 0) return "unexpected argument '" + extras.front() + "'" + see;
    return "unknown flag " + flag + suggestion(flag, flags) +
           (chosen ? "" : "; flags come after a command: fdbench run " + flag) + see;
  }
  const std::string text = error.what();
  const auto bare = [](const std::string& name) { return name.substr(name.find_first_not_of('-')); };
  // The parser's own words for a missing or repeated value differ from version to version.
  for (const CLI::Option* option : where.get_options()) {
    const std::string name = option->get_name();
    if (name.empty()) continue;  // a hidden one
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) break;
    if (!takes_value(*option) && text.rfind(bare(name) + " ", 0) == 0) return name + " takes no value" + see;
    if (text.rfind(name + ":", 0) != 0) continue;
    const auto given = std::count_if(argv.begin(), argv.end(), [&](const std::string& word) {
      return option->check_name(word.substr(0, word.find('=')));
    });
    return name + (given > 1 ? ": is given more than once; give it once" : ": its value is missing") + ": " +
           option->get_description() + see;
  }
  return text + see;
}

// Refuses values that can't be meant: empty ones come from shell variables that are not set, and where the
// next flag stands in its place a value was forgotten. A switch has no value at all.
void refuse_odd_values(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands({})) {
    for (CLI::Option* option : command->get_options()) {
      if (!takes_value(*option)) {
        option->disable_flag_override();
        continue;
      }
      option->check([](const std::string& value) {
        if (value.rfind("--", 0) == 0) return "its value is missing before " + value;
        return value.empty() ? "its value is empty; give one or leave the flag out" : std::string();
      });
    }
  }
}

// A closed stdin, stdout or stderr would lend its number to the next file or pipe opened, and what is meant
// for the one would reach the other. Opened so, writing fails as it would have.
void occupy_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) < 0)
      static_cast<void>(open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY));
  }
}

// What was printed is on its way only if stdout took it.
Exit flushed(Exit code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  say(stderr, fmt::format("fdbench: stdout could not be written: {}\n", std::strerror(errno)));
  return code == Exit::interrupted ? code : Exit::not_written;
}

}  // namespace

bool is_typed(const CLI::Option& option, const std::vector<std::string>& argv) {
  return std::any_of(argv.begin(), argv.end(), [&](const std::string& word) {
    return option.check_name(word.substr(0, word.find('=')));
  });
}

Exit run_app(int argc, char** argv) {
  occupy_standard_descriptors();
  const std::vector<std::string> words(argv, argv + argc);
  CLI::App app{
      "fdbench measures, tunes and gates flash-decoding kernels: attention of one new token over a long KV "
      "cache,\n"
      "split along the sequence.",
      "fdbench"};
  app.footer(kFooter);
  app.set_version_flag("--version", [] {
    const ToolInfo tool = build_info();
    return fmt::format("fdbench {} ({}, {}, CUDA {})", tool.version, commit_text(tool), tool.compiler,
                       tool.cuda.empty() ? "off" : tool.cuda);
  });
  app.require_subcommand(1);
  const Command commands[] = {add_run(app, words),     add_sweep(app, words),  add_verify(app, words),
                              add_compare(app, words), add_doctor(app, words), add_list(app),
                              add_report(app),         add_rules(app, words),  add_tune(app, words),
                              add_schedule(app),       add_explain(app),       add_worker(app)};
  const auto chosen = [&]() -> const Command* {
    for (const Command& command : commands) {
      if (command.app->parsed()) return &command;
    }
    return nullptr;
  };
  refuse_odd_values(app);
  // A worker's one line becomes part of the runner's.
  const auto complain = [&](const std::string& message) {
    const Command* command = chosen();
    const bool worker = command && command->app->get_group().empty();
    const std::string blamed = command ? blame_environment(message, words, *command->app) : message;
    say(stderr, fmt::format("{}{}\n", worker ? "" : "fdbench: ", one_line(blamed)));
  };
  try {
    app.parse(argc, argv);
    return flushed(chosen()->execute());
  } catch (const CLI::Success& help) {  // --help, --version
    app.exit(help);
    return flushed(Exit::good);
  } catch (const CLI::ParseError& error) {
    if (argc == 1) {
      say(stdout, app.help());
      return Exit::usage;
    }
    complain(explain(error, words, app, chosen() ? chosen()->app : nullptr));
    return Exit::usage;
  } catch (const Error& error) {
    complain(error.what());
    return error.code();
  } catch (const std::system_error& error) {  // what printing to a full or closed stdout throws
    if (std::ferror(stdout) != 0) {
      complain(std::string("stdout could not be written: ") + error.code().message());
      return Exit::not_written;
    }
    complain(error.what());
    return Exit::failed;
  } catch (const std::exception& error) {
    complain(error.what());
    return Exit::failed;
  }
}

}  // namespace fdbench::cli
