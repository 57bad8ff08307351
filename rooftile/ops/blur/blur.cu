#include <algorithm>

#include "rooftile/backend/cuda/launch.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/core/op.h"
#include "rooftile/ops/blur/blur.problem.h"
#include "rooftile/ops/blur/ladder/ladder.h"

namespace rooftile {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
/// Elements of y's rows that a block computes, and the most that windows may reach past them.
constexpr int kTile = 1024, kMaxHalo = 4096;
constexpr std::int64_t kMaxBlocks = 1 << 30;

/// Parts of pictures: a block takes one after the other.
struct BlurParts {
  std::int64_t count, across, down, height;  // height: rows of a part
  int width;                                 // pixels across
  int channels;                              // that a block computes together: all, or one
};

struct BlurPart {
  const std::uint8_t* x;
  std::uint8_t* y;
  std::int64_t left, top, bottom;
  int width;
};
__device__ __forceinline__ BlurPart part_of(const Pictures& p, const BlurParts& parts, std::int64_t index) {
  const std::int64_t column = index / parts.down, plane = column / parts.across;
  const std::int64_t planes = p.channels / parts.channels, picture = plane / planes, channel = plane % planes;
  const std::int64_t left = column % parts.across * parts.width, top = index % parts.down * parts.height;
  const std::int64_t width = p.width - left, bottom = top + parts.height;
  return {p.x + p.start(1, picture) + channel,
          p.y + p.start(0, picture) + channel,
          left,
          top,
          bottom < p.height ? bottom : p.height,
          static_cast<int>(width < parts.width ? width : parts.width)};
}

/// Parts enough for the GPU, but no more: each begins with the sums of its first windows.
BlurParts parts_of(const CudaLaunch& launch, const Pictures& p, std::int64_t radius) {
  constexpr std::int64_t kLeastRows = 32, kBlocksEach = 4;
  BlurParts parts{};
  parts.channels = 2 * radius * p.channels <= kMaxHalo ? p.channels : 1;
  parts.width = kTile / parts.channels;
  parts.across = (p.width + parts.width - 1) / parts.width;
  const std::int64_t columns = p.count * (p.channels / parts.channels) * parts.across;
  const std::int64_t most = (p.height + kLeastRows - 1) / kLeastRows;
  const std::int64_t wanted = (kBlocksEach * launch.multiprocessors + columns - 1) / columns;
  parts.height = (p.height + std::min(most, wanted) - 1) / std::min(most, wanted);
  parts.down = (p.height + parts.height - 1) / parts.height;
  parts.count = columns * parts.down;
  return parts;
}

/// sums[0 … n) to prefix[0 … n]: of the first 0 … n. Ends with a barrier; so must what wrote the sums.
__device__ __forceinline__ void add_up(const std::uint32_t* sums, std::uint32_t* prefix, int n,
                                       std::uint32_t* warps) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int each = (n + kThreads - 1) / kThreads | 1;  // odd: 32 threads in 32 banks
  const int begin = thread * each < n ? thread * each : n, end = begin + each < n ? begin + each : n;
  std::uint32_t own = 0;
  for (int k = begin; k < end; ++k) own += sums[k];
  std::uint32_t sum = own;
  for (int by = 1; by < 32; by *= 2) {
    const std::uint32_t other = __shfl_up_sync(0xffffffff, sum, static_cast<unsigned>(by));
    if (lane >= by) sum += other;
  }
  if (lane == 31) warps[warp] = sum;
  __syncthreads();
  std::uint32_t before = sum - own;
  for (int w = 0; w < warp; ++w) before += warps[w];
  if (thread == 0) prefix[0] = 0;
  for (int k = begin; k < end; ++k) prefix[k + 1] = before += sums[k];
  __syncthreads();
}

/// A block has the sums of its columns, and of `radius` more on both sides, channel after channel; from a row
/// to the next a pixel enters each and one leaves. A window's sum is a difference of two prefix sums.
__global__ void __launch_bounds__(kThreads)
    box_running(const __grid_constant__ BoxProblem problem, const __grid_constant__ BlurParts parts) {
  ROOFTILE_DYNAMIC_SHARED(bytes);
  ROOFTILE_SHARED(warps, std::uint32_t[kWarps]);
  const Pictures& p = problem.pictures;
  const int thread = static_cast<int>(threadIdx.x), r = static_cast<int>(problem.radius);
  const int channels = parts.channels;
  for (std::int64_t index = blockIdx.x; index < parts.count; index += gridDim.x) {
    const BlurPart part = part_of(p, parts, index);
    const int columns = part.width + 2 * r, n = channels * columns, outputs = channels * part.width;
    auto* const sums = reinterpret_cast<std::uint32_t*>(bytes);
    std::uint32_t* const prefix = sums + n;
    // Element k of the tile's columns, as they lie in memory: where its sum is, and where its pixels are.
    const auto sum_at = [&](int k) { return k % channels * columns + k / channels; };
    const auto offset_of_column = [&](int k) {
      const std::int64_t at = border_pixel(p.border, p.width, part.left - r + k / channels);
      return at == kNoPixel ? kNoPixel : at * p.x_pixel;
    };
    const auto pixel = [&](std::int64_t row, std::int64_t offset, int k) -> std::uint32_t {
      return row == kNoPixel || offset == kNoPixel ? 0 : part.x[row * p.x_row + offset + k % channels];
    };
    const std::int64_t first = part.top - r, last = part.top + r;
    const bool inside = first >= 0 && last < p.height;
    for (int k = thread; k < n; k += kThreads) {
      const std::int64_t offset = offset_of_column(k);
      std::uint32_t sum = 0;
      for (std::int64_t row = first > 0 ? first : 0; row <= last && row < p.height; ++row) {
        const auto times =
            inside ? 1 : static_cast<std::uint32_t>(border_times(p.border, p.height, row, first, last));
        sum += times * pixel(row, offset, k);
      }
      sums[sum_at(k)] = sum;
    }
    for (std::int64_t row = part.top; row < part.bottom; ++row) {
      if (row > part.top) {
        const std::int64_t enters = border_pixel(p.border, p.height, row + r),
                           leaves = border_pixel(p.border, p.height, row - r - 1);
        for (int k = thread; k < n; k += kThreads) {
          const std::int64_t offset = offset_of_column(k);
          sums[sum_at(k)] += pixel(enters, offset, k) - pixel(leaves, offset, k);
        }
      }
      __syncthreads();
      add_up(sums, prefix, n, warps);
      for (int k = thread; k < outputs; k += kThreads) {
        const std::uint32_t* const at = prefix + sum_at(k);
        const std::uint32_t sum = at[2 * r + 1] - at[0];
        part.y[row * p.y_row + (part.left + k / channels) * p.y_pixel + k % channels] =
            static_cast<std::uint8_t>(__umulhi(sum + problem.division.add, problem.division.multiplier) >>
                                      problem.division.shift);
      }
    }
    __syncthreads();  // before the next part's sums take these ones' place
  }
}

