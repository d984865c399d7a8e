// Philox4x32-10, the random bits of `core/random.py`: word i of a tensor is word i % 4 of block i / 4.

#include "common.cuh"

struct Words {
  unsigned of[4];
};

// The key and the counter of a draw: two numbers, or if `state` is not null, elements in the memory of the device.
struct Draw {
  unsigned long long key, counter;
  __device__ Draw(const long long* state, long long key, long long counter, long long offset)
      : key(state ? state[0] : key), counter((state ? state[1] : counter) + offset) {}

  __device__ Words block(unsigned long long index) const {
    unsigned c0 = index, c1 = index >> 32, c2 = counter, c3 = counter >> 32, k0 = key, k1 = key >> 32;
    for (int round = 0; round < 10; round++) {
      unsigned a = __umulhi(c0, 0xD2511F53u), b = __umulhi(c2, 0xCD9E8D57u);
      unsigned low_a = c0 * 0xD2511F53u, low_b = c2 * 0xCD9E8D57u;
      c0 = b ^ c1 ^ k0, c1 = low_b, c2 = a ^ c3 ^ k1, c3 = low_a;
      k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
  }
};
