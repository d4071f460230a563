// The subcommands, one file each. `add_*` declares flags and help on `app` and returns what to do when it was
// the one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/error.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace fdbench::cli {

struct Command {
  CLI::App* app = nullptr;
  std::function<Exit()> execute;
};

Command add_run(CLI::App& parent, const std::vector<std::string>& argv);
Command add_sweep(CLI::App& parent, const std::vector<std::string>& argv);
Command add_verify(CLI::App& parent, const std::vector<std::string>& argv);
Command add_list(CLI::App& parent);
Command add_report(CLI::App& parent);
Command add_compare(CLI::App& parent, const std::vector<std::string>& argv);
Command add_doctor(CLI::App& parent, const std::vector<std::string>& argv);
Command add_tune(CLI::App& parent, const std::vector<std::string>& argv);
Command add_rules(CLI::App& parent, const std::vector<std::string>& argv);
Command add_schedule(CLI::App& parent);
Command add_explain(CLI::App& parent);
Command add_worker(CLI::App& parent);  // hidden: what the runner starts

// Whether the user typed this flag: what was not typed came from the environment.
bool is_typed(const CLI::Option& option, const std::vector<std::string>& argv);

}  // namespace fdbench::cli
