#pragma once
// What passes from validation (attention.cpp) to the launches (attention.cpu.cpp, attention.cu, the ladder).
#include <cstdint>

#include "rooftile/core/dtype.h"
#include "rooftile/core/philox.h"

#if defined(__CUDACC__)
#define ROOFTILE_ATTENTION __host__ __device__ inline
#else
#define ROOFTILE_ATTENTION inline
#endif

namespace rooftile {

/// A GPU's sums of a row are those of chunks of so many keys, added up (attention.chunks.h). Its bits depend
/// on this.
inline constexpr std::int64_t kAttentionChunk = 512;
/// Keys of a tile on its tensor cores, of heads with room for kSize channels: so are these bits.
template <int kSize>
inline constexpr int kMmaKeys = kSize <= 128 ? 64 : 32;

/// One operand of four dimensions, its strides in elements: of q, k, v, y and their gradients batch,
/// position, head, channel; of a bias batch, head, query, key.
struct AttentionOperand {
  const void* data = nullptr;
  std::int64_t stride[4] = {};
};

/// A half-open range.
struct AttentionRange {
  std::int64_t begin, end;
  ROOFTILE_ATTENTION std::int64_t size() const { return end - begin; }
  /// What is in a chunk of it; empty ones have end = begin.
  ROOFTILE_ATTENTION AttentionRange within(std::int64_t chunk) const {
    const std::int64_t first = chunk * kAttentionChunk, last = first + kAttentionChunk,
                       from = begin < first ? first : begin, to = end > last ? last : end;
    return {from, to > from ? to : from};
  }
};

/// Which weights meet their values. Of query i and key j: word j % 4 of the counter offset + ((b·H + h)·S +
/// i)·⌈T/4⌉ + j/4. With sequences S, T and i are the whole call's, j counts from the sequence's first key.
struct AttentionDropout {
  PhiloxNumbers numbers;  ///< its seed null: all of them
  PhiloxKeep keep;
  std::int64_t rows = 0, first = 0;  ///< S; of it the first of this sequence
  std::int64_t counters = 0;         ///< of a row: ⌈T/4⌉

  ROOFTILE_ATTENTION explicit operator bool() const { return numbers.seed != nullptr; }
};

/// A number for each batch and key head.
struct AttentionFactors {
  const float* data;  ///< null: 1 for each
  std::int64_t stride[2];

  ROOFTILE_ATTENTION float of(std::int64_t batch, std::int64_t key_head) const {
    return data ? data[batch * stride[0] + key_head * stride[1]] : 1;
  }
};

struct AttentionProblem {
  std::int64_t b, s, t, h, g, d, e;
  DType dtype, bias_dtype;
  float scale, softcap;      ///< scale: never 0; softcap 0: none
  std::int64_t left, right;  ///< keys before and after the query's own; -1: all. Causal: right is 0
  AttentionOperand q, k, v, bias, y, dy, dq, dk, dv;
  float* lse;  ///< null: not wanted
  std::int64_t lse_stride[3];
  const void* sink;  ///< null: none
  void* dsink;       ///< null: not wanted
  std::int64_t sink_stride, dsink_stride;
  DType sink_dtype;
  const float* alibi;  ///< null: none
  std::int64_t alibi_stride;
  /// Of sequences that lie one after the other in the one batch: where each begins, and where the last one
  /// ends. Null: a batch is a sequence.
  const std::int32_t *cu_q, *cu_k;
  std::int64_t cu_q_stride, cu_k_stride, sequences;
  AttentionDropout dropout;
  AttentionFactors q_scale, k_scale, v_scale;  ///< of what stands in q, k and v; of a forward alone
  // Of a GPU's launch alone:
  bool words;             ///< rows of q, k, v and y are whole 16-byte words
  std::int64_t together;  ///< heads whose blocks run side by side; 0: all

  /// Nothing but scales and masks: no bias of either kind, cap and dropout.
  bool plain() const { return !bias.data && !alibi && softcap == 0 && !dropout; }
  ROOFTILE_ATTENTION std::int64_t group() const { return g == 0 ? 0 : h / g; }
  /// From a product of what stands in q and k to its score.
  ROOFTILE_ATTENTION float scale_of(std::int64_t batch, std::int64_t key_head) const {
    return scale * (q_scale.of(batch, key_head) * k_scale.of(batch, key_head));
  }
  /// What a weighted mean of what stands in v is multiplied with.
  ROOFTILE_ATTENTION float value_scale_of(std::int64_t batch, std::int64_t key_head) const {
    return dropout.keep.scale * v_scale.of(batch, key_head);
  }
  /// The keys that query i sees; empty ones have end = begin.
  ROOFTILE_ATTENTION AttentionRange keys(std::int64_t i) const { return keys(i, t); }
  /// Of `length` keys instead of t.
  ROOFTILE_ATTENTION AttentionRange keys(std::int64_t i, std::int64_t length) const {
    const std::int64_t own = i + length - s;
    return cut(left < 0 ? 0 : own - left, right < 0 ? length : own + right + 1, length);
  }
  /// The queries that see key j.
  ROOFTILE_ATTENTION AttentionRange queries(std::int64_t j) const {
    const std::int64_t own = j - t + s;
    return cut(right < 0 ? 0 : own - right, left < 0 ? s : own + left + 1, s);
  }
  /// What any of the queries from i to before end sees, end > i; what lies between is seen by one of them.
  ROOFTILE_ATTENTION AttentionRange keys_of(std::int64_t i, std::int64_t end) const {
    return {keys(i).begin, keys(end - 1).end};
  }
  ROOFTILE_ATTENTION AttentionRange queries_of(std::int64_t j, std::int64_t end) const {
    return {queries(j).begin, queries(end - 1).end};
  }

