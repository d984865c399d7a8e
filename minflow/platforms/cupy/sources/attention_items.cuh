// The items of attention (heads of examples) and their masks. THREADS: of a block.

#define NONE 0
#define ALLOWED 1
#define ADDED 2

struct alignas(16) Four {
  float at[4];
};

struct Mask {
  const M* elements;
  long long row, column, rows, keys;

  // True if one of Q queries may attend to one of K keys. All threads call it, between barriers.
  template <int Q, int K>
  __device__ bool any(long long first, long long begin) const {
#if MASK == ALLOWED
    __shared__ int found[THREADS / 32];
    int own = 0;
    for (int i = threadIdx.x; i < Q * K && !own; i += THREADS) {
      long long query = first + i / K, key = begin + i % K;
      own = query < rows && key < keys && elements[query * row + key * column];
    }
    own = __any_sync(WHOLE_WARP, own);
    if (threadIdx.x % 32 == 0) found[threadIdx.x / 32] = own;
    __syncthreads();
    int all = 0;
    for (int w = 0; w < THREADS / 32; w++) all |= found[w];
    __syncthreads();
    return all;
#else
    return true;
#endif
  }

  __device__ bool hides(long long q, long long k) const {
#if MASK == ALLOWED
    return q >= rows || k >= keys || !elements[q * row + k * column];
#else
    return q >= rows || k >= keys;
#endif
  }

  __device__ float score(float x, long long q, long long k) const {
    if (hides(q, k)) return -INFINITY;
#if MASK == ADDED
    x += float(elements[q * row + k * column]);
#endif
    return x;
  }
};

struct Item {  // batch and head of a block, and the tile of its rows
  long long index, batch, head, first;
  __device__ Item(long long heads, long long rows, int size) {
    long long tiles = (rows + size - 1) / size;
    index = blockIdx.x / tiles, first = blockIdx.x % tiles * size;
    batch = index / heads, head = index % heads;
  }
  template <class X>
  __device__ const X* of(const X* x, long long batch_step, long long head_step) const {
    return x + batch * batch_step + head * head_step;
  }
};
