// CUDA C on the CPU: the threads of a block are coroutines. Blocks run one after another; between two barriers of the
// block, so do its warps. Blocks, warps and threads run in order or, if `backwards`, in reverse: a program whose result
// depends on the order has a race.
#pragma once
#include <csignal>
#include <sys/mman.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif

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
#define __shared__ static  // in .bss, which nothing else uses: each block overwrites it with NaN
#define __launch_bounds__(...)
#define HOST_STATE __attribute__((section(".host_state"))) static
#define HIDDEN __attribute__((visibility("hidden")))

struct dim3 {
  unsigned x, y, z;
};
HOST_STATE dim3 threadIdx, blockIdx, blockDim, gridDim;
HOST_STATE char* host_shared;  // dynamic shared memory
extern HIDDEN char __bss_start[], _end[];

// ---- coroutines -----------------------------------------------------------------------------------------------------

const size_t STACK = 128 << 10;
static void run_thread();

#ifdef __x86_64__  // swapcontext would call the system
typedef void* Context;  // the stack pointer; above it are the registers that functions preserve
__attribute__((naked, noinline)) static void host_switch(Context* from, Context* to) {
  asm("push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15; mov %rsp, (%rdi);"
      "mov (%rsi), %rsp; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp; ret");
}
static void host_start(Context* context, char* stack) {
  void** top = (void**)(stack + STACK) - 2;  // a function expects that its stack was aligned before the call
  *top = (void*)run_thread;
  *context = top - 6;
}
#else
typedef ucontext_t Context;
static void host_switch(Context* from, Context* to) { swapcontext(from, to); }
static void host_start(Context* context, char* stack) {
  getcontext(context);
  context->uc_stack.ss_sp = stack, context->uc_stack.ss_size = STACK;
  makecontext(context, run_thread, 0);
}
#endif

// ---- threads --------------------------------------------------------------------------------------------------------

enum State { READY, AT_BLOCK_BARRIER, AT_WARP_BARRIER, DONE };
struct Thread {
  Context context;
  char* stack;  // null before it starts
  State state;
  unsigned mask;  // the lanes that it waits for
};
HOST_STATE std::vector<Thread> threads;
HOST_STATE std::vector<char*> free_stacks;
HOST_STATE Context scheduler;
HOST_STATE int current;
HOST_STATE bool backwards;
HOST_STATE std::function<void()> body;
HOST_STATE char failure[400];

static void wait_in(State state) {
  threads[current].state = state;
  host_switch(&threads[current].context, &scheduler);
}

template <class... Values>
static void host_describe(const char* format, Values... values) {
  int n = snprintf(failure, 300, format, values...);
  snprintf(failure + n, 100, " (thread %d of block (%u, %u, %u))", current, blockIdx.x, blockIdx.y, blockIdx.z);
}
template <class... Values>
static void host_fail(const char* format, Values... values) {
  host_describe(format, values...);
  wait_in(DONE);
}

static void __syncthreads() { wait_in(AT_BLOCK_BARRIER); }
static void __syncwarp(unsigned mask = ~0u) {
  if (!(mask >> current % 32 & 1)) host_fail("lane %d is not in the mask %x", current % 32, mask);
  threads[current].mask = mask;
  wait_in(AT_WARP_BARRIER);
}
static void __threadfence() {}

static void run_thread() {
  body();
  free_stacks.push_back(threads[current].stack);  // no other thread starts before this one has left it
  wait_in(DONE);
}

