// The files a run writes: found writable before anything is measured, and rewritten whole whenever rows have
// come.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/measure_options.h"
#include "core/result_record.h"
#include "io/file.h"

namespace fdbench::cli {

class ResultWriter {
 public:
  // Throws Error (usage) for a file that can't be written, or that another run is writing.
  ResultWriter(const OutputOptions& output, const RunInfo& run);

  // Writes every file. A failure is kept, said once on stderr, and measuring goes on; the last call's failure
  // decides.
  void write(const ResultFile& file);
  // What was asked for on stdout ("-"), once, at the end. Its failure stays in stdout's error flag.
  void write_stdout(const ResultFile& file) const;

  bool failed() const { return failed_; }
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  enum class Format { json, csv, markdown };
  struct Target {
    Format format;
    std::string path;  // "-" for stdout
  };
  static std::string text(Format format, const ResultFile& file);

  std::vector<Target> targets_;
  std::vector<std::unique_ptr<io::OutputLock>> locks_;
  std::vector<std::string> paths_;
  bool failed_ = false, told_ = false;
};

}  // namespace fdbench::cli
