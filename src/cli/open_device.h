// --device and --fake: the backend they name.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"
#include "core/variant.h"

namespace fdbench::cli {

struct OpenedDevice {
  std::unique_ptr<Backend> backend;
  std::string why;     // "the first CUDA device", "no CUDA device: ...", ...
  VariantTable table;  // of this build, or the fake device's own
};

// spec: auto, cpu, cuda, cuda:N. Not empty `script`: the fake device that the file scripts. `dirty_flush`:
// evict by writing, to show what that does. Throws Error: usage for a spec that means nothing, no_device
// where the device is absent.
OpenedDevice open_device(const std::string& spec, const std::string& script, bool dirty_flush = false);

// Throws Error (usage) for a spec that means nothing; opens nothing.
void check_device_spec(const std::string& spec);

}  // namespace fdbench::cli
