// Tuning profiles: the plans that a search found, and where they hold (docs/tuning.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device_info.h"
#include "core/measurement.h"
#include "core/problem.h"
#include "core/tuning_point.h"

namespace fdbench {

// The machine and the build that an entry is of. Device, multiprocessors and capability must be the same for
// an entry to be used; a difference in the rest is said and the entry used.
struct ProfileEnvironment {
  std::string device;  // name, as the driver or the processor gives it
  int sms = 0;         // multiprocessors; of a CPU, cores
  int cc = 0;          // compute capability x10; 0 on a CPU
  int driver_major = 0;
  int toolkit_major = 0;  // CUDA's; 0 where the build has none
  bool operator==(const ProfileEnvironment&) const = default;
};

// Sequence lengths that share an entry: those nearest to the same power of two, as ratios.
// [ceil(2^(n - 1/2)), ceil(2^(n + 1/2)) - 1]
struct SeqBucket {
  std::int64_t least = 0, most = 0;
  bool holds(std::int64_t seq) const { return seq >= least && seq <= most; }
  bool operator==(const SeqBucket&) const = default;
};
SeqBucket seq_bucket(std::int64_t seq);  // seq >= 1

struct ProfileKey {
  ProfileEnvironment environment;
  std::string variant;
  int tuning_version = 1;  // must be the same for an entry to be used
  Dtype dtype = Dtype::bf16;
  std::int64_t dim = 0, heads = 0, kv_heads = 0;
  SeqBucket bucket;
  bool operator==(const ProfileKey&) const = default;
};

// A plan's time over the tuned plan's, less 1, from the same rounds: what tuning gained over it.
struct ProfileGain {
  std::string over;  // "default", "rule:fa3"
  TuningPoint tuning;
  double ns = 0.0;  // median
  double gain = 0.0;
  std::optional<Bounds> ci95;  // absent below six rounds
};

struct ProfileEntry {
  ProfileKey key;
  std::int64_t seq = 0;     // what was measured
  TuningPoint tuning;       // empty: the variant's own plan is the best
  std::string source_hash;  // of the kernels' sources
  std::string tool, when;   // the build and the time (ISO 8601, UTC)

  // Evidence, all of rounds that did not choose the plan.
  double ns = 0.0;                // median
  std::vector<TuningPoint> ties;  // plans not told apart from it, itself left out
  std::optional<TuningPoint> runner_up;
  double margin = 0.0;  // runner-up's time over this one's, less 1
  std::optional<Bounds> margin_ci95;
  // Share of the scoring rounds in which no other finalist was faster; absent where there was no other.
  std::optional<double> won;
  std::int64_t choosing_rounds = 0, scoring_rounds = 0;
  std::int64_t splits = 0, chunk = 0, workspace_bytes = 0;  // of the plan
  std::string isa;                                          // likewise; empty in older files, too
  std::vector<ProfileGain> gains;                           // over the variant's own plan and every rule's
  std::string strategy;
  std::int64_t points = 0, points_measured = 0, samples = 0;

  std::string as_read;  // JSON, where it had fields that this build does not know: they are written again
};

// The entry's gain over "default" or "rule:NAME"; null where that was not measured.
const ProfileGain* gain_over(const ProfileEntry& entry, std::string_view over);

struct TuningProfile {
  std::string path;  // where it was read from
  std::vector<ProfileEntry> entries;
  int minor = 0;  // of its schema, 1.<minor>; this build writes 1.0, without what a later one has beside
  std::string as_read = {};  // JSON of the fields beside the entries, where some are not known
};

// The file name of a device's profile: "nvidia-h200" of "NVIDIA H200".
std::string profile_name(std::string_view device);

ProfileEnvironment profile_environment(const DeviceInfo& device, std::string_view toolkit);

// "NVIDIA H200, 132 multiprocessors, sm_90, driver 580, toolkit 13"; without a driver and a toolkit where
// there is none.
std::string environment_text(const ProfileEnvironment& of);

// The entries of each environment, in the order in which they and their environments come first: a file has
// them by shape, an environment's not all together.
std::vector<std::vector<ProfileEntry>> by_environment(const TuningProfile& profile);

}  // namespace fdbench
