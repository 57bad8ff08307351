// Implicit products on a GPU (Chetlur et al., cuDNN, 2014): blocks gather tiles of the windows' matrix from
// the picture, which is never written out. For each element one chain over ascending K. f32 here: a thread
// has 4 rows of 8 columns; conv2d.mma.cu: f16 and bf16.
#include "rooftile/ops/conv2d/conv2d.gpu.h"

namespace rooftile {
namespace conv_gpu {
namespace {

constexpr int kDepth = 16;
constexpr int kPitchM = kM + 4, kPitchN = kN + 4;

__global__ void __launch_bounds__(kThreads, 2)
    conv_simt(const __grid_constant__ GpuConv p, std::int64_t first_tile) {
  ROOFTILE_SHARED(tables, Tables<kM, kN, kDepth, 2>);
  ROOFTILE_SHARED(left, float4[2][kDepth * kPitchM / 4]);
  ROOFTILE_SHARED(right, float4[2][kDepth * kPitchN / 4]);
  const GpuTile tile = tile_at(p, first_tile + blockIdx.x);
  const int t = static_cast<int>(threadIdx.x);
  const int stages = static_cast<int>((tile.last - tile.first + kDepth - 1) / kDepth);
  const float* rows = static_cast<const float*>(p.rows.data) + tile.group * p.rows.group;
  const float* columns = static_cast<const float*>(p.columns.data) + tile.group * p.columns.group;

  float held[12];
  const auto fetch = [&](int stage) {
    const Place of_row = tables.own[t % kM], of_column = tables.own[kM + t % kN];
    ROOFTILE_UNROLL for (int e = 0; e < 4; ++e) {
      held[e] = element(p.rows, rows, of_row, tables.steps[stage % 2][0][t / kM + 4 * e], 1.0f);
    }
    ROOFTILE_UNROLL for (int e = 0; e < 8; ++e) {
      held[4 + e] = element(p.columns, columns, of_column, tables.steps[stage % 2][1][t / kN + 2 * e], 1.0f);
    }
  };
  const auto put = [&](int stage) {
    float* const a = reinterpret_cast<float*>(&left[stage % 2][0]);
    float* const b = reinterpret_cast<float*>(&right[stage % 2][0]);
    ROOFTILE_UNROLL for (int e = 0; e < 4; ++e) a[(t / kM + 4 * e) * kPitchM + t % kM] = held[e];
    ROOFTILE_UNROLL for (int e = 0; e < 8; ++e) b[(t / kN + 2 * e) * kPitchN + t % kN] = held[4 + e];
  };

  fill_own(tables, p, tile);
  fill_steps(tables, p, tile, 0);
  __syncthreads();
  fill_steps(tables, p, tile, 1);
  fetch(0);
  put(0);
  const int row = t / 16 * 4, column = t % 16 * 4;  // and 64 columns further
  float sums[4][8] = {};
  ROOFTILE_UNROLL_BY(1) for (int s = 0; s < stages; ++s) {
    __syncthreads();  // the stage and the next one's steps are here, and all have read the ones before
    if (s + 1 < stages) fetch(s + 1);
    ROOFTILE_UNROLL for (int k = 0; k < kDepth; ++k) {
      const float4 a = left[s % 2][(k * kPitchM + row) / 4], b = right[s % 2][(k * kPitchN + column) / 4],
                   c = right[s % 2][(k * kPitchN + column + 64) / 4];
      const float lefts[4] = {a.x, a.y, a.z, a.w}, rights[8] = {b.x, b.y, b.z, b.w, c.x, c.y, c.z, c.w};
      ROOFTILE_UNROLL for (int i = 0; i < 4; ++i) {
        ROOFTILE_UNROLL for (int j = 0; j < 8; ++j) sums[i][j] = __fmaf_rn(lefts[i], rights[j], sums[i][j]);
      }
    }
    if (s + 1 < stages) put(s + 1);
    if (s + 2 < stages) fill_steps(tables, p, tile, s + 2);
  }
  ROOFTILE_UNROLL for (int i = 0; i < 4; ++i) {
    ROOFTILE_UNROLL for (int half = 0; half < 2; ++half) {
      const std::int64_t at = tile.row + row + i, first = tile.column + column + 64 * half,
                         rest = p.n - first;
      if (at < p.m && rest > 0)
        finish(
            p, tile, at, first, rest < 4 ? static_cast<int>(rest) : 4,
            Four{{sums[i][4 * half], sums[i][4 * half + 1], sums[i][4 * half + 2], sums[i][4 * half + 3]}});
    }
  }
}

__global__ void __launch_bounds__(kThreads) conv_add_parts(const __grid_constant__ PartSums p) {
  for (std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; at < p.count;
       at += std::int64_t{gridDim.x} * kThreads) {
    float sum = p.partials[at];
    for (std::int64_t part = 1; part < p.parts; ++part) sum += p.partials[part * p.count + at];
    const std::int64_t row = quotient(at, p.n), j = at - row * p.n, group = quotient(row, p.m),
                       i = row - group * p.m;
    if (j == p.ones)
      store_one(p.of_ones, group * p.of_ones.group + i * p.of_ones.i_stride, sum);
    else
      store_one(p.out, group * p.out.group + i * p.out.i_stride + place_of(p.out, j), sum);
  }
}

Status add_parts(const CudaLaunch& launch, const ConvProduct& product, const GpuConv& g) {
  const PartSums sums{g.partials, g.parts, g.groups * g.m * g.n, g.m, g.n, g.ones, product.out, product.ones};
  const std::int64_t blocks = std::min<std::int64_t>((sums.count + kThreads - 1) / kThreads, 4096);
  return rooftile::cuda::launch(launch, "conv2d", {static_cast<unsigned>(blocks), kThreads}, conv_add_parts,
                                sums);
}

}  // namespace

Status multiply_32(const CudaLaunch& launch, const GpuConv& p) {
  return launch_blocks(launch, p, p.tiles, conv_simt);
}

Status launch_conv(const CudaLaunch& launch, const ConvProblem& p) {
  if (Status s = pack_channels(launch, p); !s) return s;
  for (int i = 0; i < p.count; ++i) {
    const ConvProduct& product = p.products[i];
    if (product.empty()) continue;
    const auto multiply = [&]() -> Status {
      if (takes_depthwise(p.dtype, product)) return multiply_depthwise(launch, p, product);
      if (takes_direct(product)) return multiply_directly(launch, p, product);
      if (takes_wide(p.dtype, product)) return multiply_wide(launch, p, product);
      if (takes_words(p.dtype, product)) return multiply_words(launch, p, product);
      const GpuConv g = gpu_conv(p, product, kM, kN);
      return p.dtype == DType::f32 ? multiply_32(launch, g) : multiply_16(launch, g, p.dtype);
    };
    Status s = multiply();
    if (s && product.along_windows) s = add_parts(launch, product, gpu_conv(p, product, kM, kN));
    if (!s) return s;
  }
  return {};
}

}  // namespace conv_gpu

ROOFTILE_CUDA_KERNELS(conv2d) = {
    entry<conv_gpu::launch_hopper>("conv2d", "wgmma", 90, true),
    entry<conv_gpu::launch_conv>("conv2d", "mma"),
    entry<conv_gpu::launch_conv>("conv2d", "simt"),
    entry<conv_gpu::launch_conv>("conv2d_backward", "mma"),
    entry<conv_gpu::launch_conv>("conv2d_backward", "simt"),
    {},
};

}  // namespace rooftile
