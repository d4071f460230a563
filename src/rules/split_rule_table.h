// The split rules by name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rules/split_rules.h"

namespace fdbench::rules {

struct SplitRule {
  std::string_view name;
  std::string_view summary;                      // one line
  std::string_view source;                       // where the formula is from
  std::string_view argument;                     // what N of "name:N" counts; empty where the rule takes none
  std::optional<std::int64_t> default_argument;  // taken for a bare name; absent where N must be given
  Split (*answer)(const SplitInput& input, std::int64_t argument);
};

// All rules: ours first, then the field's by name.
std::span<const SplitRule> split_rules();

// A rule with its argument: what "sm_multiple:2" names. A failed look-up has no rule and says why.
struct NamedSplitRule {
  const SplitRule* rule = nullptr;
  std::int64_t argument = 0;
  // A sentence without its full stop: what was wrong with the name and what would be right
  std::string error = {};

  bool ok() const { return rule != nullptr; }
  std::string name() const;  // as found again: "seed", "sm_multiple:2"; empty without a rule

  // The rule's answer; without a rule, `error` as one.
  Split operator()(const SplitInput& input) const;
};

// "NAME" or "NAME:N", N a whole number of 1 to 2^40. Errors: an unknown name (the known ones are listed), an
// argument that is no such number, that the rule does not take, or that it lacks.
NamedSplitRule find_split_rule(std::string_view spec);

}  // namespace fdbench::rules
