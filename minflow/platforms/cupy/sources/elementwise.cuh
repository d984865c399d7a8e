// Operations of formulas that CUDA C lacks or names otherwise, for generated loops.

#include "common.cuh"

// NaN if either is.
template <class T>
__device__ T larger(T x, T y) { return x >= y || x != x ? x : y; }
template <class T>
__device__ T smaller(T x, T y) { return x <= y || x != x ? x : y; }

__device__ f16 f16_of(double x) {  // rounded once
  f16 result;
#ifdef ON_HOST
  result.bits = host_half_from_double(x);
#else
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(result.bits) : "d"(x));
#endif
  return result;
}

// The sum over a warp, and over a block of whole warps, in every thread, in an order that does not depend on timing.
template <class T>
__device__ T sum_of_warp(T x) {
  for (int step = 16; step; step >>= 1) x += __shfl_xor_sync(WHOLE_WARP, x, step);
  return x;
}
template <class T>
__device__ T sum_of_block(T x) {
  __shared__ T of_warps[32];
  int lane = threadIdx.x % 32, warps = blockDim.x / 32;
  x = sum_of_warp(x);
  if (warps == 1) return x;
  __syncthreads();  // an earlier sum may still be read
  if (lane == 0) of_warps[threadIdx.x / 32] = x;
  __syncthreads();
  return sum_of_warp(lane < warps ? of_warps[lane] : 0);
}
