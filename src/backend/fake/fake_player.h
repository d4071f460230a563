// Inside backend/fake only: the script being played, shared by the backend and its variants.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/fake_script.h"

namespace fdbench {

struct FakePlayer {
  FakeScript script;
  double now_s = 0.0;
  bool lost = false;  // the device is unusable
  int samples = 0;
  std::map<std::string, int, std::less<>> launches, timed;  // by variant
  std::string last_launched;
  int last_chunk = 0;
  double spun_ns = 0.0;  // by the launch being timed

  const FakeVariantScript& of(std::string_view variant) const;
  // The nanoseconds of this variant's next sample.
  double next_ns(std::string_view variant);
};

FakePlayer& fake_player();

}  // namespace fdbench
