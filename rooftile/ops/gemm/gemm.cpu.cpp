// A product on the CPU. Tiles of y are shared among threads; a tile's sums lie in the thread's scratch, and
// so do the blocks of A and B that are being multiplied, packed. K is cut in blocks, and a block goes on with
// the sums of the one before: for each element one chain over all of K, however y and K are cut.
#include "rooftile/ops/gemm/epilogue.h"
#include "rooftile/ops/gemm/ladder/ladder.h"
#include "rooftile/ops/gemm/micro_kernel.h"
#include "rooftile/ops/gemm/pack_pairs.h"

namespace rooftile {
namespace {
using namespace tile;

std::int64_t ceil_div(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }
std::int64_t round_up(std::int64_t n, std::int64_t by) { return ceil_div(n, by) * by; }

/// y's transpose instead, yᵀ = Bᵀ·Aᵀ, where less of its vectors would be empty, or where y's columns are what
/// lies side by side. Each element's chain is the same.
template <class S>
OrientedProduct orient(const GemmProblem& problem) {
  OrientedProduct p{problem, 0, problem.bias_stride};
  constexpr std::int64_t n = kMicroColumns<S>;
  const std::int64_t work = p.m * round_up(p.n, n), turned = p.n * round_up(p.m, n);
  const bool by_columns = p.y_row == 1 && p.y_column != 1 && p.m > 1;
  if (by_columns ? turned > work + work / 8 : turned >= work - work / 8) return p;
  std::swap(p.m, p.n);
  std::swap(p.a, p.b);
  std::swap(p.a_row, p.b_column);
  std::swap(p.a_column, p.b_row);
  std::swap(p.c_row, p.c_column);
  std::swap(p.y_row, p.y_column);
  std::swap(p.batch.stride[1], p.batch.stride[2]);
  std::swap(p.bias_row, p.bias_column);
  return p;
}

/// How a product is cut: tiles of y of so many rows and columns at most, and K. A tile's rows are whole
/// micro-tiles, of which each tile has as many as the next, or one less.
template <class S>
struct Cut {
  static constexpr std::int64_t kElements = kScratchBytes / sizeof(S), kSlack = 2 * kLanes<S>;
  /// f32: sums 126 KiB, A 84, B 16 of AVX-512's micro-tiles.
  static constexpr std::int64_t kRows = sizeof(S) == 8 ? 96 : 168, kColumns = sizeof(S) == 8 ? 128 : 192;
  /// So few rows that packing B does not pay, and B's lines are to be read whole: tiles as wide as fits.
  static constexpr std::int64_t kThin = 16, kThinColumns = kElements / 2 / kThin / 2, kThinDepth = 32;
  static_assert(kRows * (kColumns + kMicroDepth) + kMicroColumns<S> * kMicroDepth + kColumns + kSlack <=
                kElements);

  std::int64_t row_panels, row_tiles, strips, column_tiles, depth, tile_rows, tile_columns;

  Cut(const OrientedProduct& p, int threads) {
    row_panels = ceil_div(p.m, kMicroRows);
    strips = ceil_div(p.n, kMicroColumns<S>);
    const bool thin = p.m <= kThin;
    depth = thin && p.b_column == 1 ? kThinDepth : kMicroDepth;
    row_tiles = ceil_div(p.m, kRows / kMicroRows * kMicroRows);
    column_tiles = ceil_div(p.n, thin ? kThinColumns : kColumns);
    // Some tiles for each thread, unless they would be hardly more than a micro-tile.
    const std::int64_t wanted = threads > 1 ? 4 * threads : 1;
    while (p.batch.rows * row_tiles * column_tiles < wanted) {
      const std::int64_t high = row_panels / row_tiles, wide = strips / column_tiles;
      if (high <= 2 && wide <= 2) break;
      if (high > 2 && (high * kMicroRows >= wide * kMicroColumns<S> || wide <= 2))
        ++row_tiles;
      else
        ++column_tiles;
    }
    tile_rows = ceil_div(row_panels, row_tiles) * kMicroRows;
    tile_columns = round_up(ceil_div(strips, column_tiles) * kMicroColumns<S>, kLanes<S>);
  }
  std::int64_t tiles() const { return row_tiles * column_tiles; }
  std::int64_t row(std::int64_t tile) const { return row_panels * tile / row_tiles * kMicroRows; }
  std::int64_t column(std::int64_t tile) const { return strips * tile / column_tiles * kMicroColumns<S>; }
};

/// One thread's part.
template <class T, class S>
class Multiplier {
 public:
  Multiplier(const OrientedProduct& p, const Cut<S>& cut, std::byte* scratch) : p_(p), cut_(cut) {
    sums_ = reinterpret_cast<S*>(scratch);
    a_ = sums_ + std::min(cut.tile_rows, p.m) * cut.tile_columns + kLanes<S>;
    b_ = a_ + round_up(std::min(cut.tile_rows, p.m) * kMicroDepth, kVecLanes<S>);
    bias_ = b_ + kMicroColumns<S> * kMicroDepth;
  }

