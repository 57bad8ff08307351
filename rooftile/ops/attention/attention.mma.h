#pragma once
// The forward by mma.sync, f16 and bf16 (Dao, FlashAttention-2, arXiv:2307.08691). A warp has 16 or 32
// queries, whose scores, weights and sums never leave its registers. Tiles of keys and values come by
// cp.async into one of two stages while the other is multiplied; ldmatrix brings fragments from there.
//
// Shared memory, in 16-byte words: word w of row r lies at w ^ (r % 8), so that the eight rows which ldmatrix
// reads at once are in all 32 banks. Weights are rounded to the data's dtype to be multiplied with values;
// their sum is of what they were before. All shapes below add up in one order, tile of keys by tile of keys.
#include <type_traits>

#include "rooftile/backend/cuda/ptx.h"
#include "rooftile/ops/attention/attention.gpu.h"
#include "rooftile/ops/attention/attention.softmax.h"
#include "rooftile/tile/cuda/memory.h"

namespace rooftile::attention_gpu {

/// Tiles of a chunk.
template <int kSize>
inline constexpr int kMmaTiles = kAttentionChunk / kMmaKeys<kSize>;

/// kSize: channels that there is room for; kTall: 16s of queries to a warp; kHold: queries in registers, not
/// in shared memory; kBlocks: of an SM.
template <int kSize_, int kTall_, int kWarps_, bool kHold_, int kBlocks_>
struct MmaShape {
  static constexpr int kSize = kSize_, kTall = kTall_, kThreads = kWarps_ * 32, kBlocks = kBlocks_;
  static constexpr bool kHold = kHold_;
  static constexpr int kKeys = kMmaKeys<kSize>;
  static constexpr int kQueries = 16 * kTall * kWarps_;
  static constexpr int kRow = kSize * 2, kWords = kRow / 16;      ///< bytes and words of a row
  static constexpr int kSide = kKeys * kRow, kStage = 2 * kSide;  ///< keys, then values
  static constexpr int kQueryBytes = kQueries * kRow;
  /// Queries that go to registers pass through the second stage, or through both.
  static constexpr int kQueryPlace = kHold ? 2 * kStage - kQueryBytes : 2 * kStage;
  static constexpr bool kApart = kQueryPlace >= kStage;  ///< the first stage is free meanwhile
  static constexpr int kShared = kQueryPlace + kQueryBytes;
};

/// Whole words, heads of kSize channels on both sides, no bias, cap and dropout.
template <int kSize>
using PlainShape =
    MmaShape<kSize, kSize <= 128 ? 2 : 1, kSize <= 128 ? 4 : 8, kSize != 128, kSize <= 128 ? 2 : 1>;
/// All else.
template <int kSize>
using AnyShape = MmaShape<kSize, 1, 4, kSize <= 128, kSize <= 128 ? 2 : 1>;
template <class T>
ROOFTILE_TILE void multiply_add(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  const unsigned b[2] = {b0, b1};
  if constexpr (std::is_same_v<T, bf16>)
    rooftile::cuda::mma_bf16(d, a, b);
  else
    rooftile::cuda::mma_f16(d, a, b);
}
/// Two neighbours in one register.
template <class T>
ROOFTILE_TILE unsigned pair_of(float low, float high) {
  unsigned bits;
  if constexpr (std::is_same_v<T, bf16>) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    memcpy(&bits, &pair, 4);
  } else {
    const __half2 pair = __floats2half2_rn(low, high);
    memcpy(&bits, &pair, 4);
  }
  return bits;
}

/// softcap · tanh(x / softcap) with an error of a few ulp of softcap.
ROOFTILE_TILE float capped(float x, float softcap) {
  const float power_of = rooftile::cuda::exp2_approx(x / softcap * (2 * kLog2E));
  const float bent = softcap * (1 - 2 * rooftile::cuda::reciprocal_approx(1 + power_of));
  return fabsf(x) <= softcap * 0x1p-12f ? x : bent;  // itself where tanh bends by less than an f32 tells
}

