#pragma once
// x·Wᵀ for few rows of x, whose limit is reading W. Packed weights and x come by cp.async, several slabs of K
// ahead. A warp has 16 rows of W as the left operand: each lane dequantises just those weights that its
// fragments take, in registers. So the one chain per element costs little more than its instructions'
// latency.
#include "rooftile/backend/cuda/ptx.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/gemm/gemm.codes.gpu.h"
#include "rooftile/ops/gemm/gemm.mma_loop.h"

namespace rooftile::codes_gpu {

/// Up to kM rows of x; kSlab of K at a time, of kStages slabs all but one in flight.
template <class V, int kM_, int kSlab_, int kStages_>
struct FewShape {
  using Factor = typename V::Factor;
  static constexpr int kM = kM_, kSlab = kSlab_, kStages = kStages_, kMaxWarps = 4, kRows = 16;
  static constexpr int kRuns = kSlab / kCodesRun, kWords = kSlab / 8;  // of a row of W; of x
  // Rows of a slab in bytes. The 16 more put the 8 rows that are read at once into all banks.
  static constexpr int kRowX = kSlab * 2 + 16, kRowW = kSlab / 2 + 16;
  static constexpr int kStageX = kM * kRowX, kStageW = kRows * kRowW;  // of the block; of a warp
  // Factors are loaded a chunk of K ahead: no slab of fewer rows takes as long as memory's latency.
  static constexpr int kChunkRuns = 1 << kSharedRunsLog, kChunk = kChunkRuns * kCodesRun,
                       kFactorRow = kChunkRuns + 1;
  static constexpr int kFactors = kRows * kFactorRow;
  static constexpr int kX = kStages * kStageX,
                       kOfWarp = kStages * kStageW + 2 * kFactors * int(sizeof(Factor));
  static constexpr int kPitch = 20;  // floats; of y's part
  static_assert(kM * kPitch * 4 <= kOfWarp && kX + kMaxWarps * kOfWarp <= 98304 && kChunk % kSlab == 0);
};

/// What turns a warp's codes into weights, two chunks of K in shared memory and the next one in registers.
/// Once for all runs of a chunk that share it.
template <class V, class Shape>
class FactorRing {
  using W = typename V::Weight;
  using Factor = typename V::Factor;
  static constexpr int kEach = Shape::kRows * Shape::kChunkRuns / kWarp;  // of a lane, at most

 public:
  ROOFTILE_TILE FactorRing(const W& w, const V& values, Factor* ring, std::int64_t first, int last)
      : w_(w),
        values_(values),
        ring_(ring),
        first_(first),
        last_(last),
        shared_(w.shared_log()),
        in_row_log_(kSharedRunsLog - shared_),
        lane_(static_cast<int>(threadIdx.x) % kWarp) {
    ROOFTILE_UNROLL_BY(1) for (int chunk = 0; chunk < 2; ++chunk) {
      if (chunk > 0) store(0);
      fetch(chunk);
    }
  }
  /// Makes `chunk`, which was asked for last, ready; asks for the next.
  ROOFTILE_TILE void put(int chunk) {
    store(chunk);
    fetch(chunk + 1);
  }
  ROOFTILE_TILE const Factor* row(int chunk, int its) const {
    return ring_ + chunk % 2 * Shape::kFactors + its * Shape::kFactorRow;
  }
  /// Which one in its row a chunk's run takes.
  ROOFTILE_TILE int of(int run) const { return run >> shared_; }

 private:
  ROOFTILE_TILE int row_of(int i) const { return (i * kWarp + lane_) >> in_row_log_; }
  ROOFTILE_TILE int column() const { return lane_ & ((1 << in_row_log_) - 1); }
  ROOFTILE_TILE bool lives(int i) const { return row_of(i) < Shape::kRows; }
  ROOFTILE_TILE void store(int chunk) {
    Factor* const to = ring_ + chunk % 2 * Shape::kFactors + column();
    ROOFTILE_UNROLL for (int i = 0; i < kEach; ++i) {
      if (lives(i)) to[row_of(i) * Shape::kFactorRow] = values_.factor(w_, held_[i]);
    }
  }
  ROOFTILE_TILE void fetch(int chunk) {
    const std::int64_t k = std::int64_t{chunk} * Shape::kChunk + (column() << shared_) * kCodesRun;
    if (k >= w_.k) return;
    const std::int64_t group = w_.group_of(k);
    ROOFTILE_UNROLL for (int i = 0; i < kEach; ++i) {
      if (!lives(i)) break;
      const int its = row_of(i);
      held_[i] = values_.scale(w_, w_.line(first_ + (its < last_ ? its : last_)), group);
    }
  }

