// `fdbench run`: every variant on every shape.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/measure_command.h"
#include "cli/profile_store.h"
#include "cli/shape_options.h"

namespace fdbench::cli {

namespace {
struct RunFlags {
  ShapeOptions shapes;
  MeasureOptions measure;
  OutputOptions output;
  std::string resume;
  std::vector<std::string> variants;
  ProfileOptions profile;
};
}  // namespace

Command add_run(CLI::App& parent, const std::vector<std::string>& argv) {
  CLI::App* app = parent.add_subcommand("run", "measures every variant on every shape, checked and compared");
  auto flags = std::make_shared<RunFlags>();
  flags->shapes.add_to(*app);
  app->add_option("--variant", flags->variants,
                  "only these candidates (beside roof and reference); may be repeated")
      ->delimiter(',')
      ->group("Variants");
  flags->profile.add_to(*app);
  flags->measure.add_to(*app, true);
  flags->output.add_to(*app);
  app->add_flag("--plot", flags->output.plot, "also draw the bandwidth, in characters")->group("Output");
  app->add_option("--resume", flags->resume,
                  "go on from this result file: shapes finished in it are not measured again")
      ->group("Output");
  app->footer(
      "Examples:\n"
      "  fdbench run --seq 8192 --heads 32\n"
      "  fdbench run --seq 1024:131072*2 --heads 32 --kv-heads 8 --json results.json\n"
      "  fdbench run --suite seed --processes 5 --out results/\n"
      "  fdbench run --seq 8192 --heads 32 --device cpu --variant cpu_split_kv --csv -");
  return {app, [flags, argv] {
            MeasureCommand command;
            command.name = "run";
            command.argv = argv;
            command.shapes = flags->shapes.problems();
            command.variants = flags->variants;
            command.settings = flags->measure.settings();
            command.output = flags->output;
            command.resume = flags->resume;
            command.fail_noisy = flags->measure.fail_noisy;
            ProfiledRows profiled(flags->profile);
            command.rows_for = [profiled](const Variant& variant, const Problem& problem,
                                          const DeviceInfo& device) mutable {
              return profiled.rows(variant, problem, device);
            };
            command.remark = [profiled] { return profiled.remark(); };
            return measure(command);
          }};
}

}  // namespace fdbench::cli
