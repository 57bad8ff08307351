// Exercise rope_halves: rotary position embedding, whose pairs are a head's two halves.
#include <cuda_runtime.h>

/// A channel is one of a head's d dimensions. Channels i and half + i, half = d / 2, turn by the angle
/// (offset + s) · f, in radians, where f is 10000^(-i / half), computed in double and rounded to float:
///   y[i] = x[i] · cos - x[half + i] · sin, y[half + i] = x[half + i] · cos + x[i] · sin.
/// If d is odd, the last channel stays as it is. Block b has token b, 128 threads, and all of its heads.
/// Token b has index s = b % length in its sequence, and its heads · d numbers begin at b · heads · d. y may
/// be x.
__global__ void rope(const float* x, float* y, int length, int heads, int d, double offset) {
  // 1. The token's position.
  // 2. Threads share the pairs of all heads: pair p is pair p % half of head p / half.
  // 3. The last channel, if d is odd.
}