  const W& w_;
  const V& values_;
  Factor* ring_;
  std::int64_t first_;
  int last_, shared_, in_row_log_, lane_;
  typename V::Scale held_[kEach] = {};
};

/// A slab of x for the block and of W for the warp, and the end of a group of copies, also where none is
/// left. `codes`: the warp's first row of W, `pitch` bytes from the next; `last`: that of its rows which is
/// W's last and stands for those past it, whose sums are not stored.
template <class Shape>
ROOFTILE_TILE void copy_slab(const GpuProduct& p, const std::uint8_t* codes, std::int64_t pitch, int last,
                             std::byte* x, std::byte* weights, int slab, int threads) {
  constexpr int kAtOnce = kWarp / Shape::kRuns;  // rows
  const int thread = static_cast<int>(threadIdx.x), stage = slab % Shape::kStages;
  const std::int64_t k = std::int64_t{slab} * Shape::kSlab;
  const int run = thread % Shape::kRuns, first = thread % kWarp / Shape::kRuns;
  if (k + run * kCodesRun < p.k) {
    std::byte* const to = weights + stage * Shape::kStageW + first * Shape::kRowW + run * 16;
    const std::uint8_t* const from = codes + k / 2 + run * 16;
    ROOFTILE_UNROLL for (int i = 0; i < Shape::kRows / kAtOnce; ++i) {
      const int row = first + i * kAtOnce;
      rooftile::cuda::cp_async_16(to + i * kAtOnce * Shape::kRowW, from + (row < last ? row : last) * pitch);
    }
  }
  const int words = static_cast<int>(p.m) * Shape::kWords;
  ROOFTILE_UNROLL_BY(1) for (int e = thread; e < words; e += threads) {
    const int row = e / Shape::kWords, word = e % Shape::kWords;
    if (k + word * 8 < p.k)
      rooftile::cuda::cp_async_16(x + stage * Shape::kStageX + row * Shape::kRowX + word * 16,
                                  p.a.data + (row * p.a.mn_stride + k + word * 8) * 2);
  }
  rooftile::cuda::cp_async_commit();
}

/// Of a row's run the 8 weights that a lane's fragments take: byte `pair` of each word, in order.
ROOFTILE_TILE unsigned weights_of_lane(const std::byte* run, int pair) {
  const uint4 words = *reinterpret_cast<const uint4*>(run);
  const unsigned which = static_cast<unsigned>(pair | (pair + 4) << 4);
  return __byte_perm(__byte_perm(words.x, words.y, which), __byte_perm(words.z, words.w, which), 0x5410);
}

template <class T, class V, class Shape>
__global__ void __launch_bounds__(Shape::kMaxWarps* kWarp, 2)
    gemm_codes_few(const __grid_constant__ GpuProduct p, const __grid_constant__ typename V::Weight w,
                   int warps) {
  using Factor = typename V::Factor;
  constexpr int kTiles = Shape::kM / 8;
  ROOFTILE_DYNAMIC_SHARED(memory);
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const int m = static_cast<int>(p.m), slabs = static_cast<int>((p.k + Shape::kSlab - 1) / Shape::kSlab);
  const std::int64_t first = (std::int64_t{blockIdx.x} * warps + warp) * Shape::kRows;
  std::byte* const weights = memory + Shape::kX + warp * Shape::kOfWarp;
  Factor* const factors = reinterpret_cast<Factor*>(weights + Shape::kStages * Shape::kStageW);
  const int last = static_cast<int>(p.n - first < Shape::kRows ? p.n - first : Shape::kRows) - 1;
  const std::uint8_t* const from = w.code(w.line(first), 0);
  const std::int64_t pitch = w.code(w.line(first + 1), 0) - from;
  const auto copy = [&](int slab) {
    if (slab < slabs)
      copy_slab<Shape>(p, from, pitch, last, memory, weights, slab, warps * kWarp);
    else
      rooftile::cuda::cp_async_commit();
  };

  ROOFTILE_UNROLL_BY(1) for (int s = 0; s < Shape::kStages - 1; ++s) copy(s);
  const V values(w);
  FactorRing<V, Shape> ring(w, values, factors, first, last);

  // A word of four matrices of x: of one tile those of two steps, of two tiles those of one. Rows of x past
  // the last are that one again: their columns are not stored.
  const int row = lane / 4, word = kTiles == 1 ? lane / 8 : lane / 8 % 2;
  int places[(kTiles + 1) / 2];
  ROOFTILE_UNROLL for (int i = 0; i < (kTiles + 1) / 2; ++i) {
    const int its = i * 16 + lane % 8 + (kTiles == 1 ? 0 : lane / 16 * 8);
    places[i] = (its < m ? its : m - 1) * Shape::kRowX + word * 16;
  }
  float sums[kTiles][4] = {};
  ROOFTILE_UNROLL_BY(1) for (int s = 0; s < slabs; ++s) {
    rooftile::cuda::cp_async_wait<Shape::kStages - 2>();
    __syncthreads();
    copy(s + Shape::kStages - 1);
    const int chunk = s * Shape::kSlab / Shape::kChunk;
    if (s * Shape::kSlab % Shape::kChunk == 0) ring.put(chunk + 1);

    const std::byte* const x = memory + s % Shape::kStages * Shape::kStageX;
    const std::byte* const codes = weights + s % Shape::kStages * Shape::kStageW + row * Shape::kRowW;
    const Factor* const its = ring.row(chunk, row);
    const int first_run = s * Shape::kRuns % Shape::kChunkRuns;
    const std::int64_t rest = (p.k - std::int64_t{s} * Shape::kSlab) / kCodesRun;
    const int runs = rest < Shape::kRuns ? static_cast<int>(rest) : Shape::kRuns;
    ROOFTILE_UNROLL_BY(4) for (int r = 0; r < runs; ++r) {
      unsigned left[2][4];
      ROOFTILE_UNROLL for (int half = 0; half < 2; ++half) {
        const unsigned eight = weights_of_lane(codes + half * 8 * Shape::kRowW + r * 16, lane % 4);
        const uint4 pairs =
            narrowed<T>(
                values.template many<8>(w, eight, its[half * 8 * Shape::kFactorRow + ring.of(first_run + r)]))
                .word(0);
        left[0][half] = pairs.x, left[0][2 + half] = pairs.y;
        left[1][half] = pairs.z, left[1][2 + half] = pairs.w;
      }
      ROOFTILE_UNROLL for (int step = 0; step < 2; ++step) {
        ROOFTILE_UNROLL for (int i = 0; i < (kTiles + 1) / 2; ++i) {
          if (kTiles == 1 && step == 1) break;
          unsigned right[4];
          rooftile::cuda::load_matrix(right, x + places[i] + r * 64 + step * 32);
          const unsigned low[2] = {right[0], right[1]}, high[2] = {right[2], right[3]};
          gemm_gpu::multiply_add<T>(sums[2 * i], left[step], low);
          if constexpr (kTiles == 1)
            gemm_gpu::multiply_add<T>(sums[0], left[1], high);
          else
            gemm_gpu::multiply_add<T>(sums[2 * i + 1], left[step], high);
        }
      }
    }
  }
  rooftile::cuda::cp_async_wait<0>();
  __syncwarp();

  // Through the warp's shared memory: from fragments, whose rows are y's columns, to four neighbours in y.
  float* const part = reinterpret_cast<float*>(weights);
  ROOFTILE_UNROLL for (int i = 0; i < 4 * kTiles; ++i) {
    const int its = i / 4 * 8 + lane % 4 * 2 + i % 2, column = lane / 4 + i / 2 % 2 * 8;
    part[its * Shape::kPitch + column] = sums[i / 4][i % 4];
  }
  __syncwarp();
  ROOFTILE_UNROLL_BY(1) for (int e = lane; e < m * 4; e += kWarp) {
    const int its = e / 4, column = e % 4 * 4;
    const std::int64_t at = first + column, rest = p.n - at;
    const float4 four = *reinterpret_cast<const float4*>(part + its * Shape::kPitch + column);
    if (rest > 0)
      finish(p.epilogue, 0, 0, its, at, rest < 4 ? static_cast<int>(rest) : 4,
             gemm_gpu::Four{{four.x, four.y, four.z, four.w}});
  }
}

template <class T, class V, class Shape>
Status launch_shape(const CudaLaunch& launch, const GemmCodes<typename V::Weight>& problem) {
  const GpuProduct p = product_of(problem, 2);
  // Blocks share x, which comes from L2: as many rows of W each as leave no multiprocessor without one.
  const auto blocks_of = [&](int warps) { return (p.n + 16 * warps - 1) / (16 * warps); };
  int warps = Shape::kMaxWarps;
  while (warps > 1 && blocks_of(warps / 2) <= launch.multiprocessors) warps /= 2;
  return rooftile::cuda::launch(
      launch, V::Weight::kFunction,
      {static_cast<unsigned>(blocks_of(warps)), static_cast<unsigned>(warps * kWarp),
       static_cast<std::size_t>(Shape::kX + warps * Shape::kOfWarp)},
      gemm_codes_few<T, V, Shape>, p, weight_of(problem), warps);
}
template <class V>
Status launch_few(const CudaLaunch& launch, const GemmCodes<typename V::Weight>& p) {
  if (p.product.empty()) return {};
  const std::int64_t m = p.product.m;
  return with_type<bf16, f16>(p.product.type, [&]<class T>() {
    return m <= 8    ? launch_shape<T, V, FewShape<V, 8, 512, 3>>(launch, p)
           : m <= 16 ? launch_shape<T, V, FewShape<V, 16, 256, 4>>(launch, p)
           : m <= 32 ? launch_shape<T, V, FewShape<V, 32, 256, 3>>(launch, p)
                     : launch_shape<T, V, FewShape<V, kMaxFewRows, 128, 3>>(launch, p);
  });
}

}  // namespace rooftile::codes_gpu
