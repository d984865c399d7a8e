// Convolutions as products of matrices of which only tiles are stored (implicit GEMM):
//
//   out[m, j] = sum over k of a[m, k] * b[k, j]
//   MODE           a        b       m        j                    k
//   FORWARD        weight   x       filter   position             channel, tap
//   INPUT_GRAD     weight   grad    channel  pixel                filter, tap
//   WEIGHT_GRAD    grad     x       filter   channel, tap         position
//
// A position is one of the filter's in one image. b[k, j] is the pixel at the sum of the places of k and of j, or 0
// outside of the image. The sum over k may be split into parts, which another kernel adds in order. With a stride, the
// pixels of INPUT_GRAD are those of one phase, which all read the same taps.
//
// BM, BN: sizes of a tile along m and j.  FORMAT, SHAPE, ARCHITECTURE: if defined, the instruction of tensor cores, which
// sums in float32.  Source: Chetlur et al. 2014 (arXiv:1410.0759), section 3.

#define FORWARD 0
#define INPUT_GRAD 1
#define WEIGHT_GRAD 2
#include "common.cuh"
#ifdef FORMAT
#include "tensor_cores.cuh"
#endif

const int THREADS = 256, ENTRIES = 256;
const int OUTSIDE = -(1 << 29);  // the sum of two is no overflow

// The place of an element along j or k. offset: in b.  h, w: of its pixel.  other: offset in `out` (j) or in a row of
// `a` (k); -1 after the last.
struct alignas(16) Entry {
  int offset, h, w, other;
};
__device__ Entry after_last() { return {0, OUTSIDE, OUTSIDE, -1}; }

// c, f: channels and filters of a group.
struct Sizes {
  int n, c, h, w, f, kh, kw, oh, ow, sh, sw, ph, pw, dh, dw, groups;
};

// Each `step`-th tap from `first`.
struct Taps {
  int first, step, count;
};

// The taps that pixels of this padded place modulo the stride read.
__device__ Taps taps_of(int place, int size, int stride, int dilation) {
  int first = 0, step = 1;
  while (first < size && (place - first * dilation) % stride) first++;
  while (step * dilation % stride) step++;
  return {first, step, first < size ? (size - first + step - 1) / step : 0};
}

struct Problem {
  int m, columns, depth;  // sizes along m, j, k
  int a_row, out_row;     // elements between rows of a and of out
  int height, width;      // of the images b
#if MODE == INPUT_GRAD
  int top, left, rows, across;  // first pixel of the phase, and its number of rows and columns
  Taps down, right;
#endif
};

__device__ Problem problem_of(const Sizes& s, int phase) {
#if MODE == FORWARD
  return {s.f, s.n * s.oh * s.ow, s.c * s.kh * s.kw, s.c * s.kh * s.kw, s.oh * s.ow, s.h, s.w};
#elif MODE == WEIGHT_GRAD
  return {s.f, s.c * s.kh * s.kw, s.n * s.oh * s.ow, s.oh * s.ow, s.c * s.kh * s.kw, s.h, s.w};
#else
  int top = phase / s.sw, left = phase % s.sw;
  int rows = max(0, (s.h - top + s.sh - 1) / s.sh), across = max(0, (s.w - left + s.sw - 1) / s.sw);
  Taps down = taps_of(top + s.ph, s.kh, s.sh, s.dh), right = taps_of(left + s.pw, s.kw, s.sw, s.dw);
  int depth = s.f * down.count * right.count;
  return {s.c, s.n * rows * across, depth, s.kh * s.kw, s.h * s.w, s.oh, s.ow, top, left, rows, across, down, right};
#endif
}

