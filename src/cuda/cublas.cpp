#include "cuda/cublas.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "core/error.h"
#include "cuda/check.h"

namespace fdbench::cuda {
namespace {

#define FDBENCH_TEXT_OF(x) #x
#define FDBENCH_TEXT(x) FDBENCH_TEXT_OF(x)
// cublasCreate and others are macros for versioned symbols: this names what they expand to.
#define FDBENCH_SYMBOL(name) FDBENCH_TEXT(name)

void* load(std::string& tried) {
  const std::string name = "libcublas.so." FDBENCH_TEXT(CUBLAS_VER_MAJOR);
  std::vector<std::string> paths = {name};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable)) paths.push_back(std::string(home) + "/lib64/" + name);
  }
  paths.push_back("/usr/local/cuda/lib64/" + name);
  for (const std::string& path : paths) {
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    tried += (tried.empty() ? "" : ", ") + path;
  }
  return nullptr;
}

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

Cublas load_all() {
  Cublas blas;
  std::string tried;
  void* library = load(tried);
  if (!library) {
    blas.why_none = "cuBLAS was not found (looked for " + tried + ")";
    return blas;
  }
  cublasStatus_t (*get_property)(libraryPropertyType, int*) = nullptr;
  const bool complete =
      find(library, FDBENCH_SYMBOL(cublasCreate), blas.create) &&
      find(library, FDBENCH_SYMBOL(cublasDestroy), blas.destroy) &&
      find(library, FDBENCH_SYMBOL(cublasSetStream), blas.set_stream) &&
      find(library, FDBENCH_SYMBOL(cublasSetWorkspace), blas.set_workspace) &&
      find(library, FDBENCH_SYMBOL(cublasSetMathMode), blas.set_math_mode) &&
      find(library, FDBENCH_SYMBOL(cublasGemmStridedBatchedEx_64), blas.gemm_strided_batched_ex) &&
      find(library, FDBENCH_SYMBOL(cublasTSSgemvStridedBatched_64), blas.gemv_bf16_to_f32) &&
      find(library, FDBENCH_SYMBOL(cublasTSTgemvStridedBatched_64), blas.gemv_bf16) &&
      find(library, FDBENCH_SYMBOL(cublasHSSgemvStridedBatched_64), blas.gemv_fp16_to_f32) &&
      find(library, FDBENCH_SYMBOL(cublasHSHgemvStridedBatched_64), blas.gemv_fp16) &&
      find(library, FDBENCH_SYMBOL(cublasGetStatusName), blas.status_name) &&
      find(library, FDBENCH_SYMBOL(cublasGetProperty), get_property);
  int major = 0;
  int minor = 0;
  int patch = 0;
  if (!complete || get_property(MAJOR_VERSION, &major) != CUBLAS_STATUS_SUCCESS ||
      get_property(MINOR_VERSION, &minor) != CUBLAS_STATUS_SUCCESS ||
      get_property(PATCH_LEVEL, &patch) != CUBLAS_STATUS_SUCCESS) {
    blas.why_none = "the cuBLAS that was found lacks functions that are needed (12.0 has them)";
    return blas;
  }
  blas.version = std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
  return blas;
}

}  // namespace

const Cublas& cublas() {
  static const Cublas kCublas = load_all();
  return kCublas;
}

std::string cublas_version() {
  return cublas().version;
}

void check_cublas(cublasStatus_t status, const char* expression, const char* file, int line) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(Exit::failed, std::string(expression) + " failed at " + short_path(file) + ":" +
                                std::to_string(line) + ": " + cublas().status_name(status));
}

}  // namespace fdbench::cuda
