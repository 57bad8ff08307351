#pragma once
// What the GPU's kernels share: which elements of its pictures a block reads, stage by stage, and what
// becomes of a sum.
#include "rooftile/backend/cuda/ptx.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/conv2d/conv2d.operand.h"
#include "rooftile/ops/gemm/gemm.gpu_epilogue.h"

namespace rooftile::conv_gpu {
using namespace rooftile::tile;
using gemm_gpu::Four;

/// A block's tile, and its threads, where elements are gathered one by one: 8 warps, 2 down and 4 across.
inline constexpr int kM = 64, kN = 128, kThreads = 256;

/// A product in the order in which it is computed: a tile's rows and columns. `turned`: rows are j.
struct GpuConv {
  Windows rows, columns;
  ConvOutput out;
  std::int64_t m, n, k, ones;  ///< ones: the row or column that is 1 throughout; -1: none
  int height, width;           ///< of a tile
  std::int64_t tiles_m, tiles_n, tiles, groups, part, parts;
  bool turned, along_windows;
  bool fours;  ///< four neighbours of a row of the result are one aligned word
  const void* bias;
  DType bias_dtype;
  std::int64_t bias_stride, bias_group;
  int activation;
  float* partials;
};

inline GpuConv gpu_conv(const ConvProblem& problem, const ConvProduct& p, int height, int width,
                        bool turned) {
  GpuConv g{};
  const std::int64_t m = p.m(), n = p.columns(), j = p.n();
  g.turned = turned;
  g.height = height, g.width = width;
  g.rows = g.turned ? p.right : p.left;
  g.columns = g.turned ? p.left : p.right;
  g.out = p.out;
  g.m = g.turned ? n : m, g.n = g.turned ? m : n, g.k = p.k();
  g.ones = p.ones.data ? j : -1;
  g.tiles_m = (g.m + height - 1) / height, g.tiles_n = (g.n + width - 1) / width;
  g.groups = p.groups;
  const ConvParts parts = p.along_windows ? conv_parts(p) : ConvParts{g.k, 1};
  g.part = parts.length, g.parts = parts.count;
  g.tiles = g.tiles_m * g.tiles_n * g.groups * g.parts;
  g.along_windows = p.along_windows;
  if (!p.along_windows) {
    g.bias = problem.bias, g.bias_dtype = problem.bias_dtype;
    g.bias_stride = problem.bias_stride, g.bias_group = problem.bias_group;
    g.activation = problem.activation;
  }
  g.partials = problem.partials;
  const ConvOutput& o = p.out;
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(o.data));
  const int size = bits(o.dtype) / 8;
  g.fours = g.turned && o.i_stride == 1 && g.n % 4 == 0 &&
            ((address | (o.group | o.stride[0] | o.stride[1] | o.stride[2]) * size) % (4 * size)) == 0;
  return g;
}
/// The contiguous dimension of the result along columns; pixels, which are many, where none is.
inline GpuConv gpu_conv(const ConvProblem& problem, const ConvProduct& p, int height, int width) {
  return gpu_conv(problem, p, height, width,
                  !p.along_windows && p.out.i_stride == 1 && p.out.stride[2] != 1 && 2 * p.m() >= width);
}

ROOFTILE_TILE std::int64_t quotient(std::int64_t a, std::int64_t b) {
  return ((a | b) >> 32) != 0 ? a / b : static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
}

/// A window's or a term's part of an element's place: these of both add up. Where `down` divides rows and
/// columns, these are added to `offset` once it has.
struct Place {
  std::int64_t offset;
  int y, x;
};
inline constexpr int kOutside = -0x40000000, kOnes = 0x7fffffff;

ROOFTILE_TILE bool divides(const Windows& v) { return v.down_h != 1 || v.down_w != 1; }
ROOFTILE_TILE Place place_at(const Windows& v, std::int64_t offset, std::int64_t y, std::int64_t x) {
  return {divides(v) ? offset : offset + y * v.h + x * v.w, static_cast<int>(y), static_cast<int>(x)};
}
ROOFTILE_TILE Place window_of(const Windows& v, std::int64_t index) {
  const std::int64_t row = quotient(index, v.columns), image = quotient(row, v.rows);
  return place_at(v, image * v.n, (row - image * v.rows) * v.step_h + v.from_h,
                  (index - row * v.columns) * v.step_w + v.from_w);
}
ROOFTILE_TILE Place term_of(const Windows& v, std::int64_t index) {
  const std::int64_t tap = quotient(index, v.channels), row = quotient(tap, v.taps_w);
  return place_at(v, (index - tap * v.channels) * v.c, row * v.tap_h, (tap - row * v.taps_w) * v.tap_w);
}

