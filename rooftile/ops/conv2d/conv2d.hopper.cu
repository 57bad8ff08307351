// Tensor cores of Hopper, pictures whose channels are 16-byte vectors.
#include "rooftile/ops/conv2d/conv2d.hopper.h"

#include "rooftile/backend/cuda/tensor_map.h"
#include "rooftile/ops/conv2d/conv2d.operand.h"

namespace rooftile::conv_gpu {
namespace {

/// The least work on the busiest multiprocessor, in columns; a narrow tile costs as 16 columns more.
int width_of(std::int64_t m, std::int64_t n, int multiprocessors) {
  int best = 64;
  std::int64_t least = INT64_MAX;
  for (const int width : {256, 128, 64}) {
    const std::int64_t tiles = (m + 127) / 128 * ((n + width - 1) / width);
    const std::int64_t cost = (tiles + multiprocessors - 1) / multiprocessors * (width + 16);
    if (cost < least) least = cost, best = width;
  }
  return best;
}

HopperPicture picture_of(const Windows& v) {
  const auto whole = [](std::int64_t size) { return static_cast<int>(size); };
  HopperPicture p{};
  p.data = static_cast<const uint4*>(v.data);
  p.n = whole(v.n / 8), p.h = whole(v.h / 8), p.w = whole(v.w / 8);
  p.height = whole(v.height), p.width = whole(v.width);
  p.rows = whole(v.rows), p.columns = whole(v.columns), p.windows = whole(v.windows());
  p.step_h = whole(v.step_h), p.step_w = whole(v.step_w);
  p.from_h = whole(v.from_h), p.from_w = whole(v.from_w);
  p.tap_h = whole(v.tap_h), p.tap_w = whole(v.tap_w);
  p.taps_h = whole(v.taps_h), p.taps_w = whole(v.taps_w), p.vectors = whole(v.channels / 8);
  const int taps = 8 / p.vectors;
  p.slice_c = 8 % p.vectors, p.slice_s = taps % p.taps_w, p.slice_r = taps / p.taps_w;
  return p;
}

template <class T, int kN>
Status launch_width(const CudaLaunch& launch, const ConvProblem& problem, const ConvProduct& product) {
  using Tile = HopperTile<T, kN>;
  const GpuConv p = gpu_conv(problem, product, Tile::kM, Tile::kN, true);
  const Windows& filters = product.left;
  TensorMap map{};
  if (Status s = rooftile::cuda::make_tensor_map(
          map, "conv2d", filters.data, 2,
          {{p.k, 2, Tile::kK}, {p.n, filters.n == 0 ? 16 : filters.n * 2, Tile::kN}},
          rooftile::cuda::Swizzle::k128);
      !s)
    return s;
  const gemm_gpu::HopperRun run{1, static_cast<int>((p.k + Tile::kK - 1) / Tile::kK), false};
  const auto blocks =
      static_cast<unsigned>(p.tiles < launch.multiprocessors ? p.tiles : launch.multiprocessors);
  return rooftile::cuda::launch(launch, "conv2d", {blocks, Tile::kThreads, sizeof(typename Tile::Shared)},
                                conv_hopper<T, Tile>, map, picture_of(product.right), p, run);
}

}  // namespace

Status launch_hopper(const CudaLaunch& launch, const ConvProblem& problem) {
  const ConvProduct& product = problem.products[0];
  if (product.empty()) return {};
  const int width = width_of(product.n(), product.m(), launch.multiprocessors);
  return with_type<bf16, f16>(problem.dtype, [&]<class T>() {
    return width == 256   ? launch_width<T, 256>(launch, problem, product)
           : width == 128 ? launch_width<T, 128>(launch, problem, product)
                          : launch_width<T, 64>(launch, problem, product);
  });
}

}  // namespace rooftile::conv_gpu
