// The gradient of attention in half precision. The weights are computed again from statistics of the rows: one kernel sums over the queries
// for each key, one over the keys for each query, both in order. Source: Dao et al. 2022, algorithm 4.

#include "attention_half.cuh"

// statistics: (items, rows, 2), the logarithm of the sum of exp of the scores, and the sum of grad * out.
extern "C" __global__ void __launch_bounds__(128) attend_statistics(
    const T* q, const T* k, const T* v, const M* mask, const T* grad, float* statistics, long long heads,
    long long rows, long long keys, long long width, long long depth, long long q_batch, long long q_head,
    long long q_row, long long k_batch, long long k_head, long long k_row, long long v_batch, long long v_head,
    long long v_row, long long mask_batch, long long mask_head, long long mask_row, long long mask_column,
    long long grad_batch, long long grad_head, long long grad_row, double scale, long long nowhere) {
  Item item(heads, rows, ROWS);
  Mask mask_of_item = {item.of(mask, mask_batch, mask_head), mask_row, mask_column, rows, keys};
  Rows found;
  found.compute(item.of(q, q_batch, q_head), q_row, item.of(k, k_batch, k_head), k_row, item.of(v, v_batch, v_head),
                v_row, mask_of_item, item.first, width, depth, scale);
  grad = item.of(grad, grad_batch, grad_head);
#pragma unroll
  for (int h = 0; h < 2; h++) {
    long long row = item.first + lane_row() + 8 * h;
    bool none = found.top[h] == -INFINITY && nowhere;
    float product = 0;
#pragma unroll
    for (int n = 0; n < DEPTH / 8; n++)
#pragma unroll
      for (int c = 0; c < 2; c++) {
        int column = n * 8 + lane_column() + c;
        if (row < rows && column < depth && !none)
          product += found.sums[n][2 * h + c] * float(grad[row * grad_row + column]);
      }
    product = sum_of_row(product);
    if (row >= rows || lane_column()) continue;
    float* place = statistics + (item.index * rows + row) * 2;
    place[0] = none ? INFINITY : found.top[h] + log(found.total[h]);
    place[1] = product;
  }
}

// Replace scores by weights, and gradients of the weights by those of the scores, with their factor `scale`.
// KEY_ROWS: the rows of the sums are keys, and the columns queries.
template <bool KEY_ROWS>
__device__ void weigh(float (&weights)[TILE / 8][4], float (&slopes)[TILE / 8][4], const Mask& mask,
                      const float* statistics, long long first_row, long long first_column, float scale) {
#pragma unroll
  for (int n = 0; n < TILE / 8; n++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      long long r = first_row + lane_row() + j / 2 * 8, c = first_column + n * 8 + lane_column() + j % 2;
      long long query = KEY_ROWS ? c : r, key = KEY_ROWS ? r : c;
      bool inside = query < mask.rows;
      float log_sum = inside ? statistics[query * 2] : 0, mean = inside ? statistics[query * 2 + 1] : 0;
      float weight = exp(mask.score(weights[n][j] * scale, query, key) - log_sum);
      slopes[n][j] = mask.hides(query, key) ? 0.0f : weight * (slopes[n][j] - mean) * scale;
      weights[n][j] = weight;
    }
}

