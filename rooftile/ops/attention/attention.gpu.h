#pragma once
// What the GPU's kernels share: a block of 16x8 threads and its tiles in shared memory. A thread has kRows
// neighbouring rows of a tile of weights (queries; keys where dk and dv are made) and every eighth of its 32
// columns; of the sums that belong to its rows, every eighth group of four channels.
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/launch.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/attention/attention.chunks.h"
#include "rooftile/ops/attention/attention.problem.h"
#include "rooftile/tile/cuda/tile.h"

namespace rooftile::attention_gpu {

inline constexpr int kThreads = 128, kAcross = 8, kDown = kThreads / kAcross;
inline constexpr int kColumns = 32, kEach = kColumns / kAcross;  ///< of a tile of weights; of a thread
inline constexpr int kWeightPitch = kColumns + 4;

/// A tile's rows are so far apart: 4 floats more than they are long, so that 8 neighbours' 16-byte words lie
/// in 32 banks.
template <int kSize>
inline constexpr int kPitch = kSize + 4;
/// Groups of four channels that a thread has.
template <int kSize>
inline constexpr int kGroups = kSize / 4 / kAcross;

/// The rows of one batch and head, from one on.
template <class T>
struct HeadRows {
  const T* data;
  std::int64_t row_stride, stride;
  ROOFTILE_TILE HeadRows(const AttentionOperand& o, std::int64_t batch, std::int64_t head)
      : data(static_cast<const T*>(o.data) + batch * o.stride[0] + head * o.stride[2]),
        row_stride(o.stride[1]),
        stride(o.stride[3]) {}
  ROOFTILE_TILE const T* row(std::int64_t row) const { return data + row * row_stride; }
  ROOFTILE_TILE float at(std::int64_t row, int channel) const {
    return widen(data[row * row_stride + channel * stride]);
  }
  ROOFTILE_TILE static float widen(T x) { return tile::widen<float>(x); }
  static constexpr float missing() {
    return 0;
  }  ///< what a row that is nowhere holds: each of these is somewhere
  ROOFTILE_TILE void put(std::int64_t row, int channel, float value) const {
    const_cast<T*>(data)[row * row_stride + channel * stride] = tile::narrow<T>(value);
  }
};

/// `rows` rows to shared memory, times `scale`; zeros past the `live`-th, and in the channels from `size` to
/// the next multiple of 4.
template <int kSize, class From>
ROOFTILE_TILE void load_tile(float* to, const From& from, std::int64_t first, int rows, std::int64_t live,
                             int size, float scale = 1) {
  const int lane = static_cast<int>(threadIdx.x % 32), padded = (size + 3) / 4 * 4;
  for (int row = static_cast<int>(threadIdx.x / 32); row < rows; row += kThreads / 32) {
    const auto* const its = row < live ? from.row(first + row) : nullptr;
    const float otherwise = row < live ? from.missing() : 0;
    for (int c = lane; c < padded; c += 32) {
      float value = c < size ? otherwise : 0;
      if (its && c < size) value = from.widen(its[c * from.stride]) * scale;
      to[row * kPitch<kSize> + c] = value;
    }
  }
}

ROOFTILE_TILE float4 word_of(const float* p) { return *reinterpret_cast<const float4*>(p); }

/// x[r][c] = Σ a[this thread's row r]·b[its column c], over `size` channels.
template <int kSize, int kRows>
ROOFTILE_TILE void products(float (&x)[kRows][kEach], const float* a, const float* b, int size) {
  const int down = static_cast<int>(threadIdx.x) / kAcross, across = static_cast<int>(threadIdx.x) % kAcross;
  ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) ROOFTILE_UNROLL for (int c = 0; c < kEach; ++c) x[r][c] = 0;
  for (int k = 0; k < size; k += 4) {
    float4 rows[kRows], columns[kEach];
    ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) rows[r] =
        word_of(a + (down * kRows + r) * kPitch<kSize> + k);
    ROOFTILE_UNROLL for (int c = 0; c < kEach; ++c) columns[c] =
        word_of(b + (across + c * kAcross) * kPitch<kSize> + k);
    ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) ROOFTILE_UNROLL for (int c = 0; c < kEach; ++c) {
      float& sum = x[r][c];
      sum = fmaf(rows[r].x, columns[c].x, sum);
      sum = fmaf(rows[r].y, columns[c].y, sum);
      sum = fmaf(rows[r].z, columns[c].z, sum);
      sum = fmaf(rows[r].w, columns[c].w, sum);
    }
  }
}

