// Paged attention on a GPU: attention's tiles (rooftile/ops/attention/attention.gpu.h), so that every row has
// attention's bits. A block has 16 rows: queries of all heads that share a key head, position by position.
// And tokens appended to a cache: each slot is one block's, which takes its tokens in their order.
#include <algorithm>
#include <limits>

#include "rooftile/ops/attention/attention.mma.h"
#include "rooftile/ops/paged_attention/paged_attention.problem.h"
#include "rooftile/tile/cuda/row_range.h"

namespace rooftile {
namespace {
using namespace attention_gpu;

// ---- attention

/// The queries of a key head's group, or their y: row r is query r / group of its r % group-th head.
template <class T>
struct GroupRows {
  T* data;
  std::int64_t group, row_stride, head_stride, stride;
  ROOFTILE_TILE GroupRows(const PagedAttentionProblem& p, const AttentionOperand& o, const Place& place)
      : data(static_cast<T*>(const_cast<void*>(o.data)) + place.batch * o.stride[0] +
             place.head * p.group() * o.stride[2]),
        group(p.group()),
        row_stride(o.stride[1]),
        head_stride(o.stride[2]),
        stride(o.stride[3]) {}
  ROOFTILE_TILE T* row(std::int64_t row) const {
    return data + row / group * row_stride + row % group * head_stride;
  }
  static constexpr float missing() { return 0; }
  ROOFTILE_TILE void put(std::int64_t r, int channel, float value) const {
    row(r)[channel * stride] = tile::narrow<T>(value);
  }
};

// [pages]
/// A sequence's keys or values, of one head. Rows of a page that the cache lacks hold `otherwise`.
template <class T>
struct CacheRows {
  const PagedAttentionProblem& p;
  const AttentionOperand& cache;
  std::int64_t batch, head, stride;
  float otherwise;
  ROOFTILE_TILE CacheRows(const PagedAttentionProblem& problem, const AttentionOperand& o, const Place& place,
                          float what)
      : p(problem), cache(o), batch(place.batch), head(place.head), stride(o.stride[3]), otherwise(what) {}
  ROOFTILE_TILE const T* row(std::int64_t token) const {
    // Tokens are below 2^31.
    const unsigned size = p.page_size < 0x7fffffff ? static_cast<unsigned>(p.page_size) : 0x7fffffffu;
    const std::int64_t index = static_cast<unsigned>(token) / size, page = p.page(batch, index);
    if (page < 0) return nullptr;
    return static_cast<const T*>(cache.data) + page * cache.stride[0] +
           (token - index * p.page_size) * cache.stride[1] + head * cache.stride[2];
  }
  ROOFTILE_TILE float missing() const { return otherwise; }
};
// [/pages]

template <class T>
struct HeadsOfAKey {
  const PagedAttentionProblem& p;
  Place place;
  std::int64_t group, tokens;
  GroupRows<T> its_q, its_y;
  CacheRows<T> its_k, its_v;

