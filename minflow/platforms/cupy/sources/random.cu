// Draws from a distribution, with the bits of the reference kernels in `core/ops/random.py`.
//
// A thread draws one block of random words, which are EACH elements of a tensor whose first one is number `start`.
// U is the dtype of the computation: that of uniform values, which WIDE ones draw from two words. Products and sums
// are rounded one by one, as NumPy does.

#include "philox.cuh"

#define FOR_BLOCKS(i, start, size)                                                                        \
  for (long long i = (start) / EACH + blockIdx.x * (long long)blockDim.x + threadIdx.x; i * EACH < (start) + (size); \
       i += gridDim.x * (long long)blockDim.x)
// Element j of a block, as number k of the result.
#define FOR_ELEMENTS(j, k, i, start, size)                                                \
  for (long long j = 0, k = (i) * EACH - (start); j < EACH; j++, k++)                     \
    if (0 <= k && k < (size))

__device__ double uniform_double(unsigned high, unsigned low) {
  return (((unsigned long long)high << 21) | (low >> 11)) * 0x1p-53;
}

// Number j of the uniform values in [0, 1) of a block. unused: bits of a word that would make a value round up to 1.
__device__ U uniform_value(const Words& words, int j, int unused) {
  if (WIDE) return (U)uniform_double(words.of[2 * j % 4], words.of[(2 * j + 1) % 4]);
  return (U)((float)(words.of[j] >> unused) * __uint_as_float((unsigned)(127 + unused - 32) << 23));
}

extern "C" __global__ void draw_uniform(T* out, const long long* state, long long key, long long counter,
                                        long long offset, double width, double low, double last, long long scaled,
                                        long long unused, long long start, long long size) {
  Draw draw(state, key, counter, offset);
  FOR_BLOCKS(i, start, size) {
    Words words = draw.block(i);
    FOR_ELEMENTS(j, k, i, start, size) {
      U u = uniform_value(words, j, unused);
      if (scaled) u = product(u, (U)width) + (U)low;
      if (scaled && width > 0 && u > (U)last) u = (U)last;
      out[k] = (T)(u);
    }
  }
}

// Element j of a block, by the Box-Muller transform of a pair of uniform values in double.
__device__ double normal_value(const Words& words, int j) {
  double first, second;
  if (WIDE) {
    first = uniform_double(words.of[0], words.of[1]) + 0x1p-54;
    second = uniform_double(words.of[2], words.of[3]) + 0x1p-54;
  } else {
    first = (words.of[j & 2] + 0.5) * 0x1p-32;
    second = (words.of[j | 1] + 0.5) * 0x1p-32;
  }
  double radius = sqrt(-2 * log(first)), angle = second * 6.283185307179586;
  return radius * (j % 2 ? sin(angle) : cos(angle));
}

extern "C" __global__ void draw_normal(T* out, const long long* state, long long key, long long counter,
                                       long long offset, double mean, double std, long long start, long long size) {
  Draw draw(state, key, counter, offset);
  FOR_BLOCKS(i, start, size) {
    Words words = draw.block(i);
    FOR_ELEMENTS(j, k, i, start, size) out[k] = (T)(product(normal_value(words, j), std) + mean);
  }
}

// Integers in [low, low + width): the high half of a word times the width.
extern "C" __global__ void draw_integers(T* out, const long long* state, long long key, long long counter,
                                         long long offset, long long width, long long low, long long start,
                                         long long size) {
  Draw draw(state, key, counter, offset);
  FOR_BLOCKS(i, start, size) {
    Words words = draw.block(i);
    FOR_ELEMENTS(j, k, i, start, size)
      out[k] = (T)((long long)((words.of[j] * (unsigned long long)width) >> 32) + low);
  }
}

extern "C" __global__ void draw_bernoulli(T* out, const T* p, const long long* state, long long key,
                                          long long counter, long long offset, long long start, long long size) {
  Draw draw(state, key, counter, offset);
  FOR_BLOCKS(i, start, size) {
    Words words = draw.block(i);
    FOR_ELEMENTS(j, k, i, start, size) out[k] = (T)(words.of[j] < (double)p[k] * 0x1p32 ? 1 : 0);
  }
}

// An element is dropped if 16 random bits are below `bound`; others, and their mask, are scaled by `factor`.
extern "C" __global__ void dropout(T* y, T* mask, const T* x, const long long* state, long long key,
                                   long long counter, long long offset, long long bound, double factor,
                                   long long start, long long size) {
  Draw draw(state, key, counter, offset);
  FOR_BLOCKS(i, start, size) {
    Words words = draw.block(i);
    FOR_ELEMENTS(j, k, i, start, size) {
      U kept = (words.of[j / 2] >> 16 * (j % 2) & 0xffff) >= bound ? (U)factor : (U)0;
      mask[k] = (T)kept;
      y[k] = (T)product((U)x[k], kept);
    }
  }
}
