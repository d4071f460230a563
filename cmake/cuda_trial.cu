// Compiled at configure time: does this toolkit build C++20 for the architectures asked for, and has it cuBLAS?
#include <cublas_v2.h>
#include <cuda.h>

#include <concepts>

template <std::integral T>
__global__ void trial(T* out) {
  *out = 1;
}

int main() {
  trial<<<1, 1>>>(static_cast<int*>(nullptr));
  return static_cast<int>(sizeof(CUtensorMap) == 0) + static_cast<int>(CUBLAS_VERSION == 0);
}
