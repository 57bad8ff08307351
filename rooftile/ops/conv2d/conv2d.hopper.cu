// Tensor cores of Hopper, pictures whose channels are 16-byte vectors.
#include "rooftile/ops/conv2d/conv2d.hopper.h"

#include <algorithm>
#include <utility>

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

struct Trial {
  bool turned = false;
  int width = 0;
  bool bypass = false, fence = false, plain = false, late = false;
};

template <class Tile>
Status launch_tile(const CudaLaunch& launch, const ConvProblem& problem, const Trial& trial) {
  const ConvProduct& product = problem.products[0];
  const Windows &filters = product.left, &picture = product.right;
  GpuConv p = gpu_conv(problem, product, Tile::kWindows, Tile::kFilters, true);
  p.out = in_line(p.out);
  const HopperRun run{static_cast<int>(p.tiles),
                      static_cast<int>(p.tiles_n),
                      static_cast<int>((p.k + Tile::kK - 1) / Tile::kK),
                      !trial.plain && takes_engine(p, picture.images) ? HopperStore::engine
                      : four_rows(p.out, picture.images)              ? HopperStore::windows
                                                                      : HopperStore::filters,
                      problem.pack_count > 0 && !trial.late,
                      trial.bypass,
                      trial.fence};
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

/// The least work on the busiest multiprocessor; a narrow tile costs as 16 columns more.
Trial plan_of(std::int64_t windows, std::int64_t filters, int multiprocessors) {
  Trial best;
  std::int64_t least = INT64_MAX;
  for (const auto& [turned, width] :
       {std::pair{false, 256}, {false, 128}, {true, 256}, {true, 192}, {true, 128}}) {
    const int high = turned ? width : 128, wide = turned ? 64 : width;
    const std::int64_t tiles = (windows + high - 1) / high * ((filters + wide - 1) / wide);
    const std::int64_t cost =
        (tiles + multiprocessors - 1) / multiprocessors * (turned ? 64 : 128) * (width + (turned ? 32 : 16));
    if (cost < least) least = cost, best.turned = turned, best.width = width;
  }
  return best;
}

template <class T>
Status launch_as(const CudaLaunch& launch, const ConvProblem& problem, const Trial& t) {
  if (t.turned)
    return t.width == 256   ? launch_tile<HopperTile<T, true, 256, 4>>(launch, problem, t)
           : t.width == 192 ? launch_tile<HopperTile<T, true, 192, 4>>(launch, problem, t)
                            : launch_tile<HopperTile<T, true, 128, 5>>(launch, problem, t);
  return t.width == 256   ? launch_tile<HopperTile<T, false, 256, 3>>(launch, problem, t)
         : t.width == 128 ? launch_tile<HopperTile<T, false, 128, 4>>(launch, problem, t)
                          : launch_tile<HopperTile<T, false, 64, 5>>(launch, problem, t);
}

Status launch_trial(const CudaLaunch& launch, const ConvProblem& problem, Trial t) {
  const ConvProduct& product = problem.products[0];
  if (product.empty()) return {};
  if (Status s = pack_channels(launch, problem); !s) return s;
  if (t.width == 0) {
    const Trial plan = plan_of(product.n(), product.m(), launch.multiprocessors);
    t.turned = plan.turned, t.width = plan.width;
  }
  return with_type<bf16, f16>(problem.dtype, [&]<class T>() { return launch_as<T>(launch, problem, t); });
}

}  // namespace

Status launch_hopper(const CudaLaunch& launch, const ConvProblem& problem) {
  return launch_trial(launch, problem, {});
}
Status launch_u64(const CudaLaunch& l, const ConvProblem& p) { return launch_trial(l, p, {false, 64}); }
Status launch_u128(const CudaLaunch& l, const ConvProblem& p) { return launch_trial(l, p, {false, 128}); }
Status launch_u256(const CudaLaunch& l, const ConvProblem& p) { return launch_trial(l, p, {false, 256}); }
Status launch_t128(const CudaLaunch& l, const ConvProblem& p) { return launch_trial(l, p, {true, 128}); }
Status launch_t192(const CudaLaunch& l, const ConvProblem& p) { return launch_trial(l, p, {true, 192}); }
Status launch_t256(const CudaLaunch& l, const ConvProblem& p) { return launch_trial(l, p, {true, 256}); }
Status launch_bypass(const CudaLaunch& l, const ConvProblem& p) {
  return launch_trial(l, p, {.bypass = true});
}
Status launch_fence(const CudaLaunch& l, const ConvProblem& p) { return launch_trial(l, p, {.fence = true}); }
Status launch_both(const CudaLaunch& l, const ConvProblem& p) {
  return launch_trial(l, p, {.bypass = true, .fence = true});
}
Status launch_plain(const CudaLaunch& l, const ConvProblem& p) { return launch_trial(l, p, {.plain = true}); }
Status launch_late(const CudaLaunch& l, const ConvProblem& p) { return launch_trial(l, p, {.late = true}); }

}  // namespace rooftile::conv_gpu