/// This thread's weights, for all threads of its rows.
template <int kRows>
ROOFTILE_TILE void put_weights(float* to, const float (&x)[kRows][kEach]) {
  const int down = static_cast<int>(threadIdx.x) / kAcross, across = static_cast<int>(threadIdx.x) % kAcross;
  ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) ROOFTILE_UNROLL for (int c = 0; c < kEach; ++c)
      to[(down * kRows + r) * kWeightPitch + across + c * kAcross] = x[r][c];
}

/// sum[r][group] += Σ over the tile's columns weight · b[column], columns ascending.
template <int kSize, int kRows>
ROOFTILE_TILE void accumulate(float4 (&sum)[kRows][kGroups<kSize>], const float* weights, const float* b,
                              int size) {
  const int down = static_cast<int>(threadIdx.x) / kAcross, across = static_cast<int>(threadIdx.x) % kAcross;
  for (int j = 0; j < kColumns; j += 4) {
    float4 weight[kRows];
    ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) weight[r] =
        word_of(weights + (down * kRows + r) * kWeightPitch + j);
    ROOFTILE_UNROLL for (int g = 0; g < kGroups<kSize>; ++g) {
      const int channel = (g * kAcross + across) * 4;
      if (channel >= size) break;
      ROOFTILE_UNROLL for (int one = 0; one < 4; ++one) {
        const float4 row = word_of(b + (j + one) * kPitch<kSize> + channel);
        ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) {
          const float w = one == 0   ? weight[r].x
                          : one == 1 ? weight[r].y
                          : one == 2 ? weight[r].z
                                     : weight[r].w;
          float4& s = sum[r][g];
          s.x = fmaf(w, row.x, s.x);
          s.y = fmaf(w, row.y, s.y);
          s.z = fmaf(w, row.z, s.z);
          s.w = fmaf(w, row.w, s.w);
        }
      }
    }
  }
}
template <int kSize, int kRows>
ROOFTILE_TILE void clear(float4 (&sum)[kRows][kGroups<kSize>]) {
  ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) ROOFTILE_UNROLL for (int g = 0; g < kGroups<kSize>; ++g)
      sum[r][g] = {0, 0, 0, 0};
}
/// A row's sums, times `scale`. Of zeros none is negative: a sum that underflowed is -0 or, where keys that a
/// query does not see came after it, +0.
template <int kSize, class To>
ROOFTILE_TILE void put_row(const To& to, std::int64_t row, const float4 (&sum)[kGroups<kSize>], int size,
                           float scale) {
  const int across = static_cast<int>(threadIdx.x) % kAcross;
  ROOFTILE_UNROLL for (int g = 0; g < kGroups<kSize>; ++g) {
    const int channel = (g * kAcross + across) * 4;
    if (channel < size) to.put(row, channel, sum[g].x * scale + 0.f);
    if (channel + 1 < size) to.put(row, channel + 1, sum[g].y * scale + 0.f);
    if (channel + 2 < size) to.put(row, channel + 2, sum[g].z * scale + 0.f);
    if (channel + 3 < size) to.put(row, channel + 3, sum[g].w * scale + 0.f);
  }
}

/// Over the eight threads of a row, in all of them.
ROOFTILE_TILE float max_across(float x) {
  for (int far = kAcross / 2; far > 0; far /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, far));
  return x;
}
ROOFTILE_TILE float sum_across(float x) {
  for (int far = kAcross / 2; far > 0; far /= 2) x += __shfl_xor_sync(0xffffffffu, x, far);
  return x;
}

/// e^x, x ≤ 0 in a forward.
ROOFTILE_TILE float power(float x) { return cuda::exp2_approx(x * kLog2E); }

