// The search for a fast plan: pure, against whatever measures. A live device, a recorded sweep and a scripted
// landscape all go through the same code.
//
// `halving`, the default:
//   1. every start (the rules' plans, the variant's own, the model's, a few at random) for a round, whoever
//   is
//      near the fastest of them for two more;
//   2. successive halving: the faster half for twice as many, until few are left;
//   3. the neighbourhood of the leader, the leader with it in the same rounds: whoever is near it is measured
//      again, the leader moves to a better one, until none is better;
//   4. final rounds of the leader, the next best and a third within a few percent; a rival that is shown to
//   be
//      slower is left behind, and they end early where the rest is shown to be equal.
// `random`: a seeded tenth of the space, then 2 and 4. `exhaustive`: final rounds of the whole space.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tune/winner.h"

namespace fdbench::tune {

enum class Strategy { halving, random, exhaustive };
std::string_view to_string(Strategy strategy);
std::optional<Strategy> parse_strategy(std::string_view text);

// Some rounds, each with one sample of every point.
struct Batch {
  std::vector<int> rounds;              // their numbers: what is paired by; may be fewer than asked for
  std::vector<std::vector<double>> ns;  // as the points asked for; of each round; empty where it failed
  std::vector<std::string> failed;      // as the points: why; empty where it did not
  double cost_s = 0.0;                  // device time
  bool stop = false;                    // no more: interrupted, or a budget is spent
};

class Measurer {
 public:
  virtual ~Measurer() = default;
  // `points` of the space, in the same rounds, forwards and backwards by turns.
  virtual Batch measure(std::span<const std::size_t> points, int rounds) = 0;
};

// What the search knows of the space.
struct Landscape {
  std::vector<std::vector<std::size_t>> neighbours;  // of every point
  std::vector<std::size_t> starts;
  std::vector<std::int64_t> workspace;  // bytes; of every point
  std::size_t size() const { return neighbours.size(); }
};

struct SearchSettings {
  Strategy strategy = Strategy::halving;
  int rounds = 40;         // final ones, at most (exhaustive: exactly)
  std::uint64_t seed = 1;  // of what is taken at random
};

enum class SearchPhase { starts, halving, neighbourhood, finals };
std::string_view to_string(SearchPhase phase);

// After every batch.
struct SearchState {
  SearchPhase phase = SearchPhase::starts;
  std::size_t measured = 0;  // points
  std::int64_t samples = 0;
  std::optional<std::size_t> leader;
  double leader_ns = 0.0;
};
using SearchWatcher = std::function<void(const SearchState&)>;

struct SearchOutcome {
  std::optional<Winner> winner;  // nothing where every point failed, or nothing was measured
  FinalRounds finals;
  std::vector<double> median_ns;      // of every point, over all its samples; 0 where it was not measured
  std::vector<std::string> failed;    // of every point: why; empty where it did not
  std::vector<int> samples_by_point;  // of every point
  std::size_t measured = 0;           // points
  std::int64_t samples = 0;
  double cost_s = 0.0;  // device time, as the measurer counts it
  bool stopped = false;
};

SearchOutcome search(const Landscape& landscape, Measurer& measurer, const SearchSettings& settings,
                     const SearchWatcher& watch = {});

}  // namespace fdbench::tune