  ROOFTILE_TILE HeadsOfAKey(const PagedAttentionProblem& problem, const Place& its)
      : p(problem),
        place(its),
        group(p.group()),
        tokens(p.length(its.batch)),
        its_q(p, p.q, its),
        its_y(p, p.y, its),
        its_k(p, p.k, its, std::numeric_limits<float>::quiet_NaN()),
        its_v(p, p.v, its, 0) {}
  ROOFTILE_TILE const GroupRows<T>& q() const { return its_q; }
  ROOFTILE_TILE const GroupRows<T>& y() const { return its_y; }
  ROOFTILE_TILE const CacheRows<T>& k() const { return its_k; }
  ROOFTILE_TILE const CacheRows<T>& v() const { return its_v; }
  ROOFTILE_TILE std::int64_t first() const { return place.first; }
  ROOFTILE_TILE std::int64_t rows() const { return p.s * group; }
  ROOFTILE_TILE std::int64_t length() const { return tokens; }
  ROOFTILE_TILE AttentionRange keys(std::int64_t row) const { return p.keys(row / group, tokens); }
  ROOFTILE_TILE float score(float x, std::int64_t, std::int64_t) const {
    return score_of<T>(p, x, 0, 0, 0, 0);  // no bias, so of no place
  }
  ROOFTILE_TILE bool has_bias() const { return false; }
  ROOFTILE_TILE float sink(std::int64_t row) const { return sink_of<T>(p, place.head * group + row % group); }
  ROOFTILE_TILE float biased(float x, std::int64_t, std::int64_t) const { return x; }
  ROOFTILE_TILE void put_lse(std::int64_t row, float lse) const {
    const std::int64_t head = place.head * group + row % group;
    p.lse[place.batch * p.lse_stride[0] + head * p.lse_stride[1] + row / group * p.lse_stride[2]] = lse;
  }
  /// Of a length that cannot be.
  ROOFTILE_TILE void put_nan() const {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (std::int64_t row = place.first; row < place.first + kDown && row < rows(); ++row) {
      for (int c = static_cast<int>(threadIdx.x); c < static_cast<int>(p.e); c += kThreads)
        its_y.put(row, c, nan);
      if (p.lse && threadIdx.x == 0) put_lse(row, nan);
    }
  }
};

template <int kSize>
__global__ void __launch_bounds__(kThreads, 2) paged_simt(const __grid_constant__ PagedAttentionProblem p) {
  const HeadsOfAKey<float> its(p, Place(p.b, p.g, p.s * p.group(), kDown));
  if (its.length() < 0) return its.put_nan();
  forward_tile<kSize, 1>(p, its);
}
template <class T, int kSize>
__global__ void __launch_bounds__(kThreads, 2) paged_mma(const __grid_constant__ PagedAttentionProblem p) {
  static_assert(SplitShape<kSize>::kQueries == kDown && SplitShape<kSize>::kThreads == kThreads);
  const HeadsOfAKey<T> its(p, Place(p.b, p.g, p.s * p.group(), kDown));
  if (its.length() < 0) return its.put_nan();
  forward_mma<T, SplitShape<kSize>, false>(p, its);
}

Status launch_paged_simt(const CudaLaunch& launch, const PagedAttentionProblem& p) {
  if (p.b * p.s * p.h == 0) return {};
  return with_size(p, [&]<int kSize>() {
    return launch_tiles(launch, "paged_attention", p, p.g, p.s * p.group(), kDown, kForwardFloats<kSize, 1>,
                        paged_simt<kSize>);
  });
}
Status launch_paged_mma(const CudaLaunch& launch, const PagedAttentionProblem& problem) {
  if (problem.b * problem.s * problem.h == 0) return {};
  PagedAttentionProblem p = problem;
  p.words = in_words(p.q, p.d) && in_words(p.k, p.d) && in_words(p.v, p.e);
  return tile::with_type<f16, bf16>(p.dtype, [&]<class T>() {
    return with_size(p, [&]<int kSize>() {
      return launch_mma<SplitShape<kSize>>(launch, "paged_attention", p, p.g, p.s * p.group(),
                                           paged_mma<T, kSize>);
    });
  });
}

// ---- append

constexpr int kTokens = 128;       ///< threads of a block, and tokens that it looks at at a time
constexpr int kMaxWorkers = 1024;  ///< blocks: several for each SM

/// A token's channels to its slot, in words.
template <class Word>
ROOFTILE_TILE void put_token(const KvCacheAppendProblem& p, const KvCacheSide& side, std::int64_t from,
                             std::int64_t slot) {
  const Word* const token = static_cast<const Word*>(side.from) + from;
  const std::int64_t page = slot / p.page_size, place = slot - page * p.page_size;
  Word* const to = static_cast<Word*>(side.cache) + page * side.stride[0] + place * side.stride[1];
  for (std::int64_t i = static_cast<int>(threadIdx.x); i < p.heads * side.channels; i += kTokens) {
    const std::int64_t head = i / side.channels, channel = i - head * side.channels;
    to[head * side.stride[2] + channel * side.stride[3]] =
        token[head * side.from_stride[0] + channel * side.from_stride[1]];
  }
}

// [append]
/// All blocks look at all tokens; one thread writes one element of a slot each time, so the last token stays.
template <class Word>
__global__ void __launch_bounds__(kTokens) append_tokens(const __grid_constant__ KvCacheAppendProblem p) {
  using P = KvCacheAppendProblem;
  ROOFTILE_SHARED(mine, unsigned[kTokens / 32]);
  const int thread = static_cast<int>(threadIdx.x);
  for (std::int64_t first = 0; first < p.rows.rows; first += kTokens) {
    bool own = false;
    if (const std::int64_t i = first + thread; i < p.rows.rows) {
      const std::int64_t slot = p.slot_at(tile::offset_of(p.rows, P::kSlots, i));
      own = slot >= 0 && p.owner(slot, gridDim.x) == blockIdx.x;
    }
    const unsigned those = __ballot_sync(0xffffffffu, own);
    __syncthreads();  // the tokens before were taken
    if (thread % 32 == 0) mine[thread / 32] = those;
    __syncthreads();
    for (int warp = 0; warp < kTokens / 32; ++warp)
      for (unsigned left = mine[warp]; left != 0; left &= left - 1) {
        const std::int64_t i = first + warp * 32 + __ffs(static_cast<int>(left)) - 1,
                           slot = p.slot_at(tile::offset_of(p.rows, P::kSlots, i));
        put_token<Word>(p, p.k, tile::offset_of(p.rows, P::kK, i), slot);
        put_token<Word>(p, p.v, tile::offset_of(p.rows, P::kV, i), slot);
      }
  }
}
// [/append]

/// From elements of so many bytes to words of 16, where all lie in such: false if they do not.
bool to_words(KvCacheAppendProblem& p) {
  const std::int64_t each = 16 / p.bytes;
  bool whole = true;
  const auto divide = [&](std::int64_t& n) {
    whole = whole && n % each == 0;
    n /= each;
  };
  for (int d = 0; d < std::max(p.rows.rank, 1); ++d)
    for (int operand : {KvCacheAppendProblem::kK, KvCacheAppendProblem::kV})
      divide(p.rows.stride[operand][d]);
  for (KvCacheSide* side : {&p.k, &p.v}) {
    whole = whole && reinterpret_cast<std::uintptr_t>(side->from) % 16 == 0 &&
            reinterpret_cast<std::uintptr_t>(side->cache) % 16 == 0 && side->stride[3] == 1 &&
            side->from_stride[1] == 1;
    for (int d = 0; d < 3; ++d) divide(side->stride[d]);
    divide(side->from_stride[0]);
    divide(side->channels);
  }
  return whole;
}

Status launch_append(const CudaLaunch& launch, const KvCacheAppendProblem& p) {
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(p.rows.rows, kMaxWorkers));
  if (blocks == 0 || p.heads * (p.k.channels + p.v.channels) == 0) return {};
  const cuda::Grid grid{blocks, kTokens};
  if (KvCacheAppendProblem words = p; to_words(words))
    return cuda::launch(launch, "kv_cache_append", grid, append_tokens<uint4>, words);
  if (p.bytes == 4) return cuda::launch(launch, "kv_cache_append", grid, append_tokens<std::uint32_t>, p);
  return cuda::launch(launch, "kv_cache_append", grid, append_tokens<std::uint16_t>, p);
}

}  // namespace

ROOFTILE_CUDA_KERNELS(paged_attention) = {
    entry<launch_append>("kv_cache_append", "tile"),
    entry<launch_paged_mma>("paged_attention", "mma"),
    entry<launch_paged_simt>("paged_attention", "simt"),
    {},
};

}  // namespace rooftile