/// Both biases on a score of query i and key j, which are there.
template <class T>
ROOFTILE_TILE float biased_score(const AttentionProblem& p, float x, std::int64_t batch, std::int64_t head,
                                 std::int64_t i, std::int64_t j) {
  if (p.alibi) x = fmaf(-p.alibi[head * p.alibi_stride], p.distance(i, j), x);
  if (!p.bias.data) return x;
  const std::int64_t at =
      batch * p.bias.stride[0] + head * p.bias.stride[1] + i * p.bias.stride[2] + j * p.bias.stride[3];
  return x + (p.bias_dtype == DType::f32 ? static_cast<const float*>(p.bias.data)[at]
                                         : tile::widen<float>(static_cast<const T*>(p.bias.data)[at]));
}
/// Cap and bias on a product; `slope`: the cap's.
template <class T>
ROOFTILE_TILE float score_of(const AttentionProblem& p, float x, std::int64_t batch, std::int64_t head,
                             std::int64_t i, std::int64_t j, float* slope = nullptr) {
  if (p.softcap != 0) {
    const float bent = tanhf(x / p.softcap);
    if (slope) *slope = 1 - bent * bent;
    x = bent * p.softcap;
  }
  return biased_score<T>(p, x, batch, head, i, j);
}

/// A head's sink; -inf where there is none.
template <class T>
ROOFTILE_TILE float sink_of(const AttentionProblem& p, std::int64_t head) {
  if (!p.sink) return -HUGE_VALF;
  const std::int64_t at = head * p.sink_stride;
  return p.sink_dtype == DType::f32 ? static_cast<const float*>(p.sink)[at]
                                    : tile::widen<float>(static_cast<const T*>(p.sink)[at]);
}

// Dropout: a counter has the words of four neighbouring keys, which are four lanes' or more. So each lane
// takes a counter's four words to bits, for itself and others.

/// Bit n: whether the n-th of a counter's keys is kept.
ROOFTILE_TILE unsigned kept_four(const AttentionDropout& dropout, const PhiloxStream& stream,
                                 std::uint64_t counter) {
  const PhiloxWords four = stream.group(counter);
  unsigned kept = 0;
  ROOFTILE_UNROLL for (int n = 0; n < 4; ++n) kept |= unsigned{dropout.keep(four.word[n])} << n;
  return kept;
}
/// Four lanes, `step` apart, have a key of each counter: `place`, its bit. Each lane has taken some counters,
/// four bits for each; result: bit 4·n + m is of this lane's key and the m-th lane's n-th counter.
ROOFTILE_TILE unsigned exchange_kept(unsigned mine, int place, int step) {
  unsigned kept = 0;
  ROOFTILE_UNROLL for (int far = 0; far < 4; ++far) {
    const unsigned its = far == 0 ? mine : __shfl_xor_sync(0xffffffffu, mine, far * step);
    kept |= (its >> place & 0x11111111u) << (place ^ far);
  }
  return kept;
}
/// Of a thread's weights: bit kEach·r + c is row r's and column c's. Rows are queries from `query` on, whose
/// counters `counter_of` gives, columns keys from `key` on.
template <int kRows, class CounterOf>
ROOFTILE_TILE unsigned kept_of_queries(const AttentionDropout& dropout, CounterOf counter_of,
                                       std::int64_t query, std::int64_t key) {
  static_assert(kEach == 4);
  const int down = static_cast<int>(threadIdx.x) / kAcross, across = static_cast<int>(threadIdx.x) % kAcross;
  const int place = across % 4;
  const PhiloxStream stream = dropout.numbers.stream();
  unsigned mine = 0;
  ROOFTILE_UNROLL_BY(1)
  for (int r = 0; r < kRows; ++r)
    mine |= kept_four(dropout, stream,
                      counter_of(query + down * kRows + r) +
                          static_cast<std::uint64_t>((key + place * kAcross + across) / 4))
            << 4 * r;
  return exchange_kept(mine, place, 1);
}
/// The same where rows are keys and columns queries.
template <int kRows, class CounterOf>
ROOFTILE_TILE unsigned kept_of_keys(const AttentionDropout& dropout, CounterOf counter_of, std::int64_t key,
                                    std::int64_t query) {
  const int down = static_cast<int>(threadIdx.x) / kAcross, across = static_cast<int>(threadIdx.x) % kAcross;
  const PhiloxStream stream = dropout.numbers.stream();
  unsigned kept = 0;
  ROOFTILE_UNROLL_BY(1) for (int c = 0; c < kEach; ++c) {
    const unsigned four = kept_four(dropout, stream,
                                    counter_of(query + across + c * kAcross) +
                                        static_cast<std::uint64_t>((key + down * kRows) / 4)) >>
                          down * kRows % 4;
    ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) kept |= (four >> r & 1) << (kEach * r + c);
  }
  return kept;
}