  /// What alibi takes off a score, a head's slope times it: how far a key is from the query's own.
  ROOFTILE_ATTENTION float distance(std::int64_t i, std::int64_t j) const {
    const std::int64_t ahead = i + t - s - j;
    return static_cast<float>(ahead < 0 ? -ahead : ahead);
  }
  /// The counter of query i's first four keys, without the stream's offset.
  ROOFTILE_ATTENTION std::uint64_t counter(std::int64_t batch, std::int64_t head, std::int64_t i) const {
    const auto wide = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
    return (wide(batch * h + head) * wide(dropout.rows) + wide(dropout.first + i)) * wide(dropout.counters);
  }

  /// What a launch has of each head: tiles of `tall` rows, queries or keys. Of cut ones the rows before the
  /// first sequence and past the last are two sequences more, and the m-th has the tiles from begin/tall + m
  /// to end/tall + m: enough, wherever it begins. Nobody but the tiles needs to read where that is.
  ROOFTILE_ATTENTION std::int64_t tiles(std::int64_t rows, std::int64_t tall) const {
    return rows == 0 ? 0 : cu_q ? rows / tall + sequences + 2 : (rows + tall - 1) / tall;
  }
  /// Rows of a sequence in the one batch.
  struct Sequence {
    std::int64_t first_query, queries, first_key, keys;
  };
  /// The sequence that has a tile of queries, or of keys; `index` becomes the tile's first row there, which
  /// may be past its end.
  template <bool kQueries>
  ROOFTILE_ATTENTION Sequence sequence_of(std::int64_t& index, std::int64_t tall) const {
    const auto queries = [&](std::int64_t m) { return begin_of(cu_q, cu_q_stride, m, sequences, s); };
    const auto keys = [&](std::int64_t m) { return begin_of(cu_k, cu_k_stride, m, sequences, t); };
    std::int64_t m = 0;
    for (std::int64_t end = sequences + 2; end - m > 1;) {
      const std::int64_t middle = m + (end - m) / 2;
      ((kQueries ? queries(middle) : keys(middle)) / tall + middle <= index ? m : end) = middle;
    }
    const std::int64_t first_query = queries(m), first_key = keys(m);
    index = (index - (kQueries ? first_query : first_key) / tall - m) * tall;
    // Before the first and past the last there are no pairs. Entries that decrease leave none, too.
    const bool pairs = m > 0 && m <= sequences;
    const std::int64_t q_count = kQueries || pairs ? queries(m + 1) - first_query : 0,
                       k_count = !kQueries || pairs ? keys(m + 1) - first_key : 0;
    return {first_query, q_count > 0 ? q_count : 0, first_key, k_count > 0 ? k_count : 0};
  }
  /// Makes this the problem of that sequence; false: the tile has no row.
  ROOFTILE_ATTENTION bool take_queries(std::int64_t& index, std::int64_t tall) {
    return take<true>(index, tall) && index < s;
  }
  ROOFTILE_ATTENTION bool take_keys(std::int64_t& index, std::int64_t tall) {
    return take<false>(index, tall) && index < t;
  }

 private:
  /// Where the m-th of the N + 2 sequences begins, within the rows whatever is in memory.
  ROOFTILE_ATTENTION static std::int64_t begin_of(const std::int32_t* cu, std::int64_t stride, std::int64_t m,
                                                  std::int64_t count, std::int64_t rows) {
    if (m == 0) return 0;
    const std::int64_t begin = m > count + 1 ? rows : cu[(m - 1) * stride];
    return begin < 0 ? 0 : begin > rows ? rows : begin;
  }
  template <bool kQueries>
  ROOFTILE_ATTENTION bool take(std::int64_t& index, std::int64_t tall) {
    if (!cu_q) return index *= tall, true;
    const Sequence its = sequence_of<kQueries>(index, tall);
    const std::int64_t first_query = its.first_query, first_key = its.first_key;
    s = its.queries;
    t = its.keys;
    shift(q, first_query), shift(y, first_query), shift(dy, first_query), shift(dq, first_query);
    shift(k, first_key), shift(v, first_key), shift(dk, first_key), shift(dv, first_key);
    if (lse) lse += first_query * lse_stride[2];
    dropout.first = first_query;
    return true;
  }

  ROOFTILE_ATTENTION void shift(AttentionOperand& o, std::int64_t rows) const {
    o.data = static_cast<const char*>(o.data) + rows * o.stride[1] * (dtype == DType::f32 ? 4 : 2);
  }
  ROOFTILE_ATTENTION static AttentionRange cut(std::int64_t begin, std::int64_t end, std::int64_t size) {
    begin = begin < 0 ? 0 : begin < size ? begin : size;
    end = end > size ? size : end;
    return {begin, end > begin ? end : begin};
  }
};

}  // namespace rooftile