/// What dropout keeps of a warp's 16 rows by 8·kGroups columns: bit 4·g + r is of a lane's r-th element in
/// the g-th fragment. Rows are queries and columns keys, or (kKeys) the other way; they begin at `query` and
/// `key`. Each counter is one lane's.
template <bool kKeys, int kGroups, class CounterOf>
ROOFTILE_TILE unsigned kept_of_warp(const AttentionDropout& dropout, CounterOf counter_of, std::int64_t query,
                                    std::int64_t key) {
  static_assert(kGroups <= 8);
  const int lane = static_cast<int>(threadIdx.x) % 32, place = kKeys ? lane / 4 % 4 : lane % 2;
  const PhiloxStream stream = dropout.numbers.stream();
  unsigned mine = 0;
  ROOFTILE_UNROLL_BY(2) for (int g = 0; g < kGroups; ++g) {
    const std::int64_t i = kKeys ? query + g * 8 + lane % 4 * 2 + place % 2 : query + place * 8 + lane / 4;
    const std::int64_t j = kKeys ? key + place / 2 * 8 + lane / 4 : key + g * 8 + lane % 4 * 2;
    mine |= kept_four(dropout, stream, counter_of(i) + static_cast<std::uint64_t>(j / 4)) << 4 * g;
  }
  if constexpr (kKeys) return exchange_kept(mine, place, 4);
  // Two lanes have two keys each of the same four: one has taken the upper row's, one the lower row's.
  const unsigned other = __shfl_xor_sync(0xffffffffu, mine, 1);
  const unsigned upper = (place == 0 ? mine : other) >> 2 * place & 0x33333333u;
  const unsigned lower = (place == 0 ? other : mine) >> 2 * place & 0x33333333u;
  return upper | lower << 2;
}

/// A rare way, kept apart: it costs the others no code.
template <class Element>
__device__ __noinline__ uint4 gather_apart(const Element* from, std::int64_t stride, std::int64_t live) {
  return tile::gather_word(from, stride, live, tile::narrow<Element>(0.f));
}

/// Rows from `first` on to shared memory; zeros past the `live`-th, and in channels past `size` up to the
/// next multiple of 16. kPlain: rows of kSize channels in whole words.
template <class Shape, bool kPlain, class From>
ROOFTILE_TILE void copy_rows(std::byte* to, const From& from, std::int64_t first, int rows, std::int64_t live,
                             int size, bool words) {
  constexpr int kWords = Shape::kWords, kStep = Shape::kThreads / kWords;  // rows
  const int thread = static_cast<int>(threadIdx.x), word = thread % kWords;
  const int count = live < rows ? static_cast<int>(live) : rows;
  const auto place = [&](int row) { return row * Shape::kRow + ((word ^ row % 8) * 16); };
  if constexpr (kPlain) {
    const auto* its = from.row(first + thread / kWords) + word * 8;
    ROOFTILE_UNROLL for (int i = 0; i < rows; i += kStep) {
      const int row = thread / kWords + i;
      rooftile::cuda::cp_async_16(to + place(row), its, row < count ? 16 : 0);
      its += kStep * from.row_stride;
    }
  } else {
    if (word * 8 >= (size + 15) / 16 * 16) return;
    const int channels = size - word * 8;
    // A row that is nowhere holds zeros or NaN.
    const auto other = [&](int row) {
      const unsigned bits = row < count && channels > 0 && from.missing() != 0 ? 0x7fff7fffu : 0;
      return uint4{bits, bits, bits, bits};
    };
    const auto at = [&](int row) { return reinterpret_cast<uint4*>(to + place(row)); };
    if (words) {
      ROOFTILE_UNROLL_BY(4) for (int row = thread / kWords; row < rows; row += kStep) {
        const auto* const its = row < count && channels > 0 ? from.row(first + row) : nullptr;
        if (its)
          rooftile::cuda::cp_async_16(at(row), its + word * 8);
        else
          *at(row) = other(row);
      }
      return;
    }
    ROOFTILE_UNROLL_BY(1) for (int row = thread / kWords; row < rows; row += kStep) {
      const auto* const its = row < count ? from.row(first + row) : nullptr;
      using Element = std::remove_cvref_t<decltype(*its)>;
      const uint4 word_of =
          its ? gather_apart<Element>(its + word * 8 * from.stride, from.stride, channels) : other(row);
      *at(row) = word_of;
    }
  }
}

