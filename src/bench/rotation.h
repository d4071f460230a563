// The graph timer's copies of the inputs: a replay launches over each in turn, so that none is found in the
// cache again.
#pragma once

#include <memory>
#include <vector>

#include "bench/buffers.h"
#include "bench/validation.h"

namespace fdbench::bench {

// Copies to begin with, from the size of the cache. Throws Error (usage) where the backend has no graph
// timer, or the inputs are so small that thousands of copies would be needed.
int rotation_copies(const Backend& backend, const Problem& problem);

// Copies that proving the rotation may take, at most: for counting memory.
inline constexpr int kMostGrowth = 2;  // times rotation_copies

class Rotation {
 public:
  // The first copy is the subjects' own inputs; further ones are made from the seeds after `seed`.
  Rotation(Backend& backend, const Problem& problem, std::uint64_t seed, std::vector<Subject*> subjects);

  // Adds copies until the first subject's replay no longer slows down with them, which proves that every
  // launch finds the cache cold. False where it still slowed down at kMostGrowth.
  bool grow_to_plateau();

  // What a replay of subject `s` launches in turn.
  std::vector<Prepared*> turn(std::size_t s) const;

 private:
  void grow(int copies);
  double replay_ns() const;

  Backend& backend_;
  Problem problem_;
  std::uint64_t seed_;
  std::vector<Subject*> subjects_;
  int start_;
  std::vector<std::unique_ptr<Inputs>> inputs_;                   // beside the first
  std::vector<std::vector<std::unique_ptr<Prepared>>> prepared_;  // [subject][copy beside the first]
};

}  // namespace fdbench::bench
