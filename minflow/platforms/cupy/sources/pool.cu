// Pooling of images (planes, height, width) over windows, and its gradients, which gather what each pixel gets.

#include "rows.cuh"

struct Windows {  // of one axis
  int size, count, kernel, stride, padding;
  __device__ Windows(long long size, long long count, long long kernel, long long stride, long long padding)
      : size(size), count(count), kernel(kernel), stride(stride), padding(padding) {}
  __device__ int start(int i) const { return i * stride - padding; }
  // The elements that a mean over window i divides by.
  __device__ int width(int i, bool with_padding) const {
    int first = start(i), last = min(first + kernel, size + padding);
    return with_padding ? last - first : min(last, size) - max(first, 0);
  }
  // The first and the last window, none if it is less, that contain an element.
  __device__ int first_of(int at) const {
    int left = at + padding - kernel + 1;
    return left > 0 ? (left + stride - 1) / stride : 0;
  }
  __device__ int last_of(int at) const { return min((at + padding) / stride, count - 1); }
};

// Windows between equal fractions of an axis.
struct Fractions {
  long long size, count;
  __device__ long long start(long long i) const { return i * size / count; }
  __device__ long long stop(long long i) const { return ((i + 1) * size + count - 1) / count; }
  __device__ long long first_of(long long at) const { return at * count / size; }
  __device__ long long last_of(long long at) const { return ((at + 1) * count + size - 1) / size - 1; }
};

struct Pixel {  // number k of planes of this size
  long long plane;
  int row, column;
  __device__ Pixel(unsigned k, unsigned height, unsigned width)
      : plane(k / (height * width)), row(k / width % height), column(k % width) {}
};

#define FOR_PIXELS(k, size)                                                              \
  for (long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x; k < (size);        \
       k += gridDim.x * (long long)blockDim.x)

// The first of equal maxima; NaN wins, the last one. indices: of the maximum in its image.
extern "C" __global__ void max_pool(const T* x, T* y, long long* indices, long long size, long long height,
                                    long long width, long long rows, long long columns, long long kernel_h,
                                    long long kernel_w, long long stride_h, long long stride_w, long long padding_h,
                                    long long padding_w, long long dilation_h, long long dilation_w) {
  Windows across(width, columns, kernel_w, stride_w, padding_w), down(height, rows, kernel_h, stride_h, padding_h);
  FOR_PIXELS(k, size) {
    Pixel out(k, rows, columns);
    const T* image = x + out.plane * height * width;
    int top = down.start(out.row), left = across.start(out.column), best = -1;
    ACC most = 0;
    for (int i = 0, r = top; i < down.kernel; i++, r += (int)dilation_h)
      for (int j = 0, c = left; j < across.kernel; j++, c += (int)dilation_w)
        if (0 <= r && r < down.size && 0 <= c && c < across.size) {
          ACC value = image[r * across.size + c];
          if (best < 0 || value > most || value != value) most = value, best = r * across.size + c;
        }
    y[k] = image[best];
    indices[k] = best;
  }
}

// A block for each plane: pixels (size,), outputs (count,). Each pixel has a list of the outputs whose maximum it is, in
// no order, whose gradients are added in order. Indices outside of the image, which only a loaded graph can have, are
// skipped. heads: (planes, size), next: (planes, count).  apart: lists have one element.
extern "C" __global__ void max_pool_grad(const T* grad, const long long* indices, T* out, int* heads, int* next,
                                         long long size, long long count, long long apart) {
  grad += blockIdx.x * count, indices += blockIdx.x * count, next += blockIdx.x * count;
  out += blockIdx.x * size, heads += blockIdx.x * size;
  for (long long i = threadIdx.x; i < size; i += blockDim.x) heads[i] = -1;
  __syncthreads();
  for (long long i = threadIdx.x; i < count; i += blockDim.x)
    if (0 <= indices[i] && indices[i] < size) next[i] = atomicExch(heads + indices[i], (int)i);
  __syncthreads();
  for (long long i = threadIdx.x; i < size; i += blockDim.x) {
    int first = heads[i], added = -1;
    if (apart && first >= 0) {  // -0.0 stays
      out[i] = grad[first];
      continue;
    }
    double sum = 0;
    while (true) {
      int least = -1;
      for (int k = first; k >= 0; k = next[k])
        if (k > added && (least < 0 || k < least)) least = k;
      if (least < 0) break;
      sum += (double)grad[added = least];
    }
    out[i] = T(sum);
  }
}

