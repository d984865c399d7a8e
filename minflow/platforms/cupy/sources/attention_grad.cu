// The gradient of attention. The weights are computed again from statistics of the rows: one kernel sums over the queries
// for each key, one over the keys for each query, both in order. Source: Dao et al. 2022, algorithm 4.

#include "attention.cuh"

// statistics: (items, rows, 2), the logarithm of the sum of exp of the scores, and the sum of grad * out.
extern "C" __global__ void __launch_bounds__(256, 2) attend_statistics(
    const T* q, const T* k, const T* v, const M* mask, const T* grad, float* statistics, long long heads,
    long long rows, long long keys, long long width, long long depth, long long q_batch, long long q_head,
    long long q_row, long long k_batch, long long k_head, long long k_row, long long v_batch, long long v_head,
    long long v_row, long long mask_batch, long long mask_head, long long mask_row, long long mask_column,
    long long grad_batch, long long grad_head, long long grad_row, double scale, long long nowhere) {
  Item item(heads, rows, BQ);
  Mask mask_of_item = {item.of(mask, mask_batch, mask_head), mask_row, mask_column, rows, keys};
  Rows found;
  found.compute(item.of(q, q_batch, q_head), q_row, item.of(k, k_batch, k_head), k_row, item.of(v, v_batch, v_head),
                v_row, mask_of_item, item.first, width, depth, scale);
  grad = item.of(grad, grad_batch, grad_head);
  for (int i = 0; i < QUERIES; i++) {
    long long row = item.first + thread_y() * QUERIES + i;
    bool none = found.top[i] == -INFINITY && nowhere;
    float product = 0;
    for (int j = 0; j < DEPTH / SIDE; j++) {
      int c = thread_x() + SIDE * j;
      if (row < rows && c < depth && !none) product += found.sums[i][j] * float(grad[row * grad_row + c]);
    }
    product = sum_of_row(product);
    if (row >= rows || thread_x()) continue;
    float* place = statistics + (item.index * rows + row) * 2;
    place[0] = none ? INFINITY : found.top[i] + log(found.total[i]);
    place[1] = product;
  }
}

// Tiles of the operands, from which both kernels of the gradient compute weights and the gradients of the scores.
struct Tiles {
  float *q, *k, *v, *grad, *weights, *slopes;

  // weights, slopes: [query][key]. The factor `scale` of the scores is in the slopes.
  __device__ void compute(const Mask& mask, const float* statistics, long long first, long long begin, float scale) {
    float scores[QUERIES][KEYS], of_weights[QUERIES][KEYS];
    dots<QUERIES, KEYS, WIDTH>(scores, q, k);
    dots<QUERIES, KEYS, DEPTH>(of_weights, grad, v);
#pragma unroll
    for (int i = 0; i < QUERIES; i++) {
      int row = thread_y() * QUERIES + i;
      bool inside = first + row < mask.rows;
      float log_sum = inside ? statistics[(first + row) * 2] : 0, mean = inside ? statistics[(first + row) * 2 + 1] : 0;
#pragma unroll
      for (int j = 0; j < KEYS; j++) {
        int key = thread_x() + SIDE * j, place = row * LINE + key;
        float weight = exp(mask.score(scores[i][j] * scale, first + row, begin + key) - log_sum);
        weights[place] = weight;
        slopes[place] = mask.hides(first + row, begin + key) ? 0.0f : weight * (of_weights[i][j] - mean) * scale;
      }
    }
  }
};

#define TILES \
  __shared__ Four q_tile[BQ * WIDE / 4], k_tile[BK * WIDE / 4], v_tile[BK * DEEP / 4], grad_tile[BQ * DEEP / 4]; \
  __shared__ Four weight_tile[BQ * LINE / 4], slope_tile[BQ * LINE / 4]; \
  Tiles tiles = {(float*)q_tile,    (float*)k_tile,      (float*)v_tile, \
                 (float*)grad_tile, (float*)weight_tile, (float*)slope_tile}