  /// Tile `index` of all tiles of all matrices: first down the rows, so that B's block is still near.
  void run(std::int64_t index) {
    const std::int64_t tile = index % cut_.tiles(), down = tile % cut_.row_tiles,
                       across = tile / cut_.row_tiles;
    const std::int64_t i = cut_.row(down), j = cut_.column(across);
    const EpilogueTile<S> y{sums_,
                            cut_.tile_columns,
                            index / cut_.tiles(),
                            i,
                            j,
                            std::min(p_.m, cut_.row(down + 1)) - i,
                            std::min(p_.n, cut_.column(across + 1)) - j};
    const T* a = static_cast<const T*>(p_.a) + p_.batch.offset(1, y.matrix) + y.i * p_.a_row;
    const T* b = static_cast<const T*>(p_.b) + p_.batch.offset(2, y.matrix) + y.j * p_.b_column;
    if (p_.k == 0) std::fill(sums_, sums_ + y.rows * y.pitch, S(0));
    const std::int64_t step = cut_.depth * kFold;
    for (std::int64_t k = 0; k < p_.k; k += step)
      multiply_block(y, a + k * p_.a_column, b + k * p_.b_row, std::min(step, p_.k - k), k == 0);
    finish(p_, y, bias_);
  }

 private:
  /// Elements of K in a lane.
  static constexpr std::int64_t kFold = std::is_integral_v<S> ? 2 : 1;

  void multiply_block(const EpilogueTile<S>& y, const T* a, const T* b, std::int64_t depth, bool first) {
    pack_a({a, p_.a_row, p_.a_column, y.rows, depth});
    for (std::int64_t j = 0; j < y.columns; j += kMicroColumns<S>) {
      const std::int64_t width = std::min<std::int64_t>(kMicroColumns<S>, y.columns - j);
      const S* strip = b_;
      std::int64_t pitch = kMicroColumns<S>;
      if (std::is_same_v<S, T> && y.rows <= kMicroRows && width == pitch && p_.b_column == 1) {
        strip = reinterpret_cast<const S*>(b + j);
        pitch = p_.b_row;
      } else {
        pack_b({b + j * p_.b_column, p_.b_row, p_.b_column, depth, width});
      }
      for (std::int64_t i = 0; i < y.rows;)
        i += multiply_rows(y.rows - i, a_ + i * kMicroDepth, strip, pitch, ceil_div(depth, kFold),
                           sums_ + i * y.pitch + j, y.pitch, first);
    }
  }
  void pack_a(const Block<T>& from) {
    if constexpr (std::is_integral_v<S>)
      pack_pairs_across(from, a_, kMicroDepth);
    else
      pack(from, a_, kMicroDepth, 0);
  }
  void pack_b(const Block<T>& from) {
    if constexpr (std::is_integral_v<S>)
      pack_pairs_down(from, b_, kMicroColumns<S>, kMicroColumns<S>);
    else
      pack(from, b_, kMicroColumns<S>, kMicroColumns<S>);
  }

  const OrientedProduct& p_;
  const Cut<S>& cut_;
  S *sums_, *a_, *b_, *bias_;
};

template <class T, class S>
void multiply(const CpuLaunch& launch, const GemmProblem& problem) {
  const OrientedProduct p = orient<S>(problem);
  const Cut<S> cut(p, launch.threads);
  // As many bytes as take as long to move: a thread does some 8 multiplications in the time of a byte.
  const double bytes = double(p.batch.rows) * double(p.m) * double(p.n) * double(p.k + 16) / 8;
  for_programs(launch, p.batch.rows * cut.tiles(), static_cast<std::int64_t>(std::min(bytes, 1e15)),
               [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                 Multiplier<T, S> multiplier(p, cut, scratch.begin);
                 for (std::int64_t tile = begin; tile < end; ++tile) multiplier.run(tile);
               });
}

void launch_tile(const CpuLaunch& launch, const GemmProblem& p) {
  if (p.empty()) return;
  with_type<double, float, tf32, f16, bf16, std::int8_t>(p.type, [&]<class T>() {
    multiply<T, std::conditional_t<std::is_same_v<T, double>, double,
                                   std::conditional_t<sizeof(T) == 1, std::int32_t, float>>>(launch, p);
  });
}

}  // namespace

ROOFTILE_CPU_KERNELS(gemm) = {
    entry<launch_tile>("gemm", "tile"),
    entry<ladder::launch_packed>("gemm", "05_packed"),
    entry<ladder::launch_register_tile>("gemm", "04_register_tile"),
    entry<ladder::launch_vectors>("gemm", "03_vectors"),
    entry<ladder::launch_loop_order>("gemm", "02_loop_order"),
    entry<ladder::launch_scalar>("gemm", "01_scalar"),
    {},
};

}  // namespace rooftile
