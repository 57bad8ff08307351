// Exercise dropout_philox: dropout whose random words follow from the seed and the element's index alone.
#include <cuda_runtime.h>

/// Four words of a counter.
struct Words {
  unsigned word[4];
};

/// Philox 4x32-10: ten times, from a = 0xD2511F53 · word 0 and b = 0xCD9E8D57 · word 2, both of 64 bits, the
/// words become high(b) ^ word 1 ^ first, low(b), high(a) ^ word 3 ^ second, low(a). `first` is the seed's
/// lower half, `second` its upper; after each round first grows by 0x9E3779B9 and second by 0xBB67AE85.
__device__ Words philox(Words c, unsigned long long seed) {
  return c;  // ten rounds are missing
}

/// y[i] = x[i] · scale where element i is kept, 0 elsewhere, of n elements. It is kept where its word is at
/// least `least`: word i % 4 of the counter i / 4, whose words are its lower half, its upper half, 0 and 0.
/// `least` is p · 2^32, rounded up: 2^32 if all are dropped. Thread b * 256 + t has element b * 256 + t.
__global__ void dropout(const float* x, float* y, long long n, unsigned long long seed,
                        unsigned long long least, float scale) {}
