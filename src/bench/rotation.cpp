#include "bench/rotation.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"
#include "stats/summary.h"

namespace fdbench::bench {

namespace {
constexpr int kMostCopies = 512;
// Slower by more than this with half as many copies again: the cache still helped.
constexpr double kPlateau = 1.02;
constexpr int kReplays = 3;
}  // namespace

int rotation_copies(const Backend& backend, const Problem& problem) {
  const int copies = backend.rotation(problem);
  if (copies < 1) throw usage_error("--timer graph: this device has no graph timer; use --timer events");
  if (copies > kMostCopies) {
    throw usage_error("--timer graph: this shape would need " + std::to_string(copies) +
                      " copies of its inputs to outgrow the cache, more than " + std::to_string(kMostCopies) +
                      "; take a longer --seq, or --timer events");
  }
  return copies;
}

Rotation::Rotation(Backend& backend, const Problem& problem, std::uint64_t seed,
                   std::vector<Subject*> subjects)
    : backend_(backend),
      problem_(problem),
      seed_(seed),
      subjects_(std::move(subjects)),
      start_(rotation_copies(backend, problem)),
      prepared_(subjects_.size()) {
  grow(start_);
}

void Rotation::grow(int copies) {
  while (static_cast<int>(inputs_.size()) + 1 < copies) {
    inputs_.push_back(std::make_unique<Inputs>(backend_, problem_, seed_ + inputs_.size() + 1));
    for (std::size_t s = 0; s < subjects_.size(); ++s) {
      prepared_[s].push_back(subjects_[s]->prepare_on(*inputs_.back()));
    }
  }
}

double Rotation::replay_ns() const {
  std::vector<double> times;
  const std::vector<Prepared*> launches = turn(0);
  for (int i = 0; i < kReplays; ++i) times.push_back(backend_.graph_sample(launches).ns);
  return stats::median(times);
}

bool Rotation::grow_to_plateau() {
  double before = replay_ns();
  for (int copies = start_; copies < kMostGrowth * start_;) {
    copies = std::min(copies + (start_ + 1) / 2, kMostGrowth * start_);
    grow(copies);
    const double after = replay_ns();
    if (after <= before * kPlateau) return true;
    before = after;
  }
  return false;
}

std::vector<Prepared*> Rotation::turn(std::size_t s) const {
  std::vector<Prepared*> launches{&subjects_[s]->prepared()};
  for (const auto& prepared : prepared_[s]) launches.push_back(prepared.get());
  return launches;
}

}  // namespace fdbench::bench
