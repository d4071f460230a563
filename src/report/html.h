// Result files as one HTML page that needs nothing else (docs/report.md).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/comparison.h"
#include "core/machine_report.h"
#include "core/result_record.h"
#include "report/series.h"

namespace fdbench::report {

struct ReportInput {
  std::span<const ResultFile> files;
  std::vector<std::string> names;          // of the files, as given
  std::vector<RuleChoice> rules;           // what split rules choose on the shapes that were swept
  const Comparison* comparison = nullptr;  // before and after; null: there is none
  const MachineReport* machine = nullptr;  // the doctor's; null: not known
};

// The page, UTF-8. Samples beyond kMaxSamples in all are thinned evenly, which the page says; those set aside
// are always kept.
std::string html_report(const ReportInput& input);

inline constexpr std::size_t kMaxSamples = 250'000;

}  // namespace fdbench::report
