// cuBLAS, loaded at run time, so that a binary built with CUDA starts where the library is not installed.
#pragma once

#include <cublas_v2.h>

#include <string>

namespace fdbench::cuda {

// The functions that the reference kernel calls; names as in the library, without its prefix.
struct Cublas {
  decltype(&cublasCreate) create = nullptr;
  decltype(&cublasDestroy) destroy = nullptr;
  decltype(&cublasSetStream) set_stream = nullptr;
  decltype(&cublasSetWorkspace) set_workspace = nullptr;
  decltype(&cublasSetMathMode) set_math_mode = nullptr;
  decltype(&cublasGemmStridedBatchedEx_64) gemm_strided_batched_ex = nullptr;
  decltype(&cublasTSSgemvStridedBatched_64) gemv_bf16_to_f32 = nullptr;
  decltype(&cublasTSTgemvStridedBatched_64) gemv_bf16 = nullptr;
  decltype(&cublasHSSgemvStridedBatched_64) gemv_fp16_to_f32 = nullptr;
  decltype(&cublasHSHgemvStridedBatched_64) gemv_fp16 = nullptr;
  decltype(&cublasGetStatusName) status_name = nullptr;
  std::string version;   // "13.0.2"; empty: not loaded
  std::string why_none;  // a sentence where it was not loaded
};

// Loads on the first call; the library of the toolkit's major version, by the loader's own search, then under
// CUDA_HOME, CUDA_PATH and /usr/local/cuda. Never throws.
const Cublas& cublas();

// cublas().version
std::string cublas_version();

// Throws Error(Exit::failed), as check.h does for the runtime.
void check_cublas(cublasStatus_t status, const char* expression, const char* file, int line);

}  // namespace fdbench::cuda

#define FDBENCH_CUBLAS_CHECK(expression) \
  ::fdbench::cuda::check_cublas((expression), #expression, __FILE__, __LINE__)
