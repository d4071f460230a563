// --resume FILE: a run goes on from what another one finished.
#pragma once

#include <string>
#include <vector>

#include "bench/runner.h"
#include "core/result_record.h"

namespace fdbench::cli {

// Throws Error (usage), beginning with --resume and `path`, where its rows are of another device, build or
// way of measuring; how many rounds is not looked at.
void refuse_foreign(const std::string& path, const RunInfo& old, const RunInfo& now);

// The rows of a shape share rounds, and end together: a shape is finished when each of its rows is, and is
// then not measured again. A row is finished when it was measured in every process and not interrupted, or is
// unsupported or incorrect; what failed or timed out is tried again.
class Resumed {
 public:
  // Takes the finished shapes out of `work`. Throws Error (usage), beginning with --resume: an unreadable
  // file, or one of another device, build or way of measuring than `run`.
  Resumed(const std::string& path, const RunInfo& run, std::vector<bench::ShapeWork>& work);

  // What was kept and what was measured since, in the order of the shapes. Of a shape that is not measured
  // yet, what the file had of it.
  std::vector<ResultRecord> with(const std::vector<ResultRecord>& measured) const;
  std::size_t shapes_kept() const { return kept_; }

 private:
  std::vector<Problem> order_;
  std::vector<ResultRecord> old_;
  std::size_t kept_ = 0;
};

}  // namespace fdbench::cli
