// Tiles of attention in float16 and bfloat16 on tensor cores, which sum in float32.
//
// T: dtype of elements.  M: that of the mask.  MASK: NONE, ALLOWED (true where a query may attend) or ADDED.
// WIDTH, DEPTH: the features of a key and of a value, rounded up to multiples of 16.  TILE: rows of a tile in shared
// memory. A block has 64 rows of the result, each warp 16 of them, whose weights stay in registers: the sums of one
// product are a factor of the next.

#include "common.cuh"
#include "tensor_cores.cuh"

const int THREADS = 128, ROWS = 64;
const int PAD = 8;  // elements between rows of a tile, so that lanes read from different banks

#include "attention_items.cuh"

// Lanes share sums of 16 x 8 elements: [2 * h + c] is row lane / 4 + 8 * h, column lane % 4 * 2 + c.
__device__ int lane_row() { return threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4; }
__device__ int lane_column() { return threadIdx.x % 4 * 2; }

#ifndef TENSOR_CORES  // then kernels/attention.py runs attention.cu
template <class Half>
__device__ unsigned word_of(const Half* x) {
  return 0;
}
__device__ void multiply_add(float* d, const unsigned* a, const unsigned* b) { asm("trap;"); }
#endif

__device__ unsigned word_of(T x, T y) {
  T both[2] = {x, y};
  return word_of(both);
}

template <int BLOCKS>
__device__ void clear(float (&sums)[BLOCKS][4]) {
#pragma unroll
  for (int n = 0; n < BLOCKS; n++) sums[n][0] = sums[n][1] = sums[n][2] = sums[n][3] = 0;
}

// Copy N rows of a matrix, of which `columns` elements are used, to shared memory; zeros outside of it.
template <int N, int COLUMNS>
__device__ void load(T* tile, const T* source, long long step, long long first, long long rows, int columns) {
  const int LINE = COLUMNS + PAD;
  if (columns == COLUMNS && step % 8 == 0 && (unsigned long long)source % 16 == 0) {
    for (int i = threadIdx.x; i < N * COLUMNS / 8; i += THREADS) {
      int r = i / (COLUMNS / 8), c = i % (COLUMNS / 8) * 8;
      Four x = {0, 0, 0, 0};
      if (first + r < rows) x = *(const Four*)(source + (first + r) * step + c);
      *(Four*)(tile + r * LINE + c) = x;
    }
  } else {
    for (int i = threadIdx.x; i < N * COLUMNS; i += THREADS) {
      int r = i / COLUMNS, c = i % COLUMNS;
      bool inside = first + r < rows && c < columns;
      tile[r * LINE + c] = inside ? source[(first + r) * step + c] : T(0.0f);
    }
  }
}

// The 16 rows of a warp as left factors. first: row of the block.
template <int STEPS>
__device__ void load_rows(unsigned (&x)[STEPS][4], const T* source, long long step, long long first, long long rows,
                          int columns) {
#pragma unroll
  for (int t = 0; t < STEPS; t++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      long long r = first + lane_row() + j % 2 * 8;
      int c = 16 * t + lane_column() + j / 2 * 8;
      const T* place = source + r * step + c;
      x[t][j] = word_of(r < rows && c < columns ? place[0] : T(0.0f), r < rows && c + 1 < columns ? place[1] : T(0.0f));
    }
}

// The same of 16 columns of a tile of 64 rows, with `line` elements between rows.
__device__ void read_rows(unsigned (&x)[4], const T* tile, int line, int column) {
#pragma unroll
  for (int j = 0; j < 4; j++)
    x[j] = *(const unsigned*)(tile + (lane_row() + j % 2 * 8) * line + column + lane_column() + j / 2 * 8);
}

// sums = rows @ tile.T, for rows in registers or in a tile of 64.
template <int BLOCKS, int STEPS>
__device__ void dots(float (&sums)[BLOCKS][4], const unsigned (&rows)[STEPS][4], const T* tile) {
  const int LINE = STEPS * 16 + PAD;
#pragma unroll
  for (int n = 0; n < BLOCKS; n++) {
    sums[n][0] = sums[n][1] = sums[n][2] = sums[n][3] = 0;
    const T* row = tile + (n * 8 + threadIdx.x % 32 / 4) * LINE + lane_column();
#pragma unroll
    for (int t = 0; t < STEPS; t++) {
      unsigned words[2] = {*(const unsigned*)(row + 16 * t), *(const unsigned*)(row + 16 * t + 8)};
      multiply_add(sums[n], rows[t], words);
    }
  }
}

