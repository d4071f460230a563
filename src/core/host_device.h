// Lets the few functions that CPU and GPU must agree on bit for bit be compiled for both.
#pragma once

#ifdef __CUDACC__
#define FDBENCH_HOST_DEVICE __host__ __device__
#else
#define FDBENCH_HOST_DEVICE
#endif
