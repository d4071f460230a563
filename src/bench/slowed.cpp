#include "bench/slowed.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "stats/summary.h"

namespace fdbench::bench {

Slowed::Slowed(Backend& backend, Prepared& inner, double share) : backend_(&backend), inner_(&inner) {
  constexpr int kSamples = 15;
  std::vector<double> times;
  for (int i = 0; i < kSamples; ++i) times.push_back(backend.sample(inner, i).ns);
  const double own = stats::median(times), overhead = backend.spin_overhead_ns();
  spin_ns_ = std::max(0.0, share * own - overhead);
  percent_ = 100.0 * (spin_ns_ + overhead) / own;
}

void Slowed::launch(const LaunchContext& context) {
  inner_->launch(context);
  backend_->spin(spin_ns_);
}

std::string Slowed::flag(std::string_view variant) const {
  char text[32];
  std::snprintf(text, sizeof text, "+%.1f%%", percent_);
  return "planted:" + std::string(variant) + text;
}

}  // namespace fdbench::bench