Status launch_running(const CudaLaunch& launch, const BoxProblem& problem) {
  if (problem.pictures.count == 0) return {};
  const BlurParts parts = parts_of(launch, problem.pictures, problem.radius);
  const std::size_t n =
      static_cast<std::size_t>(parts.channels) * static_cast<std::size_t>(parts.width + 2 * problem.radius);
  return cuda::launch(launch, "box_blur",
                      {static_cast<unsigned>(std::min(parts.count, kMaxBlocks)), kThreads,
                       (2 * n + 1) * sizeof(std::uint32_t)},
                      box_running, problem, parts);
}

/// Rows one after the other: each column's pixels weighed, to shared memory; then along the row, to y.
__global__ void __launch_bounds__(kThreads)
    gaussian_separable(const __grid_constant__ GaussianProblem problem,
                       const __grid_constant__ BlurParts parts) {
  ROOFTILE_SHARED(middle, std::uint16_t[kTile + kMaxHalo]);
  const Pictures& p = problem.pictures;
  const GaussianWeights& w = problem.weights;
  const int thread = static_cast<int>(threadIdx.x), channels = parts.channels;
  for (std::int64_t index = blockIdx.x; index < parts.count; index += gridDim.x) {
    const BlurPart part = part_of(p, parts, index);
    const std::int64_t first = part.left > w.radius ? part.left - w.radius : 0;
    const std::int64_t reach = part.left + part.width + w.radius, end = reach < p.width ? reach : p.width;
    const int n = static_cast<int>(end - first) * channels, outputs = channels * part.width;
    for (std::int64_t row = part.top; row < part.bottom; ++row) {
      for (int k = thread; k < n; k += kThreads) {
        const std::uint8_t* const x = part.x + (first + k / channels) * p.x_pixel + k % channels;
        const auto pixel = [&](std::int64_t at) -> int {
          const std::int64_t from = border_pixel(p.border, p.height, at);
          return from == kNoPixel ? 0 : x[from * p.x_row];
        };
        int sum = w.at[0] * pixel(row) + (1 << (w.bits - kGaussianFraction - 1));
        for (int d = 1; d <= w.radius; ++d) sum += w.at[d] * (pixel(row - d) + pixel(row + d));
        middle[k] = static_cast<std::uint16_t>(sum >> (w.bits - kGaussianFraction));
      }
      __syncthreads();
      for (int k = thread; k < outputs; k += kThreads) {
        const std::int64_t column = part.left + k / channels;
        const auto pixel = [&](std::int64_t at) -> int {
          const std::int64_t from = border_pixel(p.border, p.width, at);
          return from == kNoPixel ? 0 : middle[static_cast<int>(from - first) * channels + k % channels];
        };
        int sum = w.at[0] * pixel(column) + (1 << (w.bits + kGaussianFraction - 1));
        for (int d = 1; d <= w.radius; ++d) sum += w.at[d] * (pixel(column - d) + pixel(column + d));
        part.y[row * p.y_row + column * p.y_pixel + k % channels] =
            static_cast<std::uint8_t>(sum >> (w.bits + kGaussianFraction));
      }
      __syncthreads();
    }
  }
}

Status launch_separable(const CudaLaunch& launch, const GaussianProblem& problem) {
  if (problem.pictures.count == 0) return {};
  const BlurParts parts = parts_of(launch, problem.pictures, problem.weights.radius);
  return cuda::launch(launch, "gaussian_blur",
                      {static_cast<unsigned>(std::min(parts.count, kMaxBlocks)), kThreads},
                      gaussian_separable, problem, parts);
}

}  // namespace

ROOFTILE_CUDA_KERNELS(blur) = {
    entry<launch_running>("box_blur", "running"),
    entry<ladder::launch_box_columns>("box_blur", "04_running_columns"),
    entry<ladder::launch_box_separable>("box_blur", "03_separable"),
    entry<ladder::launch_box_shared>("box_blur", "02_shared_halo"),
    entry<ladder::launch_box_naive>("box_blur", "01_naive"),
    entry<launch_separable>("gaussian_blur", "separable"),
    {},
};

}  // namespace rooftile