static void resume(int t) {
  auto& thread = threads[t];
  if (!thread.stack) {
    if (free_stacks.empty())
      free_stacks.push_back((char*)mmap(0, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    thread.stack = free_stacks.back();
    free_stacks.pop_back();
    host_start(&thread.context, thread.stack);
  }
  current = t;
  threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
  host_switch(&scheduler, &thread.context);
}

// Run the threads of a warp until all are done or at the barrier of the block.
static void run_warp(int first) {
  int n = std::min<int>(threads.size() - first, 32);
  Thread* lanes = &threads[first];
  for (bool released = true; released;) {
    for (int i = 0; i < n && !*failure; i++) {
      int lane = backwards ? n - 1 - i : i;
      if (lanes[lane].state == READY) resume(first + lane);
    }
    if (*failure) return;
    unsigned free = 0;
    for (int i = 0; i < n; i++) {
      bool all = lanes[i].state == AT_WARP_BARRIER;
      for (int j = 0; j < n; j++)
        if (lanes[i].mask >> j & 1 && lanes[j].state != DONE)
          all &= lanes[j].state == AT_WARP_BARRIER && lanes[j].mask == lanes[i].mask;
      free |= (unsigned)all << i;
    }
    for (int i = 0; i < n; i++)
      if (free >> i & 1) lanes[i].state = READY;
    released = free;
  }
  for (current = first; current < first + n; current++)
    if (threads[current].state == AT_WARP_BARRIER) return host_describe("threads of a warp wait at different barriers");
}

static void run_block(int n) {
  threads.assign(n, {});
  memset(__bss_start, 0xff, _end - __bss_start);  // NaN
  int warps = (n + 31) / 32;
  for (bool waiting = true; waiting && !*failure;) {
    for (int i = 0; i < warps && !*failure; i++) run_warp((backwards ? warps - 1 - i : i) * 32);
    waiting = false;
    for (auto& thread : threads)
      if (thread.state == AT_BLOCK_BARRIER) thread.state = READY, waiting = true;
  }
}

// Memory with an unreadable page behind it.
struct Guarded {
  size_t page = 4096, size;
  char* memory;
  Guarded(size_t bytes) : size((bytes + page - 1) / page * page + page) {
    memory = (char*)mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory + size - page, page, PROT_NONE);
  }
  ~Guarded() { munmap(memory, size); }
};

static void on_signal(int, siginfo_t* info, void*) { host_fail("there is no memory at %p", info->si_addr); }

// Returns null, or the description of an error.
static const char* host_run(dim3 grid, dim3 block, size_t shared, bool reverse, std::function<void()> function) {
  struct sigaction handler = {}, before;
  handler.sa_sigaction = on_signal;
  handler.sa_flags = SA_SIGINFO | SA_NODEFER;  // it does not return
  sigaction(SIGSEGV, &handler, &before);
  Guarded memory(shared);
  size_t aligned = (shared + 15) / 16 * 16;
  host_shared = memory.memory + memory.size - memory.page - aligned;
  gridDim = grid, blockDim = block, body = function, backwards = reverse, *failure = 0;
  size_t blocks = (size_t)grid.x * grid.y * grid.z;
  for (size_t i = 0; i < blocks && !*failure; i++) {
    size_t b = backwards ? blocks - 1 - i : i;
    blockIdx = {unsigned(b % grid.x), unsigned(b / grid.x % grid.y), unsigned(b / grid.x / grid.y)};
    memset(host_shared, 0xff, aligned);
    run_block(block.x * block.y * block.z);
  }
  sigaction(SIGSEGV, &before, 0);
  return *failure ? failure : 0;
}

// g++ calls it before an element of an array of known size is used: -fsanitize=bounds.
struct HostPlace {
  const char* file;
  unsigned line, column;
};
extern "C" HIDDEN void __ubsan_handle_out_of_bounds(const HostPlace* place, size_t index) {
  host_fail("%s:%u: the index %zd is out of bounds", place->file, place->line, index);
}

// ---- functions of CUDA ----------------------------------------------------------------------------------------------

HOST_STATE char host_exchange[1024][16];
template <class V>
static V host_shuffle(unsigned mask, V value, int from) {  // from: a lane; out of range: the own value
  int source = current / 32 * 32 + from;
  memcpy(host_exchange[current], &value, sizeof value);
  __syncwarp(mask);
  if (from >= 0 && from < 32) {
    if (!(mask >> from & 1) || source >= threads.size() || threads[source].state == DONE)
      host_fail("lane %d reads from lane %d, which does not take part", current % 32, from);
    memcpy(&value, host_exchange[source], sizeof value);
  }
  __syncwarp(mask);
  return value;
}
template <class V>
static V __shfl_sync(unsigned mask, V v, int lane, int width = 32) {
  int own = current % 32;
  return host_shuffle(mask, v, own / width * width + lane % width);
}
template <class V>
static V __shfl_xor_sync(unsigned mask, V v, int flip, int width = 32) {
  return host_shuffle(mask, v, current % 32 ^ flip);
}
template <class V>
static V __shfl_down_sync(unsigned mask, V v, int step, int width = 32) {
  int own = current % 32;
  return host_shuffle(mask, v, own % width + step < width ? own + step : own);
}
template <class V>
static V __shfl_up_sync(unsigned mask, V v, int step, int width = 32) {
  int own = current % 32;
  return host_shuffle(mask, v, own % width >= step ? own - step : own);
}
static unsigned __ballot_sync(unsigned mask, int condition) {
  host_exchange[current][0] = condition != 0;
  __syncwarp(mask);
  unsigned result = 0;
  for (int lane = 0, first = current / 32 * 32; lane < 32 && first + lane < threads.size(); lane++)
    if (mask >> lane & 1 && threads[first + lane].state != DONE)
      result |= (unsigned)host_exchange[first + lane][0] << lane;
  __syncwarp(mask);
  return result;
}
static int __any_sync(unsigned mask, int condition) { return __ballot_sync(mask, condition) != 0; }
static int __all_sync(unsigned mask, int condition) { return !__ballot_sync(mask, !condition); }

// The instruction mma of PTX for 16 rows, 8 columns and 8 words: see sources/tensor_cores.cuh.
HOST_STATE unsigned host_factors[1024][6];
static float host_products(unsigned a, unsigned b, const char* format);
static void host_multiply_add(float* d, const unsigned* a, const unsigned* b, const char* format) {
  memcpy(host_factors[current], a, 16);
  memcpy(host_factors[current] + 4, b, 8);
  __syncwarp();
  auto warp = host_factors + current / 32 * 32;
  int lane = current % 32;
  for (int i = 0; i < 4; i++)
    for (int word = 0; word < 8; word++)
      d[i] += host_products(warp[lane / 4 * 4 + word % 4][i / 2 + word / 4 * 2],
                            warp[(lane % 4 * 2 + i % 2) * 4 + word % 4][4 + word / 4], format);
  __syncwarp();
}

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
static unsigned short host_half_from_double(double x) { return host_bits<unsigned short>((_Float16)x); }
static float host_float_from_half(unsigned short x) { return (float)host_bits<_Float16>(x); }
static unsigned host_tf32(float x) {  // 10 bits of fraction
  unsigned word = __float_as_uint(x);
  return x != x ? word : word + 0x1000 & ~0x1fffu;
}
// The sum of the products of the factors that two words have.
static float host_products(unsigned a, unsigned b, const char* format) {
  if (!strcmp(format, "tf32")) return __uint_as_float(a) * __uint_as_float(b);
  auto number = [&](unsigned x) { return *format == 'b' ? __uint_as_float(x << 16) : host_float_from_half(x); };
  return number(a & 0xffff) * number(b & 0xffff) + number(a >> 16) * number(b >> 16);
}
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
using std::exp2; using std::log2; using std::log10; using std::sin; using std::cos; using std::tan; using std::asin;
using std::acos; using std::atan; using std::sinh; using std::cosh; using std::asinh; using std::acosh; using std::atanh;
using std::erfc; using std::lgamma; using std::atan2; using std::hypot; using std::copysign; using std::nextafter;
using std::cbrt;
