#include "stats/throttle.h"

#include <algorithm>
#include <cmath>

namespace fdbench::stats {

SetAside set_aside_rounds(std::span<const double> round_mhz, std::size_t min_kept, double fraction) {
  const auto known = [](double mhz) { return std::isfinite(mhz) && mhz > 0; };
  double best = 0;
  for (const double mhz : round_mhz)
    if (known(mhz)) best = std::max(best, mhz);

  SetAside result;
  result.set_aside.resize(round_mhz.size(), false);
  for (std::size_t i = 0; i < round_mhz.size(); ++i) {
    if (!known(round_mhz[i]) || round_mhz[i] >= fraction * best) continue;
    result.set_aside[i] = true;
    ++result.count;
  }
  if (result.count > 0 && round_mhz.size() - result.count < min_kept) {
    result.set_aside.assign(round_mhz.size(), false);
    result.throttled = true;
    result.count = 0;
  }
  return result;
}

}  // namespace fdbench::stats
