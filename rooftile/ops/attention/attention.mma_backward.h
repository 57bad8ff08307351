#pragma once
// The backward by mma.sync, f16 and bf16 (Dao, FlashAttention-2, arXiv:2307.08691). A block owns rows, keys
// or queries, and passes through the others that meet them. A warp has 16 or 32 of its block's rows; scores s
// and dp = dy·v of these by the others are made, become weights p and ds, and are multiplied on, all in
// registers:
//   own keys:     dv += p·dy, dk += ds·q      through the queries of all heads that share the keys
//   own queries:  dq += ds·k                  through the keys
// Each pass computes s and dp, so seven products instead of five; in return a sum has one owner and one
// order.
//
// Shared memory is as the forward's (attention.mma.h). p and ds are rounded to the data's dtype to be
// multiplied on. Sums add up others in ascending 16s: neither shapes nor strides change a bit.
#include "rooftile/ops/attention/attention.mma.h"

namespace rooftile::attention_gpu {

/// kSize: channels that there is room for; kTall: 16s of rows to a warp; kGroups: of warps, each with rows of
/// its own; kParts: warps that share rows, each with a part of the gradients' channels; kOthers: rows of a
/// tile of others.
template <int kSize_, int kTall_, int kGroups_, int kParts_, int kOthers_>
struct BackwardShape {
  static constexpr int kSize = kSize_, kTall = kTall_, kParts = kParts_, kOthers = kOthers_;
  static constexpr int kThreads = 32 * kGroups_ * kParts, kRows = 16 * kTall * kGroups_;
  static constexpr int kChannels = kSize / kParts;            ///< of gradients, in a warp
  static constexpr int kRow = kSize * 2, kWords = kRow / 16;  ///< bytes and words of a row
  static constexpr int kOwn = kRows * kRow;                   ///< q and dy, or k and v: one of them
  static constexpr int kSide = kOthers * kRow, kStage = 2 * kSide;
  static constexpr int kStatistics = 2 * kOwn + 2 * kStage;  ///< lse and delta of a tile's queries, twice
  static constexpr int kShared = kStatistics + 2 * 2 * kOthers * int(sizeof(float));

