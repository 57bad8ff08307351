// Exercise pattern_pixels: a frame of the animated pattern; a thread for each pixel, and one store.
#include <cuda_runtime.h>

#include "rooftile/ops/pattern/pattern.wave.h"

/// The frame's pixel (i, j), red, green, blue and 1, is at y[4 * (i * width + j)], 16-byte aligned. Red is
/// value(phase(red, j)), green value(phase(green, i)), blue value(phase(blue, i + j)), all of rooftile::wave:
/// the arguments red, green and blue are the phases of this frame's time, for pixel (0, 0).
/// Blocks of 32 x 8 threads, as many as cover the picture: threadIdx.x is a column's, threadIdx.y a row's.
__global__ void pattern(float* y, int height, int width, unsigned long long red, unsigned long long green,
                        unsigned long long blue) {}
