// Kernels of matrix instructions: ldmatrix, stmatrix, mma.sync.
#include "tests/emulated/matrices.h"

#include <cuda_runtime.h>

#include "rooftile/backend/cuda/ptx.h"
#include "rooftile/backend/cuda/shared.h"

namespace rooftile::emulated::test {
namespace {
using launch_of::Type;

__device__ unsigned lane_id() { return threadIdx.x % 32; }

template <Type kType, bool kByRows>
__global__ void multiply(const uint4* a, const uint4* b, const float* c, float* d) {
  ROOFTILE_SHARED(a_rows, uint4[16][2]);
  ROOFTILE_SHARED(b_rows, uint4[16]);
  const unsigned lane = lane_id();
  a += blockIdx.x * 32, b += blockIdx.x * 16, c += blockIdx.x * 128, d += blockIdx.x * 128;
  a_rows[lane / 2][lane % 2] = a[lane];
  if (lane < 16) b_rows[lane] = b[lane];
  __syncwarp();
  unsigned left[4], right[2];
  cuda::load_matrix(left, &a_rows[lane % 16][lane / 16]);
  if (kByRows)
    cuda::load_matrix<true>(right, &b_rows[lane % 16]);
  else
    cuda::load_matrix(right, &b_rows[lane % 8 * 2 + lane / 8 % 2]);
  float sums[4];
  const auto place = [&](unsigned i) { return (lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2; };
  for (unsigned i = 0; i < 4; ++i) sums[i] = c[place(i)];
  if (kType == Type::bf16)
    cuda::mma_bf16(sums, left, right);
  else if (kType == Type::f16)
    cuda::mma_f16(sums, left, right);
  else
    cuda::mma_tf32(sums, left, right);
  for (unsigned i = 0; i < 4; ++i) d[place(i)] = sums[i];
}

__global__ void multiply_bytes(const uint4* a, const uint4* b, const int* c, int* d) {
  ROOFTILE_SHARED(a_rows, uint4[16][2]);
  ROOFTILE_SHARED(b_rows, uint4[8][2]);
  const unsigned lane = lane_id();
  a += blockIdx.x * 32, b += blockIdx.x * 16, c += blockIdx.x * 128, d += blockIdx.x * 128;
  a_rows[lane / 2][lane % 2] = a[lane];
  if (lane < 16) b_rows[lane / 2][lane % 2] = b[lane];
  __syncwarp();
  unsigned left[4], right[2];
  cuda::load_matrix(left, &a_rows[lane % 16][lane / 16]);
  cuda::load_matrix(right, &b_rows[lane % 8][lane / 8 % 2]);
  int sums[4];
  const auto place = [&](unsigned i) { return (lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2; };
  for (unsigned i = 0; i < 4; ++i) sums[i] = c[place(i)];
  cuda::mma_s8(sums, left, right);
  for (unsigned i = 0; i < 4; ++i) d[place(i)] = sums[i];
}

template <bool kTransposed>
__global__ void load_matrices(const uint4* x, unsigned* out) {
  ROOFTILE_SHARED(rows, uint4[32]);
  rows[lane_id()] = x[lane_id()];
  __syncwarp();
  unsigned registers[4];
  cuda::load_matrix<kTransposed>(registers, &rows[lane_id()]);
  for (unsigned m = 0; m < 4; ++m) out[m * 32 + lane_id()] = registers[m];
}
template <bool kTransposed>
__global__ void store_matrices(const unsigned* x, uint4* out) {
  ROOFTILE_SHARED(rows, uint4[32]);
  unsigned registers[4];
  for (unsigned m = 0; m < 4; ++m) registers[m] = x[m * 32 + lane_id()];
  cuda::store_matrix<kTransposed>(&rows[lane_id()], registers);
  __syncwarp();
  out[lane_id()] = rows[lane_id()];
}

__global__ void lane_missing(float* d) {
  if (lane_id() == 7) return;
  float sums[4] = {};
  const unsigned left[4] = {}, right[2] = {};
  cuda::mma_bf16(sums, left, right);
  d[lane_id()] = sums[0];
}
__global__ void lane_missing_of_bytes(int* d) {
  if (lane_id() == 7) return;
  int sums[4] = {};
  const unsigned left[4] = {}, right[2] = {};
  cuda::mma_s8(sums, left, right);
  d[lane_id()] = sums[0];
}
__global__ void bytes_unwritten(const uint4* a, int* d) {
  ROOFTILE_SHARED(rows, uint4[32]);
  if (lane_id() != 5) rows[lane_id()] = a[lane_id()];
  __syncwarp();
  unsigned left[4];
  cuda::load_matrix(left, &rows[lane_id()]);
  int sums[4] = {};
  const unsigned right[2] = {1, 1};
  cuda::mma_s8(sums, left, right);
  d[lane_id()] = sums[0];
}
__global__ void no_barrier(const uint4* x, unsigned* out) {
  ROOFTILE_SHARED(rows, uint4[32]);
  rows[lane_id() ^ 1] = x[lane_id()];
  unsigned registers[4];
  cuda::load_matrix(registers, &rows[lane_id()]);
  out[lane_id()] = registers[0];
}
__global__ void misaligned_row(const uint4* x, unsigned* out) {
  ROOFTILE_SHARED(rows, uint4[32]);
  rows[lane_id()] = x[lane_id()];
  __syncwarp();
  unsigned registers[1];
  cuda::load_matrix(registers, reinterpret_cast<const std::byte*>(&rows[lane_id() % 8]) + 8);
  out[lane_id()] = registers[0];
}
}  // namespace

namespace launch_of {
#define G const Geometry &g, const Options &o
Status multiply(G, Type type, bool by_rows, const unsigned* a, const unsigned* b, const float* c, float* d) {
  void (*const kernel)(const uint4*, const uint4*, const float*, float*) =
      type == Type::tf32 ? &test::multiply<Type::tf32, false>
      : type == Type::bf16
          ? (by_rows ? &test::multiply<Type::bf16, true> : &test::multiply<Type::bf16, false>)
          : (by_rows ? &test::multiply<Type::f16, true> : &test::multiply<Type::f16, false>);
  return launch(g, o, kernel, reinterpret_cast<const uint4*>(a), reinterpret_cast<const uint4*>(b), c, d);
}
Status multiply_bytes(G, const unsigned* a, const unsigned* b, const int* c, int* d) {
  return launch(g, o, "multiply_bytes", &test::multiply_bytes, reinterpret_cast<const uint4*>(a),
                reinterpret_cast<const uint4*>(b), c, d);
}
Status load_matrices(G, bool transposed, const unsigned* x, unsigned* out) {
  return launch(g, o, transposed ? &test::load_matrices<true> : &test::load_matrices<false>,
                reinterpret_cast<const uint4*>(x), out);
}
Status store_matrices(G, bool transposed, const unsigned* registers, unsigned* rows) {
  return launch(g, o, transposed ? &test::store_matrices<true> : &test::store_matrices<false>, registers,
                reinterpret_cast<uint4*>(rows));
}
Status lane_missing(G, float* d) { return launch(g, o, "lane_missing", &test::lane_missing, d); }
Status lane_missing_of_bytes(G, int* d) {
  return launch(g, o, "lane_missing_of_bytes", &test::lane_missing_of_bytes, d);
}
Status bytes_unwritten(G, const unsigned* a, int* d) {
  return launch(g, o, "bytes_unwritten", &test::bytes_unwritten, reinterpret_cast<const uint4*>(a), d);
}
Status no_barrier(G, const unsigned* x, unsigned* out) {
  return launch(g, o, "no_barrier", &test::no_barrier, reinterpret_cast<const uint4*>(x), out);
}
Status misaligned_row(G, const unsigned* x, unsigned* out) {
  return launch(g, o, "misaligned_row", &test::misaligned_row, reinterpret_cast<const uint4*>(x), out);
}
}  // namespace launch_of
}  // namespace rooftile::emulated::test
