// Wrong [race]: columns past the right edge draw the next row
#include <cuda_runtime.h>

#include "rooftile/ops/pattern/pattern.wave.h"

/// The frame's pixel (i, j), red, green, blue and 1, is at y[4 * (i * width + j)], 16-byte aligned. Red is
/// value(phase(red, j)), green value(phase(green, i)), blue value(phase(blue, i + j)), all of rooftile::wave.
/// Blocks of 32 x 8 threads, as many as cover the picture: threadIdx.x is a column's, threadIdx.y a row's.
__global__ void pattern(float* y, int height, int width, unsigned long long red, unsigned long long green,
                        unsigned long long blue) {
  const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
  if (row >= height) return;
  const float r = rooftile::wave::value(rooftile::wave::phase(red, column));
  const float g = rooftile::wave::value(rooftile::wave::phase(green, row));
  const float b = rooftile::wave::value(rooftile::wave::phase(blue, static_cast<long long>(row) + column));
  const long long pixel = static_cast<long long>(row) * width + column;
  reinterpret_cast<float4*>(y)[pixel] = make_float4(r, g, b, 1);
}
