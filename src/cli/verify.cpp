// `fdbench verify`: are the results right? Nothing is timed.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/measure_command.h"
#include "cli/shape_options.h"

namespace fdbench::cli {

namespace {
struct VerifyFlags {
  ShapeOptions shapes;
  MeasureOptions measure;
  OutputOptions output;
  std::vector<std::string> variants;
};
}  // namespace

Command add_verify(CLI::App& parent, const std::vector<std::string>& argv) {
  CLI::App* app =
      parent.add_subcommand("verify", "checks every variant against a float64 oracle; times nothing");
  auto flags = std::make_shared<VerifyFlags>();
  flags->shapes.add_to(*app);
  app->add_option("--variant", flags->variants,
                  "only these candidates (beside the reference); may be repeated")
      ->delimiter(',')
      ->group("Variants");
  flags->measure.add_to(*app, false);
  flags->output.add_to(*app);
  app->footer(
      "Examples:\n"
      "  fdbench verify --seq 8192 --heads 32\n"
      "  fdbench verify --seq 1,63,64,65,4096 --heads 32 --kv-heads 8 --dim 64,128\n"
      "  fdbench verify --suite smoke --seed 7");
  return {app, [flags, argv] {
            MeasureCommand command;
            command.name = "verify";
            command.argv = argv;
            command.shapes = flags->shapes.problems();
            command.variants = flags->variants;
            command.settings = flags->measure.settings();
            command.settings.measure.measure = false;
            command.output = flags->output;
            return measure(command);
          }};
}

}  // namespace fdbench::cli
