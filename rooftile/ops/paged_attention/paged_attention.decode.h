#pragma once
// Paged attention on tensor cores: f16 and bf16, on caches of the same or of codes. A block has 16 rows. It
// passes through their keys in steps of 16 keys to a warp, with what a tile of attention.mma.h computes, so
// in its bits: each warp makes the scores of its own 16 keys; the warps' maxima meet in shared memory; each
// makes its weights; and each multiplies all weights of the step with its own channels of the values.
//
// Shared memory has a ring of halves of steps: a step's keys, then its values. Copies run kSlots - 1 halves
// ahead: 64 KiB to a block, two blocks to an SM, where an H200 needs about 40 KiB in flight per SM.
// A lane looks up the page of one key, a step ahead.
#include "rooftile/ops/paged_attention/paged_attention.codes.h"
#include "rooftile/ops/paged_attention/paged_attention.problem.h"

namespace rooftile::attention_gpu {

/// kSize: channels that there is room for; kCodes: caches hold codes, which wait in the ring as they are;
/// kWide: an SM has 227 KiB, not only the 99 of every GPU from sm_80 on. Bits are the same.
template <int kSize_, bool kCodes_, bool kWide>
struct DecodeShape {
  static constexpr int kSize = kSize_, kQueries = kDown;
  static constexpr bool kCodes = kCodes_;
  static constexpr int kWarps = kWide && kSize == 128 ? 8 : 4, kThreads = kWarps * 32,
                       kBlocks = kSize == 64 ? 4 : 2;
  static constexpr int kKeys = 16 * kWarps, kTiles = kKeys / kMmaKeys<kSize>;  ///< of a step
  static constexpr int kTileWarps = kWarps / kTiles;
  static constexpr int kChannels = kSize / kWarps;            ///< of y, in a warp
  static constexpr int kRow = kSize * 2, kWords = kRow / 16;  ///< bytes, and words of 8 elements
  static constexpr int kNumbers = kKeys * kRow;               ///< bytes of a half
  static constexpr int kHalves = kWide ? 3 : kSize == 64 ? 6 : kSize == 128 ? 5 : 2;  ///< there is room for
  // Of codes one of them holds the half that is multiplied, as numbers.
  static constexpr int kSlots = kCodes ? 2 * (kHalves - 1) : kHalves,
                       kSlot = kCodes ? kNumbers / 2 : kNumbers;
  static constexpr int kRing = kHalves * kNumbers;
  static constexpr int kQueryBytes = kQueries * kRow, kWeightBytes = kWarps * 512;  ///< behind the ring
  static constexpr int kShared = kRing + kQueryBytes + kWeightBytes;
  static_assert(kShared + kWarps * 320 <= (kWide ? 113 : 99) * 1024);
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
  ROOFTILE_TILE DecodeRing(const PagedAttentionProblem& problem, const Rows& k, const Rows& v, int begin,
                           int end, std::byte* ring)
      : p_(problem), k_(k), v_(v), begin_(begin), end_(end), ring_(ring) {
    next_ = begin / Shape::kKeys * Shape::kKeys;
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
    const int key = next_ + warp() * 16 + lane() % 16;
    any_ = key >= begin_ && key < end_;
    if (!any_) return;
    const unsigned size = p_.page_size < 0x7fffffff ? static_cast<unsigned>(p_.page_size) : 0x7fffffffu;
    const unsigned index = static_cast<unsigned>(key) / size;
    in_page_ = static_cast<int>(static_cast<unsigned>(key) - index * size);
    page_ = p_.table_at(k_.batch, index);
  }

