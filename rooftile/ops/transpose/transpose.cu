// Four kernels, for four kinds of problem. Matrices whose rows are whole 16-byte words in x and whole sectors
// in y go in squares that threads turn in their registers; those whose rows begin anywhere, so that each
// sector of y is stored at once; any other strides element by element; matrices of a few elements each, one
// thread an element. What is but a copy is copied.
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

  /// `lead`: elements of y's rows that the first tiles may lack.
  Tiles(const TransposeProblem& p, std::int64_t height, std::int64_t width, std::int64_t lead = 0)
      : down((p.down.size + std::max<std::int64_t>(lead - 1, 0) + height - 1) / height),
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
  for (std::int64_t first = 0; first < tiles.count; first += kMaxBlocks) {
    const std::int64_t rest = tiles.count - first;
    const auto blocks = static_cast<unsigned>(rest < kMaxBlocks ? rest : kMaxBlocks);
    if (Status s = rooftile::cuda::launch(launch, "transpose", {blocks, static_cast<unsigned>(threads)},
                                          kernel, p, tiles, first, arguments...);
        !s)
      return s;
  }
  return {};
}

// ---- squares: 16-byte words on both sides

/// Elements of T in a word, words of a tile's rows in x and in y (kOut), and threads, of which each turns a
/// square of kWord by kWord elements: kWord words in, kWord words out. 16 words, 256 bytes of each row (bf16
/// 16384x16384, H200: 270 µs; with 8 words 293), but of 8-bit elements 8 in x, or a tile is more than the
/// 48 KiB that every block may have. 8 for matrices that fit such a tile.
template <class T, int kOut_>
struct Square {
  static constexpr int kWord = 16 / int(sizeof(T));
  static constexpr int kOut = kOut_, kIn = sizeof(T) == 1 ? 8 : kOut;
  static constexpr int kHeight = kOut * kWord, kWidth = kIn * kWord;
  static constexpr int kThreads = kIn * kOut;
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
template <class T, int kOut>
__global__ void __launch_bounds__(Square<T, kOut>::kThreads, 3)
    transpose_squares(const __grid_constant__ TransposeProblem p, const __grid_constant__ Tiles tiles,
                      std::int64_t first_tile) {
  using S = Square<T, kOut>;
  constexpr int kWord = S::kWord;
  ROOFTILE_SHARED(turned, uint4[S::kWidth][S::kOut]);
  const TilePlace place = place_of(p, tiles, first_tile + blockIdx.x);
  const int in_a = static_cast<int>(threadIdx.x) % S::kIn, in_b = static_cast<int>(threadIdx.x) / S::kIn;
  const int out_a = static_cast<int>(threadIdx.x) % S::kOut, out_b = static_cast<int>(threadIdx.x) / S::kOut;
  const std::int64_t x_pitch = p.down.x_stride / kWord, y_pitch = p.across.y_stride / kWord;
  const std::int64_t first_i = place.down * S::kHeight, first_j = place.across * S::kWidth;
  const std::int64_t live_i = p.down.size - first_i, live_j = p.across.size - first_j;

  const uint4* x = static_cast<const uint4*>(p.x) + place.x / kWord + (first_i + in_b * kWord) * x_pitch +
                   first_j / kWord + in_a;
  unsigned words[kWord][4];
  ROOFTILE_UNROLL for (int k = 0; k < kWord; ++k) {
    uint4 word{0, 0, 0, 0};
    if (in_b * kWord < live_i && in_a * kWord < live_j) word = *x;  // [load]
    x += x_pitch;
    words[k][0] = word.x, words[k][1] = word.y, words[k][2] = word.z, words[k][3] = word.w;
  }
  ROOFTILE_UNROLL for (int k = 0; k < kWord; ++k) {
    const uint4 column{turned_piece<T>(words, k, 0), turned_piece<T>(words, k, 1),
                       turned_piece<T>(words, k, 2), turned_piece<T>(words, k, 3)};
    turned[in_a * kWord + k][in_b ^ (in_a % 8)] = column;  // [in]
  }
  __syncthreads();

  // All of a thread's words leave shared memory before the first is stored: else each waits for the one
  // before.
  uint4 out[kWord];
  ROOFTILE_UNROLL for (int k = 0; k < kWord; ++k) {
    const int row = k * S::kIn + out_b;
    out[k] = turned[row][out_a ^ (row / kWord % 8)];  // [out]
  }
  uint4* y =
      static_cast<uint4*>(p.y) + place.y / kWord + (first_j + out_b) * y_pitch + first_i / kWord + out_a;
  ROOFTILE_UNROLL for (int k = 0; k < kWord; ++k) {
    if (k * S::kIn + out_b < live_j && out_a * kWord < live_i) *y = out[k];  // [store]
    y += S::kIn * y_pitch;
  }
}

/// Whether each row of every matrix begins at such a multiple of bytes, in x or in y.
bool rows_begin_at(const TransposeProblem& p, bool in_y, int bytes) {
  const auto whole = [&](std::int64_t elements) { return elements * p.width() % bytes == 0; };
  const void* data = in_y ? p.y : p.x;
  bool all = reinterpret_cast<std::uintptr_t>(data) % static_cast<unsigned>(bytes) == 0 &&
             whole(in_y ? p.across.y_stride : p.down.x_stride);
  for (int d = 0; d < p.batch.rank; ++d) all = all && whole(p.batch.stride[in_y ? 0 : 1][d]);
  return all;
}
/// Whether they are whole 16-byte words, too.
bool whole_words(const TransposeProblem& p) {
  return rows_begin_at(p, false, 16) && rows_begin_at(p, true, 16) && p.down.size * p.width() % 16 == 0 &&
         p.across.size * p.width() % 16 == 0;
}

// ---- rows that begin anywhere

/// What memory has at once. Where blocks store parts of a sector, it must be read to be put together: f32
/// 8192x8192 that begins 4 bytes off, H200: 216 µs element by element, 154 where each block stores whole
/// sectors.
constexpr int kSector = 32;

/// Tiles of 256 bytes of y's rows by kWidth of x's elements. In shared memory, and on the way to y, kPerWord
/// elements go as one word.
template <class T>
struct Sectors {
  using Word = std::conditional_t<(sizeof(T) > 4), T, unsigned>;
  static constexpr int kPerWord = int(sizeof(Word) / sizeof(T));
  static constexpr int kLead = kSector / int(sizeof(T));
  static constexpr int kHeight = 256 / int(sizeof(T)), kWidth = 64, kThreads = 512;
  static constexpr int kWords = (kHeight + kLead) / kPerWord;
  static constexpr int kPitch = kWords | 1;  // odd: what lanes put side by side lies in different banks