/// Two words further along a row, `step` times: a swizzle is within eight words, so past these one adds.
ROOFTILE_TILE int along(int place, int step) { return (place ^ step % 4 * 32) + step / 4 * 128; }

// [forward]
/// A block's queries through all their keys. `its` says which rows those are and where
/// they, their keys and values lie; a row's bits follow from its keys alone.
template <class T, class Shape, bool kPlain, class Its>
ROOFTILE_TILE void forward_mma(const AttentionProblem& p, const Its& its) {
  using rooftile::cuda::load_matrix;
  constexpr int kTall = Shape::kTall, kKeys = Shape::kKeys, kRow = Shape::kRow;
  constexpr int kSteps = Shape::kSize / 16, kKeyTiles = kKeys / 16, kOut = Shape::kSize / 16;
  constexpr int kTiles = kMmaTiles<Shape::kSize>;
  ROOFTILE_DYNAMIC_SHARED(shared);
  std::byte* const queries = shared + Shape::kQueryPlace;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int d = static_cast<int>(p.d), e = static_cast<int>(p.e);
  const int above = warp * 16 * kTall;  // rows of the block before the warp's
  const std::int64_t begin = its.first(), rows = its.rows(), length = its.length();
  const auto last_of = [&](std::int64_t end) { return (end < rows ? end : rows) - 1; };

  // Tiles of keys that some of the block's rows see, and some of the warp's; and those that all of the warp's
  // rows see whole. Counted in tiles, all of them fit an int.
  const auto tile_of = [](std::int64_t key) { return static_cast<int>(key / kKeys); };
  const auto end_of = [](std::int64_t key) { return static_cast<int>((key + kKeys - 1) / kKeys); };
  const std::int64_t mine = begin + above;
  int n = tile_of(its.keys(begin).begin), some = 0, some_end = 0, whole = 0, whole_end = 0;
  int end = end_of(its.keys(last_of(begin + Shape::kQueries)).end);
  if (mine < rows) {
    const AttentionRange low = its.keys(mine), high = its.keys(last_of(mine + 16 * kTall));
    some = tile_of(low.begin), some_end = end_of(high.end);
    whole = end_of(high.begin), whole_end = tile_of(low.end);
  }
  const auto copy = [&](int stage, int which) {
    std::byte* const to = shared + stage * Shape::kStage;
    const std::int64_t first = std::int64_t{which} * kKeys;
    copy_rows<Shape, kPlain>(to, its.k(), first, kKeys, length - first, d, p.words);
    copy_rows<Shape, kPlain>(to + Shape::kSide, its.v(), first, kKeys, length - first, e, p.words);
    rooftile::cuda::cp_async_commit();
  };
  copy_rows<Shape, kPlain>(queries, its.q(), begin, Shape::kQueries, rows - begin, d, p.words);
  rooftile::cuda::cp_async_commit();
  if (Shape::kApart && n < end) copy(0, n);

  // Where a lane's row of each fragment is: 16 queries; 16 keys by channels; 16 keys by values, turned.
  const int swizzle = lane % 8;
  const int q_place = (above + lane % 16) * kRow + ((lane / 16 ^ swizzle) * 16);
  const int k_place = (lane % 8 + lane / 16 * 8) * kRow + ((lane / 8 % 2 ^ swizzle) * 16);
  const int v_place = Shape::kSide + lane % 16 * kRow + ((lane / 16 ^ swizzle) * 16);

  unsigned held[Shape::kHold ? kTall : 1][Shape::kHold ? kSteps : 1][4];
  if constexpr (Shape::kHold) {
    if (Shape::kApart && n < end)
      rooftile::cuda::cp_async_wait<1>();
    else
      rooftile::cuda::cp_async_wait<0>();
    __syncthreads();
    ROOFTILE_UNROLL for (int step = 0; step < kSteps; ++step) {
      if (!kPlain && step * 16 >= d) break;
      ROOFTILE_UNROLL for (int i = 0; i < kTall; ++i)
          load_matrix(held[i][step], queries + along(q_place, step) + i * 16 * kRow);
    }
    if constexpr (!Shape::kApart) {
      __syncthreads();
      if (n < end) copy(0, n);
    }
  }

  const bool changes = !kPlain && (p.softcap != 0 || its.has_bias());
  const float scale = its.scale(),
              factor = changes ? kLog2E : scale * kLog2E;  // from a score to its power of 2
  OnlineSoftmax<T> softmax[kTall];
  float y[kTall][2 * kOut][4];
  ROOFTILE_UNROLL for (int i = 0; i < kTall; ++i) {
    ROOFTILE_UNROLL for (int g = 0; g < 2 * kOut; ++g) ROOFTILE_UNROLL for (int r = 0; r < 4; ++r)
        y[i][g][r] = 0;
  }

  // Of the chunks before the one in registers: seldom needed, so in memory. Of each 16 rows a lane's two
  // rows' weights, then its sums.
  constexpr int kMemory = 2 * kOut + 1;
  float4 before[kTall * kMemory];
  /// A chunk is done. It joins those before, if there are any, and stays in registers or, where another one
  /// begins, does not.
  const auto end_chunk = [&](bool has_before, bool another) {
    ROOFTILE_UNROLL for (int i = 0; i < kTall; ++i) {
      float4* const memory = before + unknown(i * kMemory);
      RowWeights<T> weights[2] = {softmax[i].weights(0), softmax[i].weights(1)};
      if (has_before) {
        RowWeights<T> total[2] = {{memory->x, memory->y}, {memory->z, memory->w}};
        const Merge<T> merge[2] = {{total[0], weights[0]}, {total[1], weights[1]}};
        weights[0] = total[0], weights[1] = total[1];
        ROOFTILE_UNROLL for (int g = 0; g < 2 * kOut; ++g) add_four(y[i][g], memory[1 + g], merge);
      }
      if (another) {
        ROOFTILE_UNROLL for (int g = 0; g < 2 * kOut; ++g) {
          memory[1 + g] = {y[i][g][0], y[i][g][1], y[i][g][2], y[i][g][3]};
          ROOFTILE_UNROLL for (int r = 0; r < 4; ++r) y[i][g][r] = 0;
        }
        *memory = {weights[0].most, weights[0].sum, weights[1].most, weights[1].sum};
        weights[0] = weights[1] = {-HUGE_VALF, 0};
      }
      softmax[i].row[0] = weights[0], softmax[i].row[1] = weights[1];
    }
  };

  int stage = 0;
  ROOFTILE_UNROLL_BY(1) for (; n < end; ++n, stage ^= 1) {
    rooftile::cuda::cp_async_wait<0>();
    __syncthreads();  // the tile is here for all, and all have read the one before
    if (n + 1 < end) copy(stage ^ 1, n + 1);
    if (n < some || n >= some_end) continue;
    const std::byte* const tile = shared + stage * Shape::kStage;

    float s[kTall][2 * kKeyTiles][4];
    ROOFTILE_UNROLL for (int i = 0; i < kTall; ++i) ROOFTILE_UNROLL for (int g = 0; g < 2 * kKeyTiles; ++g)
        ROOFTILE_UNROLL for (int r = 0; r < 4; ++r) s[i][g][r] = 0;
    ROOFTILE_UNROLL for (int step = 0; step < kSteps; ++step) {
      if (!kPlain && step * 16 >= d) break;
      unsigned loaded[Shape::kHold ? 1 : kTall][4];
      if constexpr (!Shape::kHold) {
        ROOFTILE_UNROLL for (int i = 0; i < kTall; ++i)
            load_matrix(loaded[i], queries + along(q_place, step) + i * 16 * kRow);
      }
      ROOFTILE_UNROLL for (int g = 0; g < kKeyTiles; ++g) {
        unsigned keys[4];
        load_matrix(keys, tile + along(k_place, step) + g * 16 * kRow);
        ROOFTILE_UNROLL for (int i = 0; i < kTall; ++i) {
          const unsigned(&q)[4] = Shape::kHold ? held[Shape::kHold ? i : 0][Shape::kHold ? step : 0]
                                               : loaded[Shape::kHold ? 0 : i];
          multiply_add<T>(s[i][2 * g], q, keys[0], keys[1]);
          multiply_add<T>(s[i][2 * g + 1], q, keys[2], keys[3]);
        }
      }
    }

    // A lane's elements: rows lane / 4 and 8 below, of each 8 keys its lane % 4-th pair.
    if (changes || n < whole || n >= whole_end) {
      const std::int64_t first = std::int64_t{n} * kKeys;
      ROOFTILE_UNROLL for (int i = 0; i < kTall; ++i) ROOFTILE_UNROLL for (int half = 0; half < 2; ++half) {
        const std::int64_t row = mine + i * 16 + half * 8 + lane / 4;
        const bool live = row < rows;
        const AttentionRange range = its.keys(live ? row : rows - 1);
        const auto within = [&](std::int64_t key) {
          const std::int64_t at = key - first;
          return at < 0 ? 0 : at > kKeys ? kKeys : static_cast<int>(at);
        };
        const int from = within(range.begin), to = live ? within(range.end) : 0;
        ROOFTILE_UNROLL for (int g = 0; g < 2 * kKeyTiles; ++g)
            ROOFTILE_UNROLL for (int one = 0; one < 2; ++one) {
          const int key = g * 8 + lane % 4 * 2 + one;
          float& score = s[i][g][2 * half + one];
          if (key < from || key >= to) {
            score = -HUGE_VALF;
          } else if (changes) {
            score *= scale;
            if (p.softcap != 0) score = capped(score, p.softcap);
            score = its.biased(score, row, first + key);
          }
        }
      }
    }

    float shrink[kTall][2];
    bool grew = false;
    ROOFTILE_UNROLL for (int i = 0; i < kTall; ++i) grew |= softmax[i].template step<kKeys>(
        [&](int at) -> float& { return s[i][at / 4][at % 4]; }, factor, shrink[i]);
    if (__any_sync(0xffffffffu, grew)) {
      ROOFTILE_UNROLL for (int i = 0; i < kTall; ++i) ROOFTILE_UNROLL for (int g = 0; g < 2 * kOut; ++g)
          ROOFTILE_UNROLL for (int r = 0; r < 4; ++r) y[i][g][r] *= shrink[i][r / 2];
    }
    if constexpr (!kPlain && Its::kDrops)
      if (p.dropout) {
        ROOFTILE_UNROLL for (int i = 0; i < kTall; ++i) {
          const unsigned kept = kept_of_warp<false, 2 * kKeyTiles>(
              p.dropout, [&](std::int64_t row) { return its.counter(row); }, mine + i * 16,
              std::int64_t{n} * kKeys);
          ROOFTILE_UNROLL for (int g = 0; g < 2 * kKeyTiles; ++g)
              ROOFTILE_UNROLL for (int r = 0; r < 4; ++r) {
            if (!(kept >> (4 * g + r) & 1)) s[i][g][r] = 0;
          }
        }
      }

    // [values]
    // What a product left in a lane is, in pairs, what the next takes: rows of weights by keys.
    ROOFTILE_UNROLL for (int step = 0; step < kKeyTiles; ++step) {
      unsigned weights[kTall][4];
      ROOFTILE_UNROLL for (int i = 0; i < kTall; ++i) ROOFTILE_UNROLL for (int r = 0; r < 4; ++r) {
        const float(&four)[4] = s[i][2 * step + r / 2];
        weights[i][r] = pair_of<T>(four[r % 2 * 2], four[r % 2 * 2 + 1]);
      }
      ROOFTILE_UNROLL for (int g = 0; g < kOut; ++g) {
        if (!kPlain && g * 16 >= e) break;
        unsigned values[4];
        load_matrix<true>(values, tile + along(v_place, g) + step * 16 * kRow);
        ROOFTILE_UNROLL for (int i = 0; i < kTall; ++i) {
          multiply_add<T>(y[i][2 * g], weights[i], values[0], values[1]);
          multiply_add<T>(y[i][2 * g + 1], weights[i], values[2], values[3]);
        }
      }
    }
    // [/values]
    if ((n + 1) % kTiles == 0 && n + 1 < some_end) end_chunk(n / kTiles > some / kTiles, true);
  }
  rooftile::cuda::cp_async_wait<0>();

  end_chunk((some_end - 1) / kTiles > some / kTiles, false);

  ROOFTILE_UNROLL for (int i = 0; i < kTall; ++i) ROOFTILE_UNROLL for (int half = 0; half < 2; ++half) {
    const std::int64_t row = mine + i * 16 + half * 8 + lane / 4;
    RowWeights<T> weights = softmax[i].row[half];
    if (row >= rows) continue;
    const float each = weights.finish(p.sink ? its.sink(row) : -HUGE_VALF, its.value_scale());
    // Of zeros none is negative: a sum that underflowed is -0 or, where keys that a query does not see came
    // after it, +0.
    ROOFTILE_UNROLL for (int g = 0; g < 2 * kOut; ++g) {
      const int channel = g * 8 + lane % 4 * 2;
      const float low = y[i][g][2 * half] * each + 0.f, high = y[i][g][2 * half + 1] * each + 0.f;
      if constexpr (kPlain) {
        *reinterpret_cast<unsigned*>(const_cast<T*>(its.y().row(row)) + channel) = pair_of<T>(low, high);
      } else {
        if (channel < e) its.y().put(row, channel, low);
        if (channel + 1 < e) its.y().put(row, channel + 1, high);
      }
    }
    if (p.lse && lane % 4 == 0) its.put_lse(row, weights.lse());
  }
}
// [/forward]

