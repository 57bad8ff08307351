// A product on the CPU. Tiles of y are shared among threads; a tile's sums lie in the thread's scratch, and
// so do the blocks of A and B that are being multiplied, packed. K is cut in blocks, and a block goes on with
// the sums of the one before: for each element one chain over all of K, however y and K are cut.
#include "rooftile/ops/gemm/ahead.h"
#include "rooftile/ops/gemm/epilogue.h"
#include "rooftile/ops/gemm/gemm.packed.h"
#include "rooftile/ops/gemm/ladder/ladder.h"
#include "rooftile/ops/gemm/micro_kernel.h"

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

/// Whether y can hold the sums while K passes: it is of their dtype, nobody reads c, and its vectors are
/// whole.
template <class S>
bool sums_fit_y(const OrientedProduct& p) {
  return p.out == dtype_of<S> && (p.y_column == 1 || p.n == 1) && !p.reads_c();
}

/// How a product is cut: tiles of y of so many rows and columns at most, and K. A tile's rows are whole
/// micro-tiles, of which each tile has as many as the next, or one less.
template <class S>
struct Cut {
  static constexpr std::int64_t kElements = kScratchBytes / sizeof(S), kSlack = 2 * kLanes<S>;
  /// f32: sums 126 KiB, A 84, B 16 of AVX-512's micro-tiles; where y holds the sums, A 180, sums of a last
  /// strip 45.
  static constexpr std::int64_t kRows = sizeof(S) == 8 ? 96 : 168, kColumns = sizeof(S) == 8 ? 128 : 192;
  static constexpr std::int64_t kRowsInY = sizeof(S) == 8 ? 180 : 360, kColumnsInY = 512;
  /// So few rows that packing B does not pay, and B's lines are to be read whole: tiles as wide as fits. Of a
  /// B whose columns lie in memory as lines (a Linear's weight) one strip, from the first of K to the last;
  /// of a packed B one of its strips, which lies in memory in one piece.
  static constexpr std::int64_t kThin = 16, kThinColumns = kElements / 64, kThinDepth = 32;
  /// Rows of a thin tile's micro-tiles.
  static constexpr std::int64_t kThinMicroRows = kMicroRows * 2 / 3;
  /// So few rows times a B that comes from memory: its lines are read 8 at a time, in wider tiles (f32
  /// 1x4096x4096, AVX2, one thread: with 32 rows of 1024 columns 0.49 times MKL's speed, so 0.76). From a
  /// cache, or for more rows, 32 are better: sums are stored less often.
  static constexpr std::int64_t kFew = 4, kFewColumns = kElements / 16, kFewDepth = 8;
  static constexpr std::int64_t kStrip = kMicroColumns<S>;
  static_assert(kRows * (kColumns + kMicroDepth) + kStrip * kMicroDepth + kColumns + kSlack <= kElements);
  static_assert(kRowsInY * (kStrip + kMicroDepth) + kStrip * kMicroDepth + 2 * (kColumnsInY + kSlack) <=
                kElements);
  static_assert(kFew * (kFewColumns + kMicroDepth) + kStrip * kMicroDepth + 2 * (kFewColumns + kSlack) <=
                kElements);
  static_assert(kThin * (kThinColumns + kMicroDepth) + kStrip * kMicroDepth + 2 * (kThinColumns + kSlack) <=
                kElements);

  std::int64_t row_panels, row_tiles, strips, column_tiles, depth, tile_rows, tile_columns;
  bool thin, in_y;

  Cut(const OrientedProduct& p, const CpuLaunch& launch) {
    row_panels = ceil_div(p.m, kMicroRows);
    strips = ceil_div(p.n, kStrip);
    thin = p.m <= kThin;
    in_y = sums_fit_y<S>(p) && !thin;
    const bool few =
        p.m <= kFew && p.type == dtype_of<S> && p.k * p.n * std::int64_t(sizeof(S)) > launch.streaming_bytes;
    depth = !thin || p.b_column != 1 || p.packed ? kMicroDepth : few ? kFewDepth : kThinDepth;
    row_tiles = ceil_div(p.m, (in_y ? kRowsInY : kRows) / kMicroRows * kMicroRows);
    const std::int64_t wide = in_y ? kColumnsInY : kColumns, thin_wide = p.packed          ? kPackedColumns
                                                                         : p.b_column != 1 ? kStrip
                                                                         : few             ? kFewColumns
                                                                                           : kThinColumns;
    column_tiles = ceil_div(p.n, thin ? thin_wide : wide);
    // Some tiles for each thread, unless they would be hardly more than a micro-tile.
    const std::int64_t wanted = launch.threads > 1 ? 4 * launch.threads : 1;
    while (p.batch.rows * row_tiles * column_tiles < wanted) {
      const std::int64_t high = row_panels / row_tiles, across = strips / column_tiles;
      if (high <= 2 && across <= 2) break;
      if (high > 2 && (high * kMicroRows >= across * kStrip || across <= 2))
        ++row_tiles;
      else
        ++column_tiles;
    }
    tile_rows = std::min(p.m, ceil_div(row_panels, row_tiles) * kMicroRows);
    tile_columns = round_up(ceil_div(strips, column_tiles) * kStrip, kLanes<S>);
  }
  std::int64_t tiles() const { return row_tiles * column_tiles; }
  std::int64_t row(std::int64_t tile) const { return row_panels * tile / row_tiles * kMicroRows; }
  std::int64_t column(std::int64_t tile) const { return strips * tile / column_tiles * kMicroColumns<S>; }
};

