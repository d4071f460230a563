#include "cuda/check.h"

#include <cstring>
#include <string>

#include "core/error.h"

namespace fdbench::cuda {

const char* short_path(const char* file) {
  const char* best = file;
  for (const char* root : {"/src/", "/kernels/", "/tests/"}) {
    for (const char* at = std::strstr(file, root); at != nullptr; at = std::strstr(at + 1, root)) {
      if (at + 1 > best) best = at + 1;
    }
  }
  return best;
}

void fail(cudaError_t error, const char* expression, const char* file, int line) {
  (void)cudaGetLastError();
  throw Error(Exit::failed, std::string(expression) + " failed at " + short_path(file) + ":" +
                                std::to_string(line) + ": " + cudaGetErrorName(error) + " (" +
                                cudaGetErrorString(error) + ")");
}

}  // namespace fdbench::cuda