#if MODE == INPUT_GRAD
__device__ Entry tap(const Sizes& s, const Problem& p, unsigned i) {
  unsigned taps = p.down.count * p.right.count, filter = i / taps, place = i % taps;
  int u = p.down.first + int(place / p.right.count) * p.down.step;
  int v = p.right.first + int(place % p.right.count) * p.right.step;
  int h = (p.top + s.ph - u * s.dh) / s.sh, w = (p.left + s.pw - v * s.dw) / s.sw;
  return {int(filter) * s.oh * s.ow + h * s.ow + w, h, w, (int(filter) * s.c * s.kh + u) * s.kw + v};
}
__device__ Entry position(const Sizes& s, const Problem& p, unsigned i) {
  unsigned pixels = p.rows * p.across, image = i / pixels, place = i % pixels;
  int h = place / p.across, w = place % p.across, y = p.top + h * s.sh, x = p.left + w * s.sw;
  return {int(image) * s.groups * s.f * s.oh * s.ow + h * s.ow + w, h, w,
          (int(image) * s.groups * s.c * s.h + y) * s.w + x};
}
#else
__device__ Entry tap(const Sizes& s, const Problem&, unsigned i) {
  unsigned taps = s.kh * s.kw, channel = i / taps, place = i % taps;
  int h = int(place / s.kw) * s.dh, w = int(place % s.kw) * s.dw;
  return {(int(channel) * s.h + h) * s.w + w, h, w, int(i)};
}
__device__ Entry position(const Sizes& s, const Problem&, unsigned i) {
  unsigned pixels = s.oh * s.ow, image = i / pixels, place = i % pixels;
  int h = int(place / s.ow) * s.sh - s.ph, w = int(place % s.ow) * s.sw - s.pw;
  return {(int(image) * s.groups * s.c * s.h + h) * s.w + w, h, w,
          int(image) * s.groups * s.f * int(pixels) + int(place)};
}
#endif

__device__ Entry column_entry(const Sizes& s, const Problem& p, int j) {
  if (j >= p.columns) return after_last();
  return MODE == WEIGHT_GRAD ? tap(s, p, j) : position(s, p, j);
}
__device__ Entry depth_entry(const Sizes& s, const Problem& p, int k) {
  if (k >= p.depth) return after_last();
  return MODE == WEIGHT_GRAD ? position(s, p, k) : tap(s, p, k);
}

// ---- tiles in shared memory -----------------------------------------------------------------------------------------

#ifdef TENSOR_CORES
typedef unsigned Word;
const int PACK = 4 / sizeof(T);  // elements of a word
const int RESIDENT = 2;          // blocks of a multiprocessor
#else
typedef ACC Word;
const int PACK = 1;
const int RESIDENT = BM * BN <= 128 * 64 ? 2 : 1;
__device__ Word word_of(const T* x) { return x[0]; }
#endif
const int WORDS = sizeof(Word) == 8 ? 8 : 16, BK = WORDS * PACK;  // words and elements of a tile along k
const int PAD = 4;  // threads of a warp that access a column of a tile meet few others in the same bank

// The words of a tile of a (rows) or b (columns) that a thread loads: lanes are neighbors along k, or along rows.
template <int ROWS, bool ALONG_K>
struct Share {
  static const int COUNT = ROWS * WORDS / THREADS;
#ifdef TENSOR_CORES  // words of a row are contiguous
  static const int ROW = WORDS + PAD, WORD = 1, SIZE = ROWS * ROW;
#else
  static const int ROW = 1, WORD = ROWS + PAD, SIZE = WORDS * WORD;
#endif
  static __device__ int row(int i) {
    return ALONG_K ? threadIdx.x / WORDS + i * (THREADS / WORDS) : threadIdx.x % ROWS;
  }
  static __device__ int word(int i) { return ALONG_K ? threadIdx.x % WORDS : threadIdx.x / ROWS * COUNT + i; }
  static __device__ void store(Word* tile, const Word* values) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) tile[row(i) * ROW + word(i) * WORD] = values[i];
  }
};
typedef Share<BM, MODE != INPUT_GRAD> ShareA;
typedef Share<BN, MODE == WEIGHT_GRAD> ShareB;