/// How a row's columns lie within a tile that begins at `first`: those from `begin` to before `end` count.
struct Seen {
  int begin, end;
  ROOFTILE_TILE Seen(const AttentionRange& range, std::int64_t first) {
    const std::int64_t b = range.begin - first, e = range.end - first;
    begin = b < 0 ? 0 : b > kColumns ? kColumns : static_cast<int>(b);
    end = e < 0 ? 0 : e > kColumns ? kColumns : static_cast<int>(e);
  }
  ROOFTILE_TILE bool operator[](int column) const { return column >= begin && column < end; }
};

/// What a block of the forward has in shared memory, with kRows rows to a thread.
template <int kSize, int kRows>
inline constexpr std::size_t kForwardFloats =
    std::size_t(kDown* kRows + kColumns) * kPitch<kSize> + std::size_t(kDown) * kRows* kWeightPitch;

// [forward]
/// Some rows of queries through all their keys, or one chunk of them, 32 at a time. `its` says which rows
/// those are and where they, their keys and values lie; a row's bits follow from its keys alone.
template <int kSize, int kRows, class Its>
ROOFTILE_TILE void forward_tile(const AttentionProblem& p, const Its& its) {
  constexpr int kTall = kDown * kRows;
  ROOFTILE_DYNAMIC_SHARED(bytes);
  float* const q = reinterpret_cast<float*>(bytes);         // kTall x D
  float* const other = q + kTall * kPitch<kSize>;           // 32 x D, then 32 x E
  float* const weights = other + kColumns * kPitch<kSize>;  // kTall x 32
  const int down = static_cast<int>(threadIdx.x) / kAcross, across = static_cast<int>(threadIdx.x) % kAcross;
  const int d = static_cast<int>(p.d), e = static_cast<int>(p.e);
  const std::int64_t begin = its.first(), rows = its.rows(), length = its.length();
  const std::int64_t last_row = (begin + kTall < rows ? begin + kTall : rows) - 1;
  AttentionRange all{its.keys(begin).begin, its.keys(last_row).end};
  if constexpr (Its::kPart) {
    all = all.within(its.chunk);
    if (all.size() == 0) return;
  }
  load_tile<kSize>(q, its.q(), begin, kTall, rows - begin, d, its.scale());

  AttentionRange range[kRows];
  float m[kRows], l[kRows];
  float4 y[kRows][kGroups<kSize>];
  clear<kSize>(y);
  ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) {
    const std::int64_t i = begin + down * kRows + r;
    range[r] = i < rows ? its.keys(i) : AttentionRange{0, 0};
    m[r] = -HUGE_VALF, l[r] = 0;
  }

  // Of the chunks before the one in registers: seldom needed, so in memory. Of each row weights, then sums.
  constexpr int kMemory = 1 + kGroups<kSize>;
  float4 before[kRows * kMemory];
  /// A chunk is done: the chunks before are joined.
  const auto join = [&] {
    ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) {
      const float4* const memory = before + unknown(r * kMemory);
      RowWeights<float> total{memory->x, memory->y};
      const Merge<float> merged(total, {m[r], l[r]});
      m[r] = total.most, l[r] = total.sum;
      ROOFTILE_UNROLL for (int g = 0; g < kGroups<kSize>; ++g) {
        const float4 sum = memory[1 + g];
        y[r][g].x = merged(sum.x, y[r][g].x), y[r][g].y = merged(sum.y, y[r][g].y);
        y[r][g].z = merged(sum.z, y[r][g].z), y[r][g].w = merged(sum.w, y[r][g].w);
      }
    }
  };
  /// Another chunk begins.
  const auto put_aside = [&] {
    ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) {
      float4* const memory = before + unknown(r * kMemory);
      *memory = {m[r], l[r], 0, 0};
      ROOFTILE_UNROLL for (int g = 0; g < kGroups<kSize>; ++g) memory[1 + g] = y[r][g];
      m[r] = -HUGE_VALF, l[r] = 0;
    }
    clear<kSize>(y);
  };
  const auto chunk_of = [](std::int64_t key) { return key / kAttentionChunk; };

  for (std::int64_t first = all.begin / kColumns * kColumns; first < all.end; first += kColumns) {
    __syncthreads();  // v of the tile before was read
    load_tile<kSize>(other, its.k(), first, kColumns, length - first, d);
    __syncthreads();
    float s[kRows][kEach];
    products<kSize>(s, q, other, d);
    ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) {
      const Seen seen(range[r], first);
      float most = m[r];
      ROOFTILE_UNROLL for (int c = 0; c < kEach; ++c) {
        const int column = across + c * kAcross;
        s[r][c] = seen[column] ? its.score(s[r][c], begin + down * kRows + r, first + column) : -HUGE_VALF;
        most = fmaxf(most, s[r][c]);
      }
      most = max_across(most);
      // A row that has seen nothing yet has m = -inf, which taken off -inf would be NaN: it takes 0.
      const float from = most == -HUGE_VALF ? 0 : most, shrink = power(m[r] - from);
      m[r] = most;
      float sum = 0;
      ROOFTILE_UNROLL for (int c = 0; c < kEach; ++c) {
        s[r][c] = power(s[r][c] - from);
        sum += s[r][c];
      }
      l[r] = fmaf(l[r], shrink, sum_across(sum));
      ROOFTILE_UNROLL for (int g = 0; g < kGroups<kSize>; ++g) {
        y[r][g].x *= shrink, y[r][g].y *= shrink;
        y[r][g].z *= shrink, y[r][g].w *= shrink;
      }
    }
    if constexpr (Its::kDrops)
      if (p.dropout) {
        const unsigned kept = kept_of_queries<kRows>(
            p.dropout, [&](std::int64_t i) { return its.counter(i); }, begin, first);
        ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) ROOFTILE_UNROLL for (int c = 0; c < kEach; ++c) {
          if (!(kept >> (kEach * r + c) & 1)) s[r][c] = 0;
        }
      }
    put_weights(weights, s);
    __syncthreads();  // k was read, the weights are there
    load_tile<kSize>(other, its.v(), first, kColumns, length - first, e);
    __syncthreads();
    accumulate<kSize>(y, weights, other, e);
    if constexpr (!Its::kPart)
      if (const std::int64_t next = first + kColumns; next % kAttentionChunk == 0 && next < all.end) {
        if (chunk_of(first) > chunk_of(all.begin)) join();
        put_aside();
      }
  }

  if constexpr (Its::kPart) {
    ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) {
      const std::int64_t i = begin + down * kRows + r;
      if (i >= rows) break;
      ROOFTILE_UNROLL for (int g = 0; g < kGroups<kSize>; ++g) {
        its.put_part(i, (g * kAcross + across) * 4, y[r][g]);
      }
      if (across == 0) its.put_weights(i, RowWeights<float>{m[r], l[r]});
    }
    return;
  }
  if (chunk_of(all.end - 1) > chunk_of(all.begin)) join();
  ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) {
    const std::int64_t i = begin + down * kRows + r;
    if (i >= rows) break;
    RowWeights<float> total{m[r], l[r]};
    const float scale = total.finish(p.sink ? its.sink(i) : -HUGE_VALF, its.value_scale());
    put_row<kSize>(its.y(), i, y[r], e, scale);
    if (p.lse && across == 0) its.put_lse(i, total.lse());
  }
}
// [/forward]

