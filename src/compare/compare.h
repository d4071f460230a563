// Records in, verdicts out.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "compare/evidence.h"
#include "compare/judge.h"
#include "core/comparison.h"
#include "core/error.h"
#include "core/result_record.h"

namespace fdbench::compare {

struct CompareSettings {
  Gate gate;
  std::map<std::string, RowNoise> noise;  // of the doctor's file, by id
  std::set<std::string> allow;            // of kComparableKeys
  std::set<std::string> only;             // not empty: these ids alone; the correction is over them
};

// The verdict of each row that the base or the new side has, in the base's order, then what is new.
//
// SLOWER: the effect on log(time / same-round roof) is at or over the threshold, and Student's test between
// processes (judge.h) has p <= alpha after Holm's correction over the rows, and the time itself rose too, and
// nothing speaks against the evidence: fewer processes than the gate wants, throttling, clocks that differ by
// more than kClockTolerance, another roof, no roof. FASTER likewise, the other way. SAME: the 95 % interval
// lies within the threshold on both sides. UNSURE: the rest. Roofs themselves are SAME or UNSURE only.
//
// Throws Error (usage) where a file has a result twice. Where the sides are not comparable, only warnings and
// not_comparable are filled.
Comparison compare_sides(const Side& base, const Side& now, const CompareSettings& settings);

inline constexpr double kClockTolerance = 0.03;
// Of two files the base's session and the new one's may differ by this share of the threshold with nothing
// changed; the test is for effects beyond it.
inline constexpr double kSessionShare = 0.25;

// Rows whose effect is over the threshold and, uncorrected, has p <= kSuspectP: to be measured again before
// anything is believed.
std::vector<std::size_t> suspects(const Comparison& comparison);
inline constexpr double kSuspectP = 0.05;

// Replaces the verdicts of the suspects by those of fresh measurements, `again`, whose correction is over the
// suspects alone. That keeps alpha: what chose the rows and what judges them are independent.
void confirm(Comparison& comparison, const std::vector<std::size_t>& suspects, const Comparison& again);

// The first that applies: 5 not comparable, or rows gone (unless `allow_missing`); 3 WRONG; 1 SLOWER; 4
// UNSURE (only if `fail_unsure`); 6 a row of the new side failed, or nothing was compared; 0.
Exit exit_for(const Comparison& comparison, bool allow_missing, bool fail_unsure);

}  // namespace fdbench::compare
