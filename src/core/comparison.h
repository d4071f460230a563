// Two sides of a comparison, row by row: what the gate asks, what was found, and the verdicts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device_info.h"
#include "core/measurement.h"
#include "core/problem.h"
#include "core/variant.h"

namespace fdbench {

enum class Verdict {
  same,    // no change as large as the threshold
  faster,  // by the threshold or more, with evidence
  slower,  // likewise
  unsure,  // the evidence does not decide
  fresh,   // "NEW": the base has no such result
  gone,    // the base has a result, the new side has none
  wrong,   // the new side's result is not right
};

// "SAME", "FASTER", ...
std::string_view to_string(Verdict verdict);

// What counts as a change (configs/gates/*.json, io/gate.h). Percent.
struct GateRule {
  std::string pattern;  // of a result id; * stands for any text, ? for any character
  double threshold_percent = 3.0;
};
struct Gate {
  std::string name = "built in";
  double threshold_percent = 3.0;  // of rows that no rule matches
  std::vector<GateRule> rules;     // the first that matches holds
  int processes = 5;               // a side needs at least so many
  double alpha_percent = 0.5;      // reports with any false alarm, at most
  // The between-process standard deviation is never taken smaller than this, nor than a doctor file's.
  double noise_floor_percent = 0.2;
};

double threshold_percent(const Gate& gate, std::string_view id);

// What the same build differs by from itself, a row (`fdbench doctor`). Standard deviations of
// log(time / same-round roof), in percent.
struct RowNoise {
  std::string id;
  int processes = 0;                     // fresh processes that were compared
  double within_percent = 0.0;           // between the rounds of one process
  double between_percent = 0.0;          // between the figures of processes
  double smallest_effect_percent = 0.0;  // seen with 95 % probability from files of Gate::processes each
};

// What changed on one row, and how sure that is.
struct Effect {
  double percent = 0.0;     // of time over roof; above 0: slower
  Bounds ci95;              // percent, between processes, one row at a time
  double p = 1.0;           // one-sided, towards the effect's own direction
  double p_holm = 1.0;      // corrected over the rows of the report
  double sd_percent = 0.0;  // between processes, as used
  bool sd_is_floor = false;
  int base_processes = 0, new_processes = 0;
};

struct RowComparison {
  std::string id;
  std::string variant;
  Problem problem;
  Role role = Role::candidate;
  Verdict verdict = Verdict::unsure;
  std::string why;  // the rule and the evidence, a sentence
  std::optional<double> base_ns, new_ns;
  std::optional<Bounds> new_ci95_ns;
  double threshold_percent = 0.0;
  std::optional<double> smallest_effect_percent;
  std::optional<Effect> effect;
  std::optional<Effect> first_effect;  // measured again: what was seen first
  bool failed = false;                 // the new side ended in a failure
};

struct Comparison {
  std::string gate;
  DeviceInfo device;  // of the new side
  std::string base_commit, new_commit;
  std::vector<RowComparison> rows;
  std::vector<std::string> warnings;
  std::vector<std::string> not_comparable;  // sentences; verdicts then mean nothing and rows is empty
};

}  // namespace fdbench
