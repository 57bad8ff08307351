#pragma once
// x·Wᵀ for few rows of x, whose limit is reading W. Most of a block's warps dequantise a slab of K
// into shared memory while a few others multiply the slab before, W as the left operand; the packed weights
// of further slabs are on their way into registers. So the one chain per element costs no more than its
// instructions' latency.
#include "rooftile/backend/cuda/ptx.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/gemm/gemm.codes.gpu.h"
#include "rooftile/ops/gemm/gemm.mma_loop.h"

namespace rooftile::codes_gpu {

/// kGroups times 16 rows of W, a consumer warp for each; up to kM rows of x; kSlab of K at a time, weights of
/// kAhead slabs in registers. With a third stage x's copies have the time of two slabs.
template <int kGroups_, int kM_, int kSlab_, int kStages_, int kAhead_>
struct FewShape {
  static constexpr int kGroups = kGroups_, kM = kM_, kSlab = kSlab_, kStages = kStages_, kAhead = kAhead_;
  static constexpr int kN = 16 * kGroups, kRun = kCodesRun, kAcross = kSlab / kRun;
  static constexpr int kProducers = kN * kAcross, kThreads = kProducers + 32 * kGroups;
  static constexpr int kRow = kSlab * 2, kWords = kRow / 16;  // of a row of a slab: bytes, 16-byte vectors
  static constexpr int kX = kN * kRow, kStage = kX + kM * kRow, kShared = kStages * kStage;  // bytes
  static constexpr int kPitch = 20;  // floats; of y's part
  static_assert(kGroups * kM * kPitch * 4 <= kShared && kShared <= 98304);

  /// Vector `word` of a row. The 8 rows that ldmatrix reads at once are in all banks, and so are the same
  /// vector of 8 runs, which producers write at once.
  ROOFTILE_TILE static int place(int row, int word) {
    return row * kRow + ((word & ~7) | ((word ^ row ^ word / 8 % 2 * 2 ^ word / 16 % 2) & 7)) * 16;
  }
  /// Producers and consumers meet here; they are in different places of the code.
  ROOFTILE_TILE static void meet() { rooftile::cuda::named_barrier_sync(1, kThreads); }
};

/// A thread that dequantises a run of each slab.
template <class T, class V, class Shape>
class Producer {
  using W = typename V::Weight;
  using Scale = typename V::Scale;

 public:
  ROOFTILE_TILE Producer(const W& w, const V& values, std::int64_t first)
      : w_(w),
        values_(values),
        row_(static_cast<int>(threadIdx.x) / Shape::kAcross),
        run_(static_cast<int>(threadIdx.x) % Shape::kAcross),
        line_(w.line(first + row_)),
        k_(run_ * Shape::kRun),
        end_(first + row_ < w.n ? w.k : 0) {
    ROOFTILE_UNROLL for (int h = 0; h < Shape::kAhead; ++h) fetch(h);
  }
  /// The next slab's weights.
  ROOFTILE_TILE void fill(std::byte* stage) {
    const unsigned words[4] = {held_[0].x, held_[0].y, held_[0].z, held_[0].w};
    const Scale scale = scales_[0];
    ROOFTILE_UNROLL for (int h = 1; h < Shape::kAhead; ++h) {
      held_[h - 1] = held_[h];
      scales_[h - 1] = scales_[h];
    }
    fetch(Shape::kAhead - 1);
    ROOFTILE_UNROLL for (int i = 0; i < 4; ++i) {
      *reinterpret_cast<uint4*>(stage + Shape::place(row_, run_ * 4 + i)) =
          narrowed<T>(values_.template many<8>(w_, words[i], scale)).word(0);
    }
  }

 private:
  /// Zeros past W's ends.
  ROOFTILE_TILE void fetch(int to) {
    held_[to] = k_ < end_ ? run_at(w_, line_, k_) : uint4{0, 0, 0, 0};
    scales_[to] = k_ < end_ ? values_.scale(w_, line_, k_) : Scale{};
    k_ += Shape::kSlab;
  }

