// Rows of result files arranged for pictures: curves over the sequence length, and maps of a sweep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result_record.h"

namespace fdbench::report {

// A row by its place; the record is the caller's.
struct RowRef {
  std::size_t file = 0, row = 0;
  const ResultRecord* record = nullptr;
};

// bytes/s: logical bytes over the median time, and over the ends of the median's 95 % interval.
struct Bandwidth {
  double value = 0.0;
  std::optional<Bounds> ci95;
};

// Nothing where the row has no time that can be believed.
std::optional<Bandwidth> bandwidth(const ResultRecord& row);

// One variant over the sequence length. Where several tuning points were measured on a shape, the fastest
// stands for them.
struct Curve {
  std::string variant;
  Role role = Role::candidate;
  bool best_of_points = false;  // somewhere one stands for several
  std::vector<RowRef> points;   // by seq, one each
};

// The curves of all shapes of a file that differ in seq alone.
struct Panel {
  std::size_t file = 0;
  Problem shape;  // its seq means nothing
  std::vector<Curve> curves;
  std::vector<std::int64_t> seqs() const;  // sorted
};

// "32 heads over 8, dim 128, bf16"
std::string heads_text(const Problem& problem);
// "flash_decode_tma chunk=256"
std::string name_of(const ResultRecord& row);

// In the order of the rows; panels without a timed row are left out.
std::vector<Panel> panels_of(std::span<const ResultRecord> rows, std::size_t file);

// One variant on one shape over its tuning points.
struct SweepCell {
  std::int64_t x = 0, y = 0;
  RowRef best;     // of the points here: the fastest that is ok, else the first
  int points = 0;  // measured here
  bool timed = false;
  bool is_best = false;  // of the map
  bool tied = false;     // its median's interval overlaps the best's; the best is in its own tie set
  double loss = 0.0;     // time over the best's, minus 1
};
struct SweepMap {
  std::size_t file = 0;
  std::string variant;
  Problem problem;
  std::string x_axis, y_axis;        // y_axis is empty where one axis varied
  std::vector<std::string> folded;   // further axes that varied: a cell is the best over them
  std::vector<std::int64_t> xs, ys;  // sorted; ys has one value where y_axis is empty
  std::vector<SweepCell> cells;      // by y, then x; none where nothing was measured
  std::optional<std::size_t> best;   // the cell; absent where none was timed
};

// Axes: chunk, then sm_multiple, then by name. Rows at the default point, and points that lack an axis which
// varied, are not in a map.
std::vector<SweepMap> sweep_maps_of(std::span<const ResultRecord> rows, std::size_t file);

// What a split rule would choose for a map's chunk.
struct RuleChoice {
  std::size_t file = 0;
  std::string variant;
  Problem problem;
  std::string rule;
  std::int64_t chunk = 0;
};

// The measured chunk nearest to `chunk` (by ratio), and the time of its best cell over the map's best, minus
// 1; nothing where the map has no chunk axis, or no time there.
struct RuleCost {
  std::int64_t measured_chunk = 0;
  double loss = 0.0;
};
std::optional<RuleCost> rule_cost(const SweepMap& map, std::int64_t chunk);

}  // namespace fdbench::report