/// Which batch, head and tile of rows a block has: last tiles first, since a causal mask leaves them most to
/// do. `together` heads at a time, 0: all.
struct Place {
  std::int64_t batch, head, first;
  ROOFTILE_TILE Place(std::int64_t batches, std::int64_t heads, std::int64_t rows, int tall,
                      std::int64_t together = 0, unsigned index = blockIdx.x) {
    const unsigned all = static_cast<unsigned>(batches * heads);  // a grid has below 2^31
    const unsigned tiles = static_cast<unsigned>((rows + tall - 1) / tall);
    const unsigned each = together == 0 ? all : static_cast<unsigned>(together);
    const unsigned before = index / (each * tiles) * each, width = all - before < each ? all - before : each;
    const unsigned within = index - before * tiles, which = before + within % width;
    head = which % static_cast<unsigned>(heads);
    batch = which / static_cast<unsigned>(heads);
    first = std::int64_t{tiles - 1 - within / width} * tall;
  }
};

/// A block's tile of a head's queries, and the problem of the sequence that it is in.
struct QueryTile {
  AttentionProblem p;
  Place place;
  bool any;  ///< false: it has no row
  ROOFTILE_TILE QueryTile(const AttentionProblem& all, int tall)
      : p(all), place(p.b, p.h, p.tiles(p.s, tall), 1, p.together), any(p.take_queries(place.first, tall)) {}
};

