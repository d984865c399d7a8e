// Operations of formulas that CUDA C lacks or names otherwise, for generated loops.

#include "common.cuh"

#ifdef ON_HOST
__device__ float product(float x, float y) { return x * y; }
__device__ double product(double x, double y) { return x * y; }
#else
// Products that the compiler does not contract with a sum, which would round once instead of twice.
__device__ float product(float x, float y) { return __fmul_rn(x, y); }
__device__ double product(double x, double y) { return __dmul_rn(x, y); }
#endif

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