/// Whether a row or column has a pixel at a step of K; `offset`: its place. Additions alone, of 32 bits but
/// for the offset: with products of 64 bits in here, finding words took five times as long as multiplying
/// them.
ROOFTILE_TILE bool inside(const Windows& v, const Place& own, const Place& step, std::int64_t& offset) {
  int y = own.y + step.y, x = own.x + step.x;
  std::int64_t at = own.offset + step.offset;
  if (divides(v)) {
    const int down_h = static_cast<int>(v.down_h), down_w = static_cast<int>(v.down_w);
    if (y < 0 || x < 0 || y % down_h != 0 || x % down_w != 0) return false;
    y /= down_h, x /= down_w;
    at += y * v.h + x * v.w;
  }
  if (static_cast<unsigned>(y) >= static_cast<unsigned>(v.height) ||
      static_cast<unsigned>(x) >= static_cast<unsigned>(v.width))
    return false;
  offset = at;
  return true;
}
/// The element of a row or column at a step of K; zero outside the picture.
template <class T>
ROOFTILE_TILE T element(const Windows& v, const T* data, const Place& own, const Place& step, T one) {
  if (own.y == kOnes) return one;  // past the end of K, the other factor is 0
  std::int64_t offset = 0;
  return inside(v, own, step, offset) ? data[offset] : T{};
}

/// Which tile a block has.
struct GpuTile {
  std::int64_t group, part, row, column, first, last;  ///< row, column of the first element; K from, to
};
ROOFTILE_TILE GpuTile tile_at(const GpuConv& p, std::int64_t index) {
  const std::int64_t down = quotient(index, p.tiles_n), column = index - down * p.tiles_n;
  const std::int64_t rest = quotient(down, p.tiles_m), row = down - rest * p.tiles_m;
  const std::int64_t group = quotient(rest, p.parts), part = rest - group * p.parts;
  const std::int64_t first = part * p.part, end = first + p.part;
  return {group, part, row * p.height, column * p.width, first, end < p.k ? end : p.k};
}

/// Places of a tile's rows and columns, and of kSlots stages' steps.
template <int kM_, int kN_, int kDepth_, int kSlots_>
struct Tables {
  static constexpr int kM = kM_, kN = kN_, kDepth = kDepth_, kSlots = kSlots_;
  Place own[kM + kN];
  Place steps[kSlots][2][kDepth];  // of a stage, for rows and columns
};
template <class Tables>
ROOFTILE_TILE void fill_own(Tables& tables, const GpuConv& p, const GpuTile& tile) {
  constexpr int kM = Tables::kM;
  ROOFTILE_UNROLL_BY(1)
  for (int t = static_cast<int>(threadIdx.x); t < kM + Tables::kN; t += static_cast<int>(blockDim.x)) {
    const Windows& v = t < kM ? p.rows : p.columns;
    const std::int64_t index = t < kM ? tile.row + t : tile.column + (t - kM);
    const bool of_j = p.turned == (t < kM);
    Place place{0, kOutside, 0};
    if (of_j && index == p.ones)
      place.y = kOnes;
    else if (index < (t < kM ? p.m : p.n))
      place = p.along_windows ? term_of(v, index) : window_of(v, index);
    tables.own[t] = place;
  }
}
template <class Tables>
ROOFTILE_TILE void fill_steps(Tables& tables, const GpuConv& p, const GpuTile& tile, int stage) {
  constexpr int kDepth = Tables::kDepth;
  const int t = static_cast<int>(threadIdx.x);
  if (t >= 2 * kDepth) return;
  const Windows& v = t < kDepth ? p.rows : p.columns;
  const std::int64_t index = tile.first + std::int64_t{stage} * kDepth + t % kDepth;
  Place place{0, kOutside, 0};
  if (index < tile.last) place = p.along_windows ? window_of(v, index) : term_of(v, index);
  tables.steps[stage % Tables::kSlots][t / kDepth][t % kDepth] = place;
}

