// From result files to the figures of processes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/result_record.h"

namespace fdbench::compare {

// One side of a comparison. Pointers are the caller's, not owned.
struct Side {
  std::vector<const ResultFile*> files;  // at least one
  std::vector<std::string> names;        // of the files, for messages
  // The files were measured in turn with the other side's: their processes count as one session's.
  bool one_session = false;
};

// Which parts of a result's id don't count when rows are paired.
struct Pairing {
  bool ignore_dtype = false, ignore_cache = false, ignore_timer = false;
};

struct RowEvidence {
  const ResultRecord* record = nullptr;                    // the last that has a time, else the last
  int ok = 0, incorrect = 0, failed = 0, unsupported = 0;  // results, one a file
  std::string reason;                                      // of the last that is not ok
  bool throttled = false;
  // A vector a session, a figure a process: medians over the rounds that were not set aside.
  std::vector<std::vector<double>>
      log_ratio;                              // log(time / same-round roof); empty where no roof was measured
  std::vector<std::vector<double>> log_time;  // log(ns)
  std::vector<double> medians_ns;             // the results' own
  double mhz = 0.0;                           // median clock over the samples; 0: not known
  std::string roof;                           // which roof, and how it was run

  std::size_t processes() const;
};

struct Evidence {
  std::vector<std::string> order;  // keys as they came
  std::map<std::string, RowEvidence> rows;
};

// Throws Error (usage) where a file has one result twice.
Evidence collect(const Side& side, const Pairing& pairing);

// Standard deviation between the rounds of one process of log(time / same-round roof), the median over the
// processes; 0 where no process has two rounds.
double within_sd(const ResultFile& file, const ResultRecord& record);

}  // namespace fdbench::compare
