// Attention in half precision with running maxima and sums (online softmax): out = softmax(scale * q @ k.T + mask) @ v.
// Source: Dao et al. 2022 (arXiv:2205.14135), algorithm 1.

#include "attention_half.cuh"

// out: (items, rows, depth).  nowhere: rows without any key are 0, not NaN.
extern "C" __global__ void __launch_bounds__(128) attend(
    const T* q, const T* k, const T* v, const M* mask, T* out, long long heads, long long rows, long long keys,
    long long width, long long depth, long long q_batch, long long q_head, long long q_row, long long k_batch,
    long long k_head, long long k_row, long long v_batch, long long v_head, long long v_row, long long mask_batch,
    long long mask_head, long long mask_row, long long mask_column, double scale, long long nowhere) {
  Item item(heads, rows, ROWS);
  Mask mask_of_item = {item.of(mask, mask_batch, mask_head), mask_row, mask_column, rows, keys};
  Rows found;
  found.compute(item.of(q, q_batch, q_head), q_row, item.of(k, k_batch, k_head), k_row, item.of(v, v_batch, v_head),
                v_row, mask_of_item, item.first, width, depth, scale);
  for (int n = 0; n < DEPTH / 8; n++)
    for (int j = 0; j < 4; j++)
      if (found.top[j / 2] == -INFINITY && nowhere) found.sums[n][j] = 0;
  store(out + item.index * rows * depth, found.sums, item.first, rows, depth);
}