// Gradients of some keys and values, contiguous (items, keys, features).
extern "C" __global__ void __launch_bounds__(256, 2) attend_grad_keys(
    const T* q, const T* k, const T* v, const M* mask, const T* grad, const float* statistics, T* k_grad, T* v_grad,
    long long heads, long long rows, long long keys, long long width, long long depth, long long q_batch,
    long long q_head, long long q_row, long long k_batch, long long k_head, long long k_row, long long v_batch,
    long long v_head, long long v_row, long long mask_batch, long long mask_head, long long mask_row,
    long long mask_column, long long grad_batch, long long grad_head, long long grad_row, double scale) {
  TILES;
  Item item(heads, keys, BK);
  Mask mask_of_item = {item.of(mask, mask_batch, mask_head), mask_row, mask_column, rows, keys};
  q = item.of(q, q_batch, q_head), k = item.of(k, k_batch, k_head), v = item.of(v, v_batch, v_head);
  grad = item.of(grad, grad_batch, grad_head), statistics += item.index * rows * 2;
  float k_sums[KEYS][WIDTH / SIDE], v_sums[KEYS][DEPTH / SIDE];
  clear(k_sums), clear(v_sums);
  load<BK, WIDTH>(tiles.k, k, k_row, item.first, keys, width);
  load<BK, DEPTH>(tiles.v, v, v_row, item.first, keys, depth);
  for (long long top = 0; top < rows; top += BQ) {
    if (!mask_of_item.any<BQ, BK>(top, item.first)) continue;
    load<BQ, WIDTH>(tiles.q, q, q_row, top, rows, width);
    load<BQ, DEPTH>(tiles.grad, grad, grad_row, top, rows, depth);
    __syncthreads();
    tiles.compute(mask_of_item, statistics, top, item.first, scale);
    __syncthreads();
    add_products<KEYS, DEPTH / SIDE, BQ>(v_sums, tiles.weights, 1, LINE, tiles.grad);
    add_products<KEYS, WIDTH / SIDE, BQ>(k_sums, tiles.slopes, 1, LINE, tiles.q);
    __syncthreads();
  }
  store(k_grad + item.index * keys * width, k_sums, item.first, keys, width);
  store(v_grad + item.index * keys * depth, v_sums, item.first, keys, depth);
}

// Gradients of some queries, contiguous (items, rows, width).
extern "C" __global__ void __launch_bounds__(256, 2) attend_grad_queries(
    const T* q, const T* k, const T* v, const M* mask, const T* grad, const float* statistics, T* q_grad,
    long long heads, long long rows, long long keys, long long width, long long depth, long long q_batch,
    long long q_head, long long q_row, long long k_batch, long long k_head, long long k_row, long long v_batch,
    long long v_head, long long v_row, long long mask_batch, long long mask_head, long long mask_row,
    long long mask_column, long long grad_batch, long long grad_head, long long grad_row, double scale) {
  TILES;
  Item item(heads, rows, BQ);
  Mask mask_of_item = {item.of(mask, mask_batch, mask_head), mask_row, mask_column, rows, keys};
  q = item.of(q, q_batch, q_head), k = item.of(k, k_batch, k_head), v = item.of(v, v_batch, v_head);
  grad = item.of(grad, grad_batch, grad_head), statistics += item.index * rows * 2;
  float sums[QUERIES][WIDTH / SIDE];
  clear(sums);
  load<BQ, WIDTH>(tiles.q, q, q_row, item.first, rows, width);
  load<BQ, DEPTH>(tiles.grad, grad, grad_row, item.first, rows, depth);
  for (long long begin = 0; begin < keys; begin += BK) {
    if (!mask_of_item.any<BQ, BK>(item.first, begin)) continue;
    load<BK, WIDTH>(tiles.k, k, k_row, begin, keys, width);
    load<BK, DEPTH>(tiles.v, v, v_row, begin, keys, depth);
    __syncthreads();
    tiles.compute(mask_of_item, statistics, item.first, begin, scale);
    __syncthreads();
    add_products<QUERIES, WIDTH / SIDE, BK>(sums, tiles.slopes, LINE, 1, tiles.k);
    __syncthreads();
  }
  store(q_grad + item.index * rows * width, sums, item.first, rows, width);
}