ROOFTILE_TILE void store_one(const ConvOutput& o, std::int64_t at, float value) {
  if (o.dtype == DType::f32)
    static_cast<float*>(o.data)[at] = value;
  else
    static_cast<std::uint16_t*>(o.data)[at] = static_cast<std::uint16_t>(gemm_gpu::half_bits(value, o.dtype));
}
/// Four neighbours as one word.
ROOFTILE_TILE void store_four(const ConvOutput& o, std::int64_t at, const Four& v) {
  if (o.dtype == DType::f32) {
    const float4 word{v.v[0], v.v[1], v.v[2], v.v[3]};
    *reinterpret_cast<float4*>(static_cast<float*>(o.data) + at) = word;
    return;
  }
  unsigned h[4];
  ROOFTILE_UNROLL for (int i = 0; i < 4; ++i) h[i] = gemm_gpu::half_bits(v.v[i], o.dtype);
  const uint2 word{h[0] | h[1] << 16, h[2] | h[3] << 16};
  *reinterpret_cast<uint2*>(static_cast<std::uint16_t*>(o.data) + at) = word;
}
ROOFTILE_TILE std::int64_t place_of(const ConvOutput& o, std::int64_t j) {
  const std::int64_t row = quotient(j, o.low), image = quotient(row, o.middle);
  return image * o.stride[0] + (row - image * o.middle) * o.stride[1] + (j - row * o.low) * o.stride[2];
}

/// Elements (row, column) to (row, column + live - 1), live 1 to 4.
ROOFTILE_TILE void finish(const GpuConv& p, const GpuTile& tile, std::int64_t row, std::int64_t column,
                          int live, Four v) {
  if (p.along_windows) {
    float* const to = p.partials + ((tile.part * p.groups + tile.group) * p.m + row) * p.n + column;
    ROOFTILE_UNROLL for (int l = 0; l < 4; ++l) {
      if (l < live) to[l] = v.v[l];
    }
    return;
  }
  if (p.bias) {
    const std::int64_t first = tile.group * p.bias_group;
    ROOFTILE_UNROLL for (int l = 0; l < 4; ++l) {
      if (l < live)
        v.v[l] +=
            gemm_gpu::float_at(p.bias, first + (p.turned ? column + l : row) * p.bias_stride, p.bias_dtype);
    }
  }
  if (p.activation != 0) v = gemm_gpu::activated(v, p.activation);
  const ConvOutput& o = p.out;
  const std::int64_t fixed = tile.group * o.group + (p.turned ? place_of(o, row) : row * o.i_stride);
  if (p.fours) return store_four(o, fixed + column, v);
  ROOFTILE_UNROLL for (int l = 0; l < 4; ++l) {
    if (l < live)
      store_one(o, fixed + (p.turned ? (column + l) * o.i_stride : place_of(o, column + l)), v.v[l]);
  }
}

/// Adds the parts in order, and writes the filter's and the bias's gradients.
struct PartSums {
  const float* partials;
  std::int64_t parts, count, m, n, ones;
  ConvOutput out, of_ones;
};

/// A block for each tile; a grid has at most 2^31 - 1.
template <class Problem, class Kernel>
Status launch_blocks(const CudaLaunch& launch, const Problem& p, std::int64_t tiles, Kernel kernel,
                     unsigned threads = kThreads, std::size_t shared_bytes = 0) {
  for (std::int64_t first = 0; first < tiles; first += kMaxBlocks) {
    const std::int64_t rest = tiles - first;
    const auto blocks = static_cast<unsigned>(rest < kMaxBlocks ? rest : kMaxBlocks);
    if (Status s =
            rooftile::cuda::launch(launch, "conv2d", {blocks, threads, shared_bytes}, kernel, p, first);
        !s)
      return s;
  }
  return {};
}

/// By what conv2d.operand.h says:
Status multiply_words(const CudaLaunch&, const ConvProblem&, const ConvProduct&);     // conv2d.words.cu
Status multiply_directly(const CudaLaunch&, const ConvProblem&, const ConvProduct&);  // conv2d.direct.cu
Status multiply_16(const CudaLaunch&, const GpuConv&, DType);                         // conv2d.mma.cu
Status multiply_depthwise(const CudaLaunch&, const ConvProblem&,
                          const ConvProduct&);                                    // conv2d.depthwise.cu
Status multiply_wide(const CudaLaunch&, const ConvProblem&, const ConvProduct&);  // conv2d.simt_wide.cu
Status multiply_32(const CudaLaunch&, const GpuConv&);                            // conv2d.cu
Status launch_hopper(const CudaLaunch&, const ConvProblem&);                      // conv2d.hopper.cu
Status pack_channels(const CudaLaunch&, const ConvProblem&);                      // conv2d.channels.cu

}  // namespace rooftile::conv_gpu