__device__ void load_a(Word* values, const T* a, const Problem& p, int m0, const Entry* steps) {
#pragma unroll
  for (int i = 0; i < ShareA::COUNT; i++) {
    int m = m0 + ShareA::row(i);
    T x[PACK];
#pragma unroll
    for (int e = 0; e < PACK; e++) {
      int k = steps[ShareA::word(i) * PACK + e].other;
      x[e] = m < p.m && k >= 0 ? a[m * p.a_row + k] : T();
    }
    values[i] = word_of(x);
  }
}
__device__ void load_b(Word* values, const T* b, const Problem& p, const Entry* columns, const Entry* steps) {
#pragma unroll
  for (int i = 0; i < ShareB::COUNT; i++) {
    Entry j = columns[ShareB::row(i)];
    T x[PACK];
#pragma unroll
    for (int e = 0; e < PACK; e++) {
      Entry k = steps[ShareB::word(i) * PACK + e];
      unsigned h = j.h + k.h, w = j.w + k.w;
      x[e] = h < p.height && w < p.width ? b[j.offset + k.offset] : T();
    }
    values[i] = word_of(x);
  }
}

// ---- products of tiles ----------------------------------------------------------------------------------------------

#ifdef TENSOR_CORES
// A warp sums WM x WN elements, in blocks of 16 x 8: see tensor_cores.cuh.
const int DOWN = BM >= 64 ? 2 : 1, ACROSS = THREADS / 32 / DOWN, WM = BM / DOWN, WN = BN / ACROSS;
struct Sums {
  float sums[WM / 16][WN / 8][4];

  __device__ Sums() {
#pragma unroll
    for (int i = 0; i < WM * WN / 32; i++) sums[i / 4 / (WN / 8)][i / 4 % (WN / 8)][i % 4] = 0;
  }

  __device__ void add(const Word* a, const Word* b) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    a += (warp / ACROSS * WM + lane / 4) * ShareA::ROW + lane % 4;
    b += (warp % ACROSS * WN + lane / 4) * ShareB::ROW + lane % 4;
#pragma unroll
    for (int word = 0; word < WORDS; word += 8) {
      Word right[WN / 8][2];
#pragma unroll
      for (int j = 0; j < WN / 8; j++)
#pragma unroll
        for (int e = 0; e < 2; e++) right[j][e] = b[j * 8 * ShareB::ROW + word + e * 4];
#pragma unroll
      for (int i = 0; i < WM / 16; i++) {
        Word left[4];
#pragma unroll
        for (int e = 0; e < 4; e++) left[e] = a[(i * 16 + e % 2 * 8) * ShareA::ROW + word + e / 2 * 4];
#pragma unroll
        for (int j = 0; j < WN / 8; j++) multiply_add(sums[i][j], left, right[j]);
      }
    }
  }

  template <class Write>
  __device__ void for_each(Write write) const {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = warp / ACROSS * WM + lane / 4, column = warp % ACROSS * WN + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < WM / 16; i++)
#pragma unroll
      for (int j = 0; j < WN / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) write(row + i * 16 + e / 2 * 8, column + j * 8 + e % 2, sums[i][j][e]);
  }
};
#else
// A thread sums TM x TN elements, in groups of 4 rows and 4 columns, which it reads from shared memory at once.
const int TM = BM * BN / THREADS >= 32 ? 8 : 4, TN = BM * BN / THREADS / TM, ACROSS = BN / TN;
struct Sums {
  ACC sums[TM][TN];

  __device__ Sums() {
#pragma unroll
    for (int i = 0; i < TM * TN; i++) sums[i / TN][i % TN] = 0;
  }
  static __device__ int row(int i) { return i / 4 * (BM / (TM / 4)) + threadIdx.x / ACROSS * 4 + i % 4; }
  static __device__ int column(int j) { return j / 4 * (BN / (TN / 4)) + threadIdx.x % ACROSS * 4 + j % 4; }

