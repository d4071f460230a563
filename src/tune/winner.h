// An honest winner: chosen on one half of the rounds, scored on the other.
//
// The fastest of several noisy plans looks faster than it is. So the final rounds go to two halves in pairs
// (0 and 1, then 2 and 3, ...: a pair runs its points forwards and backwards); the plan is chosen on the
// first half alone, and every figure kept of it is of the second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/measurement.h"

namespace fdbench::tune {

// Whether the round that is the k-th (from 0) of the final ones scores; else it chooses.
constexpr bool is_scoring(std::size_t k) {
  return (k / 2) % 2 == 1;
}

// Plans measured in the same rounds. A plan that was left behind has fewer rounds than the others, never
// other ones.
struct FinalRounds {
  std::vector<std::size_t> points;      // of the space
  std::vector<std::vector<double>> ns;  // as points: of round 0, 1, ...
};

// A plan whose paired interval reaches 1 is a tie, unless its median is further off than this: what few
// rounds leave open is not enough to prefer a plan that looks so much slower. It is what the search promises.
inline constexpr double kTieRange = 0.01;
// Neighbourhoods whose steepness differs by less are equally flat.
inline constexpr double kFlatStep = 0.005;

// What else decides between ties.
struct TieBreak {
  // Of every point of the space: the mean over its measured neighbours of how much slower they are, a share;
  // infinity where none was measured.
  std::vector<double> steepness;
  std::vector<std::int64_t> workspace;  // bytes, of every point of the space
};

struct Winner {
  std::size_t point = 0;
  std::vector<std::size_t> ties;  // the tie set, the winner first, then by time; at least the winner
  std::size_t choosing_rounds = 0, scoring_rounds = 0;
  double ns = 0.0;                       // median of the scoring rounds; of all where there are none
  std::optional<std::size_t> runner_up;  // the fastest other plan, by the choosing half
  double margin = 0.0;                   // its time over the winner's, less 1; scoring half, paired
  std::optional<Bounds> margin_ci;
  // Share of the scoring rounds in which no other plan was faster; absent where there was no other.
  std::optional<double> won;
};

// Time of `other` over `base`, paired over the rounds that both have; `scoring`: of which half, nothing for
// both.
struct PairedRatio {
  double ratio = 0.0;
  std::optional<Bounds> ci;  // 95 %; absent below six rounds
  double change() const { return ratio - 1.0; }
  std::optional<Bounds> change_ci() const {
    if (!ci) return std::nullopt;
    return Bounds{ci->lo - 1.0, ci->hi - 1.0};
  }
};
std::optional<PairedRatio> paired(std::span<const double> other, std::span<const double> base,
                                  std::optional<bool> scoring);
// Not told apart: the interval reaches 1 (too few rounds for one say nothing against it), and the median is
// within kTieRange.
bool is_tie(const PairedRatio& other_over_base);

// Of the tie set the plan with the flattest neighbourhood (within kFlatStep), of those the one with the least
// workspace, of those the fastest. Nothing where no plan has a round.
std::optional<Winner> choose_winner(const FinalRounds& rounds, const TieBreak& tie_break);

}  // namespace fdbench::tune
