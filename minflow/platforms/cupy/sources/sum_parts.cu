// The sum of parts, in order.

#include "common.cuh"

// parts: (count, size).  out: (size,).
extern "C" __global__ void sum_parts(const ACC* parts, T* out, long long count, long long size) {
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < size; i += gridDim.x * (long long)blockDim.x) {
    ACC sum = 0;
    for (long long part = 0; part < count; part++) sum += parts[part * size + i];
    out[i] = T(sum);
  }
}