// divisor: of each sum; 0 for the number of elements of the window.
extern "C" __global__ void avg_pool(const T* x, T* y, long long size, long long height, long long width, long long rows,
                                    long long columns, long long kernel_h, long long kernel_w, long long stride_h,
                                    long long stride_w, long long padding_h, long long padding_w,
                                    long long with_padding, long long divisor) {
  Windows across(width, columns, kernel_w, stride_w, padding_w), down(height, rows, kernel_h, stride_h, padding_h);
  FOR_PIXELS(k, size) {
    Pixel out(k, rows, columns);
    const T* image = x + out.plane * height * width;
    int top = down.start(out.row), left = across.start(out.column);
    ACC sum = 0;
    for (int r = max(top, 0); r < min(top + down.kernel, down.size); r++)
      for (int c = max(left, 0); c < min(left + across.kernel, across.size); c++)
        sum += (ACC)image[r * across.size + c];
    long long count = divisor ? divisor : down.width(out.row, with_padding) * across.width(out.column, with_padding);
    y[k] = T(sum / count);
  }
}

// size: of the gradient with respect to x.
extern "C" __global__ void avg_pool_grad(const T* grad, T* out, long long size, long long height, long long width,
                                         long long rows, long long columns, long long kernel_h, long long kernel_w,
                                         long long stride_h, long long stride_w, long long padding_h,
                                         long long padding_w, long long with_padding, long long divisor) {
  Windows across(width, columns, kernel_w, stride_w, padding_w), down(height, rows, kernel_h, stride_h, padding_h);
  FOR_PIXELS(k, size) {
    Pixel at(k, height, width);
    const T* image = grad + at.plane * rows * columns;
    ACC sum = 0;
    for (int i = down.first_of(at.row); i <= down.last_of(at.row); i++)
      for (int j = across.first_of(at.column); j <= across.last_of(at.column); j++) {
        long long count = divisor ? divisor : down.width(i, with_padding) * across.width(j, with_padding);
        sum += (ACC)image[i * across.count + j] / count;
      }
    out[k] = T(sum);
  }
}

// A team of threads for each window.
extern "C" __global__ void adaptive_avg_pool(const T* x, T* y, long long size, long long height, long long width,
                                             long long rows, long long columns) {
  Fractions down = {height, rows}, across = {width, columns};
  FOR_ROWS(k, size) {
    Pixel out(k < size ? k : 0, rows, columns);
    const T* image = x + out.plane * height * width;
    long long top = down.start(out.row), left = across.start(out.column), wide = across.stop(out.column) - left;
    long long count = (down.stop(out.row) - top) * wide;
    Two sums = {0, 0};
    for (long long i = RANK; i < count; i += TEAM) sums.first += (ACC)image[(top + i / wide) * width + left + i % wide];
    sums = join_team(sums);
    if (k < size && RANK == 0) y[k] = T(sums.first / count);
  }
}

extern "C" __global__ void adaptive_avg_pool_grad(const T* grad, T* out, long long size, long long height,
                                                  long long width, long long rows, long long columns) {
  Fractions down = {height, rows}, across = {width, columns};
  FOR_PIXELS(k, size) {
    Pixel at(k, height, width);
    const T* image = grad + at.plane * rows * columns;
    ACC sum = 0;
    for (long long i = down.first_of(at.row); i <= down.last_of(at.row); i++)
      for (long long j = across.first_of(at.column); j <= across.last_of(at.column); j++) {
        long long count = (down.stop(i) - down.start(i)) * (across.stop(j) - across.start(j));
        sum += (ACC)image[i * columns + j] / count;
      }
    out[k] = T(sum);
  }
}
