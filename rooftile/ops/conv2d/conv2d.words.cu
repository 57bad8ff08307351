// f16 and bf16 on tensor cores where eight neighbours of a picture are one aligned word of 16 bytes: pictures
// whose channels lie next to each other (NHWC), and rows of pixels under a filter of one tap. Words go by
// cp.async from the picture into the ring of gemm's main loop; a word outside the picture is zeros.
#include "rooftile/ops/conv2d/conv2d.gpu.h"
#include "rooftile/ops/gemm/gemm.mma_loop.h"

namespace rooftile::conv_gpu {
namespace {

using gemm_gpu::Order;
using Shape = gemm_gpu::MmaShape<128, 64, 64, 32, 4, 3>;
using WordTables = Tables<Shape::kM, Shape::kN, Shape::kRow / 2, Shape::kStages>;

/// One picture's part of a stage. A thread copies words of one place along the words, so that it looks up a
/// word's step once (neighbours along K) or its own place once (along rows or columns).
template <class T, Order kOrder, int kExtent>
class PictureTile : public gemm_gpu::StageLayout<T, kOrder, kExtent, Shape::kRow> {
  using Layout = gemm_gpu::StageLayout<T, kOrder, kExtent, Shape::kRow>;
  static constexpr int kAcross = kOrder == Order::k_first ? Layout::kRowWords : Layout::kWide / 16;
  static constexpr int kStep = Shape::kThreads / kAcross,
                       kWords = kExtent * Shape::kRow / 16 / Shape::kThreads;

 public:
  ROOFTILE_TILE PictureTile(const Windows& picture, std::int64_t group, const Place* own)
      : picture_(picture),
        data_(static_cast<const std::uint16_t*>(picture.data) + group * picture.group),
        own_(own) {}

  ROOFTILE_TILE void copy(std::byte* to, const Place* steps) const {
    const int t = static_cast<int>(threadIdx.x), word = t % kAcross, row = t / kAcross;
    const Place along = kOrder == Order::k_first ? steps[word * 8] : own_[word * 8];
    ROOFTILE_UNROLL for (int i = 0; i < kWords; ++i) {
      const int r = row + i * kStep;
      if constexpr (kOrder == Order::k_first)
        put(to + Layout::place_k(r, word), own_[r], along);
      else
        put(to + Layout::place_mn(r, word), along, steps[r]);
    }
  }

 private:
  ROOFTILE_TILE void put(std::byte* to, const Place& own, const Place& step) const {
    if (own.y == kOnes) {  // a row of ones, or a word of which only the first column is
      constexpr unsigned kOne = std::is_same_v<T, bf16> ? 0x3f80 : 0x3c00;
      constexpr unsigned kNext = kOrder == Order::k_first ? kOne << 16 | kOne : 0;
      const uint4 ones{kOrder == Order::k_first ? kNext : kOne, kNext, kNext, kNext};
      *reinterpret_cast<uint4*>(to) = ones;
      return;
    }
    std::int64_t offset = 0;
    const bool is_inside = inside(picture_, own, step, offset);
    rooftile::cuda::cp_async_16(to, data_ + offset, is_inside ? 16 : 0);
  }

  const Windows& picture_;
  const std::uint16_t* data_;
  const Place* own_;
};

template <class T, Order kOrderA, Order kOrderB>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    conv_words(const __grid_constant__ GpuConv p, std::int64_t first_tile) {
  constexpr int kDepth = WordTables::kDepth, kStages = Shape::kStages;
  ROOFTILE_DYNAMIC_SHARED(ring);
  ROOFTILE_SHARED(tables, WordTables);
  const GpuTile tile = tile_at(p, first_tile + blockIdx.x);
  const int stages = static_cast<int>((tile.last - tile.first + kDepth - 1) / kDepth);
  const PictureTile<T, kOrderA, Shape::kM> a(p.rows, tile.group, tables.own);
  const PictureTile<T, kOrderB, Shape::kN> b(p.columns, tile.group, tables.own + Shape::kM);
  fill_own(tables, p, tile);
  ROOFTILE_UNROLL_BY(1) for (int s = 0; s < kStages; ++s) fill_steps(tables, p, tile, s);
  __syncthreads();

  int copied = 0;  // stages
  const auto copy = [&](int slot) {
    if (copied < stages) {
      const auto& steps = tables.steps[copied % kStages];
      a.copy(ring + slot * Shape::kStage, steps[0]);
      b.copy(ring + slot * Shape::kStage + Shape::kM * Shape::kRow, steps[1]);
    }
    rooftile::cuda::cp_async_commit();
    // The steps before the last ones have been read by all, since the loop's barrier.
    if (++copied >= kStages && copied < stages) fill_steps(tables, p, tile, copied);
  };
  float sums[Shape::kWarpM / 16][Shape::kWarpN / 8][4] = {};
  gemm_gpu::multiply_stages<T, Shape>(sums, ring, a, b, stages, gemm_gpu::AllRows{}, copy);
  gemm_gpu::finish_fragments<Shape>(sums, ring, gemm_gpu::AllRows{}, [&](int row, int column, Four four) {
    const std::int64_t i = tile.row + row, j = tile.column + column, rest = p.n - j;
    if (i < p.m && rest > 0) finish(p, tile, i, j, rest < 4 ? static_cast<int>(rest) : 4, four);
  });
}

Order order_of(const Windows& v, bool along_windows) {
  return k_first(v, along_windows) ? Order::k_first : Order::mn_first;
}

template <class T>
Status launch_words(const CudaLaunch& launch, const GpuConv& g, Order a, Order b) {
  constexpr Order k = Order::k_first, mn = Order::mn_first;
  auto* const kernel = a == k ? (b == k ? conv_words<T, k, k> : conv_words<T, k, mn>)
                              : (b == k ? conv_words<T, mn, k> : conv_words<T, mn, mn>);
  return launch_blocks(launch, g, g.tiles, kernel, Shape::kThreads, Shape::kShared);
}

}  // namespace

Status multiply_words(const CudaLaunch& launch, const ConvProblem& problem, const ConvProduct& p) {
  const GpuConv g = gpu_conv(problem, p, Shape::kM, Shape::kN);
  const Order a = order_of(g.rows, p.along_windows), b = order_of(g.columns, p.along_windows);
  return with_type<bf16, f16>(problem.dtype, [&]<class T>() { return launch_words<T>(launch, g, a, b); });
}

}  // namespace rooftile::conv_gpu
