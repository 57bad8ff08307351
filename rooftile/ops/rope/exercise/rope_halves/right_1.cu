// A table of the token's cosines and sines in shared memory, 64 at a time.
#include <cuda_runtime.h>

/// Of each head channels i and half + i, half = d / 2, turn by the angle (offset + s) · f, in radians, where
/// f is 10000^(-i / half) rounded to float, as models have it: y[i] = x[i] · cos - x[half + i] · sin, y[half
/// + i] = x[half + i] · cos + x[i] · sin. If d is odd, the last channel stays as it is. Block b has token b,
/// 128 threads, and all of its heads: token b is at place s = b % length, and its heads · d numbers begin at
/// b · heads · d. y may be x.
__global__ void rope(const float* x, float* y, int length, int heads, int d, double offset) {
  const long long begin = static_cast<long long>(blockIdx.x) * heads * d;
  const int half = d / 2;
  const double position = offset + blockIdx.x % length;
  ROOFTILE_SHARED(cosine, float[64]);
  ROOFTILE_SHARED(sine, float[64]);
  for (int first = 0; first < half; first += 64) {
    const int count = half - first < 64 ? half - first : 64;
    if (threadIdx.x < count) {
      const float frequency =
          static_cast<float>(pow(10000.0, -static_cast<double>(first + threadIdx.x) / half));
      const double angle = position * frequency;
      cosine[threadIdx.x] = static_cast<float>(cos(angle));
      sine[threadIdx.x] = static_cast<float>(sin(angle));
    }
    __syncthreads();
    for (int p = threadIdx.x; p < heads * count; p += 128) {
      const int head = p / count, i = p % count;
      const long long at = begin + head * d + first + i;
      const float a = x[at], b = x[at + half];
      y[at] = a * cosine[i] - b * sine[i];
      y[at + half] = b * cosine[i] + a * sine[i];
    }
    __syncthreads();
  }
  if (d % 2 == 0) return;
  for (int head = threadIdx.x; head < heads; head += 128)
    y[begin + head * d + d - 1] = x[begin + head * d + d - 1];
}
