// What `fdbench tune` was asked for.
#pragma once

#include <string>
#include <vector>

#include "cli/measure_options.h"
#include "cli/shape_options.h"
#include "core/error.h"
#include "core/variant.h"
#include "tune/search.h"
#include "tune/search_space.h"

namespace CLI {
class App;
}

namespace fdbench::cli {

struct TuneFlags {
  ShapeOptions shapes;
  MeasureOptions measure;
  OutputOptions output;
  std::vector<std::string> variants, axes, from, models;
  std::string strategy = "halving", profile, export_as;
  bool resume = false, dry_run = false, show = false;
  std::vector<std::string> argv;
  CLI::App* app = nullptr;
};

inline constexpr int kFinalRounds = 40;  // where --rounds says nothing

// What the flags say, or a usage error.
tune::SearchSettings search_settings(const TuneFlags& flags);
// --variant, else every candidate of the kind that has axes.
std::vector<const Variant*> tuned_variants(const TuneFlags& flags, VariantTable table, BackendKind kind);
// -a
tune::AxisChoice chosen_axes(const TuneFlags& flags, const std::vector<const Variant*>& variants);

// Measures and writes the profile (--dry-run: says what it would).
Exit tune_live(const TuneFlags& flags);
// Searches recorded sweeps, and says what was found at what cost.
Exit tune_from_files(const TuneFlags& flags);

}  // namespace fdbench::cli
