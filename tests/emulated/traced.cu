// Textbook kernels whose memory traffic is known by heart.
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/ptx.h"
#include "rooftile/backend/cuda/shared.h"
#include "tests/emulated/traced.h"

namespace rooftile::emulated::test {
namespace {
__global__ void copy(const float* x, float* y, int n) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = x[i];  // [copy]
}
__global__ void copy_vectors(const float4* x, float4* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i];  // [vector]
}
__global__ void copy_scaled_vectors(const float4* x, float4* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 v = x[i];  // [scaled load]
  v.x *= 2, v.y *= 2, v.z *= 2, v.w *= 2;
  y[i] = v;  // [scaled store]
}
// A compiler for CPUs takes these vectors apart; nvcc does not.
__global__ void store_braced(const float4* x, float* y) {
  const unsigned i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  const float4 v = x[i / 4];
  *reinterpret_cast<float4*>(y + i) = float4{2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w};  // [braced]
}
__global__ void add_members(const float4* x, float4* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 &v = x[i], &w = x[i + 1];
  y[i] = float4{v.x + w.x, v.y + w.y, v.z + w.z, v.w + w.w};  // [members]
}
__global__ void store_bytes(const float* x, uchar4* y) {
  const unsigned i = threadIdx.x;
  const auto v = static_cast<unsigned char>(x[i]), w = static_cast<unsigned char>(x[i + 32]);
  y[i] = uchar4{v, w, w, v};  // [bytes]
}
__global__ void store_lines(const float* x, float* y) {
  const unsigned i = 4 * threadIdx.x;
  y[i] = x[i];  // [line 0]
  y[i + 1] = 0;
  y[i + 2] = 0;
  y[i + 3] = 0;  // [line 3]
}
__global__ void stencil(const float* x, float* y) {
  const unsigned i = threadIdx.x;
  y[i] = (x[i] + x[i + 1]) + (x[i + 2] + x[i + 3]);  // [stencil]
}
__global__ void shared_braced(float4* y) {
  ROOFTILE_SHARED(tile, float4[32]);
  const float v = static_cast<float>(threadIdx.x);
  tile[threadIdx.x] = float4{v, v, v, v};  // [shared braced]
  __syncthreads();
  y[threadIdx.x] = tile[31 - threadIdx.x];
}
// [strided_copy]
__global__ void copy_strided(const float* x, float* y, int stride) {
  const unsigned i = threadIdx.x;
  y[i] = x[i * unsigned(stride)];  // [strided]
}
// [/strided_copy]
__global__ void transpose_naive(const float* x, float* y, int n) {
  const int column = int(blockIdx.x * 32 + threadIdx.x), row = int(blockIdx.y * 32 + threadIdx.y);
  y[column * n + row] = x[row * n + column];  // [naive]
}
template <int kPad>
__global__ void transpose(const float* x, float* y, int n) {
  ROOFTILE_SHARED(tile, float[32][32 + kPad]);
  int column = int(blockIdx.x * 32 + threadIdx.x), row = int(blockIdx.y * 32 + threadIdx.y);
  tile[threadIdx.y][threadIdx.x] = x[row * n + column];  // [tile in]
  __syncthreads();
  column = int(blockIdx.y * 32 + threadIdx.x), row = int(blockIdx.x * 32 + threadIdx.y);
  y[row * n + column] = tile[threadIdx.x][threadIdx.y];  // [tile out]
}
template <bool kRowsAcross>
__global__ void matmul(const float* a, const float* b, float* c, int n) {
  const int across = int(blockIdx.x * 32 + threadIdx.x), down = int(blockIdx.y * 32 + threadIdx.y);
  const int row = kRowsAcross ? across : down, column = kRowsAcross ? down : across;
  float sum = 0;
  for (int k = 0; k < n; ++k) {
    const float left = a[row * n + k];  // [a]
    sum += left * b[k * n + column];    // [b]
  }
  c[row * n + column] = sum;  // [c]
}
template <class T>
__global__ void shared_walk(T* out, int distinct, int stride) {
  ROOFTILE_SHARED(line, T[2048]);
  const unsigned place = threadIdx.x % unsigned(distinct) * unsigned(stride);
  line[place] = out[threadIdx.x];  // [walk in]
  __syncthreads();
  out[threadIdx.x] = line[place];  // [walk out]
}
__global__ void count(unsigned* bins) {
  atomicAdd(&bins[threadIdx.x % 8], 1u);  // [atomic]
}
}  // namespace

Status launch_traced(const std::string& kernel, const float* x, float* y, int n) {
  const Options o{};
  const auto u = unsigned(n);
  const auto* x4 = reinterpret_cast<const float4*>(x);
  auto* y4 = reinterpret_cast<float4*>(y);
  if (kernel == "copy") return launch({(u + 255) / 256, 256}, o, &copy, x, y, n);
  if (kernel == "copy_vectors") return launch({u / 1024, 256}, o, &copy_vectors, x4, y4);
  if (kernel == "copy_scaled_vectors") return launch({u / 1024, 256}, o, &copy_scaled_vectors, x4, y4);
  if (kernel == "store_braced") return launch({u / 1024, 256}, o, &store_braced, x4, y);
  if (kernel == "add_members") return launch({1, 32}, o, &add_members, x4, y4);
  if (kernel == "store_bytes") return launch({1, 32}, o, &store_bytes, x, reinterpret_cast<uchar4*>(y));
  if (kernel == "store_lines") return launch({1, 32}, o, &store_lines, x, y);
  if (kernel == "stencil") return launch({1, 32}, o, &stencil, x, y);
  if (kernel == "shared_braced") return launch({1, 32}, o, &shared_braced, y4);
  if (kernel == "copy_strided") return launch({1, 32}, o, &copy_strided, x, y, n);
  const dim3 grid(u / 32, u / 32), block(32, 32);
  if (kernel == "transpose_naive") return launch({grid, block}, o, &transpose_naive, x, y, n);
  if (kernel == "transpose_unpadded") return launch({grid, block}, o, &transpose<0>, x, y, n);
  if (kernel == "transpose_padded") return launch({grid, block}, o, &transpose<1>, x, y, n);
  if (kernel == "matmul_naive") return launch({grid, block}, o, &matmul<true>, x, x, y, n);
  if (kernel == "matmul_coalesced") return launch({grid, block}, o, &matmul<false>, x, x, y, n);
  if (kernel == "walk4") return launch({1, 32}, o, &shared_walk<float>, y, n / 100, n % 100);
  if (kernel == "walk8")
    return launch({1, 32}, o, &shared_walk<double>, reinterpret_cast<double*>(y), n / 100, n % 100);
  if (kernel == "walk16") return launch({1, 32}, o, &shared_walk<float4>, y4, n / 100, n % 100);
  if (kernel == "count") return launch({2, 64}, o, &count, reinterpret_cast<unsigned*>(y));
  return Status::error("no kernel %s", kernel.c_str());
}

}  // namespace rooftile::emulated::test
