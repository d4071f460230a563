#include "cli/app.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "cli/build_info.h"
#include "cli/commands.h"

namespace fdbench::cli {

namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  fdbench run --seq 8192 --heads 32\n"
    "  fdbench run --suite seed --out results/\n"
    "  fdbench sweep --variant cpu_split_kv --seq 8192 --heads 32 -a chunk=64:4096*2\n"
    "  fdbench verify --seq 1,255,4096 --heads 32 --kv-heads 8\n"
    "\n"
    "Exit codes: 0 good, 2 usage, 3 a wrong result, 4 too noisy (only with --fail-noisy), 6 a configuration "
    "failed or\n"
    "nothing was measured, 7 no such device, 8 a result could not be written, 130 interrupted (partial "
    "results kept).";

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

// One line for what the parser refused.
std::string explain(const CLI::ParseError& error, const std::vector<std::string>& argv, const CLI::App& app,
                    const CLI::App* chosen) {
  const std::string help = chosen ? "fdbench " + chosen->get_name() + " --help" : "fdbench --help";
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
    return "unknown command '" + argv[1] + "'" + suggestion(argv[1], commands) + " (see " + help + ")";
  }
  if (const auto extras = where.remaining(); !extras.empty()) {
    const std::string flag = extras.front().substr(0, extras.front().find('='));
    if (flag.rfind('-', 0) == 0)
      return "unknown flag " + flag + suggestion(flag, flags) + " (see " + help + ")";
    return "unexpected argument '" + extras.front() + "' (see " + help + ")";
  }
  std::string text = error.what();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text + " (see " + help + ")";
}

}  // namespace

Exit run_app(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  CLI::App app{
      "fdbench measures, tunes and gates flash-decoding kernels: attention of one new token over a long KV "
      "cache,\n"
      "split along the sequence.",
      "fdbench"};
  app.footer(kFooter);
  app.set_version_flag("--version", [] {
    const ToolInfo tool = build_info();
    return fmt::format("fdbench {} ({}{}, {}, CUDA {})", tool.version, tool.commit,
                       tool.dirty ? "+changes" : "", tool.compiler, tool.cuda.empty() ? "off" : tool.cuda);
  });
  app.require_subcommand(1);
  const Command commands[] = {add_run(app, words), add_sweep(app, words), add_verify(app, words),
                              add_list(app), add_worker(app)};
  const auto chosen = [&]() -> const Command* {
    for (const Command& command : commands) {
      if (command.app->parsed()) return &command;
    }
    return nullptr;
  };
  try {
    app.parse(argc, argv);
    return chosen()->execute();
  } catch (const CLI::Success& help) {  // --help, --version
    app.exit(help);
    return Exit::good;
  } catch (const CLI::ParseError& error) {
    const Command* command = chosen();
    if (argc == 1) {
      fmt::print("{}", app.help());
      return Exit::usage;
    }
    fmt::print(stderr, "fdbench: {}\n", explain(error, words, app, command ? command->app : nullptr));
    return Exit::usage;
  } catch (const Error& error) {
    fmt::print(stderr, "fdbench: {}\n", error.what());
    return error.code();
  } catch (const std::exception& error) {
    fmt::print(stderr, "fdbench: {}\n", error.what());
    return Exit::failed;
  }
}

}  // namespace fdbench::cli