  // Once in a kernel for keys and values, the rare ways apart: of a short cache, reading a kernel's code
  // takes longer than the keys.
  ROOFTILE_TILE void fill() {
    if (next_ < end_) {
      copy(ring_ + filled_ * Shape::kSlot);
      if (of_values_) {
        next_ += Shape::kKeys;
        look_up();
      }
      of_values_ = !of_values_;
      filled_ = filled_ + 1 == Shape::kSlots ? 0 : filled_ + 1;
    }
    rooftile::cuda::cp_async_commit();
  }
  ROOFTILE_TILE void copy(std::byte* slot) const {
    using Element = typename Rows::Element;
    constexpr unsigned long long kZeros = 0, kMissing = 1;  // other than any row's address
    const int size = static_cast<int>(of_values_ ? p_.e : p_.d);
    unsigned long long mine = kZeros;
    if (any_ && page_ >= 0 && page_ < p_.pages)
      mine =
          reinterpret_cast<unsigned long long>(of_values_ ? v_.at(page_, in_page_) : k_.at(page_, in_page_));
    else if (any_)
      mine = kMissing;
    const int channels = size - word() * 8;
    const bool whole = p_.words;
    ROOFTILE_UNROLL_BY(kUnroll) for (int i = 0; i < 16 / kAtOnce; ++i) {
      const unsigned long long its = __shfl_sync(0xffffffffu, mine, i * kAtOnce + lane() / Shape::kWords);
      if (word() * 8 >= padded(size)) continue;
      std::byte* const to = slot + place_in_slot(row(i));
      if (whole && its != kMissing) {
        const bool copies = its != kZeros && channels > 0;
        const Element* const word_at = copies ? reinterpret_cast<const Element*>(its) + word() * 8
                                              : static_cast<const Element*>(p_.q.data);
        if constexpr (Shape::kCodes)
          rooftile::cuda::cp_async<8>(to, word_at, copies ? 8 : 0);
        else
          rooftile::cuda::cp_async_16(to, word_at, copies ? 16 : 0);
      } else {
        const std::int64_t stride = of_values_ ? v_.stride : k_.stride;
        const Element* const from = reinterpret_cast<const Element*>(its) + word() * 8 * stride;
        const float missing = of_values_ ? v_.missing() : k_.missing();
        put_apart(to, its > kMissing && channels > 0 ? from : nullptr, stride, channels,
                  its == kMissing && missing != 0 && channels > 0);
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
  /// Elements one by one; NaN or zeros where `from` is null.
  template <class Element>
  __device__ __noinline__ static void put_apart(std::byte* to, const Element* from, std::int64_t stride,
                                                int channels, bool nan) {
    if (!from) return put(to, nan);
    if constexpr (Shape::kCodes) {
      const uint2 word = gather_codes(from, stride, channels);
      *reinterpret_cast<uint2*>(to) = word;
    } else {
      const uint4 word = tile::gather_word(from, stride, channels, tile::narrow<Element>(0.f));
      *reinterpret_cast<uint4*>(to) = word;
    }
  }

  ROOFTILE_TILE const std::byte* take(const Rows& from, std::int64_t size) {
    const std::byte* const slot = ring_ + taken_ * Shape::kSlot;
    taken_ = taken_ + 1 == Shape::kSlots ? 0 : taken_ + 1;
    rooftile::cuda::cp_async_wait<Shape::kSlots - 2>();
    if constexpr (Shape::kCodes) {
      // A thread's codes are its own: it alone reads them.
      std::byte* const numbers = ring_ + Shape::kSlots * Shape::kSlot;
      const auto convert = [&](bool large) {  // a constant each time: one branch, not one for each pair
        ROOFTILE_UNROLL_BY(4) for (int i = 0; i < 16 / kAtOnce; ++i) {
          const uint4 word =
              numbers_of<T>(*reinterpret_cast<const uint2*>(slot + place_in_slot(row(i))), large);
          *reinterpret_cast<uint4*>(numbers + place(row(i))) = word;
        }
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

  static constexpr int kUnroll = 16 / kAtOnce < 4 ? 16 / kAtOnce : 4;
  const PagedAttentionProblem& p_;
  const Rows &k_, &v_;
  int begin_, end_, next_ = 0;
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
  std::byte* const queries = shared + Shape::kRing;
  uint4* const all_weights = reinterpret_cast<uint4*>(queries + Shape::kQueryBytes);  // [warp][lane]
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
  copy_rows<Shape, false>(queries, its.q(), begin, Shape::kQueries, rows - begin, d, p.words);
  rooftile::cuda::cp_async_commit();
  const int end = static_cast<int>(all.end);
  DecodeRing<Shape, T, std::remove_cvref_t<decltype(its.k())>> ring(p, its.k(), its.v(),
                                                                    static_cast<int>(all.begin), end, shared);

  // Where a lane's row of each fragment is: 16 queries; the warp's 16 keys; 16 keys by values, turned.
  const int swizzle = lane % 8;
  const int q_place = lane % 16 * kRow + ((lane / 16 ^ swizzle) * 16);
  const int k_place = (warp * 16 + lane % 8 + lane / 16 * 8) * kRow + ((lane / 8 % 2 ^ swizzle) * 16);
  const int v_place = along(lane % 16 * kRow + ((lane / 16 ^ swizzle) * 16), group);

  const bool changes = p.softcap != 0;
  const float scale = its.scale(), factor = changes ? kLog2E : scale * kLog2E;
  const int whole = static_cast<int>(last_keys.begin), whole_end = static_cast<int>(first_keys.end);
  int from[2], to[2];  // keys that the lane's rows see
  float base[2], l[2], y[2 * kOut][4];
  ROOFTILE_UNROLL for (int side = 0; side < 2; ++side) {
    const std::int64_t row = begin + side * 8 + lane / 4;
    const AttentionRange range = its.keys(row < rows ? row : rows - 1);
    from[side] = static_cast<int>(range.begin), to[side] = row < rows ? static_cast<int>(range.end) : 0;
    base[side] = -HUGE_VALF, l[side] = 0;
  }
  ROOFTILE_UNROLL for (int g = 0; g < 2 * kOut; ++g) ROOFTILE_UNROLL for (int r = 0; r < 4; ++r) y[g][r] = 0;
  // The chunks before: seldom needed, so in memory. The lane's two rows' weights, then its sums.
  float4 before[1 + 2 * kOut];
  ROOFTILE_UNROLL for (int i = 0; i <= 2 * kOut; ++i) before[unknown(i)] = {0, 0, 0, 0};
  before[unknown(0)] = {-HUGE_VALF, 0, -HUGE_VALF, 0};
  /// A chunk is done: it joins those before, and another begins or (last) the total stays in registers.
  const auto end_chunk = [&](bool last) {
    float4* const total = before + unknown(0);
    RowWeights<T> upper{total->x, total->y}, lower{total->z, total->w};
    const Merge<T> up(upper, {base[0], sum_of_row(l[0])}), low(lower, {base[1], sum_of_row(l[1])});
    *total = {upper.most, upper.sum, lower.most, lower.sum};
    base[0] = last ? upper.most : -HUGE_VALF, l[0] = last ? upper.sum : 0;
    base[1] = last ? lower.most : -HUGE_VALF, l[1] = last ? lower.sum : 0;
    ROOFTILE_UNROLL for (int g = 0; g < 2 * kOut; ++g) {
      const float4 sum = total[1 + g];
      float(&four)[4] = y[g];
      const float4 both{up(sum.x, four[0]), up(sum.y, four[1]), low(sum.z, four[2]), low(sum.w, four[3])};
      total[1 + g] = both;
      four[0] = last ? both.x : 0, four[1] = last ? both.y : 0;
      four[2] = last ? both.z : 0, four[3] = last ? both.w : 0;
    }
  };

  int first = static_cast<int>(all.begin / Shape::kKeys) * Shape::kKeys;
  ROOFTILE_UNROLL_BY(1) for (; first < end; first += Shape::kKeys) {
    const std::byte* const keys = ring.keys();
    float s[2][4];
    ROOFTILE_UNROLL for (int g = 0; g < 2; ++g) ROOFTILE_UNROLL for (int r = 0; r < 4; ++r) s[g][r] = 0;
    ROOFTILE_UNROLL for (int step = 0; step < kSteps; ++step) {
      if (step * 16 >= d) break;
      unsigned q[4], four[4];
      load_matrix(q, queries + along(q_place, step));
      load_matrix(four, keys + along(k_place, step));
      multiply_add<T>(s[0], q, four[0], four[1]);
      multiply_add<T>(s[1], q, four[2], four[3]);
    }
    // A lane's elements: rows lane / 4 and 8 below, of each 8 keys its lane % 4-th pair.
    if (const int mine = first + warp * 16; changes || mine < whole || mine + 16 > whole_end) {
      ROOFTILE_UNROLL for (int g = 0; g < 2; ++g) ROOFTILE_UNROLL for (int r = 0; r < 4; ++r) {
        const int key = mine + g * 8 + lane % 4 * 2 + r % 2;
        float& score = s[g][r];
        if (key < from[r / 2] || key >= to[r / 2])
          score = -HUGE_VALF;
        else if (changes)
          score = capped(score * scale, p.softcap);
      }
    }
    ROOFTILE_UNROLL for (int side = 0; side < 2; ++side) {
      const float most = max_of_row(
          fmaxf(fmaxf(s[0][2 * side], s[0][2 * side + 1]), fmaxf(s[1][2 * side], s[1][2 * side + 1])));
      if (lane % 4 == 0) exchange.most[warp][side * 8 + lane / 4] = most;
    }
    __syncthreads();

    // What each tile's sums are multiplied with before it joins them, and the warp's own weights.
    float shrink[Shape::kTiles][2], own[2];
    ROOFTILE_UNROLL for (int side = 0; side < 2; ++side) {
      ROOFTILE_UNROLL for (int t = 0; t < Shape::kTiles; ++t) {
        float most = -HUGE_VALF;
        ROOFTILE_UNROLL for (int w = 0; w < Shape::kTileWarps; ++w) most =
            fmaxf(most, exchange.most[t * Shape::kTileWarps + w][side * 8 + lane / 4]);
        most = fmaf(most, factor, -kShift);
        shrink[t][side] = 1;
        if (most - base[side] > kSlack) {  // not of -inf and -inf: a row that has seen nothing
          shrink[t][side] = rooftile::cuda::exp2_approx_normal(base[side] - most);
          base[side] = most;
        }
        if (warp / Shape::kTileWarps == t) own[side] = base[side];
      }
      if (own[side] == -HUGE_VALF) own[side] = 0;
    }
    float sums[2];
    ROOFTILE_UNROLL for (int side = 0; side < 2; ++side) {
      ROOFTILE_UNROLL for (int g = 0; g < 2; ++g) ROOFTILE_UNROLL for (int one = 0; one < 2; ++one) {
        float& weight = s[g][2 * side + one];
        weight = rooftile::cuda::exp2_approx_normal(fmaf(weight, factor, -own[side]));
      }
      sums[side] = (s[0][2 * side] + s[0][2 * side + 1]) + (s[1][2 * side] + s[1][2 * side + 1]);
    }
    exchange.sums[warp][lane] = {sums[0], sums[1]};
    all_weights[warp * 32 + lane] = {pair_of<T>(s[0][0], s[0][1]), pair_of<T>(s[0][2], s[0][3]),
                                     pair_of<T>(s[1][0], s[1][1]), pair_of<T>(s[1][2], s[1][3])};
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
        const uint4 word = all_weights[w * 32 + lane];
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
      if ((first + Shape::kKeys) % kAttentionChunk == 0 && first + Shape::kKeys < end) end_chunk(false);
  }
  rooftile::cuda::cp_async_wait<0>();
  if constexpr (!Its::kPart) end_chunk(true);

  ROOFTILE_UNROLL for (int side = 0; side < 2; ++side) {
    const std::int64_t row = begin + side * 8 + lane / 4;
    RowWeights<T> weights{base[side], l[side]};
    if constexpr (Its::kPart) weights.sum = sum_of_row(weights.sum);
    if (row >= rows) continue;
    if constexpr (Its::kPart) {
      ROOFTILE_UNROLL for (int g = 0; g < 2 * kOut; ++g) {
        const int channel = group * 16 + g * 8 + lane % 4 * 2;
        its.put_part(row, channel, float2{y[g][2 * side], y[g][2 * side + 1]});
      }
      if (lane % 4 == 0 && warp == 0) its.put_weights(row, weights);
    } else {
      const float each = weights.finish(p.sink ? its.sink(row) : -HUGE_VALF, its.value_scale());
      ROOFTILE_UNROLL for (int g = 0; g < 2 * kOut; ++g) ROOFTILE_UNROLL for (int one = 0; one < 2; ++one) {
        const int channel = group * 16 + g * 8 + lane % 4 * 2 + one;
        if (channel < e) its.y().put(row, channel, y[g][2 * side + one] * each + 0.f);
      }
      if (p.lse && lane % 4 == 0 && warp == 0) its.put_lse(row, weights.lse());
    }
  }
}
// [/decode]

}  // namespace rooftile::attention_gpu
