// f8's codes on tensor cores for f16. While a stage is multiplied, the codes of a later one are on their way
// into registers; then they become halves and are put where ldmatrix reads them.
#include "rooftile/ops/gemm_scaled/gemm_scaled.mma.h"

namespace rooftile::scaled_gpu {

/// f8's codes, which become halves: 16 to a thread, or several such runs.
template <Order kOrder, int kExtent, class Shape>
class CodeTile<f16, kOrder, kExtent, Shape> : public StageLayout<f16, kOrder, kExtent, Shape::kRow> {
  using Layout = StageLayout<f16, kOrder, kExtent, Shape::kRow>;
  using Layout::kDepth, Layout::place_k, Layout::place_mn;
  static constexpr int kRun = 16, kRuns = kExtent * kDepth / kRun / Shape::kThreads;  // of a thread
  static_assert(kExtent * kDepth % (kRun * Shape::kThreads) == 0);

 public:
  using Layout::k_first;
  ROOFTILE_TILE CodeTile(const GpuOperand& o, const std::byte* matrix, std::int64_t first,
                         std::int64_t extent, const bool& large, const Stage<f16, Shape>& stage)
      : Layout(o.k_first),
        operand_(o),
        data_(reinterpret_cast<const std::uint8_t*>(matrix) + first * o.mn_stride),
        left_(extent - first < kExtent ? int(extent - first) : kExtent),
        large_(large) {
    data_ += row() * down() + column() * across();
    fetch(stage);
  }
  /// Puts a stage; asks for the next one.
  ROOFTILE_TILE void copy(std::byte* to, Stage<f16, Shape> stage) {
    ROOFTILE_UNROLL for (int r = 0; r < kRuns; ++r) {
      const unsigned words[4] = {held_[r].x, held_[r].y, held_[r].z, held_[r].w};
      ROOFTILE_UNROLL for (int w = 0; w < 2; ++w) {
        const uint4 halves{halves_of(words[2 * w], large_), halves_of(words[2 * w] >> 16, large_),
                           halves_of(words[2 * w + 1], large_), halves_of(words[2 * w + 1] >> 16, large_)};
        const int down = row() + r * step(), word = column() / 8 + w;
        *reinterpret_cast<uint4*>(to + (k_first() ? place_k(down, word) : place_mn(down, word))) = halves;
      }
    }
    stage.advance();
    fetch(stage);
  }

 private:
  /// A thread's first run; rows are of K, or of M or N. The others are `step` rows further down each.
  ROOFTILE_TILE int row() const { return static_cast<int>(threadIdx.x) / runs(); }
  ROOFTILE_TILE int column() const { return static_cast<int>(threadIdx.x) % runs() * kRun; }
  ROOFTILE_TILE int step() const { return Shape::kThreads / runs(); }
  ROOFTILE_TILE int runs() const { return (k_first() ? kDepth : kExtent) / kRun; }  // in a row
  ROOFTILE_TILE std::int64_t down() const { return k_first() ? operand_.mn_stride : operand_.k_stride; }
  ROOFTILE_TILE std::int64_t across() const { return k_first() ? operand_.k_stride : operand_.mn_stride; }

  /// Zeros past the ends.
  ROOFTILE_TILE void fetch(const Stage<f16, Shape>& stage) {
    const int depth = stage.left() < kDepth ? int(stage.left()) : kDepth;
    const int rows = k_first() ? left_ : depth, live = (k_first() ? depth : left_) - column();
    const std::uint8_t* from = data_ + stage.first() * (kOrder == Order::k_first ? 1 : operand_.k_stride);
    ROOFTILE_UNROLL for (int r = 0; r < kRuns; ++r) {
      const bool there = row() + r * step() < rows;
      held_[r] = uint4{0, 0, 0, 0};
      if (there && live >= kRun && (kOrder != Order::any || operand_.piece == kRun))
        held_[r] = *reinterpret_cast<const uint4*>(from);
      else if (kOrder == Order::any && there && live > 0)
        held_[r] = one_by_one(from, across(), live);
      from += step() * down();
    }
  }
  ROOFTILE_TILE static uint4 one_by_one(const std::uint8_t* from, std::int64_t stride, int live) {
    unsigned words[4] = {};
    ROOFTILE_UNROLL for (int i = 0; i < kRun; ++i) {
      if (i < live) words[i / 4] |= static_cast<unsigned>(from[i * stride]) << i % 4 * 8;
    }
    return uint4{words[0], words[1], words[2], words[3]};
  }

  const GpuOperand& operand_;
  const std::uint8_t* data_;
  int left_;
  const bool& large_;
  uint4 held_[kRuns];
};

/// Of many blocks a warp has sums and totals in registers, 64 of each.
using LargeTile = MmaShape<128, 128, 64, 32, 3, 1>;
using LargeTileOfOne = MmaShape<128, 256, 64, 64, 3, 1>;
using SmallTile = MmaShape<64, 64, 32, 32, 3, 2, 128>;

Status launch_mma_f8(const CudaLaunch& launch, const GemmScaledProblem& p) {
  return launch_codes<f16, LargeTile, LargeTileOfOne, SmallTile>(launch, p, p.product.k % 16 == 0);
}

}  // namespace rooftile::scaled_gpu