  using Scores = float[kTall][kOthers / 8][4];  ///< a warp's rows x others
  using Sums = float[kTall][kChannels / 8][4];  ///< a warp's rows x channels
};

/// delta = Σ dy·y of a query is in the first two elements of its dq until that is made, which needs no
/// workspace.
template <class T>
ROOFTILE_TILE void put_delta(const HeadRows<T>& dq, std::int64_t row, float delta) {
  T halves[2];
  memcpy(halves, &delta, sizeof delta);
  T* const to = const_cast<T*>(dq.row(row));
  to[0] = halves[0], to[dq.stride] = halves[1];
}
template <class T>
ROOFTILE_TILE float delta_of(const HeadRows<T>& dq, std::int64_t row) {
  const T halves[2] = {dq.row(row)[0], dq.row(row)[dq.stride]};
  float delta;
  memcpy(&delta, halves, sizeof delta);
  return delta;
}
/// Off which a query's scores are taken as powers of 2. +inf where it sees no key: each weight is 0.
ROOFTILE_TILE float power_base(float lse, float shift) {
  return lse == -HUGE_VALF ? HUGE_VALF : fmaf(lse, kLog2E, -shift);
}

/// x = a warp's rows times a tile's, over `size` channels: q·k or dy·v.
template <class T, class Shape, bool kPlain>
ROOFTILE_TILE void products(typename Shape::Scores& x, const std::byte* own, const std::byte* tile,
                            int size) {
  using rooftile::cuda::load_matrix;
  const int lane = static_cast<int>(threadIdx.x) % 32, swizzle = lane % 8;
  const int own_place = lane % 16 * Shape::kRow + ((lane / 16 ^ swizzle) * 16);
  const int place = (lane % 8 + lane / 16 * 8) * Shape::kRow + ((lane / 8 % 2 ^ swizzle) * 16);
  ROOFTILE_UNROLL for (int i = 0; i < Shape::kTall; ++i)
      ROOFTILE_UNROLL for (int g = 0; g < Shape::kOthers / 8; ++g) ROOFTILE_UNROLL for (int r = 0; r < 4; ++r)
          x[i][g][r] = 0;
  ROOFTILE_UNROLL for (int step = 0; step < Shape::kSize / 16; ++step) {
    if (!kPlain && step * 16 >= size) break;
    unsigned a[Shape::kTall][4];
    ROOFTILE_UNROLL for (int i = 0; i < Shape::kTall; ++i)
        load_matrix(a[i], own + along(own_place, step) + i * 16 * Shape::kRow);
    ROOFTILE_UNROLL for (int g = 0; g < Shape::kOthers / 16; ++g) {
      unsigned b[4];
      load_matrix(b, tile + along(place, step) + g * 16 * Shape::kRow);
      ROOFTILE_UNROLL for (int i = 0; i < Shape::kTall; ++i) {
        multiply_add<T>(x[i][2 * g], a[i], b[0], b[1]);
        multiply_add<T>(x[i][2 * g + 1], a[i], b[2], b[3]);
      }
    }
  }
}
/// sums += weights · a tile's rows: what a product left in a lane is, in pairs, what the next takes.
template <class T, class Shape, bool kPlain>
ROOFTILE_TILE void accumulate(typename Shape::Sums& sums, const typename Shape::Scores& weights,
                              const std::byte* tile, int group, int size) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int place = along(lane % 16 * Shape::kRow + ((lane / 16 ^ lane % 8) * 16), group);
  ROOFTILE_UNROLL for (int step = 0; step < Shape::kOthers / 16; ++step) {
    unsigned a[Shape::kTall][4];
    ROOFTILE_UNROLL for (int i = 0; i < Shape::kTall; ++i) ROOFTILE_UNROLL for (int r = 0; r < 4; ++r) {
      const float(&four)[4] = weights[i][2 * step + r / 2];
      a[i][r] = pair_of<T>(four[r % 2 * 2], four[r % 2 * 2 + 1]);
    }
    ROOFTILE_UNROLL for (int g = 0; g < Shape::kChannels / 16; ++g) {
      if (!kPlain && (group + g) * 16 >= size) break;
      unsigned b[4];
      rooftile::cuda::load_matrix<true>(b, tile + along(place, g) + step * 16 * Shape::kRow);
      ROOFTILE_UNROLL for (int i = 0; i < Shape::kTall; ++i) {
        multiply_add<T>(sums[i][2 * g], a[i], b[0], b[1]);
        multiply_add<T>(sums[i][2 * g + 1], a[i], b[2], b[3]);
      }
    }
  }
}
template <class Shape>
ROOFTILE_TILE void clear(typename Shape::Sums& sums) {
  ROOFTILE_UNROLL for (int i = 0; i < Shape::kTall; ++i)
      ROOFTILE_UNROLL for (int g = 0; g < Shape::kChannels / 8; ++g)
          ROOFTILE_UNROLL for (int r = 0; r < 4; ++r) sums[i][g][r] = 0;
}
/// The gradients of weights may be of any size, f16 not: of each row they are times `room`, a power of 2 that
/// shrinks, and the row's sums with it, where they would pass 2^15.
ROOFTILE_TILE float room_for(float most, float room) {
  if (!(most * room > 0x1p15f)) return room;
  unsigned exponent;
  memcpy(&exponent, &most, sizeof most);
  exponent = (2 * 127 + 14 - (exponent >> 23)) << 23;  // of 2^14 for the largest; of infinity 2^-114
  float now;
  memcpy(&now, &exponent, sizeof now);
  return now;
}
template <class T, class Shape>
ROOFTILE_TILE void fit_rows(typename Shape::Scores& ds, float (&room)[Shape::kTall][2],
                            typename Shape::Sums& sums) {
  if constexpr (std::is_same_v<T, bf16>) return;
  float shrink[Shape::kTall][2];
  bool grew = false;
  ROOFTILE_UNROLL for (int i = 0; i < Shape::kTall; ++i)
      ROOFTILE_UNROLL for (int half = 0; half < 2; ++half) {
    float most = 0;
    ROOFTILE_UNROLL for (int g = 0; g < Shape::kOthers / 8; ++g) most =
        fmaxf(most, fmaxf(fabsf(ds[i][g][2 * half]), fabsf(ds[i][g][2 * half + 1])));
    most = max_of_row(most);
    const float now = room_for(most, room[i][half]);
    shrink[i][half] = now / room[i][half];
    grew = grew || now != room[i][half];
    room[i][half] = now;
  }
  if (__any_sync(0xffffffffu, grew)) {
    ROOFTILE_UNROLL for (int i = 0; i < Shape::kTall; ++i)
        ROOFTILE_UNROLL for (int g = 0; g < Shape::kChannels / 8; ++g)
            ROOFTILE_UNROLL for (int r = 0; r < 4; ++r) sums[i][g][r] *= shrink[i][r / 2];
  }
  ROOFTILE_UNROLL for (int i = 0; i < Shape::kTall; ++i)
      ROOFTILE_UNROLL for (int g = 0; g < Shape::kOthers / 8; ++g) ROOFTILE_UNROLL for (int r = 0; r < 4; ++r)
          ds[i][g][r] *= room[i][r / 2];
}
/// A warp's sums, times `scale` over `room`. Of zeros none is negative: a sum that underflowed is -0 or,
/// where rows that do not meet this one came after it, +0.
template <class T, class Shape, bool kPlain>
ROOFTILE_TILE void put_sums(const HeadRows<T>& to, std::int64_t mine, std::int64_t rows,
                            const typename Shape::Sums& sums, int group, int size, float scale,
                            const float (&room)[Shape::kTall][2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  ROOFTILE_UNROLL for (int i = 0; i < Shape::kTall; ++i)
      ROOFTILE_UNROLL for (int half = 0; half < 2; ++half) {
    const std::int64_t row = mine + i * 16 + half * 8 + lane / 4;
    if (row >= rows) continue;
    const float its_scale = scale / room[i][half];
    ROOFTILE_UNROLL for (int g = 0; g < Shape::kChannels / 8; ++g) {
      const int channel = group * 16 + g * 8 + lane % 4 * 2;
      const float low = sums[i][g][2 * half] * its_scale + 0.f;
      const float high = sums[i][g][2 * half + 1] * its_scale + 0.f;
      if constexpr (kPlain) {
        *reinterpret_cast<unsigned*>(const_cast<T*>(to.row(row)) + channel) = pair_of<T>(low, high);
      } else {
        if (channel < size) to.put(row, channel, low);
        if (channel + 1 < size) to.put(row, channel + 1, high);
      }
    }
  }
}

// [backward]
/// A block's rows, keys (kKeys) or queries, through all the others that meet them.
template <class T, class Shape, bool kPlain, bool kKeys>
ROOFTILE_TILE void backward_mma(const AttentionProblem& p, const Place& place) {
  constexpr int kTall = Shape::kTall, kOthers = Shape::kOthers;
  // Weights of f16 are times 2^7, so that the smallest that count are normal numbers.
  constexpr float kShift = std::is_same_v<T, f16> ? 7 : 0, kOne = 1 << int(kShift);
  ROOFTILE_DYNAMIC_SHARED(shared);
  float* const statistics = reinterpret_cast<float*>(shared + Shape::kStatistics);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int d = static_cast<int>(p.d), e = static_cast<int>(p.e);
  const int above = warp / Shape::kParts * 16 * kTall;               // rows of the block before the warp's
  const int group = warp % Shape::kParts * (Shape::kChannels / 16);  // 16s of channels before the warp's
  const std::int64_t begin = place.first, mine = begin + above, batch = place.batch;
  const std::int64_t rows = kKeys ? p.t : p.s, length = kKeys ? p.s : p.t;
  const std::int64_t key_head = kKeys ? place.head : place.head / p.group();
  const auto last_of = [&](std::int64_t end) { return (end < rows ? end : rows) - 1; };
  const auto met_by = [&](std::int64_t row) { return kKeys ? p.queries(row) : p.keys(row); };
  const auto lse_at = [&](std::int64_t head, std::int64_t row) {
    return p.lse + batch * p.lse_stride[0] + head * p.lse_stride[1] + row * p.lse_stride[2];
  };

  // Tiles of others that some of the block's rows meet, and some of the warp's; and those that all of the
  // warp's rows meet whole. Counted in tiles, all of them fit an int.
  const auto tile_of = [](std::int64_t other) { return static_cast<int>(other / kOthers); };
  const auto end_of = [](std::int64_t other) { return static_cast<int>((other + kOthers - 1) / kOthers); };
  const int first = tile_of(met_by(begin).begin), end = end_of(met_by(last_of(begin + Shape::kRows)).end);
  int some = 0, some_end = 0, whole = 0, whole_end = 0;
  if (mine < rows) {
    const AttentionRange low = met_by(mine), high = met_by(last_of(mine + 16 * kTall));
    some = tile_of(low.begin), some_end = end_of(high.end);
    whole = end_of(high.begin), whole_end = tile_of(low.end);
  }
  // A key meets the queries of each head that shares it, head by head.
  std::int64_t head = kKeys ? place.head * p.group() : place.head;
  const std::int64_t head_end = first >= end ? head : kKeys ? head + p.group() : head + 1;

  const auto copy = [&](int stage, int n, std::int64_t its_head) {
    std::byte* const to = shared + 2 * Shape::kOwn + stage * Shape::kStage;
    const std::int64_t from = std::int64_t{n} * kOthers, other_head = kKeys ? its_head : key_head;
    copy_rows<Shape, kPlain>(to, HeadRows<T>(kKeys ? p.q : p.k, batch, other_head), from, kOthers,
                             length - from, d, p.words);
    copy_rows<Shape, kPlain>(to + Shape::kSide, HeadRows<T>(kKeys ? p.dy : p.v, batch, other_head), from,
                             kOthers, length - from, e, p.words);
    if (kKeys && thread < kOthers) {
      float* const lse = statistics + stage * 2 * kOthers + thread;
      const std::int64_t query = from + thread;
      const bool live = query < length;
      const HeadRows<T> dq(p.dq, batch, its_head);
      rooftile::cuda::cp_async<4>(lse, lse_at(its_head, live ? query : from), live ? 4 : 0);
      if constexpr (kPlain)
        rooftile::cuda::cp_async<4>(lse + kOthers, dq.row(live ? query : from), live ? 4 : 0);
      else
        lse[kOthers] = live ? delta_of(dq, query) : 0;
    }
    rooftile::cuda::cp_async_commit();
  };
  copy_rows<Shape, kPlain>(shared, HeadRows<T>(kKeys ? p.k : p.q, batch, place.head), begin, Shape::kRows,
                           rows - begin, d, p.words);
  copy_rows<Shape, kPlain>(shared + Shape::kOwn, HeadRows<T>(kKeys ? p.v : p.dy, batch, place.head), begin,
                           Shape::kRows, rows - begin, e, p.words);
  rooftile::cuda::cp_async_commit();
  int n = first, stage = 0;
  if (head < head_end) copy(0, n, head);

  typename Shape::Sums sums, values;  // dk and dv, or dq alone
  clear<Shape>(sums);
  if constexpr (kKeys) clear<Shape>(values);
  float room[kTall][2], values_room[kTall][2];
  float base[kTall][2], delta[kTall][2];  // of own queries
  ROOFTILE_UNROLL for (int i = 0; i < kTall; ++i) ROOFTILE_UNROLL for (int half = 0; half < 2; ++half)
      room[i][half] = std::is_same_v<T, f16> ? 0x1p24f : 1,
      values_room[i][half] = kOne;
  if constexpr (!kKeys) {
    const HeadRows<T> dq(p.dq, batch, head);
    ROOFTILE_UNROLL for (int i = 0; i < kTall; ++i) ROOFTILE_UNROLL for (int half = 0; half < 2; ++half) {
      const std::int64_t row = mine + i * 16 + half * 8 + lane / 4;
      base[i][half] = row < rows ? power_base(*lse_at(head, row), kShift) : HUGE_VALF;
      delta[i][half] = row < rows ? delta_of(dq, row) : 0;
    }
    __syncthreads();  // all have read what is overwritten where there is no key
  }
  const bool changes = !kPlain && (p.softcap != 0 || p.bias.data || p.alibi);
  const float factor = changes ? kLog2E : p.scale * kLog2E;  // from a score to its power of 2

  ROOFTILE_UNROLL_BY(1) while (head < head_end) {
    const std::int64_t its_head = head;
    const int its = n, its_stage = stage;
    if (++n == end) n = first, ++head;
    stage ^= 1;
    rooftile::cuda::cp_async_wait<0>();
    __syncthreads();  // the tile is here for all, and all have read the one before
    if (head < head_end) copy(stage, n, head);
    if (its < some || its >= some_end) continue;
    const std::byte* const tile = shared + 2 * Shape::kOwn + its_stage * Shape::kStage;

    typename Shape::Scores s, ds;  // scores, then weights; dp, then ds
    products<T, Shape, kPlain>(s, shared + above * Shape::kRow, tile, d);
    products<T, Shape, kPlain>(ds, shared + Shape::kOwn + above * Shape::kRow, tile + Shape::kSide, e);

    // A lane's elements: rows lane / 4 and 8 below, of each 8 others its lane % 4-th pair. A query's
    // numbers are by column or by row.
    const float* const lses = statistics + its_stage * 2 * kOthers;
    const auto each = [&](auto f) {
      ROOFTILE_UNROLL for (int g = 0; g < kOthers / 8; ++g)
          ROOFTILE_UNROLL for (int next = 0; next < 2; ++next) {
        const int other = g * 8 + lane % 4 * 2 + next;
        const float its_base = kKeys ? power_base(lses[other], kShift) : 0;
        const float its_delta = kKeys ? lses[kOthers + other] : 0;
        ROOFTILE_UNROLL for (int i = 0; i < kTall; ++i)
            ROOFTILE_UNROLL for (int lower = 0; lower < 2; ++lower)
                f(s[i][g][2 * lower + next], ds[i][g][2 * lower + next], i, lower, other,
                  kKeys ? its_base : base[i][lower], kKeys ? its_delta : delta[i][lower]);
      }
    };
    unsigned kept[kTall] = {};  // four bits for each of a lane's fragments
    const bool drops = !kPlain && p.dropout;
    if (drops) {
      const std::int64_t from = std::int64_t{its} * kOthers;
      ROOFTILE_UNROLL for (int i = 0; i < kTall; ++i) {
        const std::int64_t own = mine + i * 16;
        kept[i] = kept_of_warp<kKeys, kOthers / 8>(
            p.dropout, [&](std::int64_t query) { return p.counter(batch, its_head, query); },
            kKeys ? from : own, kKeys ? own : from);
        ROOFTILE_UNROLL for (int g = 0; g < kOthers / 8; ++g) ROOFTILE_UNROLL for (int r = 0; r < 4; ++r)
            ds[i][g][r] = kept[i] >> (4 * g + r) & 1 ? ds[i][g][r] * p.dropout.keep.scale : 0;
      }
    }
    if (changes || its < whole || its >= whole_end) {
      const std::int64_t from = std::int64_t{its} * kOthers;
      int low[kTall][2], high[kTall][2];
      ROOFTILE_UNROLL for (int i = 0; i < kTall; ++i) ROOFTILE_UNROLL for (int half = 0; half < 2; ++half) {
        const std::int64_t row = mine + i * 16 + half * 8 + lane / 4;
        const AttentionRange range = met_by(row < rows ? row : rows - 1);
        const auto within = [&](std::int64_t other) {
          const std::int64_t at = other - from;
          return at < 0 ? 0 : at > kOthers ? kOthers : static_cast<int>(at);
        };
        low[i][half] = within(range.begin), high[i][half] = row < rows ? within(range.end) : 0;
      }
      each([&](float& score, float& product, int i, int lower, int other, float, float its_delta) {
        if (other < low[i][lower] || other >= high[i][lower]) {
          score = -HUGE_VALF;
        } else if (changes) {
          const std::int64_t row = mine + i * 16 + lower * 8 + lane / 4;
          score *= p.scale;
          if (p.softcap != 0) {
            score = capped(score, p.softcap);
            const float bent = score / p.softcap;  // the cap's slope is 1 - bent²
            product = its_delta + (product - its_delta) * (1 - bent * bent);
          }
          score = biased_score<T>(p, score, batch, its_head, kKeys ? from + other : row,
                                  kKeys ? row : from + other);
        }
      });
    }
    // [gradients]
    each([&](float& weight, float& its_ds, int, int, int, float its_base, float its_delta) {
      weight = rooftile::cuda::exp2_approx_normal(fmaf(weight, factor, -its_base));
      its_ds = weight * ((its_ds - its_delta) * (1 / kOne));
    });
    if (kKeys && drops) {  // ds has its weights whole, dv those that are kept
      ROOFTILE_UNROLL for (int i = 0; i < kTall; ++i) ROOFTILE_UNROLL for (int g = 0; g < kOthers / 8; ++g)
          ROOFTILE_UNROLL for (int r = 0; r < 4; ++r) {
        if (!(kept[i] >> (4 * g + r) & 1)) s[i][g][r] = 0;
      }
    }
    if constexpr (kKeys) accumulate<T, Shape, kPlain>(values, s, tile + Shape::kSide, group, e);
    fit_rows<T, Shape>(ds, room, sums);
    accumulate<T, Shape, kPlain>(sums, ds, tile, group, d);
    // [/gradients]
  }
  rooftile::cuda::cp_async_wait<0>();

  put_sums<T, Shape, kPlain>(HeadRows<T>(kKeys ? p.dk : p.dq, batch, place.head), mine, rows, sums, group, d,
                             p.scale, room);
  if constexpr (kKeys)
    put_sums<T, Shape, kPlain>(HeadRows<T>(p.dv, batch, place.head), mine, rows, values, group, e,
                               kPlain ? 1 : p.dropout.keep.scale, values_room);
}
// [/backward]

}  // namespace rooftile::attention_gpu
