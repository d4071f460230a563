// A point of a variant's tuning space: axis names with integer values. An axis that is absent is the plan's
// to choose.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fdbench {

class TuningPoint {
 public:
  std::optional<std::int64_t> get(std::string_view axis) const;
  void set(std::string_view axis, std::int64_t value);
  bool empty() const { return values_.empty(); }
  // Sorted by axis name.
  const std::vector<std::pair<std::string, std::int64_t>>& values() const { return values_; }

  // "chunk=256,threads=2"; "default" when empty.
  std::string id() const;

  bool operator==(const TuningPoint&) const = default;

 private:
  std::vector<std::pair<std::string, std::int64_t>> values_;
};

// "cpu_split_kv chunk=256"; the variant's name alone for an empty point.
std::string name_with(std::string_view variant, const TuningPoint& tuning);

// One axis a variant understands.
struct Axis {
  std::string_view name;
  std::string_view help;  // one line: what it sets, its unit, and what the plan does when it is absent
  std::int64_t min = 1;
  std::int64_t max = 0;
};

}  // namespace fdbench
