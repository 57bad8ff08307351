// Three kernels, for three kinds of problem. Matrices whose rows are whole 16-byte words in x and in y go in
// squares that threads turn in their registers; any other matrix element by element, rows on both sides;
// matrices of a few elements each, one thread an element. What is but a copy is copied.
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/core/width.h"
#include "rooftile/ops/transpose/ladder/ladder.h"
#include "rooftile/ops/transpose/transpose.problem.h"
#include "rooftile/tile/cuda/elements.h"

namespace rooftile {
namespace {
using namespace tile;

/// All matrices' tiles in one line: across a matrix, then down, then the next.
struct Tiles {
  std::int64_t down, across, count;

  Tiles(const TransposeProblem& p, std::int64_t height, std::int64_t width)
      : down((p.down.size + height - 1) / height),
        across((p.across.size + width - 1) / width),
        count(p.batch.rows * down * across) {}
};

/// Of one tile: elements from the tensors' starts to its matrix, and its place in there, in tiles.
struct TilePlace {
  std::int64_t x, y, down, across;
};
/// Divisions of 32 bits where that is enough: a fifth of the others' instructions.
ROOFTILE_TILE std::int64_t quotient(std::int64_t a, std::int64_t b) {
  return (a | b) >> 32 != 0 ? a / b : static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
}
ROOFTILE_TILE TilePlace place_of(const TransposeProblem& p, const Tiles& tiles, std::int64_t tile) {
  const std::int64_t row = quotient(tile, tiles.across), matrix = quotient(row, tiles.down);
  return {offset_of(p.batch, 1, matrix), offset_of(p.batch, 0, matrix), row - matrix * tiles.down,
          tile - row * tiles.across};
}

/// Launches a block for each tile; a grid has at most 2^31 - 1.
template <class Kernel, class... A>
Status for_tiles(const CudaLaunch& launch, const Tiles& tiles, int threads, Kernel kernel,
                 const TransposeProblem& p, const A&... arguments) {
  for (std::int64_t first = 0; first < tiles.count; first += kMostBlocks) {
    const std::int64_t rest = tiles.count - first;
    const auto blocks = static_cast<unsigned>(rest < kMostBlocks ? rest : kMostBlocks);
    if (Status s = rooftile::cuda::launch(launch, "transpose", {blocks, static_cast<unsigned>(threads)},
                                          kernel, p, tiles, first, arguments...);
        !s)
      return s;
  }
  return {};
}

// ---- squares: 16-byte words on both sides

/// Elements of T in a word, words along a tile's side, and threads, of which each turns a square of kWord by
/// kWord elements: kWord words in, kWord words out. A thread of 8-bit elements has 256 bytes on their way,
/// one of 64-bit elements 32: so tiles of narrow elements are 8 words wide (128 bytes, a cache line), those
/// of wide ones 16. By registers and shared memory a multiprocessor holds blocks for 64 KiB or more on their
/// way; 4.8 TB/s for a latency of 700 ns would be 25 KiB for each of an H200's.
template <class T>
struct Square {
  static constexpr int kWord = 16 / int(sizeof(T));
  static constexpr int kSide = sizeof(T) <= 2 ? 8 : 16;
  static constexpr int kTile = kSide * kWord;
  static constexpr int kThreads = kSide * kSide;
};

/// Four bytes of column `k` of a square whose rows are `words`: the elements of 4 / sizeof(T) rows from row
/// `row` on (of 8-byte elements, half of one).
template <class T, int kRows>
ROOFTILE_TILE unsigned turned_piece(const unsigned (&words)[kRows][4], int k, int piece) {
  if constexpr (sizeof(T) == 8) {
    return words[piece / 2][2 * k + piece % 2];
  } else if constexpr (sizeof(T) == 4) {
    return words[piece][k];
  } else if constexpr (sizeof(T) == 2) {
    return __byte_perm(words[2 * piece][k / 2], words[2 * piece + 1][k / 2], k % 2 ? 0x7632 : 0x5410);
  } else {
    const auto pair = static_cast<unsigned>(k % 4 | (4 + k % 4) << 4);
    const unsigned low = __byte_perm(words[4 * piece][k / 4], words[4 * piece + 1][k / 4], pair);
    const unsigned high = __byte_perm(words[4 * piece + 2][k / 4], words[4 * piece + 3][k / 4], pair);
    return __byte_perm(low, high, 0x5410);
  }
}

/// Columns of x wait in shared memory as rows of y, a word in a slot. A square's columns are kWord rows
/// apart, which are the same banks: slot b of row r lies at b ^ (r / kWord) % 8, so that eight lanes, which
/// take turns together, want eight different ones, going in (r / kWord differs) and coming out (b does).
template <class T>
__global__ void __launch_bounds__(Square<T>::kThreads)
    transpose_squares(const __grid_constant__ TransposeProblem p, const __grid_constant__ Tiles tiles,
                      std::int64_t first_tile) {
  constexpr int kWord = Square<T>::kWord, kSide = Square<T>::kSide, kTile = Square<T>::kTile;
  ROOFTILE_SHARED(turned, uint4[kTile][kSide]);
  const TilePlace place = place_of(p, tiles, first_tile + blockIdx.x);
  const int a = static_cast<int>(threadIdx.x) % kSide, b = static_cast<int>(threadIdx.x) / kSide;
  const std::int64_t x_pitch = p.down.x_stride / kWord, y_pitch = p.across.y_stride / kWord;
  const std::int64_t first_i = place.down * kTile, first_j = place.across * kTile;
  const std::int64_t live_i = p.down.size - first_i, live_j = p.across.size - first_j;

  const uint4* x = static_cast<const uint4*>(p.x) + place.x / kWord + (first_i + b * kWord) * x_pitch +
                   first_j / kWord + a;
  unsigned words[kWord][4];
  ROOFTILE_UNROLL for (int k = 0; k < kWord; ++k) {
    uint4 word{0, 0, 0, 0};
    if (b * kWord < live_i && a * kWord < live_j) word = *x;  // [load]
    x += x_pitch;
    words[k][0] = word.x, words[k][1] = word.y, words[k][2] = word.z, words[k][3] = word.w;
  }
  ROOFTILE_UNROLL for (int k = 0; k < kWord; ++k) {
    const uint4 column{turned_piece<T>(words, k, 0), turned_piece<T>(words, k, 1),
                       turned_piece<T>(words, k, 2), turned_piece<T>(words, k, 3)};
    turned[a * kWord + k][b ^ (a % 8)] = column;  // [in]
  }
  __syncthreads();

  // All of a thread's words leave shared memory before the first is stored: else each waits for the one
  // before.
  uint4 out[kWord];
  ROOFTILE_UNROLL for (int k = 0; k < kWord; ++k) {
    const int row = k * kSide + b;
    out[k] = turned[row][a ^ (row / kWord % 8)];  // [out]
  }
  uint4* y = static_cast<uint4*>(p.y) + place.y / kWord + (first_j + b) * y_pitch + first_i / kWord + a;
  ROOFTILE_UNROLL for (int k = 0; k < kWord; ++k) {
    if (k * kSide + b < live_j && a * kWord < live_i) *y = out[k];  // [store]
    y += kSide * y_pitch;
  }
}

/// Whether each row of every matrix is whole 16-byte words, in x and in y.
bool whole_words(const TransposeProblem& p) {
  const auto whole = [&](std::int64_t elements) { return elements * p.width() % 16 == 0; };
  const auto aligned = [](const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; };
  bool all = p.side_by_side() && aligned(p.x) && aligned(p.y) && whole(p.down.size) && whole(p.across.size) &&
             whole(p.down.x_stride) && whole(p.across.y_stride);
  for (int d = 0; d < p.batch.rank; ++d)
    all = all && whole(p.batch.stride[0][d]) && whole(p.batch.stride[1][d]);
  return all;
}

// ---- any strides

/// A tile has 4096 elements: 64x64, or 16x256 or 32x128 where a matrix is thinner than that.
constexpr int kAnyThreads = 256, kEach = 16, kAnyElements = kAnyThreads * kEach;
constexpr int kAnyLog = 12, kLeastLog = 4;

/// Element by element, lanes along x's neighbours going in, along y's coming out. A row of the tile ends in
/// four bytes that nobody uses, and a column's elements lie in banks that differ.
template <class T>
__global__ void __launch_bounds__(kAnyThreads)
    transpose_any(const __grid_constant__ TransposeProblem p, const __grid_constant__ Tiles tiles,
                  std::int64_t first_tile, int width_log, bool turned) {
  constexpr int kPad = sizeof(T) < 4 ? 4 / int(sizeof(T)) : 1;
  ROOFTILE_SHARED(tile, T[kAnyElements + (kAnyElements >> kLeastLog) * kPad]);
  const TilePlace place = place_of(p, tiles, first_tile + blockIdx.x);
  const int t = static_cast<int>(threadIdx.x), height_log = kAnyLog - width_log;
  const int width = 1 << width_log, height = 1 << height_log, pitch = width + kPad;
  const std::int64_t first_i = place.down * height, first_j = place.across * width;
  const std::int64_t live_i = p.down.size - first_i, live_j = p.across.size - first_j;

  // A thread's elements lie in one column of the tile where lanes go along a row, and the other way around.
  const int down_j = t >> height_log, down_i = t & (height - 1), down_step = kAnyThreads >> height_log;
  const int i = turned ? t >> width_log : down_i, j = turned ? t & (width - 1) : down_j;
  const int i_step = turned ? kAnyThreads >> width_log : 0, j_step = turned ? 0 : down_step;
  const T* x = static_cast<const T*>(p.x) + place.x + (first_i + i) * p.down.x_stride +
               (first_j + j) * p.across.x_stride;
  const std::int64_t x_step = i_step * p.down.x_stride + j_step * p.across.x_stride;
  T value[kEach];
  ROOFTILE_UNROLL for (int k = 0; k < kEach; ++k) {
    value[k] = T{};
    if (i + k * i_step < live_i && j + k * j_step < live_j) value[k] = *x;  // [any load]
    x += x_step;
  }
  ROOFTILE_UNROLL for (int k = 0; k < kEach; ++k) {
    tile[(i + k * i_step) * pitch + j + k * j_step] = value[k];  // [any in]
  }
  __syncthreads();

  ROOFTILE_UNROLL for (int k = 0; k < kEach; ++k) {
    value[k] = tile[down_i * pitch + down_j + k * down_step];  // [any out]
  }
  T* y = static_cast<T*>(p.y) + place.y + (first_i + down_i) * p.down.y_stride +
         (first_j + down_j) * p.across.y_stride;
  ROOFTILE_UNROLL for (int k = 0; k < kEach; ++k) {
    if (down_i < live_i && down_j + k * down_step < live_j) *y = value[k];  // [any store]
    y += down_step * p.across.y_stride;
  }
}

/// log₂ of a tile's width: 64, if neither side is less.
int width_log_of(const TransposeProblem& p) {
  const auto log = [](std::int64_t size) {
    int l = kLeastLog;
    while (l < kAnyLog / 2 && std::int64_t{1} << l < size) ++l;
    return l;
  };
  const int width = log(p.across.size);
  return width < kAnyLog / 2 ? width : kAnyLog - log(p.down.size);
}

// ---- many small matrices

/// From here on a matrix fills enough of a tile.
constexpr std::int64_t kSmall = 512;

/// One thread an element of y; what warps read lies close together, since a matrix is small.
template <class T>
__global__ void __launch_bounds__(kFewThreads) transpose_small(const __grid_constant__ TransposeProblem p) {
  const std::int64_t size = p.rows.rows * p.rows.columns;
  const std::int64_t step = std::int64_t{gridDim.x} * kFewThreads;
  for (std::int64_t e = std::int64_t{blockIdx.x} * kFewThreads + threadIdx.x; e < size; e += step) {
    const std::int64_t row = e / p.rows.columns, at = e - row * p.rows.columns;
    static_cast<T*>(p.y)[offset_of(p.rows, 0, row) + at * p.rows.column_stride[0]] =
        static_cast<const T*>(p.x)[offset_of(p.rows, 1, row) + at * p.rows.column_stride[1]];
  }
}

// ---- no transpose at all

/// Neighbours in y are neighbours in x: rows of bytes.
struct CopyRows {
  Rows<2> rows;
  const void* x;
  void* y;
  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const PartOfRow& part) const {
    team.copy(part_of<const std::uint8_t>(rows, 1, x, part), part_of<std::uint8_t>(rows, 0, y, part));
  }
};

Status copy_rows(const CudaLaunch& launch, const TransposeProblem& p) {
  CopyRows copy{p.rows, p.x, p.y};
  copy.rows.columns *= p.width();
  for (auto& operand : copy.rows.stride)
    for (int d = 0; d < copy.rows.rank; ++d) operand[d] *= p.width();
  return for_parts<16, 4, float>(launch, "transpose", copy.rows.rows, copy.rows.columns,
                                 aligned_rows(copy.rows, 0, p.y, 1) && aligned_rows(copy.rows, 1, p.x, 1),
                                 copy);
}

template <class T>
Status launch_elements(const CudaLaunch& launch, const TransposeProblem& p) {
  const std::int64_t matrix = p.down.size * p.across.size;
  if (p.batch.rows > 1 && matrix <= kSmall) {
    const std::int64_t blocks = (p.size() + kFewThreads - 1) / kFewThreads;
    return rooftile::cuda::launch(
        launch, "transpose",
        {static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks), kFewThreads}, transpose_small<T>,
        p);
  }
  if (whole_words(p)) {
    const Tiles tiles(p, Square<T>::kTile, Square<T>::kTile);
    return for_tiles(launch, tiles, Square<T>::kThreads, transpose_squares<T>, p);
  }
  const int width_log = width_log_of(p);
  const Tiles tiles(p, std::int64_t{1} << (kAnyLog - width_log), std::int64_t{1} << width_log);
  return for_tiles(launch, tiles, kAnyThreads, transpose_any<T>, p, width_log, p.turned());
}

Status launch_tile(const CudaLaunch& launch, const TransposeProblem& p) {
  if (p.size() == 0) return {};
  if (!p.turned() && p.down.x_stride == 1 && p.down.y_stride == 1) return copy_rows(launch, p);
  return with_width(p.width(), [&]<class T>() { return launch_elements<T>(launch, p); });
}

}  // namespace

ROOFTILE_CUDA_KERNELS(transpose) = {
    entry<launch_tile>("transpose", "tile"),
    entry<ladder::launch_vectorised>("transpose", "05_vectorised"),
    entry<ladder::launch_padded>("transpose", "04_padded"),
    entry<ladder::launch_shared>("transpose", "03_shared"),
    entry<ladder::launch_coalesced_writes>("transpose", "02_coalesced_writes"),
    entry<ladder::launch_naive>("transpose", "01_naive"),
    {},
};

}  // namespace rooftile
