// Wrong [offset]: the frequency is not rounded to float
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
  for (int p = threadIdx.x; p < heads * half; p += 128) {
    const int head = p / half, i = p % half;
    const double frequency = pow(10000.0, -static_cast<double>(i) / half);
    const double angle = position * frequency;
    const float cosine = static_cast<float>(cos(angle)), sine = static_cast<float>(sin(angle));
    const long long at = begin + head * d + i;
    const float a = x[at], b = x[at + half];  // both before either is stored: y may be x
    y[at] = a * cosine - b * sine;
    y[at + half] = b * cosine + a * sine;
  }
  if (d % 2 == 0) return;
  for (int head = threadIdx.x; head < heads; head += 128)
    y[begin + head * d + d - 1] = x[begin + head * d + d - 1];
}
