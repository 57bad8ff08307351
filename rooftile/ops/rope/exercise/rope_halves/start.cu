// Exercise rope_halves: rotary position embedding, whose pairs are a head's two halves.
#include <cuda_runtime.h>

/// Of each head channels i and half + i, half = d / 2, turn by the angle (offset + s) · f, in radians, where
/// f is 10000^(-i / half) rounded to float, as models have it: y[i] = x[i] · cos - x[half + i] · sin, y[half
/// + i] = x[half + i] · cos + x[i] · sin. If d is odd, the last channel stays as it is. Block b has token b,
/// 128 threads, and all of its heads: token b is at place s = b % length, and its heads · d numbers begin at
/// b · heads · d. y may be x.
__global__ void rope(const float* x, float* y, int length, int heads, int d, double offset) {
  // 1. The token's position.
  // 2. Threads share the pairs of all heads: pair p is pair p % half of head p / half.
  // 3. The last channel, if d is odd.
}
