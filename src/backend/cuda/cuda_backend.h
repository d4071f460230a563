// The CUDA backend. Only builds that define FDBENCH_HAVE_CUDA have it; it needs no driver to be linked or to
// answer cuda_device_count().
#pragma once

#include <memory>

#include "backend/backend.h"
#include "cuda/device_query.h"

namespace fdbench {

// How the cache is evicted before a cold sample.
enum class FlushKind {
  read,    // clean lines are read over it: nothing is left to write back
  memset,  // it is left full of dirty lines, whose write-back the timed launch pays for: only to show that
};

// Works on device `index` with a stream of its own. The device is current from here until the backend is
// destroyed, which makes current again what was before. Throws Error: Exit::no_device where there is no such
// device.
std::unique_ptr<Backend> make_cuda_backend(int index, FlushKind flush = FlushKind::read);

}  // namespace fdbench
