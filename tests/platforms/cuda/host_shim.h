// CUDA C on the CPU: the threads of a block are coroutines, which meet at barriers; blocks run one after another.
#pragma once
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#define ON_HOST 1
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __constant__ static const
#define __shared__ static  // blocks run one after another
#define __launch_bounds__(...)

struct dim3 {
  unsigned x, y, z;
};
static dim3 threadIdx, blockIdx, blockDim, gridDim;
static char* host_shared;  // dynamic shared memory

// ---- threads --------------------------------------------------------------------------------------------------------

enum State { READY, AT_BLOCK_BARRIER, AT_WARP_BARRIER, DONE };
struct Thread {
  ucontext_t context;
  State state;
  dim3 index;
};
static std::vector<Thread> threads;
static ucontext_t scheduler;
static int current;
static std::function<void()> body;

static void wait_in(State state) {
  threads[current].state = state;
  swapcontext(&threads[current].context, &scheduler);
}
static void __syncthreads() { wait_in(AT_BLOCK_BARRIER); }
static void __syncwarp(unsigned = ~0u) { wait_in(AT_WARP_BARRIER); }
static void __threadfence() {}

static void run_thread() {
  body();
  wait_in(DONE);
}

// Let threads continue that have all reached their barrier. False if all are done.
static bool release() {
  int n = threads.size(), waiting = 0, left = 0, released = 0;
  for (auto& t : threads) waiting += t.state == AT_BLOCK_BARRIER, left += t.state != DONE;
  if (!left) return false;
  for (int w = 0; w < n; w += 32) {
    auto end = std::min(w + 32, n);
    bool all = true, any = false;
    for (int i = w; i < end; i++) {
      all &= threads[i].state == AT_WARP_BARRIER || threads[i].state == DONE;
      any |= threads[i].state == AT_WARP_BARRIER;
    }
    if (all && any)
      for (int i = w; i < end; i++)
        if (threads[i].state == AT_WARP_BARRIER) threads[i].state = READY, released++;
  }
  if (!released && waiting == left)
    for (auto& t : threads)
      if (t.state == AT_BLOCK_BARRIER) t.state = READY, released++;
  if (!released) {
    fprintf(stderr, "threads of block (%u, %u, %u) wait at different barriers\n", blockIdx.x, blockIdx.y, blockIdx.z);
    abort();
  }
  return true;
}

static void host_run(dim3 grid, dim3 block, size_t shared, std::function<void()> function) {
  const size_t stack = 128 << 10;
  int n = block.x * block.y * block.z;
  gridDim = grid, blockDim = block, body = function;
  threads.resize(n);
  std::vector<char> stacks(stack * n);
  for (unsigned z = 0; z < grid.z; z++)
    for (unsigned y = 0; y < grid.y; y++)
      for (unsigned x = 0; x < grid.x; x++) {
        std::vector<char> memory(shared + 16, 0x7f);  // not zeros: nothing initializes it
        host_shared = (char*)(((size_t)memory.data() + 15) / 16 * 16);
        blockIdx = {x, y, z};
        for (int t = 0; t < n; t++) {
          auto& thread = threads[t];
          getcontext(&thread.context);
          thread.context.uc_stack.ss_sp = stacks.data() + stack * t;
          thread.context.uc_stack.ss_size = stack;
          thread.context.uc_link = &scheduler;
          thread.index = {t % block.x, t / block.x % block.y, t / (block.x * block.y)};
          makecontext(&thread.context, run_thread, 0);
          thread.state = READY;
        }
        do {
          for (int t = 0; t < n; t++)
            if (threads[t].state == READY) {
              current = t, threadIdx = threads[t].index;
              swapcontext(&scheduler, &threads[t].context);
            }
        } while (release());
      }
}

// ---- functions of CUDA ----------------------------------------------------------------------------------------------

static char host_exchange[1024][16];
template <class V>
static V host_shuffle(V value, int from) {  // from: a lane; out of range: the own value
  int first = current / 32 * 32, n = threads.size();
  memcpy(host_exchange[current], &value, sizeof value);
  __syncwarp();
  V result = value;
  if (from >= 0 && from < 32 && first + from < n) memcpy(&result, host_exchange[first + from], sizeof value);
  __syncwarp();
  return result;
}
template <class V>
static V __shfl_sync(unsigned, V v, int lane, int width = 32) {
  int own = current % 32;
  return host_shuffle(v, own / width * width + lane % width);
}
template <class V>
static V __shfl_xor_sync(unsigned, V v, int mask, int width = 32) {
  return host_shuffle(v, current % 32 ^ mask);
}
template <class V>
static V __shfl_down_sync(unsigned, V v, int step, int width = 32) {
  int own = current % 32;
  return host_shuffle(v, own % width + step < width ? own + step : own);
}
template <class V>
static V __shfl_up_sync(unsigned, V v, int step, int width = 32) {
  int own = current % 32;
  return host_shuffle(v, own % width >= step ? own - step : own);
}
static unsigned __ballot_sync(unsigned, int condition) {
  unsigned result = 0;
  for (int lane = 0; lane < 32; lane++) result |= (unsigned)(host_shuffle(condition, lane) != 0) << lane;
  return result;
}
static int __any_sync(unsigned mask, int condition) { return __ballot_sync(mask, condition) != 0; }
static int __all_sync(unsigned mask, int condition) { return !__ballot_sync(mask, !condition); }

template <class V, class W>
static V atomicAdd(V* p, W v) { V old = *p; *p += v; return old; }
template <class V, class W>
static V atomicMax(V* p, W v) { V old = *p; *p = std::max<V>(old, v); return old; }
template <class V, class W>
static V atomicMin(V* p, W v) { V old = *p; *p = std::min<V>(old, v); return old; }
template <class V, class W>
static V atomicOr(V* p, W v) { V old = *p; *p |= v; return old; }
template <class V, class W>
static V atomicExch(V* p, W v) { V old = *p; *p = v; return old; }
template <class V, class W>
static V atomicCAS(V* p, W expected, W v) { V old = *p; if (old == (V)expected) *p = v; return old; }

template <class To, class From>
static To host_bits(From x) { To y; memcpy(&y, &x, sizeof y); return y; }
static unsigned __float_as_uint(float x) { return host_bits<unsigned>(x); }
static float __uint_as_float(unsigned x) { return host_bits<float>(x); }
static int __float_as_int(float x) { return host_bits<int>(x); }
static float __int_as_float(int x) { return host_bits<float>(x); }
static unsigned short host_half_from_float(float x) { return host_bits<unsigned short>((_Float16)x); }
static float host_float_from_half(unsigned short x) { return (float)host_bits<_Float16>(x); }
static unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }
static int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static int __popc(unsigned x) { return __builtin_popcount(x); }
static float rsqrtf(float x) { return 1 / std::sqrt(x); }
static double rsqrt(double x) { return 1 / std::sqrt(x); }
static float rsqrt(float x) { return 1 / std::sqrt(x); }
#define __expf expf
#define __logf logf
static float __fdividef(float x, float y) { return x / y; }
template <class V>
static V __ldg(const V* p) { return *p; }
using std::exp; using std::log; using std::sqrt; using std::tanh; using std::pow; using std::fabs; using std::abs;
using std::floor; using std::ceil; using std::erf; using std::fma; using std::fmod; using std::isnan; using std::isinf;
using std::min; using std::max; using std::expm1; using std::log1p; using std::rint; using std::trunc;
