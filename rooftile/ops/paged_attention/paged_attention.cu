// Paged attention on a GPU: attention's tiles (rooftile/ops/attention/attention.gpu.h), so that every row has
// attention's bits. A block has 16 rows: queries of all heads that share a key head, position by position.
// And tokens appended to a cache: each slot is one block's, which takes its tokens in their order.
#include <algorithm>
#include <limits>

#include "rooftile/ops/paged_attention/paged_attention.decode.h"
#include "rooftile/ops/paged_attention/paged_attention.problem.h"
#include "rooftile/ops/quantize/quantize.tile.h"
#include "rooftile/tile/cuda/row_range.h"

namespace rooftile {
namespace {
using namespace attention_gpu;

// ---- attention

/// Which query a row of a key head is of. Both numbers are of 32 bits (launch_paged): longer divisions are
/// most of a kernel that has few keys to read.
ROOFTILE_TILE std::int64_t token_of(std::int64_t row, std::int64_t group) {
  return static_cast<std::uint32_t>(row) / static_cast<std::uint32_t>(group);
}

/// The queries of a key head's group, or their y: row r is query r / group of its r % group-th head.
template <class T>
struct GroupRows {
  T* data;
  std::int64_t group, row_stride, head_stride, stride;
  ROOFTILE_TILE GroupRows(const PagedAttentionProblem& p, const AttentionOperand& o, const Place& place)
      : data(static_cast<T*>(const_cast<void*>(o.data)) + place.batch * o.stride[0] +
             place.head * p.heads_each * o.stride[2]),
        group(p.heads_each),
        row_stride(o.stride[1]),
        head_stride(o.stride[2]),
        stride(o.stride[3]) {}
  ROOFTILE_TILE T* row(std::int64_t row) const {
    const std::int64_t token = token_of(row, group);
    return data + token * row_stride + (row - token * group) * head_stride;
  }
  static constexpr float missing() { return 0; }
  ROOFTILE_TILE static float widen(T x) { return tile::widen<float>(x); }
  ROOFTILE_TILE void put(std::int64_t r, int channel, float value) const {
    row(r)[channel * stride] = tile::narrow<T>(value);
  }
};

// [pages]
/// A sequence's keys or values, of one head. Rows of a page that the cache lacks hold `otherwise`. Of codes T
/// is std::uint8_t.
template <class T>
struct CacheRows {
  using Element = T;
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
    return at(page, token - index * p.page_size);
  }
  ROOFTILE_TILE const T* at(std::int64_t page, std::int64_t place) const {
    return static_cast<const T*>(cache.data) + page * cache.stride[0] + place * cache.stride[1] +
           head * cache.stride[2];
  }
  ROOFTILE_TILE float missing() const { return otherwise; }
  ROOFTILE_TILE bool large() const { return p.cache_dtype == DType::f8e5m2; }
  ROOFTILE_TILE float widen(T x) const {
    if constexpr (std::is_same_v<T, std::uint8_t>)
      return scaled_gpu::float_of(x, large());
    else
      return tile::widen<float>(x);
  }
};
// [/pages]

/// T: q's and y's; C: the caches', std::uint8_t of codes.
template <class T, class C>
struct HeadsOfAKey {
  enum : bool { kDrops = false, kPart = false };  // nvcc warns of a constant that a dtype has no use for
  const PagedAttentionProblem& p;
  Place place;
  std::int64_t group, tokens;
  GroupRows<T> its_q, its_y;
  CacheRows<C> its_k, its_v;