  __device__ void add(const Word* a, const Word* b) {
#pragma unroll
    for (int k = 0; k < WORDS; k++) {
      Word left[TM], right[TN];
#pragma unroll
      for (int i = 0; i < TM; i++) left[i] = a[k * ShareA::WORD + row(i)];
#pragma unroll
      for (int j = 0; j < TN; j++) right[j] = b[k * ShareB::WORD + column(j)];
#pragma unroll
      for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) sums[i][j] += left[i] * right[j];
    }
  }

  template <class Write>
  __device__ void for_each(Write write) const {
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
      for (int j = 0; j < TN; j++) write(row(i), column(j), sums[i][j]);
  }
};
#endif

// ---- the kernel -----------------------------------------------------------------------------------------------------

// x: (n, groups * c, h, w).  weight: (groups * f, c, kh, kw).  grad: (n, groups * f, oh, ow).
// out: T of the shape of the result, or if splits > 1 that many of ACC.  blocks: (tiles, splits * groups * phases).
extern "C" __global__ void __launch_bounds__(256, RESIDENT) convolve(
    const T* a, const T* b, void* out, long long n, long long c, long long h, long long w, long long f, long long kh,
    long long kw, long long oh, long long ow, long long sh, long long sw, long long ph, long long pw, long long dh,
    long long dw, long long groups, long long splits) {
  alignas(16) __shared__ Word tiles_a[2][ShareA::SIZE];
  alignas(16) __shared__ Word tiles_b[2][ShareB::SIZE];
  __shared__ Entry columns[BN], steps[ENTRIES];
  Sizes s = {int(n),  int(c),  int(h),  int(w),  int(f),  int(kh), int(kw), int(oh),
             int(ow), int(sh), int(sw), int(ph), int(pw), int(dh), int(dw), int(groups)};
  int phases = MODE == INPUT_GRAD ? s.sh * s.sw : 1, phase = blockIdx.y % phases;
  int group = blockIdx.y / phases % s.groups, split = blockIdx.y / phases / s.groups;
  Problem p = problem_of(s, phase);
  int high = (p.m + BM - 1) / BM, m0 = blockIdx.x % high * BM, j0 = blockIdx.x / high * BN;
  if (j0 >= p.columns) return;  // a smaller phase

  int of_x = s.c * s.h * s.w, of_weight = s.f * s.c * s.kh * s.kw, of_grad = s.f * s.oh * s.ow;  // per group
  a += group * (MODE == WEIGHT_GRAD ? of_grad : of_weight);
  b += group * (MODE == INPUT_GRAD ? of_grad : of_x);
  int of_out = MODE == FORWARD ? of_grad : MODE == INPUT_GRAD ? of_x : of_weight;
  long long size = (long long)of_out * s.groups * (MODE == WEIGHT_GRAD ? 1 : s.n);

  int parts = int(splits), all = (p.depth + BK - 1) / BK, part = (all + parts - 1) / parts;
  int first = min(all, split * part), last = min(all, first + part);
  for (int i = threadIdx.x; i < BN; i += THREADS) columns[i] = column_entry(s, p, j0 + i);

  Sums sums;
  Word next_a[ShareA::COUNT], next_b[ShareB::COUNT];
  for (int step = first; step <= last; step++) {  // load a step while the one before is computed
    int ready = (step - first) % 2;
    if (step < last) {
      int entry = (step - first) * BK % ENTRIES;
      if (entry == 0) {
        if (threadIdx.x < ENTRIES) steps[threadIdx.x] = depth_entry(s, p, step * BK + threadIdx.x);
        __syncthreads();
      }
      load_a(next_a, a, p, m0, steps + entry);
      load_b(next_b, b, p, columns, steps + entry);
    }
    if (step > first) sums.add(tiles_a[1 - ready], tiles_b[1 - ready]);
    if (step < last) {
      ShareA::store(tiles_a[ready], next_a);
      ShareB::store(tiles_b[ready], next_b);
    }
    __syncthreads();
  }

  sums.for_each([&](int i, int j, ACC sum) {
    int m = m0 + i, column = columns[j].other;
    if (m >= p.m || column < 0) return;
    long long place = group * of_out + m * p.out_row + column;
    if (splits > 1)
      ((ACC*)out)[split * size + place] = sum;
    else
      ((T*)out)[place] = T(sum);
  });
}
