// Rows of elements that are `inner` apart, each of which a team of TEAM threads reduces.
//
// TEAM is a power of two: parts of a warp, or a whole block if it is above 32. All threads of a block go through the
// same rows, so that a team without a row still takes part in the shuffles of its warp.

#include "common.cuh"

#define RANK (threadIdx.x % TEAM)
#define TEAMS (blockDim.x / TEAM)
#define FOR_ROWS(row, rows)                                                                          \
  for (long long row = blockIdx.x * (long long)TEAMS + threadIdx.x / TEAM, last = (rows) - 1,          \
                 first = blockIdx.x * (long long)TEAMS;                                              \
       first <= last; row += gridDim.x * (long long)TEAMS, first += gridDim.x * (long long)TEAMS)

// The first element of a row of x (outer, columns, inner).
__device__ long long start_of(long long row, long long columns, long long inner) {
  return inner == 1 ? row * columns : row / inner * columns * inner + row % inner;
}

template <class V>
__device__ V shuffled(V x, int step) {
  union {
    V value;
    unsigned words[sizeof(V) / 4];
  } bits;
  bits.value = x;
  for (int i = 0; i < sizeof(V) / 4; i++) bits.words[i] = __shfl_xor_sync(WHOLE_WARP, bits.words[i], step);
  return bits.value;
}

// Join the values of groups of `size` lanes, in one order, so that all lanes get the same bits.
template <class V>
__device__ V join_lanes(V x, int size) {
  for (int step = 1; step < size; step *= 2) {
    V other = shuffled(x, step);
    x = threadIdx.x & step ? V::join(other, x) : V::join(x, other);
  }
  return x;
}

// Join the values of all threads of a block.
template <class V>
__device__ V join_block(V x) {
  __shared__ V of_warps[32];
  int lane = threadIdx.x % 32, warps = blockDim.x / 32;
  x = join_lanes(x, 32);
  __syncthreads();  // an earlier call may still read
  if (lane == 0) of_warps[threadIdx.x / 32] = x;
  __syncthreads();
  x = of_warps[0];
  for (int i = 1; i < warps; i++) x = V::join(x, of_warps[i]);
  return x;
}

template <class V>
__device__ V join_team(V x) {
  return TEAM > 32 ? join_block(x) : join_lanes(x, TEAM);
}

struct Two {  // two sums
  ACC first, second;
  static __device__ Two join(Two a, Two b) { return {a.first + b.first, a.second + b.second}; }
};

struct Moments {  // of some elements: their number, mean, and sum of squared deviations
  ACC count, mean, squares;
  __device__ void add(ACC x) {
    ACC step = x - mean;
    count += 1;
    mean += step / count;
    squares += step * (x - mean);
  }
  static __device__ Moments join(Moments a, Moments b) {
    ACC count = a.count + b.count, step = b.mean - a.mean, part = count ? b.count / count : 0;
    return {count, a.mean + step * part, a.squares + b.squares + step * step * a.count * part};
  }
  __device__ ACC variance() { return squares / count; }
};

// The largest of some elements, and the sum of exp(x - largest).
struct Exponentials {
  ACC largest, sum;
  __device__ void add(ACC x) {
    if (x > largest) {
      sum = sum * exp(largest - x) + 1;
      largest = x;
    } else if (x != -INFINITY) {
      sum += exp(x - largest);
    }
  }
  static __device__ Exponentials join(Exponentials a, Exponentials b) {
    ACC largest = a.largest > b.largest ? a.largest : b.largest;
    return {largest, a.sum * a.factor(largest) + b.sum * b.factor(largest)};
  }
  __device__ ACC factor(ACC most) { return largest == most ? 1 : exp(largest - most); }
  __device__ ACC total() { return sum + (largest - largest); }  // NaN if the largest is infinite
};

__device__ Exponentials exponentials_of(const T* x, long long columns, long long inner) {
  Exponentials found = {-INFINITY, 0};
  for (long long j = RANK; j < columns; j += TEAM) found.add((ACC)x[j * inner]);
  return found;
}