  ROOFTILE_TILE
  static Word packed(const T (&value)[kPerWord]) {
    if constexpr (kPerWord == 1)
      return value[0];
    else if constexpr (kPerWord == 2)
      return __byte_perm(value[0], value[1], 0x5410);
    else
      return __byte_perm(__byte_perm(value[0], value[1], 0x0040), __byte_perm(value[2], value[3], 0x0040),
                         0x5410);
  }
  /// The word that begins `shift` elements behind the first of two neighbours.
  ROOFTILE_TILE
  static Word shifted(Word low, Word high, unsigned shift) {
    if constexpr (kPerWord == 1)
      return low;
    else
      return __byte_perm(low, high, 0x3210 + 0x1111 * (shift * unsigned{sizeof(T)}));
  }
  ROOFTILE_TILE
  static T element(Word word, int i) {
    return static_cast<T>(kPerWord == 1 ? word : word >> (i * 8 * int(sizeof(T))));
  }
};

/// A row's part of a tile begins with the sector of y in which the tile does: up to kLead - 1 elements
/// before it, another number in each row. So a block reads `lead` more rows of x than it stores columns,
/// which the block before it reads, too; lead = 0: y's rows begin with sectors.
template <class T>
__global__ void __launch_bounds__(Sectors<T>::kThreads, sizeof(T) < 4 ? 3 : 4)
    transpose_sectors(const __grid_constant__ TransposeProblem p, const __grid_constant__ Tiles tiles,
                      std::int64_t first_tile, int lead) {
  using S = Sectors<T>;
  constexpr int kPerWord = S::kPerWord, kRows = S::kThreads / S::kWidth, kWarps = S::kThreads / 32;
  constexpr int kSteps = (S::kWords + kRows - 1) / kRows;
  ROOFTILE_SHARED(tile, typename S::Word[S::kWidth][S::kPitch]);
  const TilePlace place = place_of(p, tiles, first_tile + blockIdx.x);
  const int t = static_cast<int>(threadIdx.x), j = t % S::kWidth, row = t / S::kWidth;
  const std::int64_t tile_i = place.down * S::kHeight, first_i = tile_i - lead,
                     rest_i = p.down.size - first_i;
  const std::int64_t first_j = place.across * S::kWidth, rest_j = p.across.size - first_j;
  const int height = S::kHeight + lead;
  const int begin_i = first_i < 0 ? lead : 0, end_i = rest_i < height ? static_cast<int>(rest_i) : height;
  const int width = rest_j < S::kWidth ? static_cast<int>(rest_j) : S::kWidth;

  const auto there = [&](int k) {
    return (k + 1) * kRows * kPerWord <= S::kHeight || (row + k * kRows) * kPerWord < height;
  };
  const std::int64_t x_pitch = p.down.x_stride;
  const T* x = static_cast<const T*>(p.x) + place.x + (first_i + row * kPerWord) * x_pitch + first_j + j;
  T value[kSteps][kPerWord];
  const auto load = [&](auto lives) ROOFTILE_INLINE {
    ROOFTILE_UNROLL for (int k = 0; k < kSteps; ++k) {
      ROOFTILE_UNROLL for (int e = 0; e < kPerWord; ++e) {
        value[k][e] = T{};
        if (there(k) && lives((row + k * kRows) * kPerWord + e))
          value[k][e] = x[e * x_pitch];  // [sectors load]
      }
      x += kRows * kPerWord * x_pitch;
    }
  };
  // Loads with conditions of their own are not all on their way at once (f32 as above: 202 µs).
  const bool inner = begin_i == 0 && end_i == height;
  if (inner && width == S::kWidth)
    load([](int) { return true; });
  else
    load([&](int i) { return i >= begin_i && i < end_i && j < width; });
  ROOFTILE_UNROLL for (int k = 0; k < kSteps; ++k) {
    if (there(k)) tile[j][row + k * kRows] = S::packed(value[k]);  // [sectors in]
  }
  __syncthreads();

  // [sectors]
  // Of most tiles, all words are there.
  const auto store = [&](auto all, auto some) ROOFTILE_INLINE {
    ROOFTILE_UNROLL for (int k = 0; k < S::kWidth / kWarps; ++k) {
      const int out_j = t / 32 + k * kWarps;
      if (out_j >= width) break;
      T* y = static_cast<T*>(p.y) + place.y + (first_j + out_j) * p.across.y_stride + tile_i;
      const unsigned before =
          static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(y) % kSector) / unsigned{sizeof(T)};
      const unsigned from = static_cast<unsigned>(lead) - before,
                     shift = from % kPerWord;  // in the tile's column
      y -= before;
      ROOFTILE_UNROLL for (int w = t % 32; w < S::kHeight / kPerWord; w += 32) {
        const auto low = tile[out_j][from / kPerWord + w];  // [sectors out]
        auto high = low;
        if (shift != 0) high = tile[out_j][from / kPerWord + w + 1];  // [sectors next]
        const auto word = S::shifted(low, high, shift);
        const int i = static_cast<int>(from) + w * kPerWord;
        if (all(i)) {
          reinterpret_cast<typename S::Word*>(y)[w] = word;  // [sectors store]
        } else {
          ROOFTILE_UNROLL for (int e = 0; e < kPerWord; ++e) {
            if (some(i + e)) y[w * kPerWord + e] = S::element(word, e);
          }
        }
      }
    }
  };
  if (inner)
    store([](int) { return true; }, [](int) { return true; });
  else
    store([&](int i) { return i >= begin_i && i + kPerWord <= end_i; },
          [&](int i) { return i >= begin_i && i < end_i; });
  // [/sectors]
}

