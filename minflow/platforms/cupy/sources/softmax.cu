// softmax, or with LOG log_softmax, and their gradients.

#include "rows.cuh"

// x, out: (outer, columns, inner).  rows: outer * inner.
extern "C" __global__ void softmax_rows(const T* x, T* out, long long rows, long long columns, long long inner) {
  FOR_ROWS(row, rows) {
    long long count = row < rows ? columns : 0, start = start_of(row, columns, inner);
    Exponentials found = join_team(exponentials_of(x + start, count, inner));
    ACC sum = found.total();
    for (long long j = start + RANK * inner; j < start + count * inner; j += TEAM * inner)
      out[j] = T(LOG ? (ACC)x[j] - found.largest - log(sum) : exp((ACC)x[j] - found.largest) / sum);
  }
}