  ROOFTILE_TILE HeadsOfAKey(const PagedAttentionProblem& problem, const Place& its)
      : p(problem),
        place(its),
        group(p.heads_each),
        tokens(p.length(its.batch)),
        its_q(p, p.q, its),
        its_y(p, p.y, its),
        its_k(p, p.k, its, std::numeric_limits<float>::quiet_NaN()),
        its_v(p, p.v, its, 0) {}
  ROOFTILE_TILE const GroupRows<T>& q() const { return its_q; }
  ROOFTILE_TILE const GroupRows<T>& y() const { return its_y; }
  ROOFTILE_TILE const CacheRows<C>& k() const { return its_k; }
  ROOFTILE_TILE const CacheRows<C>& v() const { return its_v; }
  ROOFTILE_TILE std::int64_t first() const { return place.first; }
  ROOFTILE_TILE std::int64_t rows() const { return p.rows(); }
  ROOFTILE_TILE std::int64_t length() const { return tokens; }
  ROOFTILE_TILE AttentionRange keys(std::int64_t row) const { return p.keys(token_of(row, group), tokens); }
  ROOFTILE_TILE float scale() const { return p.scale_of(place.batch, place.head); }
  ROOFTILE_TILE float value_scale() const { return p.value_scale_of(place.batch, place.head); }
  ROOFTILE_TILE float score(float x, std::int64_t, std::int64_t) const {
    return score_of<T>(p, x, 0, 0, 0, 0);  // no bias, so of no place
  }
  ROOFTILE_TILE bool has_bias() const { return false; }
  ROOFTILE_TILE float sink(std::int64_t row) const { return sink_of<T>(p, head_of(row)); }
  ROOFTILE_TILE float biased(float x, std::int64_t, std::int64_t) const { return x; }
  ROOFTILE_TILE void put_lse(std::int64_t row, float lse) const {
    p.lse[place.batch * p.lse_stride[0] + head_of(row) * p.lse_stride[1] +
          token_of(row, group) * p.lse_stride[2]] = lse;
  }
  ROOFTILE_TILE std::int64_t head_of(std::int64_t row) const {
    return place.head * group + row - token_of(row, group) * group;
  }
  /// Of a length that cannot be.
  ROOFTILE_TILE void put_nan() const {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (std::int64_t row = place.first; row < place.first + kDown && row < rows(); ++row) {
      for (int c = static_cast<int>(threadIdx.x); c < static_cast<int>(p.e);
           c += static_cast<int>(blockDim.x))
        its_y.put(row, c, nan);
      if (p.lse && threadIdx.x == 0) put_lse(row, nan);
    }
  }
};

/// The same in one chunk of their keys.
template <class T, class C>
struct ChunkOfAKey : HeadsOfAKey<T, C> {
  static constexpr bool kPart = true;
  std::int64_t chunk;

