// Update rules of optimizers, for many parameters in one launch. RULE is one of the structs below.

#include "common.cuh"

#define MOST 64  // parameters of a launch: Tensors is an argument, of which CUDA passes 4096 bytes
#define CHUNK 2048  // elements of a block
#define UNROLL 4  // elements of a thread that are loaded before the first is stored

struct Tensor {
  T* arrays[5];  // the parameter, its gradient and its state, all of one size
  long long size, first_block;
};

struct Tensors {
  ACC sign, decay, numbers[8];  // numbers: n of the rule
  long long count;
  Tensor all[MOST];
};

// A step replaces one element of the parameter, p, and of its state, s. down: the gradient to descend along.

struct sgd {
  static const int states = 0;
  static __device__ void step(ACC& p, ACC down, ACC* s, const ACC* n) {
    ACC rate = n[0];
    p -= rate * down;
  }
};

struct sgd_momentum {
  static const int states = 1;
  static __device__ void step(ACC& p, ACC down, ACC* s, const ACC* n) {
    ACC rate = n[0], keep = n[1], take = n[2], nesterov = n[3];
    s[0] = keep * s[0] + take * down;
    p -= rate * (nesterov != 0 ? down + keep * s[0] : s[0]);
  }
};

struct adam {
  static const int states = 2;
  static __device__ void step(ACC& p, ACC down, ACC* s, const ACC* n) {
    ACC rate = n[0], keep1 = n[1], take1 = n[2], keep2 = n[3], take2 = n[4], root = n[5], eps = n[6], shrink = n[7];
    s[0] = keep1 * s[0] + take1 * down;
    s[1] = keep2 * s[1] + take2 * down * down;
    p = shrink * p - rate * s[0] / (root * sqrt(s[1]) + eps);
  }
};

struct adam_amsgrad {
  static const int states = 3;
  static __device__ void step(ACC& p, ACC down, ACC* s, const ACC* n) {
    ACC rate = n[0], keep1 = n[1], take1 = n[2], keep2 = n[3], take2 = n[4], root = n[5], eps = n[6], shrink = n[7];
    s[0] = keep1 * s[0] + take1 * down;
    s[1] = keep2 * s[1] + take2 * down * down;
    s[2] = Max::join(s[2], s[1]);
    p = shrink * p - rate * s[0] / (root * sqrt(s[2]) + eps);
  }
};

extern "C" __global__ void update(Tensors tensors) {
  int low = 0, high = tensors.count;
  while (high - low > 1) {  // the last parameter that does not begin after this block
    int middle = (low + high) / 2;
    if (tensors.all[middle].first_block <= blockIdx.x) low = middle;
    else high = middle;
  }
  T *p = tensors.all[low].arrays[0], *grad = tensors.all[low].arrays[1];
  long long start = (blockIdx.x - tensors.all[low].first_block) * CHUNK, end = tensors.all[low].size;
  if (end > start + CHUNK) end = start + CHUNK;
  for (long long first = start + threadIdx.x; first < end; first += UNROLL * blockDim.x) {
    ACC new_p[UNROLL], down[UNROLL], state[UNROLL][RULE::states + 1];
#pragma unroll
    for (int k = 0; k < UNROLL; k++) {
      long long i = first + k * blockDim.x;
      if (i >= end) break;
      new_p[k] = p[i], down[k] = tensors.sign * grad[i];
      if (tensors.decay != 0) down[k] += tensors.decay * new_p[k];
#pragma unroll
      for (int j = 0; j < RULE::states; j++) state[k][j] = tensors.all[low].arrays[2 + j][i];
    }
#pragma unroll
    for (int k = 0; k < UNROLL; k++) {
      long long i = first + k * blockDim.x;
      if (i >= end) break;
      RULE::step(new_p[k], down[k], state[k], tensors.numbers);
      p[i] = T(new_p[k]);
#pragma unroll
      for (int j = 0; j < RULE::states; j++) tensors.all[low].arrays[2 + j][i] = T(state[k][j]);
    }
  }
}
