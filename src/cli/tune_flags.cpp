#include "cli/tune_flags.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/extents.h"

namespace fdbench::cli {

std::vector<const Variant*> tuned_variants(const TuneFlags& flags, VariantTable table, BackendKind kind) {
  std::vector<const Variant*> variants;
  for (const std::string& name : flags.variants) {
    const Variant* variant = find_variant(table, name);
    if (!variant || variant->role != Role::candidate)
      throw usage_error(fmt::format("--variant {}: no such candidate to tune (fdbench list variants)", name));
    if (variant->backend != kind)
      throw usage_error(
          fmt::format("--variant {}: it runs on {}, and the device is {}; --device {} would tune it", name,
                      to_string(variant->backend), to_string(kind), to_string(variant->backend)));
    variants.push_back(variant);
  }
  if (!variants.empty()) return variants;
  for (const Variant* variant : table) {
    if (variant->backend == kind && variant->role == Role::candidate && !variant->axes.empty())
      variants.push_back(variant);
  }
  if (variants.empty()) throw usage_error("--variant: this device has no candidate with axes to tune");
  return variants;
}

tune::AxisChoice chosen_axes(const TuneFlags& flags, const std::vector<const Variant*>& variants) {
  tune::AxisChoice chosen;
  for (const std::string& text : flags.axes) {
    AxisValues axis = parse_axis("-a", text);
    const bool known = std::any_of(variants.begin(), variants.end(), [&](const Variant* variant) {
      return std::any_of(variant->axes.begin(), variant->axes.end(),
                         [&](const Axis& one) { return one.name == axis.name; });
    });
    if (!known)
      throw usage_error(
          fmt::format("-a {}: no variant to tune has an axis '{}' (fdbench list variants)", text, axis.name));
    if (!chosen.emplace(axis.name, axis.values).second)
      throw usage_error(fmt::format("-a {}: {} is given twice", text, axis.name));
  }
  return chosen;
}

tune::SearchSettings search_settings(const TuneFlags& flags) {
  const bench::RunSettings settings = flags.measure.settings();
  const auto strategy = tune::parse_strategy(flags.strategy);
  if (!strategy)
    throw usage_error("--strategy " + flags.strategy + ": must be halving, random or exhaustive");
  tune::SearchSettings search;
  search.strategy = *strategy;
  search.rounds = settings.measure.rounds.value_or(kFinalRounds);
  search.seed = settings.measure.seed;
  return search;
}

}  // namespace fdbench::cli