/// One thread's part.
template <class T, class S>
class Multiplier {
 public:
  Multiplier(const OrientedProduct& p, const Cut<S>& cut, std::byte* scratch)
      : p_(p), cut_(cut), pitch_(cut.in_y ? kStrip : cut.tile_columns) {
    sums_ = reinterpret_cast<S*>(scratch);
    a_ = sums_ + cut.tile_rows * pitch_ + kLanes<S>;
    b_ = a_ + cut.tile_rows * kMicroDepth;
    bias_ = b_ + kStrip * kMicroDepth;
    buffer_ = bias_ + cut.tile_columns;
  }

  /// Tile `index` of all tiles of all matrices: first down the rows, so that B's block is still near.
  void run(std::int64_t index) {
    const std::int64_t tile = index % cut_.tiles(), down = tile % cut_.row_tiles,
                       across = tile / cut_.row_tiles, matrix = index / cut_.tiles();
    const std::int64_t i = cut_.row(down), j = cut_.column(across),
                       rows = std::min(p_.m, cut_.row(down + 1)) - i,
                       columns = std::min(p_.n, cut_.column(across + 1)) - j;
    // Sums in y, but for those of a strip that is not full; all in scratch.
    const std::int64_t in_y = cut_.in_y ? columns / kStrip * kStrip : 0;
    S* const y = cut_.in_y ? static_cast<S*>(p_.y) + p_.batch.offset(0, matrix) + i * p_.y_row + j : nullptr;
    const Tile whole{y, p_.y_row, matrix, i, j, rows, in_y, true},
        rest{sums_, pitch_, matrix, i, j + in_y, rows, columns - in_y, cut_.in_y};
    const T* a = static_cast<const T*>(p_.a) + p_.batch.offset(1, matrix) + i * p_.a_row;
    const T* b = static_cast<const T*>(p_.b) + p_.batch.offset(2, matrix);
    for (std::int64_t k = 0; k < p_.k; k += step()) multiply_block(whole, rest, a, b, k);
    for (const Tile* each : {&whole, &rest}) {
      const Tile& part = *each;
      if (part.columns == 0) continue;
      for (std::int64_t r = 0; p_.k == 0 && r < rows; ++r)
        std::fill_n(part.sums + r * part.pitch, part.columns, S(0));
      const bool finished = &part == &whole && p_.alpha == 1 && !p_.bias && p_.activation == 0;
      if (!finished) finish(p_, part, bias_, buffer_);
    }
  }

 private:
  using Tile = EpilogueTile<S>;
  /// Elements of K in a lane, and in a block.
  static constexpr std::int64_t kFold = std::is_integral_v<S> ? 2 : 1, kStrip = kMicroColumns<S>;
  std::int64_t step() const { return cut_.depth * kFold; }
  std::int64_t depth_at(std::int64_t k) const { return std::min(step(), p_.k - k); }

  /// B from row k and column j on, a micro-tile's columns at most.
  Block<T> block_of_b(const T* b, std::int64_t k, std::int64_t j, std::int64_t columns) const {
    if (!p_.packed) return {b + k * p_.b_row + j * p_.b_column, p_.b_row, p_.b_column, depth_at(k), columns};
    const PackedStrip strip = packed_strip(p_.k, p_.n, j);
    const std::int64_t at = PackedHeader::kSize + strip.begin + k * strip.width + strip.column;
    return {b + at * p_.b_column, strip.width * p_.b_column, p_.b_column, depth_at(k), columns};
  }

