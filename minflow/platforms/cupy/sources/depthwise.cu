// Convolutions whose groups have one channel each: every thread sums one element, or its part of a filter's gradient.
//
// MODE and the first two parameters are those of conv.cu. KH, KW, SH, SW, DH, DW: sizes, strides and dilations of the
// filter, as macros so that divisions are cheap.  Channel c has the filters c * each to c * each + each - 1.

#define FORWARD 0
#define INPUT_GRAD 1
#define WEIGHT_GRAD 2
#include "common.cuh"

// x: (n, channels, h, w).  weight: (channels * each, KH, KW).  grad: (n, channels * each, oh, ow).
// out: T of the shape of the result; of WEIGHT_GRAD, if parts > 1, that many of ACC.  blocks of WEIGHT_GRAD: (filters,
// parts, rows of taps / ROWS), since a thread has a register for each of its taps.
extern "C" __global__ void __launch_bounds__(256, 2) depthwise(
    const T* a, const T* b, void* out, long long n, long long channels, long long each, long long h, long long w,
    long long oh, long long ow, long long ph, long long pw, long long parts) {
  unsigned high = h, wide = w, rows = oh, columns = ow;
#if MODE == WEIGHT_GRAD
  unsigned filter = blockIdx.x, filters = gridDim.x, positions = n * rows * columns;
  unsigned part = (positions + parts - 1) / parts, first = blockIdx.y * part, last = min(positions, first + part);
  int first_row = blockIdx.z * ROWS;
  ACC sums[ROWS * KW];
#pragma unroll
  for (int tap = 0; tap < ROWS * KW; tap++) sums[tap] = 0;
  for (unsigned i = first + threadIdx.x; i < last; i += blockDim.x) {
    unsigned pixel = i % (rows * columns), image = i / (rows * columns);
    ACC grad = a[(image * filters + filter) * rows * columns + pixel];
    const T* x = b + (image * channels + filter / each) * high * wide;
    int top = int(pixel / columns) * SH + first_row * DH - int(ph), left = int(pixel % columns) * SW - int(pw);
#pragma unroll
    for (int tap = 0; tap < ROWS * KW; tap++) {
      unsigned y = top + tap / KW * DH, z = left + tap % KW * DW;
      if (y < high && z < wide) sums[tap] += grad * ACC(x[y * wide + z]);
    }
  }
#pragma unroll
  for (int tap = 0; tap < ROWS * KW; tap++) {
    ACC sum = reduce_block<Sum>(sums[tap]);
    unsigned place = (filter * KH + first_row) * KW + tap;
    if (threadIdx.x) continue;
    if (parts > 1)
      ((ACC*)out)[blockIdx.y * filters * KH * KW + place] = sum;
    else
      ((T*)out)[place] = T(sum);
  }
#elif MODE == FORWARD
  unsigned size = n * channels * each * rows * columns;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x) {
    unsigned plane = i / (rows * columns), pixel = i % (rows * columns);
    const T *x = b + plane / each * high * wide, *weight = a + plane % (channels * each) * KH * KW;
    int top = int(pixel / columns) * SH - int(ph), left = int(pixel % columns) * SW - int(pw);
    ACC sum = 0;
    for (int u = 0; u < KH; u++) {
      unsigned y = top + u * DH;
      if (y >= high) continue;
#pragma unroll
      for (int v = 0; v < KW; v++) {
        unsigned z = left + v * DW;
        if (z < wide) sum += ACC(weight[u * KW + v]) * ACC(x[y * wide + z]);
      }
    }
    ((T*)out)[i] = T(sum);
  }
#else
  unsigned size = n * channels * high * wide;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x) {
    unsigned plane = i / (high * wide), pixel = i % (high * wide);
    int bottom = int(pixel / wide + ph), right = int(pixel % wide + pw);
    ACC sum = 0;
    for (unsigned filter = 0; filter < each; filter++) {
      const T* weight = a + (plane % channels * each + filter) * KH * KW;
      const T* grad = b + (plane * each + filter) * rows * columns;
      for (int u = 0; u < KH; u++) {
        int y = bottom - u * DH;  // times the stride
        if (y % SH || unsigned(y / SH) >= rows) continue;
#pragma unroll
        for (int v = 0; v < KW; v++) {
          int z = right - v * DW;
          if (z % SW == 0 && unsigned(z / SW) < columns)
            sum += ACC(weight[u * KW + v]) * ACC(grad[y / SH * columns + z / SW]);
        }
      }
    }
    ((T*)out)[i] = T(sum);
  }
#endif
}
