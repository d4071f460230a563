// The table of all rows, which every chart's marks point into, and the samples that go with it.
#pragma once

#include <string>

#include "report/html.h"

namespace fdbench::report {

// Of the samples of a row every stride-th goes into the page.
std::size_t sample_stride(const ReportInput& input);
std::string samples_section(const ReportInput& input);
std::string rows_section(const ReportInput& input);

}  // namespace fdbench::report
