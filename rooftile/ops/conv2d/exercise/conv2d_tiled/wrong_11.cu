// Wrong [shared]: the tile's rows have room for 64 pixels, and hold 34
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/shared.h"

/// y[n][f][i][j] = sum of w[f][c][r][s] * x[n][c][i + r - 1][j + s - 1] over all channels c and taps r, s
/// below 3; outside the picture x is 0. A block of 32 x 8 threads has as many pixels of a picture, 8 rows
/// from 8 * blockIdx.y and 32 columns from 32 * blockIdx.x on, and four filters: blockIdx.z counts fours of
/// filters, then pictures. ROOFTILE_SHARED(tile, float[10][34]) is __shared__ float tile[10][34] on a GPU.
__global__ void conv3x3(const float* x, const float* w, float* y, int channels, int height, int width,
                        int filters) {
  ROOFTILE_SHARED(tile, float[10][64]);
  ROOFTILE_SHARED(taps, float[4][9]);
  const int fours = (filters + 3) / 4, n = blockIdx.z / fours, first = blockIdx.z % fours * 4;
  const int top = blockIdx.y * 8, left = blockIdx.x * 32, thread = threadIdx.y * 32 + threadIdx.x;
  float sum[4] = {};
  for (int c = 0; c < channels; ++c) {
    const float* plane = x + (n * channels + c) * height * width;
    for (int k = thread; k < 340; k += 256) {
      const int row = top - 1 + k / 34, column = left - 1 + k % 34;
      const bool inside = row >= 0 && row < height && column >= 0 && column < width;
      tile[k / 34][k % 34] = inside ? plane[row * width + column] : 0;
    }
    if (thread < 36) {
      const int f = first + thread / 9;
      taps[thread / 9][thread % 9] = f < filters ? w[(f * channels + c) * 9 + thread % 9] : 0;
    }
    __syncthreads();
    for (int tap = 0; tap < 9; ++tap) {
      const float pixel = tile[threadIdx.y + tap / 3][threadIdx.x + tap % 3];
      for (int f = 0; f < 4; ++f) sum[f] = fmaf(taps[f][tap], pixel, sum[f]);
    }
    __syncthreads();  // all have read
  }
  const int i = top + threadIdx.y, j = left + threadIdx.x;
  if (i >= height || j >= width) return;
  for (int f = 0; f < 4 && first + f < filters; ++f)
    y[((n * filters + first + f) * height + i) * width + j] = sum[f];
}
