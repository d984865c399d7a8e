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
