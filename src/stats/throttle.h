// Rounds in which the clock dropped: they measured another machine.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace fdbench::stats {

struct SetAside {
  std::vector<bool> set_aside;  // one a round
  bool throttled = false;       // there were slow rounds, but too many to set aside: all are kept
  std::size_t count = 0;        // of set-aside rounds
};

// round_mhz: the lowest clock seen in each round, over everything it measured; 0 (or anything not positive
// and finite) is unknown, and such a round is kept. A round below `fraction` of the best round's clock is set
// aside whole, so that pairs stay pairs. If fewer than min_kept rounds would remain, none is set aside and
// `throttled` is true. Having few rounds, all at a good clock, is not throttling.
//
// While still measuring, min_kept = 0 leaves only sound rounds for the stop rule to look at.
SetAside set_aside_rounds(std::span<const double> round_mhz, std::size_t min_kept = 6,
                          double fraction = 0.75);

}  // namespace fdbench::stats
