// Tensor cores of Hopper, pictures whose channels are 16-byte vectors.
#include "rooftile/ops/conv2d/conv2d.hopper.h"

#include <algorithm>

#include "rooftile/backend/cuda/tensor_map.h"

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

template <class T, int kN>
Status launch_width(const CudaLaunch& launch, const ConvProblem& problem, const ConvProduct& product) {
  using Tile = HopperTile<T, kN>;
  GpuConv p = gpu_conv(problem, product, Tile::kM, Tile::kN, true);
  p.out = in_line(p.out);
  const Windows &filters = product.left, &picture = product.right;
  const HopperRun run{static_cast<int>(p.tiles), static_cast<int>(p.tiles_n),
                      static_cast<int>((p.k + Tile::kK - 1) / Tile::kK),
                      takes_engine(p, picture.images)    ? HopperStore::engine
                      : four_rows(p.out, picture.images) ? HopperStore::rows
                                                         : HopperStore::columns,
                      problem.pack_count > 0};
  constexpr auto kSwizzle = rooftile::cuda::Swizzle::k128;
  TensorMap of_filters{}, of_y{};
  Status s = rooftile::cuda::make_tensor_map(
      of_filters, "conv2d", filters.data, 2,
      {{p.k, 2, Tile::kK}, {p.n, filters.n == 0 ? 16 : filters.n * 2, Tile::kN}}, kSwizzle);
  if (s && run.store == HopperStore::engine)
    s = rooftile::cuda::make_tensor_map(of_y, "conv2d", p.out.data, 2,
                                        {{p.n, 2, 64}, {p.m, p.out.stride[2] * 2, 16}}, kSwizzle);
  if (!s) return s;
  rooftile::cuda::Grid grid{static_cast<unsigned>(std::min<std::int64_t>(p.tiles, launch.multiprocessors)),
                            Tile::kThreads, sizeof(typename Tile::Shared)};
  grid.early = run.early;
  return rooftile::cuda::launch(launch, "conv2d", grid, conv_hopper<T, Tile>, of_filters, of_y,
                                picture_of(picture), p, run);
}

}  // namespace

Status launch_hopper(const CudaLaunch& launch, const ConvProblem& problem) {
  const ConvProduct& product = problem.products[0];
  if (product.empty()) return {};
  if (Status s = pack_channels(launch, problem); !s) return s;
  const int width = width_of(product.n(), product.m(), launch.multiprocessors);
  return with_type<bf16, f16>(problem.dtype, [&]<class T>() {
    return width == 256   ? launch_width<T, 256>(launch, problem, product)
           : width == 128 ? launch_width<T, 128>(launch, problem, product)
                          : launch_width<T, 64>(launch, problem, product);
  });
}

}  // namespace rooftile::conv_gpu