// Gradients of some keys and values, contiguous (items, keys, features).
extern "C" __global__ void __launch_bounds__(128) attend_grad_keys(
    const T* q, const T* k, const T* v, const M* mask, const T* grad, const float* statistics, T* k_grad, T* v_grad,
    long long heads, long long rows, long long keys, long long width, long long depth, long long q_batch,
    long long q_head, long long q_row, long long k_batch, long long k_head, long long k_row, long long v_batch,
    long long v_head, long long v_row, long long mask_batch, long long mask_head, long long mask_row,
    long long mask_column, long long grad_batch, long long grad_head, long long grad_row, double scale) {
  __shared__ Four k_rows[ROWS * (WIDTH + PAD) / 8], v_rows[ROWS * (DEPTH + PAD) / 8];
  __shared__ Four q_tile[TILE * (WIDTH + PAD) / 8], grad_tile[TILE * (DEPTH + PAD) / 8];
  Item item(heads, keys, ROWS);
  Mask mask_of_item = {item.of(mask, mask_batch, mask_head), mask_row, mask_column, rows, keys};
  q = item.of(q, q_batch, q_head), k = item.of(k, k_batch, k_head), v = item.of(v, v_batch, v_head);
  grad = item.of(grad, grad_batch, grad_head), statistics += item.index * rows * 2;
  float k_sums[WIDTH / 8][4], v_sums[DEPTH / 8][4];
  load<ROWS, WIDTH>((T*)k_rows, k, k_row, item.first, keys, width);
  load<ROWS, DEPTH>((T*)v_rows, v, v_row, item.first, keys, depth);
  clear(k_sums), clear(v_sums);
  for (long long top = 0; top < rows; top += TILE) {
    if (!mask_of_item.any<TILE, ROWS>(top, item.first)) continue;
    load<TILE, WIDTH>((T*)q_tile, q, q_row, top, rows, width);
    load<TILE, DEPTH>((T*)grad_tile, grad, grad_row, top, rows, depth);
    __syncthreads();
    float weights[TILE / 8][4], slopes[TILE / 8][4];
    dots<TILE / 8, WIDTH>(weights, (T*)k_rows, (T*)q_tile);
    dots<TILE / 8, DEPTH>(slopes, (T*)v_rows, (T*)grad_tile);
    weigh<true>(weights, slopes, mask_of_item, statistics, item.first, top, scale);
    add_products(v_sums, weights, (T*)grad_tile);
    add_products(k_sums, slopes, (T*)q_tile);
    __syncthreads();
  }
  store(k_grad + item.index * keys * width, k_sums, item.first, keys, width);
  store(v_grad + item.index * keys * depth, v_sums, item.first, keys, depth);
}

// Gradients of some queries, contiguous (items, rows, width).
extern "C" __global__ void __launch_bounds__(128) attend_grad_queries(
    const T* q, const T* k, const T* v, const M* mask, const T* grad, const float* statistics, T* q_grad,
    long long heads, long long rows, long long keys, long long width, long long depth, long long q_batch,
    long long q_head, long long q_row, long long k_batch, long long k_head, long long k_row, long long v_batch,
    long long v_head, long long v_row, long long mask_batch, long long mask_head, long long mask_row,
    long long mask_column, long long grad_batch, long long grad_head, long long grad_row, double scale) {
  __shared__ Four q_rows[ROWS * (WIDTH + PAD) / 8], grad_rows[ROWS * (DEPTH + PAD) / 8];
  __shared__ Four k_tile[TILE * (WIDTH + PAD) / 8], v_tile[TILE * (DEPTH + PAD) / 8];
  Item item(heads, rows, ROWS);
  Mask mask_of_item = {item.of(mask, mask_batch, mask_head), mask_row, mask_column, rows, keys};
  q = item.of(q, q_batch, q_head), k = item.of(k, k_batch, k_head), v = item.of(v, v_batch, v_head);
  grad = item.of(grad, grad_batch, grad_head), statistics += item.index * rows * 2;
  float sums[WIDTH / 8][4];
  load<ROWS, WIDTH>((T*)q_rows, q, q_row, item.first, rows, width);
  load<ROWS, DEPTH>((T*)grad_rows, grad, grad_row, item.first, rows, depth);
  clear(sums);
  for (long long begin = 0; begin < keys; begin += TILE) {
    if (!mask_of_item.any<ROWS, TILE>(item.first, begin)) continue;
    load<TILE, WIDTH>((T*)k_tile, k, k_row, begin, keys, width);
    load<TILE, DEPTH>((T*)v_tile, v, v_row, begin, keys, depth);
    __syncthreads();
    float weights[TILE / 8][4], slopes[TILE / 8][4];
    dots<TILE / 8, WIDTH>(weights, (T*)q_rows, (T*)k_tile);
    dots<TILE / 8, DEPTH>(slopes, (T*)grad_rows, (T*)v_tile);
    weigh<false>(weights, slopes, mask_of_item, statistics, item.first, begin, scale);
    add_products(sums, slopes, (T*)k_tile);
    __syncthreads();
  }
  store(q_grad + item.index * rows * width, sums, item.first, rows, width);
}
