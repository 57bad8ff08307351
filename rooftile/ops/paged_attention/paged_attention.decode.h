#pragma once
// Paged attention on tensor cores: f16 and bf16, on caches of the same or of codes. A block has 16 rows. It
// passes through their keys in steps of 16 keys to a warp, with what a tile of attention.mma.h computes, so
// in its bits: each warp makes the scores of its own 16 keys; the warps' maxima meet in shared memory; each
// makes its weights; and each multiplies all weights of the step with its own channels of the values.
//
// Shared memory has a ring of halves of steps: a step's keys, then its values. Copies run kSlots - 1 halves
// ahead: 64 KiB to a block, two blocks to an SM, where an H200 needs about 40 KiB on their way to each SM.
// A lane looks up the page of one key, a step ahead.
#include "rooftile/ops/paged_attention/paged_attention.codes.h"
#include "rooftile/ops/paged_attention/paged_attention.problem.h"

namespace rooftile::attention_gpu {

/// kSize: channels that there is room for; kCodes: caches hold codes, which wait in the ring as they are.
template <int kSize_, bool kCodes_>
struct DecodeShape {
  static constexpr int kSize = kSize_, kQueries = kDown;
  static constexpr bool kCodes = kCodes_;
  static constexpr int kWarps = kSize == 128 ? 8 : 4, kThreads = kWarps * 32, kBlocks = kSize == 64 ? 4 : 2;
  static constexpr int kKeys = 16 * kWarps, kTiles = kKeys / kMmaKeys<kSize>;  ///< of a step
  static constexpr int kTileWarps = kWarps / kTiles;
  static constexpr int kChannels = kSize / kWarps;            ///< of y, in a warp
  static constexpr int kRow = kSize * 2, kWords = kRow / 16;  ///< bytes, and words of 8 elements
  static constexpr int kNumbers = kKeys * kRow;               ///< bytes of a half
  static constexpr int kHalves = kSize == 64 ? 6 : 3;         ///< that there is room for
  // Of codes one of them holds the half that is multiplied, as numbers.
  static constexpr int kSlots = kCodes ? 2 * (kHalves - 1) : kHalves,
                       kSlot = kCodes ? kNumbers / 2 : kNumbers;
  static constexpr int kRing = kHalves * kNumbers;
  /// Queries, then a step's weights.
  static constexpr int kQueryBytes = kQueries * kRow, kWeightBytes = kWarps * 512;
  static constexpr int kShared = kRing + (kQueryBytes > kWeightBytes ? kQueryBytes : kWeightBytes);
};

/// What the warps of a block tell each other at each step.
template <class Shape>
struct DecodeExchange {
  float most[Shape::kWarps][16];   ///< of each row's scores
  float2 sums[Shape::kWarps][32];  ///< of each lane's weights, of its two rows
};

/// Copies halves of steps into the ring. A warp copies the rows of its own 16 keys.
template <class Shape, class T, class Rows>
class DecodeRing {
 public:
  /// Keys from before `begin` and from `end` on are zeros, as their values are.
  ROOFTILE_TILE DecodeRing(const PagedAttentionProblem& problem, const Rows& k, const Rows& v,
                           std::int64_t begin, std::int64_t end, std::byte* ring)
      : p_(problem), k_(k), v_(v), begin_(begin), end_(end), ring_(ring) {
    step_ = begin / Shape::kKeys;
    look_up();
    ROOFTILE_UNROLL_BY(1) for (int i = 0; i < Shape::kSlots - 1; ++i) fill();
  }
  /// The next half, when all threads' copies of it are there.
  ROOFTILE_TILE const std::byte* keys() {
    if constexpr (Shape::kCodes) __syncthreads();  // the values before were multiplied
    return take(k_, p_.d);
  }
  ROOFTILE_TILE const std::byte* values() { return take(v_, p_.e); }

 private:
  static constexpr int kAtOnce = 32 / Shape::kWords;  ///< rows

