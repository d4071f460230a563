#include "core/tuning_point.h"

#include <algorithm>

namespace fdbench {

namespace {
bool name_before(const std::pair<std::string, std::int64_t>& entry, std::string_view name) {
  return entry.first < name;
}
}  // namespace

std::optional<std::int64_t> TuningPoint::get(std::string_view axis) const {
  const auto at = std::lower_bound(values_.begin(), values_.end(), axis, name_before);
  if (at == values_.end() || at->first != axis) return std::nullopt;
  return at->second;
}

void TuningPoint::set(std::string_view axis, std::int64_t value) {
  const auto at = std::lower_bound(values_.begin(), values_.end(), axis, name_before);
  if (at != values_.end() && at->first == axis) {
    at->second = value;
  } else {
    values_.emplace(at, std::string(axis), value);
  }
}

std::string TuningPoint::id() const {
  if (values_.empty()) return "default";
  std::string text;
  for (const auto& [name, value] : values_) {
    if (!text.empty()) text += ',';
    text += name + '=' + std::to_string(value);
  }
  return text;
}

std::string name_with(std::string_view variant, const TuningPoint& tuning) {
  return std::string(variant) + (tuning.empty() ? "" : " " + tuning.id());
}

}  // namespace fdbench
