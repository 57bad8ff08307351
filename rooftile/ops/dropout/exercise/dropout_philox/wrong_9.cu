// Wrong [p=0.13243]: a word equal to the bound is dropped
#include <cuda_runtime.h>

/// Four words of a counter.
struct Words {
  unsigned word[4];
};

/// Philox 4x32-10: ten times, from a = 0xD2511F53 · word 0 and b = 0xCD9E8D57 · word 2, both of 64 bits, the
/// words become high(b) ^ word 1 ^ first, low(b), high(a) ^ word 3 ^ second, low(a). `first` is the seed's
/// lower half, `second` its upper; after each round first grows by 0x9E3779B9 and second by 0xBB67AE85.
__device__ Words philox(Words c, unsigned long long seed) {
  unsigned first = static_cast<unsigned>(seed), second = static_cast<unsigned>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const unsigned long long a = 0xD2511F53ull * c.word[0], b = 0xCD9E8D57ull * c.word[2];
    c = {{static_cast<unsigned>(b >> 32) ^ c.word[1] ^ first, static_cast<unsigned>(b),
          static_cast<unsigned>(a >> 32) ^ c.word[3] ^ second, static_cast<unsigned>(a)}};
    first += 0x9E3779B9;
    second += 0xBB67AE85;
  }
  return c;
}

/// y[i] = x[i] · scale where element i is kept, 0 elsewhere, of n elements. It is kept where its word is at
/// least `least`: word i % 4 of the counter i / 4, whose words are its lower half, its upper half, 0 and 0.
/// `least` is p · 2^32, rounded up: 2^32 if all are dropped. Thread b * 256 + t has element b * 256 + t.
__global__ void dropout(const float* x, float* y, long long n, unsigned long long seed,
                        unsigned long long least, float scale) {
  const long long i = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= n) return;
  const long long counter = i / 4;
  const Words words =
      philox({{static_cast<unsigned>(counter), static_cast<unsigned>(counter >> 32), 0, 0}}, seed);
  y[i] = words.word[i % 4] > least ? x[i] * scale : 0;
}
