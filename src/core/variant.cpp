#include "core/variant.h"

namespace fdbench {

std::string_view to_string(Role role) {
  switch (role) {
    case Role::oracle:
      return "oracle";
    case Role::roof:
      return "roof";
    case Role::reference:
      return "reference";
    case Role::candidate:
      return "candidate";
  }
  return "?";
}

const Variant* find_variant(VariantTable table, std::string_view name) {
  for (const Variant* variant : table) {
    if (variant->name == name) return variant;
  }
  return nullptr;
}

const Variant* find_role(VariantTable table, BackendKind backend, Role role) {
  for (const Variant* variant : table) {
    if (variant->backend == backend && variant->role == role) return variant;
  }
  return nullptr;
}

PlanResult make_plan(const Variant& variant, const Problem& problem, const DeviceInfo& device,
                     const TuningPoint& tuning) {
  if (auto reason = variant.unsupported(problem, device)) return Unsupported{*std::move(reason)};
  if (!has_countable_plans(problem)) return Unsupported{"its partial results could exceed 2^62 bytes"};
  for (const auto& [name, value] : tuning.values()) {
    const Axis* known = nullptr;
    for (const Axis& axis : variant.axes) {
      if (axis.name == name) known = &axis;
    }
    if (!known) return Unsupported{std::string(variant.name) + " has no axis '" + name + "'"};
    if (value < known->min || (known->max > 0 && value > known->max)) {
      return Unsupported{name + "=" + std::to_string(value) + " is outside " + std::to_string(known->min) +
                         " ... " + (known->max > 0 ? std::to_string(known->max) : std::string("any"))};
    }
  }
  return variant.plan(problem, device, tuning);
}

}  // namespace fdbench