/// Of how many heads blocks run side by side, so that what they pass through stays in L2, keys and values (of
/// blocks of keys: queries and dy): 12 MiB of them, 32 where a mask leaves most blocks less to do.
inline std::int64_t heads_together(const AttentionProblem& p, bool of_keys = false) {
  const std::int64_t budget = (p.left < 0 && p.right < 0 ? std::int64_t{12} : 32) << 20;
  const std::int64_t bytes = (of_keys ? p.s * p.group() : p.t / p.group()) * (p.d + p.e) * 2,
                     all = p.b * (of_keys ? p.g : p.h);
  return bytes == 0 || budget / bytes > all ? all : budget / bytes > 1 ? budget / bytes : 1;
}
/// Whether an operand's rows are whole 16-byte words.
inline bool in_words(const AttentionOperand& o, std::int64_t channels) {
  bool whole = channels % 8 == 0 && o.stride[3] == 1 && reinterpret_cast<std::uintptr_t>(o.data) % 16 == 0;
  for (int i = 0; i < 3; ++i) whole = whole && o.stride[i] % 8 == 0;
  return whole;
}

template <class Shape, class Problem, class Kernel>
Status launch_mma(const CudaLaunch& launch, const char* function, const Problem& p, std::int64_t heads,
                  std::int64_t rows, Kernel kernel) {
  return launch_tiles(launch, function, p, heads, rows, Shape::kQueries, Shape::kThreads, Shape::kShared,
                      kernel);
}

}  // namespace rooftile::attention_gpu
