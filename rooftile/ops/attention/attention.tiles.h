#pragma once
// What the CPU's kernels are made of. Of a block of scores one side stands in the lanes (a panel: two vectors
// of queries; in the backward's second half, of keys), the other side row by row. So a row's maximum and sum
// run down the vectors and nothing is added across lanes; and both products read rows as they lie in memory,
// a scalar at a time: no operand is transposed but the panel, once.
#include <algorithm>

#include "rooftile/ops/activation/activation.tile.h"
#include "rooftile/ops/attention/attention.problem.h"
#include "rooftile/tile/cpu/elements.h"

namespace rooftile::attention {
inline namespace ROOFTILE_ISA {
using namespace tile;

inline constexpr int kWidth = kVecLanes<float>, kPanel = 2 * kWidth;
/// Rows of the panel product's widest tile, whose accumulators fill the registers, and of the narrower ones.
inline constexpr int kTall = kVectorBytes == 64 ? 12 : 6, kMiddle = kVectorBytes == 64 ? 8 : 4,
                     kLow = kVectorBytes == 64 ? 4 : 2;

/// Rows that are loaded at once, and how far they are apart: odd numbers of lines, so that a column of them
/// does not fall into one set of the first cache.
template <int kSize>
struct Block {
  static constexpr int kPitch = kSize + 16, kRows = kSize > 64 ? 48 : 96;
};
/// The rows from one multiple of a block on.
struct Rows {
  std::int64_t first;
  int count;
};

/// A thread's scratch, cut into arrays.
class Scratch {
 public:
  explicit Scratch(std::byte* at) : at_(at) {}
  float* floats(std::int64_t count) {
    float* const p = reinterpret_cast<float*>(at_);
    at_ += (count * std::int64_t(sizeof(float)) + 63) / 64 * 64;
    return p;
  }

 private:
  std::byte* at_;
};

/// `count` elements, `stride` apart, as floats; what is left of the last vector is 0.
template <class T>
void load_elements(const T* from, std::int64_t stride, int count, float* to) {
  int k = 0;
  if (stride == 1)
    for (; k + kWidth <= count; k += kWidth) {
      Vec<float> v;
      widen(from + k, v);
      store_unaligned(to + k, v);
    }
  for (; k < count; k += kWidth)
    store_unaligned(to + k,
                    gather_part<float>(from + k * stride, stride, std::min(kWidth, count - k), 0.f).v[0]);
}
__attribute__((noinline)) inline void load_row(const void* data, DType dtype, std::int64_t at,
                                               std::int64_t stride, int count, float* to) {
  with_type<float, f16, bf16>(
      dtype, [&]<class T>() { load_elements(static_cast<const T*>(data) + at, stride, count, to); });
}
__attribute__((noinline)) inline void store_row(const void* data, DType dtype, std::int64_t at,
                                                std::int64_t stride, int count, const float* from) {
  with_type<float, f16, bf16>(dtype, [&]<class T>() {
    T* to = static_cast<T*>(const_cast<void*>(data)) + at;
    int k = 0;
    if (stride == 1)
      for (; k + kWidth <= count; k += kWidth)
        store_unaligned(to + k, narrow(load_unaligned<Vec<float>>(from + k), to));
    Tile<float> rest = fill(0.f);
    for (; k < count; k += kWidth) {
      rest.v[0] = load_unaligned<Vec<float>>(from + k);
      scatter_part(to + k * stride, stride, std::min(kWidth, count - k), rest);
    }
  });
}

/// What reads and writes rows through `load(row, to)`, `store(row, from)` and `size` of the struct that
/// derives from it: wherever rows lie, one arithmetic follows.
template <class Its>
struct BlocksOf {
  /// Rows of a block, times `scale`; zeros up to a multiple of 4.
  void load_block(Rows rows, int pitch, float* to, float scale = 1) const {
    const int padded = (rows.count + 3) / 4 * 4, size = its().size;
    for (int r = 0; r < rows.count; ++r, to += pitch) {
      its().load(rows.first + r, to);
      if (scale != 1)
        for (int c = 0; c < size; c += kWidth)
          store_unaligned(to + c, load_unaligned<Vec<float>>(to + c) * scale);
    }
    for (int r = rows.count; r < padded; ++r, to += pitch) std::fill_n(to, size, 0.f);
  }
  /// Rows into the lanes of a panel: to[c][lane]; zeros in the lanes past them.
  void load_panel(Rows rows, float* to, float* row, float scale = 1) const {
    const int size = its().size;
    for (int lane = 0; lane < kPanel; ++lane) {
      if (lane < rows.count)
        its().load(rows.first + lane, row);
      else
        std::fill_n(row, size, 0.f);
      for (int c = 0; c < size; ++c) to[c * kPanel + lane] = row[c] * scale;
    }
  }
  /// The lanes' columns, each times its own number, to memory. Of zeros none is negative: a sum that
  /// underflowed is -0 or, where keys that a query does not see came after it, +0.
  void store_panel(Rows rows, const float* from, const float* scale, float* row) const {
    const int size = its().size;
    for (int lane = 0; lane < rows.count; ++lane) {
      for (int c = 0; c < size; ++c) row[c] = from[c * kPanel + lane] * scale[lane] + 0.f;
      its().store(rows.first + lane, row);
    }
  }
  /// One row from where it is as a row.
  void store_scaled(std::int64_t at, const float* from, float scale, float* row) const {
    for (int c = 0; c < its().size; ++c) row[c] = from[c] * scale + 0.f;
    its().store(at, row);
  }

 private:
  const Its& its() const { return static_cast<const Its&>(*this); }
};

/// An operand's rows of one batch and head.
struct HeadRows : BlocksOf<HeadRows> {
  const void* data;
  DType dtype;
  std::int64_t base, row_stride, stride;
  int size;

  HeadRows(const AttentionOperand& o, DType type, std::int64_t batch, std::int64_t head, std::int64_t length)
      : data(o.data),
        dtype(type),
        base(batch * o.stride[0] + head * o.stride[2]),
        row_stride(o.stride[1]),
        stride(o.stride[3]),
        size(static_cast<int>(length)) {}
  void load(std::int64_t row, float* to) const {
    load_row(data, dtype, base + row * row_stride, stride, size, to);
  }
  void store(std::int64_t row, const float* from) const {
    store_row(data, dtype, base + row * row_stride, stride, size, from);
  }
};

/// What becomes of sums: with neither they are all; with `keep` alone they go on from c · keep; with both
/// they begin at 0, and c · keep + sums · take is the result.
struct Into {
  const float *keep = nullptr, *take = nullptr;
};
/// c[r][lanes] into which Σ a[r · kRowStride + k · step] · b[k][lanes] goes, k ascending, below `depth`. One
/// fused multiply-add at a time into each accumulator: how many rows go together, and which lanes, never
/// shows.
template <int kTileRows, int kRowStride>
ROOFTILE_TILE void multiply_rows(const float* a, int step, const float* b, int depth, float* c,
                                 const Into& into) {
  const auto kept = [&](int r, int half) {
    return load_unaligned<Vec<float>>(c + r * kPanel + half * kWidth);
  };
  Vec<float> sum[kTileRows][2];
#pragma GCC unroll 12
  for (int r = 0; r < kTileRows; ++r) {
    sum[r][0] = sum[r][1] = Vec<float>{};
    if (into.keep && !into.take) {
      sum[r][0] = kept(r, 0) * load_unaligned<Vec<float>>(into.keep);
      sum[r][1] = kept(r, 1) * load_unaligned<Vec<float>>(into.keep + kWidth);
    }
  }
  for (int k = 0; k < depth; ++k, a += step, b += kPanel) {
    const Vec<float> b0 = load_unaligned<Vec<float>>(b), b1 = load_unaligned<Vec<float>>(b + kWidth);
#pragma GCC unroll 12
    for (int r = 0; r < kTileRows; ++r) {
      const Vec<float> one = splat(a[r * kRowStride]);
      sum[r][0] = vfma(one, b0, sum[r][0]);
      sum[r][1] = vfma(one, b1, sum[r][1]);
    }
  }
  if (into.take) {
    const Vec<float> keep0 = load_unaligned<Vec<float>>(into.keep),
                     keep1 = load_unaligned<Vec<float>>(into.keep + kWidth),
                     take0 = load_unaligned<Vec<float>>(into.take),
                     take1 = load_unaligned<Vec<float>>(into.take + kWidth);
#pragma GCC unroll 12
    for (int r = 0; r < kTileRows; ++r) {
      sum[r][0] = vfma(kept(r, 0), keep0, sum[r][0] * take0);
      sum[r][1] = vfma(kept(r, 1), keep1, sum[r][1] * take1);
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < kTileRows; ++r) {
    store_unaligned(c + r * kPanel, sum[r][0]);
    store_unaligned(c + r * kPanel + kWidth, sum[r][1]);
  }
}
/// The same for `rows`, a multiple of 4.
template <int kRowStride>
__attribute__((noinline)) void multiply(const float* a, int step, const float* b, int depth, int rows,
                                        float* c, const Into& into) {
  const auto advance = [&](int n) {
    a += n * kRowStride;
    c += n * kPanel;
    rows -= n;
  };
  while (rows > 0) {
    if (rows >= kTall && rows != kTall + kLow) {  // 16 = 8 + 8, and not 12 and 4, which waits for its sums
      multiply_rows<kTall, kRowStride>(a, step, b, depth, c, into);
      advance(kTall);
    } else if (rows >= kMiddle) {
      multiply_rows<kMiddle, kRowStride>(a, step, b, depth, c, into);
      advance(kMiddle);
    } else {
      multiply_rows<kLow, kRowStride>(a, step, b, depth, c, into);
      advance(kLow);
    }
  }
}
/// Scores: rows of a block times a panel.
template <int kPitch>
void scores(const float* block, const float* panel, int depth, int rows, float* c) {
  multiply<kPitch>(block, 1, panel, depth, rows, c, {});
}
/// c[column][lanes] into which Σ over rows block[row][column] · weights[row][lanes] goes.
inline void accumulate(const float* block, int pitch, const float* weights, int rows, int columns, float* c,
                       const Into& into) {
  multiply<1>(block, pitch, weights, rows, (columns + 3) / 4 * 4, c, into);
}

/// Where a panel's lanes begin, and which rows each of them meets: a query its keys, a key its queries.
struct Panel {
  Rows lanes;
  AttentionRange any{0, 0}, all{0, 0};  ///< rows that one lane at least meets, and that all do
  AttentionRange range[kPanel];

  template <class RangeOf>
  Panel(Rows its, RangeOf range_of) : lanes(its) {
    for (int lane = 0; lane < kPanel; ++lane) {
      // Lanes past the last are as that: they ask for nothing more.
      const AttentionRange one = range[lane] = range_of(its.first + std::min(lane, its.count - 1));
      if (lane == 0) any = all = one;
      any = {std::min(any.begin, one.begin), std::max(any.end, one.end)};
      all = {std::max(all.begin, one.begin), std::min(all.end, one.end)};
    }
  }
};

/// Two rows of a block beside the lanes' numbers, which stand in a tile twice.
inline Tile<float> twice(const float* lanes) {
  Tile<float> t;
  t.v[0] = t.v[2] = load_unaligned<Vec<float>>(lanes);
  t.v[1] = t.v[3] = load_unaligned<Vec<float>>(lanes + kWidth);
  return t;
}
/// Two rows' numbers.
template <class S>
Tile<S> by_row(S first, S second) {
  Tile<S> t;
  t.v[0] = t.v[1] = splat(first);
  t.v[2] = t.v[3] = splat(second);
  return t;
}

/// The rows of one block, counted from its first, that a panel meets, in whole fours: [begin, end); and for
/// each lane whether it meets them.
class Meeting {
 public:
  int begin, end;

  /// `rows`: of the block, a multiple of 4.
  Meeting(const Panel& panel, std::int64_t first, int rows) {
    const auto within = [&](std::int64_t row) {
      return static_cast<int>(std::clamp<std::int64_t>(row - first, 0, rows));
    };
    begin = within(panel.any.begin) / 4 * 4;
    end = (within(panel.any.end) + 3) / 4 * 4;
    whole_ = panel.all.begin <= first + begin && panel.all.end >= first + end;
    if (whole_ || empty()) return;
    alignas(64) std::int32_t from[kPanel], to[kPanel];
    for (int lane = 0; lane < kPanel; ++lane) {
      from[lane] = within(panel.range[lane].begin);
      to[lane] = within(panel.range[lane].end);
    }
    for (int i = 0; i < 4; ++i) {
      from_.v[i] = load_unaligned<Vec<std::int32_t>>(from + i % 2 * kWidth);
      to_.v[i] = load_unaligned<Vec<std::int32_t>>(to + i % 2 * kWidth);
    }
  }
  bool empty() const { return begin >= end; }
  /// x where rows `row` and row + 1 are met, `other` elsewhere.
  Tile<float> only(int row, const Tile<float>& x, float other) const {
    if (whole_) return x;
    const Tile<std::int32_t> rows = by_row<std::int32_t>(row, row + 1);
    return select((rows >= from_) & (rows < to_), x, fill(other));
  }

 private:
  bool whole_;
  Tile<std::int32_t> from_, to_;
};

/// Cap and bias on two rows' products; `slope`: the cap's.
ROOFTILE_TILE Tile<float> score_of(Tile<float> x, float softcap, const float* bias,
                                   Tile<float>* slope = nullptr) {
  if (softcap != 0) {
    const auto bent = kernels::tanh_and_slope(x / softcap);
    x = bent.first * softcap;
    if (slope) *slope = bent.second;
  }
  return bias ? x + load_whole<float>(bias) : x;
}

/// From index to batch, head and block of a head, for a call that is cut into so many.
struct Task {
  std::int64_t batch, head, block;
  /// Of a head's blocks by turns one from either end: under a causal mask the last have most to do, and a
  /// thread's share is a run of tasks.
  Task(std::int64_t index, std::int64_t heads, std::int64_t blocks)
      : batch(index / blocks / heads), head(index / blocks % heads), block(index % blocks) {
    block = block % 2 == 0 ? block / 2 : blocks - 1 - block / 2;
  }
};

inline constexpr int kMaxPanels = 8;

/// f with the bucket that holds so many channels: 64, 128 or 256.
template <class F>
void with_size(std::int64_t channels, F&& f) {
  if (channels <= 64) return f.template operator()<64>();
  if (channels <= 128) return f.template operator()<128>();
  f.template operator()<256>();
}
/// A row of channels, or of a bias along a block of keys.
inline constexpr int kLine = 256;
inline int padded(std::int64_t n, int to = kWidth) { return static_cast<int>((n + to - 1) / to * to); }

/// How many panels a task has: as many as scratch holds, fewer where threads would have nothing to do.
inline std::int64_t panels_of(const CpuLaunch& launch, std::int64_t most, std::int64_t heads,
                              std::int64_t rows) {
  const std::int64_t all = (rows + kPanel - 1) / kPanel;
  std::int64_t panels = std::clamp<std::int64_t>(most, 1, kMaxPanels);
  while (panels > 1 && heads * ((all + panels - 1) / panels) < 4 * launch.threads) --panels;
  return panels;
}
/// What of the 256 KiB is left behind `floats`, in shares of so many.
inline std::int64_t shares(std::int64_t floats, std::int64_t share) {
  return (std::int64_t{kScratchBytes} / 4 - floats) / share;
}

/// A head's sink; -inf where there is none.
inline float sink_of(const AttentionProblem& p, std::int64_t head) {
  return p.sink ? static_cast<float>(load_scalar(
                      static_cast<const std::byte*>(p.sink) + head * p.sink_stride * (bits(p.sink_dtype) / 8),
                      p.sink_dtype))
                : -kInfinity;
}
/// What a row begins with: its sink's power, or nothing.
inline float begin_sum(float sink) { return sink == -kInfinity ? 0.f : 1.f; }

/// Two rows' numbers where their weights are kept, 0 elsewhere; `kept` has a bit for each lane of a row.
ROOFTILE_TILE Tile<float> where_kept(const std::uint32_t* kept, const Tile<float>& x) {
  static_assert(kPanel <= 32);
  alignas(64) std::uint32_t bits[kPanel];
  for (int lane = 0; lane < kPanel; ++lane) bits[lane] = std::uint32_t{1} << lane;
  Tile<std::uint32_t> lanes;
  for (int i = 0; i < 4; ++i) lanes.v[i] = load_unaligned<Vec<std::uint32_t>>(bits + i % 2 * kWidth);
  return select((by_row(kept[0], kept[1]) & lanes) != 0u, x, fill(0.f));
}

// [forward]
/// One panel of queries on its way through the keys: m, the largest score so far; l, the sum of e^(s - m);
/// y, the sum of e^(s - m)·v, [channel][lane].
struct Forward {
  const float* q;  // [channel][lane], scaled
  float *y, *m, *l;
};

/// How the total of the blocks so far and a block's own sums make a total: total · keep + block · take, both
/// having been taken off their own largest scores. A block that a row does not see changes no bit.
struct Merge {
  Vec<float> most[2], keep[2], take[2];

  /// The largest scores, of a panel's lanes.
  Merge(const Vec<float> (&total)[2], const Vec<float> (&block)[2]) {
    Tile<float> shift;
    for (int i = 0; i < 2; ++i) {
      most[i] = vmax(total[i], block[i]);
      const Vec<float> from = finite(most[i]);
      shift.v[i] = total[i] - from;
      shift.v[i + 2] = block[i] - from;
    }
    const Tile<float> power = exp_below(shift);
    for (int i = 0; i < 2; ++i) keep[i] = power.v[i], take[i] = power.v[i + 2];
  }
  Vec<float> operator()(int i, Vec<float> total, Vec<float> block) const {
    return vfma(total, keep[i], block * take[i]);
  }
  /// -inf, where nothing is seen yet, taken off -inf would be NaN: 0 is taken.
  static Vec<float> finite(Vec<float> most) { return most == splat(-kInfinity) ? Vec<float>{} : most; }
};

/// Each block of keys has a softmax of its own, and totals take blocks in ascending order: so no bit says
/// whose thread summed a block. `kept`: of each row of the block; null: all weights are.
template <int kPitch>
void step(const AttentionProblem& p, const Forward& f, const Meeting& meeting, const float* k, const float* v,
          int v_pitch, const float* bias, const std::uint32_t* kept, float* s) {
  scores<kPitch>(k + meeting.begin * kPitch, f.q, static_cast<int>(p.d), meeting.end - meeting.begin,
                 s + meeting.begin * kPanel);
  Tile<float> most = fill(-kInfinity);
  for (int row = meeting.begin; row < meeting.end; row += 2) {
    float* const at = s + row * kPanel;
    Tile<float> x = score_of(load_whole<float>(at), p.softcap, bias ? bias + row * kPanel : nullptr);
    x = meeting.only(row, x, -kInfinity);
    store_whole(at, x);
    most = max(most, x);
  }

  const Vec<float> total[] = {load_unaligned<Vec<float>>(f.m), load_unaligned<Vec<float>>(f.m + kWidth)},
                   block[] = {vmax(most.v[0], most.v[2]), vmax(most.v[1], most.v[3])};
  const Merge merge(total, block);
  Tile<float> m;
  for (int i = 0; i < 2; ++i) m.v[i] = m.v[i + 2] = Merge::finite(block[i]);

  Tile<float> sum = fill(0.f);
  for (int row = meeting.begin; row < meeting.end; row += 2) {
    float* const at = s + row * kPanel;
    const Tile<float> e = exp_below(load_whole<float>(at) - m);
    store_whole(at, kept ? where_kept(kept + row, e) : e);
    sum += e;
  }
  alignas(64) float keep[kPanel], take[kPanel];
  for (int i = 0; i < 2; ++i) {
    float* const l = f.l + i * kWidth;
    store_unaligned(l, merge(i, load_unaligned<Vec<float>>(l), sum.v[i] + sum.v[i + 2]));
    store_unaligned(f.m + i * kWidth, merge.most[i]);
    store_unaligned(keep + i * kWidth, merge.keep[i]);
    store_unaligned(take + i * kWidth, merge.take[i]);
  }
  accumulate(v + meeting.begin * v_pitch, v_pitch, s + meeting.begin * kPanel, meeting.end - meeting.begin,
             static_cast<int>(p.e), f.y, {keep, take});
}
// [/forward]

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::attention
