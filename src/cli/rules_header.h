// A fitted split rule as a C++17 header that needs nothing of fdbench: for pasting into a serving engine.
#pragma once

#include <span>
#include <string>

#include "core/result_record.h"
#include "tune/cost_model.h"

namespace fdbench::cli {

struct HeaderEvidence {
  RunInfo run;  // that measured the sweeps
  std::string tool;
  std::size_t fit_shapes = 0, test_shapes = 0;
  std::vector<tune::RuleSummary> test;  // on the shapes that were not fitted to, "fitted" among them
  std::vector<Problem> shapes;          // all of them: the header's self-test
};

// Defines namespace fdbench_rule: Shape, splits(), chunk(), predicted_ns(), inside(), self_test(), which
// counts the shapes on which it does not answer as fdbench does; with FDBENCH_RULE_SELF_TEST defined a main()
// that runs it.
std::string rule_header(const tune::CostModel& model, const HeaderEvidence& evidence);

}  // namespace fdbench::cli
