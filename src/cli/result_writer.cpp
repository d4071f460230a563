#include "cli/result_writer.h"

#include <cstdio>
#include <filesystem>

#include "cli/run_info.h"
#include "cli/say.h"
#include "core/error.h"
#include "io/result_csv.h"
#include "io/result_json.h"
#include "report/table.h"

namespace fdbench::cli {

ResultWriter::ResultWriter(const OutputOptions& output, const RunInfo& run) {
  const auto add = [this](const char* flag, Format format, const std::string& path) {
    if (path.empty()) return;
    if (path != "-") {
      io::probe_writable(path, flag);
      locks_.push_back(io::lock_output(path, flag));
      paths_.push_back(path);
    }
    targets_.push_back({format, path});
  };
  int on_stdout = 0;
  for (const std::string* path : {&output.json, &output.csv, &output.md}) on_stdout += *path == "-" ? 1 : 0;
  if (on_stdout > 1) throw usage_error("--json, --csv and --md: only one of them can go to stdout (-)");
  add("--json", Format::json, output.json);
  add("--csv", Format::csv, output.csv);
  add("--md", Format::markdown, output.md);
  if (!output.directory.empty()) {
    io::make_directories(output.directory, "--out");
    // Two runs may begin within a second.
    const std::string dated = output.directory + "/" + dated_name(run);
    std::string stem = dated;
    for (int n = 2; std::filesystem::exists(stem + ".json") || std::filesystem::exists(stem + ".csv"); ++n)
      stem = dated + "-" + std::to_string(n);
    add("--out", Format::json, stem + ".json");
    add("--out", Format::csv, stem + ".csv");
  }
}

std::string ResultWriter::text(Format format, const ResultFile& file) {
  switch (format) {
    case Format::json:
      return io::to_json(file);
    case Format::csv:
      return io::to_csv(file);
    case Format::markdown:
      break;
  }
  return report::markdown_tables(file);
}

void ResultWriter::write(const ResultFile& file) {
  failed_ = false;
  for (const Target& target : targets_) {
    if (target.path == "-") continue;
    try {
      io::write_atomically(target.path, text(target.format, file));
    } catch (const Error& error) {
      failed_ = true;
      if (!told_) say(stderr, std::string("fdbench: ") + error.what() + "\n");
      told_ = true;
    }
  }
}

void ResultWriter::write_stdout(const ResultFile& file) const {
  for (const Target& target : targets_) {
    if (target.path != "-") continue;
    say(stdout, text(target.format, file));
  }
}

}  // namespace fdbench::cli
