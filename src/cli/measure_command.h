// What run, sweep and verify share: from shapes and rows to tables, files and an exit code.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "bench/runner.h"
#include "cli/measure_options.h"
#include "core/error.h"
#include "core/result_record.h"

namespace fdbench::cli {

struct MeasureCommand {
  std::string name;               // the subcommand
  std::vector<std::string> argv;  // as typed
  std::vector<Problem> shapes;
  // Candidates by name; empty: every variant of the device. Roof and reference always take part.
  std::vector<std::string> variants;
  std::vector<TuningPoint> points{TuningPoint{}};  // of the candidates: all of them on every shape
  // Where it is set, a candidate's rows on a shape, instead of `points`.
  std::function<std::vector<bench::RowRequest>(const Variant&, const Problem&, const DeviceInfo&)> rows_for;
  // What the first line says beside the device, asked once the rows are known; empty: nothing.
  std::function<std::string()> remark;
  bool quiet_progress = false;  // progress even where the rest is quiet
  bool shape_tables = true;     // false: `finish` prints what there is to see
  // Once at the end, also when interrupted; prints to `out` unless --quiet. Throws Error.
  std::function<void(const ResultFile&, std::FILE* out)> finish;
  bench::RunSettings settings;
  OutputOptions output;
  std::string resume;  // a result file to go on from; empty: none
  bool fail_noisy = false;
};

// Workers of this very build.
bench::WorkerProtocol worker_protocol();

// Throws Error (usage) where a shape needs more memory than there is: names a row where leaving it out helps.
void check_memory(const bench::Survey& survey, const std::vector<bench::ShapeWork>& shapes);

// The variants of --device's table: this build's, or the fake device's.
VariantTable table_for(const bench::RunSettings& settings);

// Does it all; throws Error only where nothing could be done.
Exit measure(const MeasureCommand& command);

// The exit code that rows ask for, the first that applies: wrong_result, too_noisy (only if `fail_noisy`),
// failed, good.
Exit exit_for_rows(const std::vector<ResultRecord>& rows, bool fail_noisy);

}  // namespace fdbench::cli