/// A head's queries, one after the other.
template <class T>
struct WholeHead {
  static constexpr bool kDrops = true, kPart = false;
  const AttentionProblem& p;
  int batch, head, key_head;
  std::int64_t first_row;

  ROOFTILE_TILE WholeHead(const AttentionProblem& problem, const Place& place)
      : p(problem),
        batch(static_cast<int>(place.batch)),
        head(static_cast<int>(place.head)),
        key_head(head / static_cast<int>(p.group())),
        first_row(place.first) {}
  ROOFTILE_TILE HeadRows<T> q() const { return {p.q, batch, head}; }
  ROOFTILE_TILE HeadRows<T> k() const { return {p.k, batch, key_head}; }
  ROOFTILE_TILE HeadRows<T> v() const { return {p.v, batch, key_head}; }
  ROOFTILE_TILE HeadRows<T> y() const { return {p.y, batch, head}; }
  ROOFTILE_TILE std::int64_t first() const { return first_row; }
  ROOFTILE_TILE std::int64_t rows() const { return p.s; }
  ROOFTILE_TILE std::int64_t length() const { return p.t; }
  ROOFTILE_TILE AttentionRange keys(std::int64_t row) const { return p.keys(row); }
  ROOFTILE_TILE float scale() const { return p.scale_of(batch, key_head); }
  ROOFTILE_TILE float value_scale() const { return p.value_scale_of(batch, key_head); }
  ROOFTILE_TILE bool has_bias() const { return p.bias.data || p.alibi; }
  ROOFTILE_TILE std::uint64_t counter(std::int64_t row) const { return p.counter(batch, head, row); }
  ROOFTILE_TILE float sink(std::int64_t) const { return sink_of<T>(p, head); }
  ROOFTILE_TILE float biased(float x, std::int64_t row, std::int64_t key) const {
    return biased_score<T>(p, x, batch, head, row, key);
  }
  ROOFTILE_TILE float score(float x, std::int64_t row, std::int64_t key) const {
    return score_of<T>(p, x, batch, head, row, key);
  }
  ROOFTILE_TILE void put_lse(std::int64_t row, float lse) const {
    p.lse[batch * p.lse_stride[0] + head * p.lse_stride[1] + row * p.lse_stride[2]] = lse;
  }
};

/// Calls f with the bucket of channels that holds both head sizes.
template <class F>
Status with_size(const AttentionProblem& p, F&& f) {
  const std::int64_t size = p.d > p.e ? p.d : p.e;
  if (size <= 64) return f.template operator()<64>();
  if (size <= 128) return f.template operator()<128>();
  return f.template operator()<256>();
}

/// One block a tile of rows.
template <class Problem, class Kernel>
Status launch_tiles(const CudaLaunch& launch, const char* function, const Problem& p, std::int64_t heads,
                    std::int64_t rows, int tall, unsigned threads, std::size_t shared_bytes, Kernel kernel) {
  const std::int64_t blocks = p.b * heads * p.tiles(rows, tall);
  if (blocks == 0) return {};
  if (blocks > 0x7fffffff)
    return Status::error("%s: a grid has at most 2147483647 blocks, this call would take %lld", function,
                         static_cast<long long>(blocks));
  return cuda::launch(launch, function, {static_cast<unsigned>(blocks), threads, shared_bytes}, kernel, p);
}
template <class Problem, class Kernel>
Status launch_tiles(const CudaLaunch& launch, const char* function, const Problem& p, std::int64_t heads,
                    std::int64_t rows, int tall, std::size_t shared_floats, Kernel kernel) {
  return launch_tiles(launch, function, p, heads, rows, tall, kThreads, shared_floats * sizeof(float),
                      kernel);
}

/// Tensor cores: f16 and bf16.
Status launch_mma(const CudaLaunch& launch, const AttentionProblem& p);
Status launch_backward_mma(const CudaLaunch& launch, const AttentionProblem& p);
/// The first step of that: delta of each query, into the first two elements of its dq.
Status launch_delta(const CudaLaunch& launch, const AttentionProblem& p);
/// Hopper's (attention.hopper.cu, attention.hopper_backward.cu).
Status launch_hopper(const CudaLaunch& launch, const AttentionProblem& p);
Status launch_backward_hopper(const CudaLaunch& launch, const AttentionProblem& p);

}  // namespace rooftile::attention_gpu
