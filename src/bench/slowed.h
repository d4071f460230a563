// A slowdown made on purpose, for proving that a comparison finds one of its size.
#pragma once

#include <string>
#include <string_view>

#include "backend/backend.h"

namespace fdbench::bench {

// Launches `inner` and then keeps the device busy for a share of the time that `inner` takes by itself.
class Slowed final : public Prepared {
 public:
  // Samples `inner` a few times to find its time; after start_measuring. Both must outlive this.
  Slowed(Backend& backend, Prepared& inner, double share);
  void launch(const LaunchContext& context) override;

  // "planted:VARIANT+5.0%", as a row's flag. More than was asked for where spinning at all costs more.
  std::string flag(std::string_view variant) const;

 private:
  Backend* backend_;
  Prepared* inner_;
  double spin_ns_ = 0.0;
  double percent_ = 0.0;  // planted in fact, by what is known of the device
};

}  // namespace fdbench::bench