  ROOFTILE_TILE static int warp() { return static_cast<int>(threadIdx.x) / 32; }
  ROOFTILE_TILE static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  ROOFTILE_TILE static int word() { return lane() % Shape::kWords; }
  ROOFTILE_TILE static int row(int i) { return warp() * 16 + i * kAtOnce + lane() / Shape::kWords; }
  ROOFTILE_TILE static int padded(std::int64_t size) { return (static_cast<int>(size) + 15) / 16 * 16; }
  /// In a half of numbers.
  ROOFTILE_TILE static int place(int row) { return row * Shape::kRow + ((word() ^ row % 8) * 16); }
  /// In a slot: of codes, words lie as they come.
  ROOFTILE_TILE static int place_in_slot(int row) {
    return Shape::kCodes ? (row * Shape::kWords + word()) * 8 : place(row);
  }

  /// The page of the lane's key.
  ROOFTILE_TILE void look_up() {
    const std::int64_t key = step_ * Shape::kKeys + warp() * 16 + lane() % 16;
    any_ = key >= begin_ && key < end_;
    if (!any_) return;
    const unsigned size = p_.page_size < 0x7fffffff ? static_cast<unsigned>(p_.page_size) : 0x7fffffffu;
    const unsigned index = static_cast<unsigned>(key) / size;
    in_page_ = static_cast<int>(static_cast<unsigned>(key) - index * size);
    page_ = p_.table_at(its_batch(), index);
  }
  ROOFTILE_TILE std::int64_t its_batch() const { return k_.batch; }

  ROOFTILE_TILE void fill() {
    if (step_ * Shape::kKeys < end_) {
      std::byte* const to = ring_ + filled_ * Shape::kSlot;
      if (!of_values_) {
        copy(to, k_, static_cast<int>(p_.d));
      } else {
        copy(to, v_, static_cast<int>(p_.e));
        ++step_;
        look_up();
      }
      of_values_ = !of_values_;
      filled_ = filled_ + 1 == Shape::kSlots ? 0 : filled_ + 1;
    }
    rooftile::cuda::cp_async_commit();
  }
  ROOFTILE_TILE void copy(std::byte* slot, const Rows& from, int size) const {
    using Element = typename Rows::Element;
    constexpr unsigned long long kZeros = 0, kMissing = 1;  // other than any row's address
    unsigned long long mine = kZeros;
    if (any_)
      mine = page_ >= 0 && page_ < p_.pages ? reinterpret_cast<unsigned long long>(from.at(page_, in_page_))
                                            : kMissing;
    const int channels = size - word() * 8;
    const bool whole = p_.words;
    ROOFTILE_UNROLL_BY(kUnroll) for (int i = 0; i < 16 / kAtOnce; ++i) {
      const unsigned long long its = __shfl_sync(0xffffffffu, mine, i * kAtOnce + lane() / Shape::kWords);
      if (word() * 8 >= padded(size)) continue;
      std::byte* const to = slot + place_in_slot(row(i));
      if (its == kMissing) {
        put(to, from.missing() != 0 && channels > 0);
      } else if (whole) {
        const bool copies = its != kZeros && channels > 0;
        const Element* const word_at = copies ? reinterpret_cast<const Element*>(its) + word() * 8
                                              : static_cast<const Element*>(p_.q.data);
        if constexpr (Shape::kCodes)
          rooftile::cuda::cp_async<8>(to, word_at, copies ? 8 : 0);
        else
          rooftile::cuda::cp_async_16(to, word_at, copies ? 16 : 0);
      } else {
        gather(to, its == kZeros ? nullptr : reinterpret_cast<const Element*>(its) + word() * 8 * from.stride,
               from.stride, channels);
      }
    }
  }
  /// A word of NaN, or of zeros.
  ROOFTILE_TILE static void put(std::byte* to, bool nan) {
    const unsigned bits = !nan ? 0 : Shape::kCodes ? 0x7f7f7f7fu : 0x7fff7fffu;  // in all formats
    if constexpr (Shape::kCodes)
      *reinterpret_cast<uint2*>(to) = {bits, bits};
    else
      *reinterpret_cast<uint4*>(to) = {bits, bits, bits, bits};
  }
  template <class Element>
  ROOFTILE_TILE static void gather(std::byte* to, const Element* from, std::int64_t stride, int channels) {
    if (!from || channels <= 0)
      put(to, false);
    else if constexpr (Shape::kCodes)
      *reinterpret_cast<uint2*>(to) = gather_codes(from, stride, channels);
    else
      *reinterpret_cast<uint4*>(to) = tile::gather_word(from, stride, channels, tile::narrow<Element>(0.f));
  }

