// A comparison in the formats of others.
#pragma once

#include <string>

#include "core/comparison.h"

namespace fdbench::io {

// Schema fdbench.compare/1.0: gate, commits, warnings, what is not comparable, and a row a verdict with its
// evidence.
std::string comparison_json(const Comparison& comparison);

// JUnit XML: a test case a row; SLOWER, WRONG and (unless `allow_missing`) GONE are failures, NEW and UNSURE
// are skipped with their reason. Sides that are not comparable are one error.
std::string comparison_junit(const Comparison& comparison, bool allow_missing);

// The new side's times for github-action-benchmark, tool "customSmallerIsBetter": name, unit, value, range
// and extra.
std::string comparison_github_benchmark(const Comparison& comparison);

// The new side's times as Bencher Metric Format: the measure "latency" in nanoseconds with its 95 % interval.
std::string comparison_bmf(const Comparison& comparison);

// A table for a pull request or a job summary: verdicts first, then the rows worth looking at, the rest
// folded.
std::string comparison_markdown(const Comparison& comparison);

}  // namespace fdbench::io