template <int BLOCKS, int COLUMNS>
__device__ void dots(float (&sums)[BLOCKS][4], const T* rows, const T* tile) {
  const int LINE = COLUMNS + PAD;
  clear(sums);
#pragma unroll 2
  for (int t = 0; t < COLUMNS; t += 16) {
    unsigned left[4];
    read_rows(left, rows, LINE, t);
#pragma unroll
    for (int n = 0; n < BLOCKS; n++) {
      const T* row = tile + (n * 8 + threadIdx.x % 32 / 4) * LINE + lane_column() + t;
      unsigned words[2] = {*(const unsigned*)row, *(const unsigned*)(row + 8)};
      multiply_add(sums[n], left, words);
    }
  }
}

// sums += weights @ tile
template <int BLOCKS, int TERMS>
__device__ void add_products(float (&sums)[BLOCKS][4], const float (&weights)[TERMS][4], const T* tile) {
  const int LINE = BLOCKS * 8 + PAD;
#pragma unroll
  for (int t = 0; t < TERMS; t += 2) {
    unsigned left[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const float* pair = weights[t + j / 2] + j % 2 * 2;
      left[j] = word_of(T(pair[0]), T(pair[1]));
    }
#pragma unroll
    for (int n = 0; n < BLOCKS; n++) {
      const T* x = tile + (8 * t + lane_column()) * LINE + n * 8 + threadIdx.x % 32 / 4;
      unsigned words[2] = {word_of(x[0], x[LINE]), word_of(x[8 * LINE], x[9 * LINE])};
      multiply_add(sums[n], left, words);
    }
  }
}

// Write the rows of a warp to a contiguous result.
template <int BLOCKS>
__device__ void store(T* out, const float (&sums)[BLOCKS][4], long long first, long long rows, long long columns) {
#pragma unroll
  for (int n = 0; n < BLOCKS; n++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      long long r = first + lane_row() + j / 2 * 8, c = n * 8 + lane_column() + j % 2;
      if (r < rows && c < columns) out[r * columns + c] = T(sums[n][j]);
    }
}

// The sum and the maximum over the 4 lanes of a row; the maximum ignores NaN.
__device__ float sum_of_row(float x) {
  x += __shfl_xor_sync(WHOLE_WARP, x, 2);
  return x + __shfl_xor_sync(WHOLE_WARP, x, 1);
}
__device__ float max_of_row(float x) {
  x = fmaxf(x, __shfl_xor_sync(WHOLE_WARP, x, 2));
  return fmaxf(x, __shfl_xor_sync(WHOLE_WARP, x, 1));
}

// The results of the queries of a block; `top`: largest scores.
struct Rows {
  float sums[DEPTH / 8][4], top[2], total[2];

  __device__ void compute(const T* q, long long q_row, const T* k, long long k_row, const T* v, long long v_row,
                          const Mask& mask, long long first, int width, int depth, float scale) {
    __shared__ Four k_tile[TILE * (WIDTH + PAD) / 8], v_tile[TILE * (DEPTH + PAD) / 8];
    unsigned queries[WIDTH / 16][4];
    load_rows(queries, q, q_row, first, mask.rows, width);
    clear(sums);
    for (int h = 0; h < 2; h++) top[h] = -INFINITY, total[h] = 0;
    for (long long begin = 0; begin < mask.keys; begin += TILE) {
      if (!mask.any<ROWS, TILE>(first, begin)) continue;
      load<TILE, WIDTH>((T*)k_tile, k, k_row, begin, mask.keys, width);
      load<TILE, DEPTH>((T*)v_tile, v, v_row, begin, mask.keys, depth);
      __syncthreads();
      float weights[TILE / 8][4];
      dots(weights, queries, (T*)k_tile);
#pragma unroll
      for (int h = 0; h < 2; h++) {
        float most = top[h], sum = 0;
#pragma unroll
        for (int n = 0; n < TILE / 8; n++)
#pragma unroll
          for (int c = 0; c < 2; c++) {
            float& x = weights[n][2 * h + c];
            x = mask.score(x * scale, first + lane_row() + 8 * h, begin + n * 8 + lane_column() + c);
            most = fmaxf(most, x);
          }
        most = max_of_row(most);
        float base = most == -INFINITY ? 0 : most, change = exp(top[h] - base);
#pragma unroll
        for (int n = 0; n < TILE / 8; n++)
#pragma unroll
          for (int c = 0; c < 2; c++) sum += weights[n][2 * h + c] = exp(weights[n][2 * h + c] - base);
        top[h] = most, total[h] = total[h] * change + sum_of_row(sum);
#pragma unroll
        for (int n = 0; n < DEPTH / 8; n++) sums[n][2 * h] *= change, sums[n][2 * h + 1] *= change;
      }
      add_products(sums, weights, (T*)v_tile);
      __syncthreads();
    }
#pragma unroll
    for (int n = 0; n < DEPTH / 8; n++)
#pragma unroll
      for (int j = 0; j < 4; j++) sums[n][j] /= total[j / 2];
  }
};
