// Tiles of attention: the weights of some queries for some keys at a time, in shared memory.
//
// T: dtype of elements.  M: that of the mask.  MASK: NONE, ALLOWED (true where a query may attend) or ADDED.
// WIDTH, DEPTH: the features of a key and of a value, rounded up to multiples of 16.  BQ, BK: queries and keys of a
// tile. Tiles in which no query may attend to any key are skipped.

#include "common.cuh"

// Thread (x, y) of 16 x 16 computes weights of the queries y * QUERIES + i and the keys x + 16 * j.
const int THREADS = 256, SIDE = 16, QUERIES = BQ / SIDE, KEYS = BK / SIDE;
const int WIDE = WIDTH + 4, DEEP = DEPTH + 4, LINE = BK + 4;  // elements between rows of tiles: no conflicts of banks

#include "attention_items.cuh"

__device__ int thread_x() { return threadIdx.x % SIDE; }
__device__ int thread_y() { return threadIdx.x / SIDE; }

// Copy ROWS rows of a matrix, of which `columns` elements are used, to shared memory; zeros outside of it.
template <int ROWS, int COLUMNS>
__device__ void load(float* tile, const T* source, long long step, long long first, long long rows, int columns) {
  for (int i = threadIdx.x; i < ROWS * COLUMNS; i += THREADS) {
    int r = i / COLUMNS, c = i % COLUMNS;
    bool inside = first + r < rows && c < columns;
    tile[r * (COLUMNS + 4) + c] = inside ? float(source[(first + r) * step + c]) : 0.0f;
  }
}

// sums[i][j] = the dot product of row y * I + i of a and row x + 16 * j of b, each of LENGTH elements.
template <int I, int J, int LENGTH>
__device__ void dots(float (&sums)[I][J], const float* a, const float* b) {
  const int STEP = LENGTH + 4;
  for (int i = 0; i < I; i++)
    for (int j = 0; j < J; j++) sums[i][j] = 0;
#pragma unroll 2
  for (int e = 0; e < LENGTH; e += 4) {
    Four x[I], y[J];
#pragma unroll
    for (int i = 0; i < I; i++) x[i] = *(const Four*)(a + (thread_y() * I + i) * STEP + e);
#pragma unroll
    for (int j = 0; j < J; j++) y[j] = *(const Four*)(b + (thread_x() + SIDE * j) * STEP + e);
#pragma unroll
    for (int i = 0; i < I; i++)
#pragma unroll
      for (int j = 0; j < J; j++)
#pragma unroll
        for (int n = 0; n < 4; n++) sums[i][j] += x[i].at[n] * y[j].at[n];
  }
}

// sums[i][j] += the sum over t of weights[(y * I + i) * row + t * term] * v[t][x + 16 * j].
template <int I, int J, int TERMS>
__device__ void add_products(float (&sums)[I][J], const float* weights, int row, int term, const float* v) {
#pragma unroll 4
  for (int t = 0; t < TERMS; t++) {
    float x[I];
#pragma unroll
    for (int i = 0; i < I; i++) x[i] = weights[(thread_y() * I + i) * row + t * term];
#pragma unroll
    for (int j = 0; j < J; j++) {
      float y = v[t * (J * SIDE + 4) + thread_x() + SIDE * j];
#pragma unroll
      for (int i = 0; i < I; i++) sums[i][j] += x[i] * y;
    }
  }
}

template <int I, int J>
__device__ void clear(float (&sums)[I][J]) {
#pragma unroll
  for (int i = 0; i < I; i++)
#pragma unroll
    for (int j = 0; j < J; j++) sums[i][j] = 0;
}

// Write rows y * I + i and columns x + 16 * j of a contiguous result.
template <int I, int J>
__device__ void store(T* out, const float (&sums)[I][J], long long first, long long rows, long long columns) {
  for (int i = 0; i < I; i++)
    for (int j = 0; j < J; j++) {
      long long r = first + thread_y() * I + i, c = thread_x() + SIDE * j;
      if (r < rows && c < columns) out[r * columns + c] = T(sums[i][j]);
    }
}

// The sum and the maximum over the 16 threads of a row; the maximum ignores NaN.
__device__ float sum_of_row(float x) {
  for (int step = SIDE / 2; step; step >>= 1) x += __shfl_xor_sync(WHOLE_WARP, x, step);
  return x;
}
__device__ float max_of_row(float x) {
  for (int step = SIDE / 2; step; step >>= 1) x = fmaxf(x, __shfl_xor_sync(WHOLE_WARP, x, step));
  return x;
}

// The result of some queries, in `sums` before the division by `total`; `top`: largest scores.
struct Rows {
  float sums[QUERIES][DEPTH / SIDE], top[QUERIES], total[QUERIES];

  __device__ void compute(const T* q, long long q_row, const T* k, long long k_row, const T* v, long long v_row,
                          const Mask& mask, long long first, int width, int depth, float scale) {
    __shared__ Four q_tile[BQ * WIDE / 4], kv_tile[BK * (WIDE > DEEP ? WIDE : DEEP) / 4], weights[BQ * LINE / 4];
    clear(sums);
    for (int i = 0; i < QUERIES; i++) top[i] = -INFINITY, total[i] = 0;
    load<BQ, WIDTH>((float*)q_tile, q, q_row, first, mask.rows, width);
    for (long long begin = 0; begin < mask.keys; begin += BK) {
      if (!mask.any<BQ, BK>(first, begin)) continue;
      load<BK, WIDTH>((float*)kv_tile, k, k_row, begin, mask.keys, width);
      __syncthreads();
      float scores[QUERIES][KEYS];
      dots<QUERIES, KEYS, WIDTH>(scores, (float*)q_tile, (float*)kv_tile);
#pragma unroll
      for (int i = 0; i < QUERIES; i++) {
        int row = thread_y() * QUERIES + i;
        float most = top[i], sum = 0;
#pragma unroll
        for (int j = 0; j < KEYS; j++) {
          scores[i][j] = mask.score(scores[i][j] * scale, first + row, begin + thread_x() + SIDE * j);
          most = fmaxf(most, scores[i][j]);
        }
        most = max_of_row(most);
        float base = most == -INFINITY ? 0 : most, change = exp(top[i] - base);
#pragma unroll
        for (int j = 0; j < KEYS; j++) {
          float weight = exp(scores[i][j] - base);
          ((float*)weights)[row * LINE + thread_x() + SIDE * j] = weight;
          sum += weight;
        }
        top[i] = most, total[i] = total[i] * change + sum_of_row(sum);
#pragma unroll
        for (int j = 0; j < DEPTH / SIDE; j++) sums[i][j] *= change;
      }
      __syncthreads();
      load<BK, DEPTH>((float*)kv_tile, v, v_row, begin, mask.keys, depth);
      __syncthreads();
      add_products<QUERIES, DEPTH / SIDE, BK>(sums, (float*)weights, LINE, 1, (float*)kv_tile);
      __syncthreads();
    }
    for (int i = 0; i < QUERIES; i++)
      for (int j = 0; j < DEPTH / SIDE; j++) sums[i][j] /= total[i];
  }
};
