// Layer norm, group norm and RMS norm of contiguous rows, and their gradients.
//
// A row is one example of layer norm, or one group of channels. Its channels have `pixels` elements each, and `groups`
// rows share the weights: channel c of row r has weight number (r % groups) * channels + c. A null pointer as weight
// or bias stands for one number. Without CENTERED, the mean is 0 in place of that of the row.

#include "rows.cuh"

struct Factors {
  const W* elements;
  ACC number;
  long long first, pixels;
  __device__ Factors(const W* all, double number, long long row, long long groups, long long columns, long long pixels)
      : elements(all), number((ACC)number), first(groups == 1 ? 0 : row % groups * (columns / pixels)), pixels(pixels) {}
  __device__ ACC of(unsigned j) {
    return elements ? (ACC)elements[first + (pixels == 1 ? j : j / (unsigned)pixels)] : number;
  }
};

// The mean and the variance (without CENTERED: the mean of squares) of a row.
__device__ Two statistics_of(const T* x, unsigned columns) {
  if (CENTERED) {
    Moments found = {0, 0, 0};
    for (unsigned j = RANK; j < columns; j += TEAM) found.add((ACC)x[j]);
    found = join_team(found);
    return {found.mean, found.variance()};
  }
  Two sums = {0, 0};
  for (unsigned j = RANK; j < columns; j += TEAM) sums.second += (ACC)x[j] * (ACC)x[j];
  return {0, join_team(sums).second / columns};
}

extern "C" __global__ void norm_rows(const T* x, const W* weight, double scale, const W* bias, double shift, T* y,
                                     double eps, long long rows, long long columns, long long groups,
                                     long long pixels) {
  FOR_ROWS(row, rows) {
    unsigned count = row < rows ? columns : 0;
    const T* from = x + row * columns;
    Two found = statistics_of(from, count);
    ACC inverse = 1 / sqrt(found.second + (ACC)eps);
    Factors weights(weight, scale, row, groups, columns, pixels), biases(bias, shift, row, groups, columns, pixels);
    for (unsigned j = RANK; j < count; j += TEAM)
      y[row * columns + j] = T(((ACC)from[j] - found.first) * inverse * weights.of(j) + biases.of(j));
  }
}

// gx: the gradient with respect to x.  statistics: (2, rows): the means, and the variances.
extern "C" __global__ void norm_grad_rows(const T* grad, const T* x, const W* weight, double scale, T* gx,
                                          ACC* statistics, double eps, long long rows, long long columns,
                                          long long groups, long long pixels) {
  FOR_ROWS(row, rows) {
    unsigned count = row < rows ? columns : 0;
    const T *from = x + row * columns, *g = grad + row * columns;
    Two found = statistics_of(from, count), sums = {0, 0};
    ACC inverse = 1 / sqrt(found.second + (ACC)eps);
    Factors weights(weight, scale, row, groups, columns, pixels);
    for (unsigned j = RANK; j < count; j += TEAM) {
      ACC scaled = (ACC)g[j] * weights.of(j);
      sums.first += scaled;
      sums.second += scaled * ((ACC)from[j] - found.first) * inverse;
    }
    sums = join_team(sums);
    ACC offset = CENTERED ? sums.first / columns : 0, slope = sums.second / columns;
    for (unsigned j = RANK; j < count; j += TEAM) {
      ACC hat = ((ACC)from[j] - found.first) * inverse;
      gx[row * columns + j] = T(((ACC)g[j] * weights.of(j) - offset - hat * slope) * inverse);
    }
    if (row < rows && RANK == 0) statistics[row] = found.first, statistics[rows + row] = found.second;
  }
}
