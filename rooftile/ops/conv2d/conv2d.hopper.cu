// Tensor cores of Hopper, pictures whose channels are 16-byte vectors.
#include "rooftile/ops/conv2d/conv2d.hopper.h"

#include <algorithm>

#include "rooftile/backend/cuda/tensor_map.h"

namespace rooftile::conv_gpu {
namespace {

/// Digits of a row that are one.
ConvOutput in_line(ConvOutput o) {
  if (o.low == 1) o.stride[2] = o.stride[1], o.low = o.middle, o.middle = 1;
  if (o.middle == 1 || o.stride[1] == o.low * o.stride[2]) o.low *= o.middle, o.middle = 1;
  return o;
}
/// Whether the copy engine can store y, a matrix whose rows are windows; it stores words of 4 bytes (H200):
/// of an odd row the next element, too.
bool takes_engine(const GpuConv& p, std::int64_t images) {
  const ConvOutput& o = p.out;
  constexpr std::int64_t kMaxStride = std::int64_t{1} << 39;  // elements: 2^40 bytes
  return p.activation == 0 && o.i_stride == 1 && p.n % 2 == 0 && o.middle == 1 &&
         (images == 1 || o.stride[0] == o.low * o.stride[2]) && o.stride[2] >= p.n &&
         o.stride[2] < kMaxStride && in_words(o.stride[2]) &&
         reinterpret_cast<std::uintptr_t>(o.data) % 16 == 0;
}
bool four_rows(const ConvOutput& o, std::int64_t images) {
  return o.stride[2] == 1 && o.middle == 1 && o.low % 4 == 0 && o.i_stride % 4 == 0 &&
         (images == 1 || o.stride[0] % 4 == 0) && reinterpret_cast<std::uintptr_t>(o.data) % 8 == 0;
}

/// Which tiles a product takes; they change no bit.
struct HopperPlan {
  bool turned;
  int width;
};

/// The least work on the busiest multiprocessor. A narrow tile costs as 16 columns more, of 64 rows as 32
/// more: slices of it are read as often.
HopperPlan plan_of(std::int64_t windows, std::int64_t filters, int multiprocessors) {
  HopperPlan best{};
  std::int64_t least = INT64_MAX;
  for (const HopperPlan& plan :
       {HopperPlan{false, 256}, {false, 128}, {true, 256}, {true, 192}, {true, 128}}) {
    const int rows = plan.turned ? 64 : 128, high = plan.turned ? plan.width : rows,
              wide = plan.turned ? rows : plan.width;
    const std::int64_t tiles = (windows + high - 1) / high * ((filters + wide - 1) / wide);
    const std::int64_t waves = (tiles + multiprocessors - 1) / multiprocessors;
    const std::int64_t cost = waves * rows * (plan.width + (plan.turned ? 32 : 16));
    if (cost < least) least = cost, best = plan;
  }
  return best;
}

template <class Tile>
Status launch_tile(const CudaLaunch& launch, const ConvProblem& problem) {
  const ConvProduct& product = problem.products[0];
  const Windows &filters = product.left, &picture = product.right;
  GpuConv p = gpu_conv(problem, product, Tile::kWindows, Tile::kFilters, true);
  p.out = in_line(p.out);
  // By way of L1 where it holds a tap's pixels (H200, 3x3, NHWC: 64 channels 38.3 → 36.1 µs, 256 channels
  // past it 25.4 → 24.3).
  constexpr std::int64_t kCachedChannels = 128;
  const HopperRun run{static_cast<int>(p.tiles),
                      static_cast<int>(p.tiles_n),
                      static_cast<int>((p.k + Tile::kK - 1) / Tile::kK),
                      takes_engine(p, picture.images)    ? HopperStore::engine
                      : four_rows(p.out, picture.images) ? HopperStore::windows
                                                         : HopperStore::filters,
                      problem.pack_count > 0,
                      picture.channels <= kCachedChannels};
  constexpr auto kSwizzle = rooftile::cuda::Swizzle::k128;
  TensorMap of_filters{}, of_y{};
  Status s = rooftile::cuda::make_tensor_map(
      of_filters, "conv2d", filters.data, 2,
      {{p.k, 2, Tile::kK}, {p.n, filters.n == 0 ? 16 : filters.n * 2, Tile::kFilters}}, kSwizzle);
  if (s && run.store == HopperStore::engine)
    s = rooftile::cuda::make_tensor_map(of_y, "conv2d", p.out.data, 2,
                                        {{p.n, 2, 64}, {p.m, p.out.stride[2] * 2, Tile::kTurned ? 64 : 16}},
                                        kSwizzle);
  if (!s) return s;
  rooftile::cuda::Grid grid{static_cast<unsigned>(std::min<std::int64_t>(p.tiles, launch.multiprocessors)),
                            Tile::kThreads, sizeof(typename Tile::Shared)};
  grid.early = run.early;
  return rooftile::cuda::launch(launch, "conv2d", grid, conv_hopper<Tile>, of_filters, of_y,
                                vector_picture(picture, 8, Tile::kK / 8), p, run);
}

template <class T>
Status launch_plan(const CudaLaunch& launch, const ConvProblem& problem, const HopperPlan& plan) {
  if (plan.turned)
    return plan.width == 256   ? launch_tile<HopperTile<T, true, 256, 4>>(launch, problem)
           : plan.width == 192 ? launch_tile<HopperTile<T, true, 192, 4>>(launch, problem)
                               : launch_tile<HopperTile<T, true, 128, 5>>(launch, problem);
  return plan.width == 256 ? launch_tile<HopperTile<T, false, 256, 3>>(launch, problem)
                           : launch_tile<HopperTile<T, false, 128, 4>>(launch, problem);
}

}  // namespace

Status launch_hopper(const CudaLaunch& launch, const ConvProblem& problem) {
  const ConvProduct& product = problem.products[0];
  if (product.empty()) return {};
  if (Status s = pack_channels(launch, problem); !s) return s;
  const HopperPlan plan = plan_of(product.n(), product.m(), launch.multiprocessors);
  return with_type<bf16, f16>(problem.dtype,
                              [&]<class T>() { return launch_plan<T>(launch, problem, plan); });
}

}  // namespace rooftile::conv_gpu
