// A recorded sweep as something to search: its rounds are given out as if they were being measured.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result_record.h"
#include "tune/cost_model.h"
#include "tune/search.h"
#include "tune/search_space.h"

namespace fdbench::tune {

struct RecordedShape {
  SearchSpace space;                    // the points that were measured
  std::vector<std::vector<double>> ns;  // of every point; of each round; NaN where it has none
  std::vector<std::string> failed;      // of every point: why; empty where it did not
  std::vector<int> tuning_versions;     // of every point
  std::size_t rounds = 0;
};

// One a shape, in the order of the rows: the candidates of `variants` (all where that is empty). Shapes with
// fewer than two points that gave a time are left out. Starts: plans that a rule gave, as their rows say; and
// what the rules of today answer, each the measured point nearest to it.
std::vector<RecordedShape> recorded_shapes(std::span<const ResultRecord> rows, const DeviceInfo& device,
                                           std::span<const std::string> variants,
                                           std::span<const rules::NamedSplitRule> rules);

Landscape landscape_of(const SearchSpace& space);

// Gives out the rounds of the choosing half (winner.h), for each batch those that the fewest of its points
// have given before; a sample counts as device time each time it is given. Cost: the samples' own times.
class Replay : public Measurer {
 public:
  explicit Replay(const RecordedShape& shape);
  Batch measure(std::span<const std::size_t> points, int rounds) override;
  // That there are to give of all points; of any where no round has all.
  std::size_t rounds() const { return whole_ > 0 ? whole_ : choosing_.size(); }

 private:
  const RecordedShape& shape_;
  std::vector<int> choosing_;            // rounds
  std::size_t whole_ = 0;                // of them those in which every point has a time
  std::vector<std::vector<bool>> used_;  // of every point, by round
};

// A search on a record, up to the plan that a profile would hold, against the record's own optimum.
struct ReplayScore {
  std::size_t points = 0;
  std::size_t plan = 0;  // of the space: what it ends with
  std::size_t best = 0;  // of the space: the fastest by all rounds of the choosing half
  double best_ns = 0.0;  // median of the scoring half
  double ratio = 0.0;    // the chosen plan's time over the best one's, scoring half, paired
  std::optional<Bounds> ratio_ci;
  double cost_s = 0.0;        // device time
  double exhaustive_s = 0.0;  // of all points in all rounds that the search could have: the choosing half
  double cost_share = 0.0;    // the one over the other
  SearchOutcome outcome;
};
// Nothing where the search found nothing.
std::optional<ReplayScore> replay(const RecordedShape& shape, const SearchSettings& settings);

}  // namespace fdbench::tune
