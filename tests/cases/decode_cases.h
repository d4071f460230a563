// Mistakes that decode kernels have shipped with, each a case that a variant passes on every shape it
// supports, whatever its backend. Memory is as in bench/validation.h: rows of NaN after K and V, guards
// around all that may be written, output and scratch full of NaN, zeroed bytes checked. Failures are
// GoogleTest's.
#pragma once

#include <span>
#include <string_view>

#include "backend/backend.h"
#include "core/variant.h"

namespace fdbench::cases {

struct Rig {
  Backend& backend;
  const Variant& variant;  // a reference or a candidate
  const Variant& oracle;   // of the same backend
};

struct DecodeCase {
  std::string_view name;
  void (*run)(const Rig& rig);
};

std::span<const DecodeCase> decode_cases();

}  // namespace fdbench::cases