// ---- any strides

/// A tile has 4096 elements: 64x64, or 16x256 or 32x128 where a matrix is thinner than that.
constexpr int kAnyThreads = 256, kItemsPerThread = 16, kAnyElements = kAnyThreads * kItemsPerThread;
constexpr int kAnyLog = 12, kMinLog = 4;

/// Element by element, lanes along x's neighbours going in, along y's coming out. A row of the tile ends in
/// four bytes that nobody uses, and a column's elements lie in banks that differ.
template <class T>
__global__ void __launch_bounds__(kAnyThreads)
    transpose_any(const __grid_constant__ TransposeProblem p, const __grid_constant__ Tiles tiles,
                  std::int64_t first_tile, int width_log, bool turned) {
  constexpr int kPad = sizeof(T) < 4 ? 4 / int(sizeof(T)) : 1;
  ROOFTILE_SHARED(tile, T[kAnyElements + (kAnyElements >> kMinLog) * kPad]);
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
  T value[kItemsPerThread];
  ROOFTILE_UNROLL for (int k = 0; k < kItemsPerThread; ++k) {
    value[k] = T{};
    if (i + k * i_step < live_i && j + k * j_step < live_j) value[k] = *x;  // [any load]
    x += x_step;
  }
  ROOFTILE_UNROLL for (int k = 0; k < kItemsPerThread; ++k) {
    tile[(i + k * i_step) * pitch + j + k * j_step] = value[k];  // [any in]
  }
  __syncthreads();

  ROOFTILE_UNROLL for (int k = 0; k < kItemsPerThread; ++k) {
    value[k] = tile[down_i * pitch + down_j + k * down_step];  // [any out]
  }
  T* y = static_cast<T*>(p.y) + place.y + (first_i + down_i) * p.down.y_stride +
         (first_j + down_j) * p.across.y_stride;
  ROOFTILE_UNROLL for (int k = 0; k < kItemsPerThread; ++k) {
    if (down_i < live_i && down_j + k * down_step < live_j) *y = value[k];  // [any store]
    y += down_step * p.across.y_stride;
  }
}

