// Losses of labels, and their gradients, by rows of scores; without SCORES x has log-probabilities.
//
// The loss of a row is weight[label] * -log softmax(x)[label], smoothed with the losses of all classes alike. Labels
// that equal `ignored` have loss 0; those that are no class, which only a loaded graph can have, NaN. A null pointer
// as weight stands for one number for all classes. Each block leaves its sums, which the last kernel adds in order.

#include "rows.cuh"

struct Weights {
  const W* of_classes;
  ACC number;
  __device__ ACC of(long long c) { return of_classes ? (ACC)of_classes[c] : number; }
};

// losses: null, or (rows,).  parts: null, or (blocks, 2): sum of the losses, and of the weights of their labels (of
// 1 without weights).  probabilities: null, or like x.
extern "C" __global__ void loss_rows(const T* x, const L* labels, const W* weight, double number, T* probabilities,
                                     T* losses, ACC* parts, double smoothing, long long rows, long long columns,
                                     long long inner, long long ignored) {
  Two total = {0, 0};
  Weights weights = {weight, (ACC)number};
  FOR_ROWS(row, rows) {
    long long count = row < rows ? columns : 0, start = start_of(row, columns, inner);
    Exponentials found = {0, 1};
    if (SCORES) found = join_team(exponentials_of(x + start, count, inner));
    ACC sum = found.total(), shift = SCORES ? log(sum) : 0;
    Two spread = {0, 0};
    if (probabilities || smoothing)
      for (long long j = RANK; j < count; j += TEAM) {
        ACC moved = (ACC)x[start + j * inner] - found.largest;
        if (probabilities) probabilities[start + j * inner] = T(exp(moved) / sum);
        spread.first += weights.of(j) * (shift - moved);
      }
    if (smoothing) spread = join_team(spread);
    if (row < rows && RANK == 0) {
      long long label = labels[row];
      ACC loss = NAN, factor = 1;
      if (0 <= label && label < columns) {
        factor = weights.of(label);
        loss = factor * (shift - ((ACC)x[start + label * inner] - found.largest));
        if (smoothing) loss = loss * (ACC)(1 - smoothing) + spread.first * (ACC)(smoothing / columns);
      }
      if (label == ignored) loss = factor = 0;
      if (losses) losses[row] = T(loss);
      total = Two::join(total, {loss, factor});
    }
  }
  if (parts) {
    total = join_block(total);
    if (threadIdx.x == 0) parts[2 * blockIdx.x] = total.first, parts[2 * blockIdx.x + 1] = total.second;
  }
}

// The sum of the parts, in every thread of a block.
__device__ Two sum_of(const ACC* parts, long long count) {
  Two total = {0, 0};
  for (long long i = threadIdx.x; i < count; i += blockDim.x)
    total = Two::join(total, {parts[2 * i], parts[2 * i + 1]});
  return join_block(total);
}

extern "C" __global__ void add_losses(const ACC* parts, T* loss, long long count, long long mean) {
  Two total = sum_of(parts, count);
  if (threadIdx.x == 0) loss[0] = T(mean ? total.first / total.second : total.first);
}

// parts: (blocks, 2): 0, and the weights of labels that are not ignored.
extern "C" __global__ void count_labels(const L* labels, const W* weight, double number, ACC* parts, long long rows,
                                        long long columns, long long ignored) {
  Two total = {0, 0};
  Weights weights = {weight, (ACC)number};
  for (long long row = blockIdx.x * (long long)blockDim.x + threadIdx.x; row < rows; row += gridDim.x * blockDim.x)
    if (labels[row] != ignored) total.second += 0 <= labels[row] && labels[row] < columns ? weights.of(labels[row]) : 1;
  total = join_block(total);
  if (threadIdx.x == 0) parts[2 * blockIdx.x] = 0, parts[2 * blockIdx.x + 1] = total.second;
}

// out: the gradient with respect to x.  probabilities: null, or softmax(x), which is then not read.  grad: (rows,) if
// each_row, else one number.  parts: those of count_labels, or null unless the loss is a mean.  least: the least sum of
// weights.
extern "C" __global__ void loss_grad_rows(const T* x, const T* probabilities, const L* labels, const T* grad,
                                          const W* weight, double number, const ACC* parts, T* out, double smoothing,
                                          double least, long long count_parts, long long rows, long long columns,
                                          long long inner, long long ignored, long long each_row) {
  Weights weights = {weight, (ACC)number};
  ACC divisor = 1;
  if (parts) divisor = sum_of(parts, count_parts).second;
  if (divisor < (ACC)least) divisor = (ACC)least;
  FOR_ROWS(row, rows) {
    long long count = row < rows ? columns : 0, start = start_of(row, columns, inner), label = -1;
    bool wrong = false;
    Exponentials found = {0, 1};
    if (SCORES && !probabilities) found = join_team(exponentials_of(x + start, count, inner));
    ACC sum = found.total(), scale = 0, spread = 0;
    Two all = {0, 0};
    if (smoothing) {
      for (long long j = RANK; j < count; j += TEAM) all.first += weights.of(j);
      all = join_team(all);
    }
    if (row < rows) {
      label = labels[row];
      wrong = label != ignored && (label < 0 || label >= columns);
      if (label != ignored && !wrong) {
        ACC g = (ACC)grad[each_row ? row : 0] / divisor;
        scale = g * (ACC)(1 - smoothing) * weights.of(label);
        spread = g * (ACC)(smoothing / columns);
      }
    }
    for (long long j = RANK; j < count; j += TEAM) {
      long long at = start + j * inner;
      ACC result = wrong ? NAN : j == label ? -scale : 0;
      if (SCORES) {
        ACC p = probabilities ? (ACC)probabilities[at] : exp((ACC)x[at] - found.largest) / sum;
        result += p * scale;
        if (smoothing) result += spread * (all.first * p - weights.of(j));
      }
      out[at] = T(result);
    }
  }
}
