// Types and functions that all sources share. T is the dtype of elements; ACC that of sums of them.
//
// float16 and bfloat16 are converted here and not by CUDA's headers, which an installation of CuPy may lack.

#ifndef ACC
#define ACC float
#endif
#ifdef ON_HOST
#define DYNAMIC_SHARED(type, name) type* name = (type*)host_shared
#else
#define DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) char name##_bytes[]; type* name = (type*)name##_bytes
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)
#endif

struct f16 {
  unsigned short bits;
  f16() = default;
  __device__ f16(float x) {
#ifdef ON_HOST
    bits = host_half_from_float(x);
#else
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
#endif
  }
  __device__ operator float() const {
#ifdef ON_HOST
    return host_float_from_half(bits);
#else
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
#endif
  }
};

struct bf16 {  // the upper half of a float, rounded to even
  unsigned short bits;
  bf16() = default;
  __device__ bf16(float x) {
    unsigned word = __float_as_uint(x);
    bits = x != x ? 0x7fc0 : (word + 0x7fff + ((word >> 16) & 1)) >> 16;
  }
  __device__ operator float() const { return __uint_as_float((unsigned)bits << 16); }
};

// Products that the compiler does not contract with a sum, which would round once instead of twice.
#ifdef ON_HOST
__device__ float product(float x, float y) { return x * y; }
__device__ double product(double x, double y) { return x * y; }
#else
__device__ float product(float x, float y) { return __fmul_rn(x, y); }
__device__ double product(double x, double y) { return __dmul_rn(x, y); }
#endif

#define WHOLE_WARP 0xffffffffu

struct Sum {
  static __device__ ACC identity() { return 0; }
  static __device__ ACC join(ACC a, ACC b) { return a + b; }
};

struct Max {  // NaN if any element is NaN
  static __device__ ACC identity() { return -INFINITY; }
  static __device__ ACC join(ACC a, ACC b) { return a > b || a != a ? a : b; }
};

template <class Op>
__device__ ACC reduce_warp(ACC x) {
  for (int step = 16; step; step >>= 1) x = Op::join(x, __shfl_xor_sync(WHOLE_WARP, x, step));
  return x;
}

// The reduction over all threads of a block of whole warps, in every thread. Threads of a warp join in one order, so
// results do not depend on timing.
template <class Op>
__device__ ACC reduce_block(ACC x) {
  __shared__ ACC of_warps[32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  x = reduce_warp<Op>(x);
  if (warps == 1) return x;
  __syncthreads();  // an earlier reduction may still read
  if (lane == 0) of_warps[warp] = x;
  __syncthreads();
  x = lane < warps ? of_warps[lane] : Op::identity();
  return reduce_warp<Op>(x);
}