  const W& w_;
  const V& values_;
  int row_, run_;
  typename W::Line line_;
  std::int64_t k_, end_;
  uint4 held_[Shape::kAhead];
  Scale scales_[Shape::kAhead];
};

/// x's part of a slab, and the end of a group of copies, also where no slab is left.
template <class Shape>
ROOFTILE_TILE void copy_x(const GpuProduct& p, std::byte* stages, int slab) {
  std::byte* const to = stages + slab % Shape::kStages * Shape::kStage + Shape::kX;
  const std::int64_t k = std::int64_t{slab} * Shape::kSlab;
  const int words = static_cast<int>(p.m) * Shape::kWords;
  ROOFTILE_UNROLL_BY(1) for (int e = static_cast<int>(threadIdx.x); e < words; e += Shape::kProducers) {
    const int row = e / Shape::kWords, word = e % Shape::kWords;
    if (k + word * 8 < p.k)
      rooftile::cuda::cp_async_16(to + Shape::place(row, word),
                                  p.a.data + (row * p.a.mn_stride + k + word * 8) * 2);
  }
  rooftile::cuda::cp_async_commit();
}

template <class T, class V, class Shape>
__global__ void __launch_bounds__(Shape::kThreads, 2)
    gemm_codes_few(const __grid_constant__ GpuProduct p, const __grid_constant__ typename V::Weight w) {
  constexpr int kPairs = Shape::kM / 16;
  ROOFTILE_DYNAMIC_SHARED(stages);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, m = static_cast<int>(p.m);
  const std::int64_t first = std::int64_t{blockIdx.x} * Shape::kN;
  const int slabs = static_cast<int>((p.k + Shape::kSlab - 1) / Shape::kSlab);
  const V values(w);

  if (thread < Shape::kProducers) {
    constexpr int kEarly = Shape::kStages - 2;  // slabs by which x comes before the weights
    Producer<T, V, Shape> weights(w, values, first);
    ROOFTILE_UNROLL for (int s = 0; s < kEarly; ++s) copy_x<Shape>(p, stages, s);
    // Slab s is multiplied while s + 1 is filled; its stage's last slab has been multiplied.
    ROOFTILE_UNROLL_BY(1) for (int s = -1; s < slabs; ++s) {
      if (s + 1 < slabs) {
        copy_x<Shape>(p, stages, s + 1 + kEarly);
        weights.fill(stages + (s + 1) % Shape::kStages * Shape::kStage);
        rooftile::cuda::cp_async_wait<kEarly>();
      }
      Shape::meet();
    }
    rooftile::cuda::cp_async_wait<0>();
    return;
  }

  // Rows of x past the last are that one again: their columns are not stored.
  const int group = (thread - Shape::kProducers) / 32;
  const int left_row = group * 16 + lane % 16, left_word = lane / 16;
  const int right = lane % 8 + lane / 16 * 8, right_word = lane / 8 % 2;
  float sums[2 * kPairs][4] = {};
  Shape::meet();
  ROOFTILE_UNROLL_BY(1) for (int s = 0; s < slabs; ++s) {
    const std::byte* const stage = stages + s % Shape::kStages * Shape::kStage;
    const std::int64_t rest = p.k - std::int64_t{s} * Shape::kSlab;
    const int steps = static_cast<int>((rest < Shape::kSlab ? rest : Shape::kSlab) / 16);
    ROOFTILE_UNROLL_BY(4) for (int step = 0; step < steps; ++step) {
      unsigned left[4];
      rooftile::cuda::load_matrix(left, stage + Shape::place(left_row, 2 * step + left_word));
      ROOFTILE_UNROLL for (int i = 0; i < kPairs; ++i) {
        if (i * 16 >= m) break;
        const int row = i * 16 + right < m ? i * 16 + right : m - 1;
        unsigned pairs[4];
        rooftile::cuda::load_matrix(pairs, stage + Shape::kX + Shape::place(row, 2 * step + right_word));
        const unsigned low[2] = {pairs[0], pairs[1]}, high[2] = {pairs[2], pairs[3]};
        gemm_gpu::multiply_add<T>(sums[2 * i], left, low);
        if (i * 16 + 8 < m) gemm_gpu::multiply_add<T>(sums[2 * i + 1], left, high);
      }
    }
    Shape::meet();
  }

  // Through shared memory: from fragments, whose rows are y's columns, to four neighbours in y.
  float* const part = reinterpret_cast<float*>(stages) + group * Shape::kM * Shape::kPitch;
  ROOFTILE_UNROLL for (int i = 0; i < 8 * kPairs; ++i) {
    const int row = i / 4 * 8 + lane % 4 * 2 + i % 2, column = lane / 4 + i / 2 % 2 * 8;
    part[row * Shape::kPitch + column] = sums[i / 4][i % 4];
  }
  __syncwarp();
  ROOFTILE_UNROLL_BY(1) for (int e = lane; e < m * 4; e += 32) {
    const int row = e / 4, column = e % 4 * 4;
    const std::int64_t at = first + group * 16 + column, rest = p.n - at;
    const float4 four = *reinterpret_cast<const float4*>(part + row * Shape::kPitch + column);
    if (rest > 0)
      finish(p.epilogue, 0, 0, row, at, rest < 4 ? static_cast<int>(rest) : 4,
             gemm_gpu::Four{{four.x, four.y, four.z, four.w}});
  }
}

/// All of x comes from L2 once per block: more rows of W each where x has more.
using Fewest = FewShape<2, 16, 512, 2, 2>;
using Few = FewShape<4, kMaxFewRows, 128, 3, 4>;

template <class T, class V, class Shape>
Status launch_shape(const CudaLaunch& launch, const GemmCodes<typename V::Weight>& problem) {
  const GpuProduct p = product_of(problem, 2);
  const auto blocks = static_cast<unsigned>((p.n + Shape::kN - 1) / Shape::kN);
  return rooftile::cuda::launch(launch, V::Weight::kFunction, {blocks, Shape::kThreads, Shape::kShared},
                                gemm_codes_few<T, V, Shape>, p, weight_of(problem));
}
template <class V>
Status launch_few(const CudaLaunch& launch, const GemmCodes<typename V::Weight>& p) {
  if (p.product.empty()) return {};
  return with_type<bf16, f16>(p.product.type, [&]<class T>() {
    return p.product.m <= Fewest::kM ? launch_shape<T, V, Fewest>(launch, p)
                                     : launch_shape<T, V, Few>(launch, p);
  });
}

}  // namespace rooftile::codes_gpu