  /// From k on. a: of the tile, b: of the matrix. While a strip of B is multiplied, the lines of the next
  /// come, and those of A's next block.
  void multiply_block(const Tile& whole, const Tile& rest, const T* a, const T* b, std::int64_t k) {
    const std::int64_t depth = depth_at(k), rows = rest.rows, columns = whole.columns + rest.columns,
                       strips = ceil_div(columns, kStrip);
    const auto block_of_a = [&](std::int64_t from) {
      return Block<T>{a + from * p_.a_column, p_.a_row, p_.a_column, rows, depth_at(from)};
    };
    const auto strip_of_b = [&](std::int64_t from, std::int64_t strip) {
      return block_of_b(b, from, whole.j + strip * kStrip, std::min(kStrip, columns - strip * kStrip));
    };
    pack_a(block_of_a(k));
    const std::int64_t next = k + step();
    Ahead<T> next_a;
    if (next < p_.k) next_a = Ahead<T>(block_of_a(next));
    // A's lines are shared among all micro-tiles, B's among the strip's; the same ones again, where a tile
    // has no new ones.
    const std::int64_t tiles = ceil_div(rows, kMicroRows),
                       a_lines =
                           std::min<std::int64_t>(kMicroLines, ceil_div(next_a.lines(), strips * tiles));
    const void* lines[kMicroLines];
    std::fill_n(lines, kMicroLines, a);
    for (std::int64_t strip = 0; strip < strips; ++strip) {
      const Block<T> from = strip_of_b(k, strip);
      const bool lies = from.columns == kStrip && from.column == 1;
      const bool streams = lies && cut_.thin && p_.packed && depth % kFold == 0;
      const bool direct = lies && std::is_same_v<S, T> && (cut_.thin || p_.packed);
      if (!streams && !direct) pack_b(from);
      const S* const packed = direct ? reinterpret_cast<const S*>(from.data) : b_;
      const std::int64_t pitch = direct ? from.row : kStrip;
      Ahead<T> next_b;
      if (strip + 1 < strips)
        next_b = Ahead<T>(strip_of_b(k, strip + 1));
      else if (next < p_.k)
        next_b = Ahead<T>(strip_of_b(next, 0));
      const std::int64_t b_lines = std::min(kMicroLines - a_lines, ceil_div(next_b.lines(), tiles));
      const Tile& tile = strip * kStrip < whole.columns ? whole : rest;
      S* sums = tile.sums + strip * kStrip - (&tile == &rest ? whole.columns : 0);
      const std::int64_t most = cut_.thin && !p_.packed ? Cut<S>::kThinMicroRows : kMicroRows;
      for (std::int64_t i = 0; i < rows;)
        i += with_rows(std::min(rows - i, most), [&]<int kRows>() ROOFTILE_INLINE {
          const S* const a_rows = a_ + i * kMicroDepth;
          S* const to = sums + i * tile.pitch;
          if (streams)
            return multiply_tile<kRows, true>(a_rows, from.data, from.row, depth / kFold, to, tile.pitch,
                                              k == 0, nullptr);
          if constexpr (kRows == kMicroRows) {
            next_a.list(a_lines, lines);
            next_b.list(b_lines, lines + a_lines);
          }
          multiply_tile<kRows>(a_rows, packed, pitch, ceil_div(depth, kFold), to, tile.pitch, k == 0, lines);
        });
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
      pack_pairs_down(from, b_, kStrip, kStrip);
    else
      pack(from, b_, kStrip, kStrip, cut_.thin ? kMicroDepth : 0);
  }

  const OrientedProduct& p_;
  const Cut<S>& cut_;
  std::int64_t pitch_;
  S *sums_, *a_, *b_, *bias_, *buffer_;
};

template <class T, class S>
void multiply(const CpuLaunch& launch, const OrientedProduct& p) {
  const Cut<S> cut(p, launch);
  // As many bytes as take as long to move: a thread does some 8 multiplications in the time of a byte.
  const double bytes = double(p.batch.rows) * double(p.m) * double(p.n) * double(p.k + 16) / 8;
  for_programs(launch, p.batch.rows * cut.tiles(), static_cast<std::int64_t>(std::min(bytes, 1e15)),
               [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                 Multiplier<T, S> multiplier(p, cut, scratch.begin);
                 for (std::int64_t tile = begin; tile < end; ++tile) multiplier.run(tile);
               });
}

template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, double>, double,
                                 std::conditional_t<sizeof(T) == 1, std::int32_t, float>>;

void launch_product(const CpuLaunch& launch, const GemmProblem& p, bool packed) {
  if (p.empty()) return;
  with_type<double, float, tf32, f16, bf16, std::int8_t>(p.type, [&]<class T>() {
    multiply<T, SumOf<T>>(launch, packed ? OrientedProduct{p, 0, p.bias_stride, true} : orient<SumOf<T>>(p));
  });
}
void launch_tile(const CpuLaunch& launch, const GemmProblem& p) { launch_product(launch, p, false); }
Status launch_packed(const CpuLaunch& launch, const PackedProduct& p) {
  const Status status = p.check(p);
  if (status) launch_product(launch, p, true);
  return status;
}

}  // namespace

ROOFTILE_CPU_KERNELS(gemm) = {
    entry<launch_tile>("gemm", "tile"),
    entry<launch_packed>("gemm_packed", "tile"),
    entry<ladder::launch_packed>("gemm", "05_packed"),
    entry<ladder::launch_register_tile>("gemm", "04_register_tile"),
    entry<ladder::launch_vectors>("gemm", "03_vectors"),
    entry<ladder::launch_loop_order>("gemm", "02_loop_order"),
    entry<ladder::launch_scalar>("gemm", "01_scalar"),
    {},
};

}  // namespace rooftile
