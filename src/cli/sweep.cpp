// `fdbench sweep`: one variant over a grid of tuning points.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "backend/fake/fake_backend.h"
#include "cli/commands.h"
#include "cli/extents.h"
#include "cli/measure_command.h"
#include "cli/shape_options.h"
#include "cli/variant_table.h"

namespace fdbench::cli {

namespace {

struct SweepFlags {
  ShapeOptions shapes;
  MeasureOptions measure;
  OutputOptions output;
  std::string resume;
  std::string variant;
  std::vector<std::string> axes;
};

// The cross product of the axes, the last one fastest.
std::vector<TuningPoint> grid(const Variant& variant, const std::vector<std::string>& axes) {
  std::vector<TuningPoint> points{TuningPoint{}};
  for (const std::string& text : axes) {
    const AxisValues axis = parse_axis("-a", text);
    const auto known = [&](const Axis& one) { return one.name == axis.name; };
    if (std::none_of(variant.axes.begin(), variant.axes.end(), known)) {
      std::string names;
      for (const Axis& one : variant.axes) names += (names.empty() ? "" : ", ") + std::string(one.name);
      throw usage_error(fmt::format("-a {}: {} has no axis '{}'; it has {}", text, variant.name, axis.name,
                                    names.empty() ? "none" : names));
    }
    if (points.front().get(axis.name))
      throw usage_error(fmt::format("-a {}: {} is given twice", text, axis.name));
    if (points.size() * axis.values.size() > kMaxExtents) {
      throw usage_error(fmt::format("-a {}: the grid has more than {} points", text, kMaxExtents));
    }
    std::vector<TuningPoint> product;
    for (const TuningPoint& point : points) {
      for (const std::int64_t value : axis.values) {
        TuningPoint next = point;
        next.set(axis.name, value);
        if (std::find(product.begin(), product.end(), next) == product.end())
          product.push_back(std::move(next));
      }
    }
    points = std::move(product);
  }
  return points;
}

}  // namespace

Command add_sweep(CLI::App& parent, const std::vector<std::string>& argv) {
  CLI::App* app = parent.add_subcommand("sweep", "measures one variant over a grid of tuning points");
  auto flags = std::make_shared<SweepFlags>();
  flags->shapes.add_to(*app);
  app->add_option("--variant", flags->variant, "the variant to sweep")->group("Variants");
  app->add_option("-a,--axis", flags->axes,
                  "NAME=VALUES, one for each axis: chunk=64:4096*2; may be repeated")
      ->group("Variants");
  flags->measure.add_to(*app, true);
  flags->output.add_to(*app);
  app->add_flag("--plot", flags->output.plot, "also draw the bandwidth, in characters")->group("Output");
  app->add_option("--resume", flags->resume,
                  "go on from this result file: shapes finished in it are not measured again")
      ->group("Output");
  app->footer(
      "Examples:\n"
      "  fdbench sweep --variant cpu_split_kv --seq 8192 --heads 32 -a chunk=64:4096*2 -a threads=1,2\n"
      "  fdbench sweep --variant flash_decode_tma_dbf_k --seq 8192 --heads 32 -a chunk=64:4096*2 -a "
      "sm_multiple=1,2,4\n"
      "The axes of each variant: fdbench list variants");
  return {app, [flags, argv] {
            MeasureCommand command;
            command.name = "sweep";
            command.argv = argv;
            command.shapes = flags->shapes.problems();
            command.settings = flags->measure.settings();
            command.output = flags->output;
            command.resume = flags->resume;
            command.fail_noisy = flags->measure.fail_noisy;
            if (flags->variant.empty())
              throw usage_error("--variant is missing: which variant is to be swept?");
            if (flags->axes.empty())
              throw usage_error("-a is missing: over which axis? (-a chunk=64:4096*2, say)");
            const VariantTable table = flags->measure.script.empty() ? variant_table() : fake_variant_table();
            const Variant* variant = find_variant(table, flags->variant);
            if (!variant || variant->role == Role::oracle) {
              throw usage_error(fmt::format(
                  "--variant {}: no such variant to measure (fdbench list variants)", flags->variant));
            }
            command.variants = {flags->variant};
            command.points = grid(*variant, flags->axes);
            return measure(command);
          }};
}

}  // namespace fdbench::cli
