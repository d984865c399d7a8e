// softmax and log_softmax along rows: one block per row.

#include "common.cuh"

// x, out: (rows, columns).
extern "C" __global__ void softmax_rows(const T* x, T* out, long long columns) {
  const T* row = x + blockIdx.x * columns;
  ACC largest = -INFINITY, sum = 0;
  for (long long j = threadIdx.x; j < columns; j += blockDim.x) largest = Max::join(largest, row[j]);
  largest = reduce_block<Max>(largest);
  for (long long j = threadIdx.x; j < columns; j += blockDim.x) sum += exp((ACC)row[j] - largest);
  sum = reduce_block<Sum>(sum);
  for (long long j = threadIdx.x; j < columns; j += blockDim.x)
    out[blockIdx.x * columns + j] = T(exp((ACC)row[j] - largest) / sum);
}