  ROOFTILE_TILE const std::byte* take(const Rows& from, std::int64_t size) {
    const std::byte* const slot = ring_ + taken_ * Shape::kSlot;
    taken_ = taken_ + 1 == Shape::kSlots ? 0 : taken_ + 1;
    rooftile::cuda::cp_async_wait<Shape::kSlots - 2>();
    if constexpr (Shape::kCodes) {
      // A thread's codes are its own: it alone reads them.
      std::byte* const numbers = ring_ + Shape::kSlots * Shape::kSlot;
      const auto convert = [&](bool large) {  // a constant each time: one branch, not one for each pair
        ROOFTILE_UNROLL_BY(4)
            for (int i = 0; i < 16 / kAtOnce; ++i) * reinterpret_cast<uint4*>(numbers + place(row(i))) =
            numbers_of<T>(*reinterpret_cast<const uint2*>(slot + place_in_slot(row(i))), large);
      };
      if (word() * 8 < padded(size)) from.large() ? convert(true) : convert(false);
      fill();
      __syncthreads();
      return numbers;
    } else {
      __syncthreads();  // all have taken the half before, whose slot is filled next
      fill();
      return slot;
    }
  }

  static constexpr int kUnroll = 16 / kAtOnce < 8 ? 16 / kAtOnce : 8;
  const PagedAttentionProblem& p_;
  const Rows &k_, &v_;
  std::int64_t begin_, end_, step_;
  std::byte* ring_;
  int filled_ = 0, taken_ = 0, page_ = -1, in_page_ = 0;
  bool any_ = false, of_values_ = false;
};

// [decode]
/// A block's rows through all their keys, or one chunk of them. `its` says which rows those are and where
/// they, their keys and values lie.
template <class T, class Shape, class Its>
ROOFTILE_TILE void decode_rows(const PagedAttentionProblem& p, const Its& its) {
  using rooftile::cuda::load_matrix;
  constexpr int kRow = Shape::kRow, kSteps = Shape::kSize / 16, kOut = Shape::kChannels / 16;
  constexpr float kSlack = 8, kShift = RowWeights<T>::kShift;  // attention.mma.h's
  ROOFTILE_DYNAMIC_SHARED(shared);
  ROOFTILE_SHARED(exchange, DecodeExchange<Shape>);
  std::byte* const area = shared + Shape::kRing;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int d = static_cast<int>(p.d), e = static_cast<int>(p.e), group = warp * kOut;
  const std::int64_t begin = its.first(), rows = its.rows();
  const AttentionRange first_keys = its.keys(begin),
                       last_keys = its.keys((begin + 16 < rows ? begin + 16 : rows) - 1);
  AttentionRange all{first_keys.begin, last_keys.end};
  if constexpr (Its::kPart) {
    all = all.within(its.chunk);
    if (all.size() == 0) return;
  }
  if (all.end < all.begin) all.end = all.begin;
  copy_rows<Shape, false>(area, its.q(), begin, Shape::kQueries, rows - begin, d, p.words);
  rooftile::cuda::cp_async_commit();
  DecodeRing<Shape, T, std::remove_cvref_t<decltype(its.k())>> ring(p, its.k(), its.v(), all.begin, all.end,
                                                                    shared);

  // Where a lane's row of each fragment is: 16 queries; the warp's 16 keys; 16 keys by values, turned.
  const int swizzle = lane % 8;
  const int q_place = lane % 16 * kRow + ((lane / 16 ^ swizzle) * 16);
  const int k_place = (warp * 16 + lane % 8 + lane / 16 * 8) * kRow + ((lane / 8 % 2 ^ swizzle) * 16);
  const int v_place = along(lane % 16 * kRow + ((lane / 16 ^ swizzle) * 16), group);
  unsigned held[kSteps][4];
  rooftile::cuda::cp_async_wait<Shape::kSlots - 1>();
  __syncthreads();
  ROOFTILE_UNROLL for (int step = 0; step < kSteps; ++step) {
    if (step * 16 >= d) break;
    load_matrix(held[step], area + along(q_place, step));
  }

  const bool changes = p.softcap != 0;
  const float scale = its.scale(), factor = changes ? kLog2E : scale * kLog2E;
  int from[2], to[2];  // keys that the lane's rows see
  float base[2], l[2], y[2 * kOut][4], total[2 * kOut][4];
  RowWeights<T> total_weights[2];
  ROOFTILE_UNROLL for (int half = 0; half < 2; ++half) {
    const std::int64_t row = begin + half * 8 + lane / 4;
    const AttentionRange range = its.keys(row < rows ? row : rows - 1);
    from[half] = static_cast<int>(range.begin), to[half] = row < rows ? static_cast<int>(range.end) : 0;
    base[half] = -HUGE_VALF, l[half] = 0;
    total_weights[half] = {-HUGE_VALF, 0};
  }
  ROOFTILE_UNROLL for (int g = 0; g < 2 * kOut; ++g) ROOFTILE_UNROLL for (int r = 0; r < 4; ++r) y[g][r] =
      total[g][r] = 0;
  /// A chunk is done.
  const auto end_chunk = [&] {
    ROOFTILE_UNROLL for (int half = 0; half < 2; ++half) {
      const Merge<T> merged(total_weights[half], {base[half], sum_of_row(l[half])});
      ROOFTILE_UNROLL for (int g = 0; g < 2 * kOut; ++g)
          ROOFTILE_UNROLL for (int r = 2 * half; r < 2 * half + 2; ++r) {
        total[g][r] = merged(total[g][r], y[g][r]);
        y[g][r] = 0;
      }
      base[half] = -HUGE_VALF, l[half] = 0;
    }
  };

  int first = static_cast<int>(all.begin / Shape::kKeys) * Shape::kKeys;
  ROOFTILE_UNROLL_BY(1) for (; first < all.end; first += Shape::kKeys) {
    const std::byte* const keys = ring.keys();
    float s[2][4];
    ROOFTILE_UNROLL for (int g = 0; g < 2; ++g) ROOFTILE_UNROLL for (int r = 0; r < 4; ++r) s[g][r] = 0;
    ROOFTILE_UNROLL for (int step = 0; step < kSteps; ++step) {
      if (step * 16 >= d) break;
      unsigned four[4];
      load_matrix(four, keys + along(k_place, step));
      multiply_add<T>(s[0], held[step], four[0], four[1]);
      multiply_add<T>(s[1], held[step], four[2], four[3]);
    }
    // A lane's elements: rows lane / 4 and 8 below, of each 8 keys its lane % 4-th pair.
    if (const int mine = first + warp * 16; changes || mine < last_keys.begin || mine + 16 > first_keys.end) {
      ROOFTILE_UNROLL for (int g = 0; g < 2; ++g) ROOFTILE_UNROLL for (int r = 0; r < 4; ++r) {
        const int key = mine + g * 8 + lane % 4 * 2 + r % 2;
        float& score = s[g][r];
        if (key < from[r / 2] || key >= to[r / 2])
          score = -HUGE_VALF;
        else if (changes)
          score = capped(score * scale, p.softcap);
      }
    }
    ROOFTILE_UNROLL for (int half = 0; half < 2; ++half) {
      const float most = max_of_row(
          fmaxf(fmaxf(s[0][2 * half], s[0][2 * half + 1]), fmaxf(s[1][2 * half], s[1][2 * half + 1])));
      if (lane % 4 == 0) exchange.most[warp][half * 8 + lane / 4] = most;
    }
    __syncthreads();

    // What each tile's sums are multiplied with before it joins them, and the warp's own weights.
    float shrink[Shape::kTiles][2], own[2];
    ROOFTILE_UNROLL for (int half = 0; half < 2; ++half) {
      ROOFTILE_UNROLL for (int t = 0; t < Shape::kTiles; ++t) {
        float most = -HUGE_VALF;
        ROOFTILE_UNROLL for (int w = 0; w < Shape::kTileWarps; ++w) most =
            fmaxf(most, exchange.most[t * Shape::kTileWarps + w][half * 8 + lane / 4]);
        most = fmaf(most, factor, -kShift);
        shrink[t][half] = 1;
        if (most - base[half] > kSlack) {  // not of -inf and -inf: a row that has seen nothing
          shrink[t][half] = rooftile::cuda::exp2_approx_normal(base[half] - most);
          base[half] = most;
        }
        if (warp / Shape::kTileWarps == t) own[half] = base[half];
      }
      if (own[half] == -HUGE_VALF) own[half] = 0;
    }
    float sums[2];
    ROOFTILE_UNROLL for (int half = 0; half < 2; ++half) {
      ROOFTILE_UNROLL for (int g = 0; g < 2; ++g) ROOFTILE_UNROLL for (int one = 0; one < 2; ++one) {
        float& weight = s[g][2 * half + one];
        weight = rooftile::cuda::exp2_approx_normal(fmaf(weight, factor, -own[half]));
      }
      sums[half] = (s[0][2 * half] + s[0][2 * half + 1]) + (s[1][2 * half] + s[1][2 * half + 1]);
    }
    exchange.sums[warp][lane] = {sums[0], sums[1]};
    reinterpret_cast<uint4*>(area)[warp * 32 + lane] = {
        pair_of<T>(s[0][0], s[0][1]), pair_of<T>(s[0][2], s[0][3]), pair_of<T>(s[1][0], s[1][1]),
        pair_of<T>(s[1][2], s[1][3])};
    const std::byte* const values = ring.values();

    ROOFTILE_UNROLL for (int t = 0; t < Shape::kTiles; ++t) {
      SumOfSixteens<Shape::kTileWarps> upper, lower;
      ROOFTILE_UNROLL for (int w = 0; w < Shape::kTileWarps; ++w) {
        const float2 its_sums = exchange.sums[t * Shape::kTileWarps + w][lane];
        upper.of[w] = its_sums.x, lower.of[w] = its_sums.y;
      }
      l[0] = l[0] * shrink[t][0], l[1] = l[1] * shrink[t][1];
      l[0] += upper.sum(), l[1] += lower.sum();
      ROOFTILE_UNROLL for (int g = 0; g < 2 * kOut; ++g) ROOFTILE_UNROLL for (int r = 0; r < 4; ++r)
          y[g][r] *= shrink[t][r / 2];
      ROOFTILE_UNROLL for (int w = t * Shape::kTileWarps; w < (t + 1) * Shape::kTileWarps; ++w) {
        const uint4 word = reinterpret_cast<const uint4*>(area)[w * 32 + lane];
        const unsigned weights[4] = {word.x, word.y, word.z, word.w};
        ROOFTILE_UNROLL for (int g = 0; g < kOut; ++g) {
          if ((group + g) * 16 >= e) break;
          unsigned four[4];
          load_matrix<true>(four, values + along(v_place, g) + w * 16 * kRow);
          multiply_add<T>(y[2 * g], weights, four[0], four[1]);
          multiply_add<T>(y[2 * g + 1], weights, four[2], four[3]);
        }
      }
    }
    if constexpr (!Its::kPart)
      if ((first + Shape::kKeys) % kAttentionChunk == 0) end_chunk();
  }
  rooftile::cuda::cp_async_wait<0>();
  if constexpr (!Its::kPart) end_chunk();

  ROOFTILE_UNROLL for (int half = 0; half < 2; ++half) {
    const std::int64_t row = begin + half * 8 + lane / 4;
    RowWeights<T> weights = total_weights[half];
    if constexpr (Its::kPart) weights = {base[half], sum_of_row(l[half])};
    if (row >= rows) continue;
    if constexpr (Its::kPart) {
      ROOFTILE_UNROLL for (int g = 0; g < 2 * kOut; ++g) {
        const int channel = group * 16 + g * 8 + lane % 4 * 2;
        its.put_part(row, channel, float2{y[g][2 * half], y[g][2 * half + 1]});
      }
      if (lane % 4 == 0 && warp == 0) its.put_weights(row, weights);
    } else {
      const float each = weights.finish(p.sink ? its.sink(row) : -HUGE_VALF, its.value_scale());
      ROOFTILE_UNROLL for (int g = 0; g < 2 * kOut; ++g) ROOFTILE_UNROLL for (int one = 0; one < 2; ++one) {
        const int channel = group * 16 + g * 8 + lane % 4 * 2 + one;
        if (channel < e) its.y().put(row, channel, total[g][2 * half + one] * each + 0.f);
      }
      if (p.lse && lane % 4 == 0 && warp == 0) its.put_lse(row, weights.lse());
    }
  }
}
// [/decode]

}  // namespace rooftile::attention_gpu