/// log₂ of a tile's width: 64, if neither side is less.
int width_log_of(const TransposeProblem& p) {
  const auto log = [](std::int64_t size) {
    int l = kMinLog;
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
  ROOFTILE_TILE void operator()(const Team& team, const auto& part) const {
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
        launch, "transpose", {static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks), kFewThreads},
        transpose_small<T>, p);
  }
  const bool sectors = rows_begin_at(p, true, kSector);
  const auto squares = [&]<int kOut>() {
    using S = Square<T, kOut>;
    return for_tiles(launch, Tiles(p, S::kHeight, S::kWidth), S::kThreads, transpose_squares<T, kOut>, p);
  };
  if (p.side_by_side() && sectors && whole_words(p))
    return std::max(p.down.size, p.across.size) > Square<T, 8>::kHeight ? squares.template operator()<16>()
                                                                        : squares.template operator()<8>();
  // Of others most threads would have nothing to do.
  using S = Sectors<T>;
  if (p.side_by_side() && p.down.size > std::max(S::kHeight, S::kWidth) / 2 &&
      p.across.size > S::kWidth / 2) {
    const int lead = sectors ? 0 : S::kLead;
    return for_tiles(launch, Tiles(p, S::kHeight, S::kWidth, lead), S::kThreads, transpose_sectors<T>, p,
                     lead);
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
    entry<launch_tile>("permute", "tile"),
    entry<ladder::launch_vectorised>("transpose", "05_vectorised"),
    entry<ladder::launch_padded>("transpose", "04_padded"),
    entry<ladder::launch_shared>("transpose", "03_shared"),
    entry<ladder::launch_coalesced_writes>("transpose", "02_coalesced_writes"),
    entry<ladder::launch_naive>("transpose", "01_naive"),
    {},
};

}  // namespace rooftile