  ROOFTILE_TILE ChunkOfAKey(const PagedAttentionProblem& problem, const Place& its, std::int64_t which)
      : HeadsOfAKey<T, C>(problem, its), chunk(which) {}
  ROOFTILE_TILE float* part(std::int64_t row) const {
    return this->p.part(this->place.batch, this->place.head, row, chunk);
  }
  template <class Sums>
  ROOFTILE_TILE void put_part(std::int64_t row, int channel, const Sums& sums) const {
    if (channel < this->p.part_channels()) *reinterpret_cast<Sums*>(part(row) + channel) = sums;
  }
  ROOFTILE_TILE void put_weights(std::int64_t row, const RowWeights<T>& weights) const {
    *reinterpret_cast<float2*>(part(row) + this->p.part_channels()) = {weights.most, weights.sum};
  }
};

/// A block's rows, all keys of them or (kPart) one chunk: the first chunks' blocks come first.
template <class T, class C, bool kPart, class Forward>
ROOFTILE_TILE void paged_block(const PagedAttentionProblem& p, Forward forward) {
  if constexpr (kPart) {
    const unsigned each = gridDim.x / static_cast<unsigned>(p.chunks()), chunk = blockIdx.x / each;
    const ChunkOfAKey<T, C> its(p, Place(p.b, p.g, p.rows(), kDown, 0, blockIdx.x % each), chunk);
    if (its.length() >= 0) return forward(its);
    if (chunk == 0) its.put_nan();
  } else {
    const HeadsOfAKey<T, C> its(p, Place(p.b, p.g, p.rows(), kDown));
    if (its.length() >= 0) return forward(its);
    its.put_nan();
  }
}
/// The second launch's blocks may come to the SMs that this one leaves, and wait there.
ROOFTILE_TILE void let_merge_start() {
#if defined(ROOFTILE_HAS_SM90)
  rooftile::cuda::let_next_start();
#endif
}
template <class C, int kSize, bool kPart>
__global__ void __launch_bounds__(kThreads, 2) paged_simt(const __grid_constant__ PagedAttentionProblem p) {
  if constexpr (kPart) let_merge_start();
  paged_block<float, C, kPart>(p, [&](const auto& its) { forward_tile<kSize, 1>(p, its); });
}
template <class T, class C, class Shape, bool kPart>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    paged_mma(const __grid_constant__ PagedAttentionProblem p) {
  if constexpr (kPart) let_merge_start();
  paged_block<T, C, kPart>(p, [&](const auto& its) { decode_rows<T, Shape>(p, its); });
}

// [merge]
/// Adds up each row's chunks in ascending order, as a block that passes through all of them does: a block a
/// row, a thread a channel. 32 chunks at a time: a lane has the factors of one of them.
template <class T>
__global__ void __launch_bounds__(kThreads) merge_chunks(const __grid_constant__ PagedAttentionProblem p) {
  constexpr int kAtOnce = 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Place place(p.b, p.g, p.rows(), 1);
  const HeadsOfAKey<T, T> its(p, place);  // no row of a cache is read
  const AttentionRange keys = its.length() < 0 ? AttentionRange{0, 0} : its.keys(place.first);
#if defined(ROOFTILE_HAS_SM90)
  rooftile::cuda::wait_for_previous();
#endif
  if (its.length() < 0) return;  // all NaN already
  const std::int64_t first = keys.begin / kAttentionChunk,
                     end = keys.size() == 0 ? first : (keys.end - 1) / kAttentionChunk + 1;
  const float* const parts = p.part(place.batch, place.head, place.first, 0);
  const std::int64_t each = p.part_floats();
  for (std::int64_t channels = 0; channels < p.e; channels += kThreads) {
    const std::int64_t channel = channels + static_cast<int>(threadIdx.x);
    const float* const sums = parts + (channel < p.e ? channel : 0);
    RowWeights<T> total{-HUGE_VALF, 0};
    float y = 0;
    for (std::int64_t chunk = first; chunk < end; chunk += kAtOnce) {
      const int count = end - chunk < kAtOnce ? static_cast<int>(end - chunk) : kAtOnce;
      RowWeights<T> weights{-HUGE_VALF, 0};
      if (lane < count) {
        const float2 two =
            *reinterpret_cast<const float2*>(parts + (chunk + lane) * each + p.part_channels());
        weights = {two.x, two.y};
      }
      float sum[kAtOnce];
      ROOFTILE_UNROLL for (int c = 0; c < kAtOnce; ++c) sum[c] = c < count ? sums[(chunk + c) * each] : 0;
      float most = weights.most;  // of the total with this chunk
      ROOFTILE_UNROLL for (int far = 1; far < kAtOnce; far *= 2) {
        const float other = __shfl_up_sync(0xffffffffu, most, far);
        if (lane >= far) most = fmaxf(most, other);
      }
      const float before = __shfl_up_sync(0xffffffffu, most, 1);
      RowWeights<T> those{lane == 0 ? total.most : fmaxf(total.most, before), 0};
      const Merge<T> mine(those, weights);
      ROOFTILE_UNROLL for (int c = 0; c < kAtOnce; ++c) {
        if (c >= count) break;
        Merge<T> merged = mine;
        merged.keep = __shfl_sync(0xffffffffu, mine.keep, c);
        merged.take = __shfl_sync(0xffffffffu, mine.take, c);
        total.sum = merged(total.sum, __shfl_sync(0xffffffffu, weights.sum, c));
        y = merged(y, sum[c]);
      }
      total.most = __shfl_sync(0xffffffffu, those.most, count - 1);
    }
    const float scale = total.finish(its.sink(place.first), its.value_scale());
    if (channel < p.e) its.y().put(place.first, static_cast<int>(channel), y * scale + 0.f);
    if (p.lse && channel == 0) its.put_lse(place.first, total.lse());
  }
}
// [/merge]

/// One launch, or two: parts of rows, and the rows.
template <class T, class Kernel>
Status launch_paged(const CudaLaunch& launch, const PagedAttentionProblem& p, unsigned threads,
                    std::size_t shared_bytes, Kernel whole, Kernel part) {
  const std::int64_t blocks = p.b * p.g * p.tiles(p.rows(), kDown) * (p.parts ? p.chunks() : 1);
  if (blocks > 0x7fffffff || p.rows() > 0x7fffffff)
    return Status::error(
        "paged_attention: a grid has at most 2147483647 blocks, and a key head as many queries; "
        "this call would take %lld and %lld",
        static_cast<long long>(blocks), static_cast<long long>(p.rows()));
  const char* const function = "paged_attention";
  if (Status s = cuda::launch(launch, function, {static_cast<unsigned>(blocks), threads, shared_bytes},
                              p.parts ? part : whole, p);
      !s || !p.parts)
    return s;
  return cuda::launch(launch, function,
                      {.blocks = static_cast<unsigned>(p.b * p.h * p.s),
                       .threads = kThreads,
                       .early = tile::has_clusters(launch)},
                      merge_chunks<T>, p);
}
/// f of the caches' elements.
template <class T, class F>
Status with_cache(const PagedAttentionProblem& p, F&& f) {
  return p.codes() ? f.template operator()<std::uint8_t>() : f.template operator()<T>();
}
Status launch_paged_simt(const CudaLaunch& launch, const PagedAttentionProblem& p) {
  if (p.b * p.s * p.h == 0) return {};
  return with_cache<float>(p, [&]<class C>() {
    return with_size(p, [&]<int kSize>() {
      return launch_paged<float>(launch, p, kThreads, kForwardFloats<kSize, 1> * sizeof(float),
                                 paged_simt<C, kSize, false>, paged_simt<C, kSize, true>);
    });
  });
}
/// Whether a cache's rows are whole words of 8 elements.
bool in_words(const PagedAttentionProblem& p, const AttentionOperand& cache, std::int64_t channels) {
  AttentionOperand its = cache;
  const auto address = reinterpret_cast<std::uintptr_t>(its.data);
  if (p.codes()) its.data = reinterpret_cast<const void*>(address % 8);  // half as long
  return attention_gpu::in_words(its, channels);
}
Status launch_paged_mma(const CudaLaunch& launch, const PagedAttentionProblem& problem) {
  if (problem.b * problem.s * problem.h == 0) return {};
  PagedAttentionProblem p = problem;
  p.words = attention_gpu::in_words(p.q, p.d) && in_words(p, p.k, p.d) && in_words(p, p.v, p.e);
  return tile::with_type<f16, bf16>(p.dtype, [&]<class T>() {
    return with_cache<T>(p, [&]<class C>() {
      return with_size(p, [&]<int kSize>() {
        const auto with = [&]<bool kWide>() {
          using Shape = DecodeShape<kSize, !std::is_same_v<T, C>, kWide>;
          return launch_paged<T>(launch, p, Shape::kThreads, Shape::kShared, paged_mma<T, C, Shape, false>,
                                 paged_mma<T, C, Shape, true>);
        };
        if constexpr (kSize > 64 && tile::kBuiltForSm90)
          if (tile::has_clusters(launch)) return with.template operator()<true>();
        return with.template operator()<false>();
      });
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

/// The same divided by the heads' scales and rounded: to codes, or to T. kWords: 16 bytes of T at a time.
template <class T, bool kWords>
ROOFTILE_TILE void put_converted(const KvCacheAppendProblem& p, const KvCacheSide& side, std::int64_t from,
                                 std::int64_t slot) {
  constexpr int kEach = kWords ? 16 / int(sizeof(T)) : 1, kLanes = kWords ? kEach : 2;
  const T* const token = static_cast<const T*>(side.from) + from;
  const std::int64_t page = slot / p.page_size, place = slot - page * p.page_size;
  const std::int64_t begin = page * side.stride[0] + place * side.stride[1], words = side.channels / kEach;
  for (std::int64_t i = static_cast<int>(threadIdx.x); i < p.heads * words; i += kTokens) {
    const std::int64_t head = i / words, channel = (i - head * words) * kEach;
    const T* const its = token + head * side.from_stride[0] + channel * side.from_stride[1];
    const std::int64_t at = begin + head * side.stride[2] + channel * side.stride[3];
    tile::Tile<float, kLanes> x;
    if constexpr (kWords) {
      tile::Pack<T, kEach> pack;
      pack.set_word(0, *reinterpret_cast<const uint4*>(its));
      x = tile::widened<float>(pack);
    } else {
      x.v[0] = x.v[1] = tile::widen<float>(*its);  // codes are made in pairs
    }
    x = x * (1 / side.scale[head]);
    if (!p.codes()) {
      T* const to = static_cast<T*>(side.cache) + at;
      if constexpr (kWords)
        *reinterpret_cast<uint4*>(to) = tile::narrowed<T>(x).word(0);
      else
        *to = tile::narrow<T>(x.v[0]);
      continue;
    }
    const tile::Tile<std::int32_t, kLanes> codes = kernels::encode(x, p.format);
    std::uint8_t* const to = static_cast<std::uint8_t*>(side.cache) + at;
    if constexpr (kWords) {
      ROOFTILE_UNROLL for (int l = 0; l < kEach; l += 4) {
        const int four = codes.v[l] | codes.v[l + 1] << 8 | codes.v[l + 2] << 16 | codes.v[l + 3] << 24;
        reinterpret_cast<int*>(to)[l / 4] = four;
      }
    } else {
      *to = static_cast<std::uint8_t>(codes.v[0]);
    }
  }
}

// [append]
/// All blocks look at all tokens; one thread writes one element of a slot each time, so the last token stays.
/// `put` is called by all threads of a block for each of its tokens.
template <class Put>
ROOFTILE_TILE void for_own_tokens(const KvCacheAppendProblem& p, Put put) {
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
        put(p.k, tile::offset_of(p.rows, P::kK, i), slot);
        put(p.v, tile::offset_of(p.rows, P::kV, i), slot);
      }
  }
}
// [/append]
template <class Word>
__global__ void __launch_bounds__(kTokens) append_tokens(const __grid_constant__ KvCacheAppendProblem p) {
  for_own_tokens(p, [&](const KvCacheSide& side, std::int64_t from, std::int64_t slot) {
    put_token<Word>(p, side, from, slot);
  });
}
template <class T, bool kWords>
__global__ void __launch_bounds__(kTokens) append_converted(const __grid_constant__ KvCacheAppendProblem p) {
  for_own_tokens(p, [&](const KvCacheSide& side, std::int64_t from, std::int64_t slot) {
    put_converted<T, kWords>(p, side, from, slot);
  });
}

/// From elements to words of 16 bytes, of codes as many as such a word has elements, where all lie in such:
/// false if they do not.
bool to_words(KvCacheAppendProblem& p) {
  const std::int64_t each = 16 / p.bytes(), cache_bytes = each * bits(p.cache_dtype) / 8;
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
            reinterpret_cast<std::uintptr_t>(side->cache) % static_cast<std::uintptr_t>(cache_bytes) == 0 &&
            side->stride[3] == 1 && side->from_stride[1] == 1;
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
  KvCacheAppendProblem in_words = p;
  const bool words = to_words(in_words);
  if (p.converts())
    return tile::with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
      return cuda::launch(launch, "kv_cache_append", grid,
                          words ? append_converted<T, true> : append_converted<T, false>, p);
    });
  if (words) return cuda::launch(launch, "kv_cache_append", grid, append_tokens<uint4>, in_words);
  if (p.bytes() == 4) return cuda::launch(launch, "kv_cache_append", grid, append_tokens<std::uint32_t>, p);
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
