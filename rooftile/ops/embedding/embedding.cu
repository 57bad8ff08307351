#include <algorithm>

#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/embedding/embedding.problem.h"
#include "rooftile/tile/cuda/elements.h"

namespace rooftile {
namespace {
using namespace tile;

constexpr int kThreads = 256;

/// What a thread has at a time: a 16-byte vector, or one element that lies apart.
template <class T, bool kWords>
inline constexpr int kItemsOf = kWords ? 16 / int(sizeof(T)) : 1;
template <class T, bool kWords>
ROOFTILE_TILE void load_items(const T* from, std::int64_t first, std::int64_t stride,
                              float (&to)[kItemsOf<T, kWords>]) {
  if constexpr (kWords) {
    Pack<T, kItemsOf<T, kWords>> pack;
    pack.set_word(0, *reinterpret_cast<const uint4*>(from + first));
    ROOFTILE_UNROLL for (int i = 0; i < kItemsOf<T, kWords>; ++i) to[i] = widen<float>(pack.get(i));
  } else {
    to[0] = widen<float>(from[first * stride]);
  }
}
template <class T, bool kWords>
ROOFTILE_TILE void store_items(T* to, std::int64_t first, std::int64_t stride,
                               const Tile<float, kItemsOf<T, kWords>>& from) {
  if constexpr (kWords)
    *reinterpret_cast<uint4*>(to + first) = narrowed<T>(from).word(0);
  else
    to[first * stride] = narrow<T>(from.v[0]);
}
/// Of item `index` of rows that have `each`, the row; the index becomes one in the row.
ROOFTILE_TILE std::int64_t row_of_item(std::int64_t& index, std::int64_t each) {
  const std::int64_t row = index >> 32 == 0 && each >> 32 == 0
                               ? static_cast<std::uint32_t>(index) / static_cast<std::uint32_t>(each)
                               : index / each;
  index -= row * each;
  return row;
}
/// Launches a kernel of a thread for each of `items`.
template <class... P, class... A>
Status launch_items(const CudaLaunch& launch, const char* name, std::int64_t items, void (*kernel)(P...),
                    const A&... arguments) {
  const std::int64_t blocks = (items + kThreads - 1) / kThreads;
  if (blocks == 0) return {};
  if (blocks > kMaxBlocks)
    return Status::error("%s: %lld vectors take more blocks than the %lld of a launch", name,
                         static_cast<long long>(items), static_cast<long long>(kMaxBlocks));
  return rooftile::cuda::launch(launch, name, {static_cast<unsigned>(blocks), kThreads}, kernel,
                                arguments...);
}
ROOFTILE_TILE std::int64_t item_of_thread() {
  return std::int64_t{blockIdx.x} * kThreads + static_cast<int>(threadIdx.x);
}

// ---- forward

template <class T, bool kWords>
__global__ void __launch_bounds__(kThreads)
    look_up(const __grid_constant__ EmbeddingProblem p, std::int64_t each) {
  using P = EmbeddingProblem;
  constexpr int kItems = kItemsOf<T, kWords>;
  std::int64_t index = item_of_thread();
  const std::int64_t row = row_of_item(index, each), first = index * kItems;
  if (row >= p.rows.rows) return;
  const std::int64_t token = p.tokens.at(offset_of(p.rows, P::kTokens, row));
  Tile<float, kItems> y;
  if (p.tokens.is_row(token)) {
    load_items<T, kWords>(static_cast<const T*>(p.table) + token * p.table_stride, first,
                          p.table_column_stride, y.v);
    if (p.position) {
      float place[kItems];
      load_items<T, kWords>(static_cast<const T*>(p.position) + offset_of(p.rows, P::kPosition, row), first,
                            p.rows.column_stride[P::kPosition], place);
      ROOFTILE_UNROLL for (int i = 0; i < kItems; ++i) y.v[i] += place[i];
    }
  } else {
    ROOFTILE_UNROLL for (int i = 0; i < kItems; ++i) y.v[i] = __uint_as_float(0x7fc00000u);
  }
  store_items<T, kWords>(static_cast<T*>(p.y) + offset_of(p.rows, P::kY, row), first,
                         p.rows.column_stride[P::kY], y);
}

bool in_words(const void* data, std::int64_t stride, std::int64_t column_stride, std::int64_t bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && stride * bytes % 16 == 0 && column_stride == 1;
}

Status launch_forward(const CudaLaunch& launch, const EmbeddingProblem& p) {
  using P = EmbeddingProblem;
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() -> Status {
    constexpr int kBytes = int(sizeof(T));
    const bool words = aligned_rows(p.rows, P::kY, p.y, kBytes) &&
                       in_words(p.table, p.table_stride, p.table_column_stride, kBytes) &&
                       (!p.position || aligned_rows(p.rows, P::kPosition, p.position, kBytes));
    const std::int64_t each = p.rows.columns / (words ? 16 / kBytes : 1);
    return launch_items(launch, "embedding", p.rows.rows * each, words ? look_up<T, true> : look_up<T, false>,
                        p, each);
  });
}

// ---- backward: tokens sorted by their digits in base 256, the last one first

// [digits]
/// The digits of a chunk in shared memory. Where they come from: the rows in their order so far.
struct Digits {
  const std::int32_t* order;  ///< null: 0, 1, …
  int shift;
  std::int64_t chunks;

  ROOFTILE_TILE std::int64_t row(std::int64_t i) const { return order ? order[i] : i; }
  ROOFTILE_TILE int load(const EmbeddingBackwardProblem& p, std::uint8_t* digits) const {
    const std::int64_t first = blockIdx.x * kEmbeddingChunk, rest = p.rows.rows - first;
    const int count = static_cast<int>(rest < kEmbeddingChunk ? rest : kEmbeddingChunk);
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kEmbeddingDigits)
      digits[i] = static_cast<std::uint8_t>(
          p.key(p.tokens.at(offset_of(p.rows, EmbeddingBackwardProblem::kTokens, row(first + i)))) >> shift);
    __syncthreads();
    return count;
  }
};

/// Thread d counts the digits d of the block's chunk.
__global__ void __launch_bounds__(kEmbeddingDigits)
    count_digits(const __grid_constant__ EmbeddingBackwardProblem p, const Digits from) {
  ROOFTILE_SHARED(digits, std::uint8_t[kEmbeddingChunk]);
  const int count = from.load(p, digits), mine = static_cast<int>(threadIdx.x);
  std::int32_t its = 0;
  for (int i = 0; i < count; ++i) its += digits[i] == mine;  // one byte for all threads: a broadcast
  p.histograms[mine * from.chunks + blockIdx.x] = its;
}
/// Thread d places the rows of digit d, in their order: after all smaller digits, and those of the chunks
/// before.
__global__ void __launch_bounds__(kEmbeddingDigits)
    place_digits(const __grid_constant__ EmbeddingBackwardProblem p, const Digits from, std::int32_t* to) {
  ROOFTILE_SHARED(digits, std::uint8_t[kEmbeddingChunk]);
  const int count = from.load(p, digits), mine = static_cast<int>(threadIdx.x);
  std::int32_t at = p.histograms[mine * from.chunks + blockIdx.x];
  for (int i = 0; i < count; ++i)
    if (digits[i] == mine) to[at++] = static_cast<std::int32_t>(from.row(blockIdx.x * kEmbeddingChunk + i));
}
// [/digits]

/// Counts to the sums of those before: each thread has a part of them, one after the other.
__global__ void __launch_bounds__(kThreads) add_counts(std::int32_t* counts, std::int64_t size) {
  ROOFTILE_SHARED(sums, std::int32_t[kThreads]);
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t part = (size + kThreads - 1) / kThreads, begin = thread * part,
                     end = size - begin < part ? size : begin + part;
  std::int32_t sum = 0;
  for (std::int64_t i = begin; i < end; ++i) sum += counts[i];
  sums[thread] = sum;
  __syncthreads();
  std::int32_t before = 0;
  for (int t = 0; t < thread; ++t) before += sums[t];
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int32_t its = counts[i];
    counts[i] = before;
    before += its;
  }
}
/// Where each token's rows end in the order: a binary search.
__global__ void __launch_bounds__(kThreads) find_ends(const __grid_constant__ EmbeddingBackwardProblem p) {
  const std::int64_t token = item_of_thread();
  if (token > p.tokens.table_rows) return;
  std::int64_t low = 0, high = p.rows.rows;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    const std::int64_t its =
        p.key(p.tokens.at(offset_of(p.rows, EmbeddingBackwardProblem::kTokens, p.order[middle])));
    if (its <= token)
      low = middle + 1;
    else
      high = middle;
  }
  p.ends[token] = static_cast<std::int32_t>(low);
}

Status sort_tokens(const CudaLaunch& launch, const EmbeddingBackwardProblem& p) {
  constexpr const char* kName = "embedding_backward";
  const std::int64_t chunks = (p.rows.rows + kEmbeddingChunk - 1) / kEmbeddingChunk;
  int passes = 0;
  for (std::int64_t rest = p.tokens.table_rows; chunks > 0 && (rest > 0 || passes == 0); rest >>= 8) ++passes;
  const std::int32_t* from = nullptr;
  for (int pass = 0; pass < passes; ++pass) {
    std::int32_t* const to = (passes - pass) % 2 ? p.order : p.other_order;  // the last one to `order`
    const Digits digits{from, 8 * pass, chunks};
    const rooftile::cuda::Grid grid{static_cast<unsigned>(chunks), kEmbeddingDigits};
    Status status = rooftile::cuda::launch(launch, kName, grid, count_digits, p, digits);
    if (status)
      status = rooftile::cuda::launch(launch, kName, {1, kThreads}, add_counts, p.histograms,
                                      chunks * kEmbeddingDigits);
    if (status) status = rooftile::cuda::launch(launch, kName, grid, place_digits, p, digits, to);
    if (!status) return status;
    from = to;
  }
  return launch_items(launch, kName, p.tokens.table_rows + 1, find_ends, p);
}

// [sums]
/// A vector of a gradient's row: the sum of those of dy that belong to it, in ascending order.
template <class T, bool kWords>
__global__ void __launch_bounds__(kThreads)
    add_rows(const __grid_constant__ EmbeddingBackwardProblem p, const EmbeddingSums sums, bool by_place,
             std::int64_t each) {
  constexpr int kItems = kItemsOf<T, kWords>;
  std::int64_t index = item_of_thread();
  const std::int64_t row = row_of_item(index, each), first = index * kItems;
  if (row >= sums.rows) return;
  const std::int64_t begin = by_place || row == 0 ? 0 : p.ends[row - 1],
                     end = by_place ? p.rows.rows / p.length : p.ends[row];
  Tile<float, kItems> sum;
  ROOFTILE_UNROLL for (int i = 0; i < kItems; ++i) sum.v[i] = 0;
  ROOFTILE_UNROLL_BY(4) for (std::int64_t j = begin; j < end; ++j) {
    const std::int64_t from = by_place ? j * p.length + row : p.order[j];
    float its[kItems];
    load_items<T, kWords>(
        static_cast<const T*>(p.dy) + offset_of(p.rows, EmbeddingBackwardProblem::kDy, from), first,
        p.rows.column_stride[EmbeddingBackwardProblem::kDy], its);
    ROOFTILE_UNROLL for (int i = 0; i < kItems; ++i) sum.v[i] += its[i];
  }
  store_items<T, kWords>(static_cast<T*>(sums.data) + row * sums.stride, first, sums.column_stride, sum);
}
// [/sums]

Status launch_sums(const CudaLaunch& launch, const EmbeddingBackwardProblem& p, const EmbeddingSums& sums,
                   bool by_place) {
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() -> Status {
    constexpr int kBytes = int(sizeof(T));
    const bool words = aligned_rows(p.rows, EmbeddingBackwardProblem::kDy, p.dy, kBytes) &&
                       in_words(sums.data, sums.stride, sums.column_stride, kBytes);
    const std::int64_t each = p.rows.columns / (words ? 16 / kBytes : 1);
    return launch_items(launch, "embedding_backward", sums.rows * each,
                        words ? add_rows<T, true> : add_rows<T, false>, p, sums, by_place, each);
  });
}
Status launch_backward(const CudaLaunch& launch, const EmbeddingBackwardProblem& p) {
  Status status = sort_tokens(launch, p);
  if (status) status = launch_sums(launch, p, p.table, false);
  if (status && p.position.data && p.length > 0) status = launch_sums(launch, p, p.position, true);
  return status;
}

}  // namespace

ROOFTILE_CUDA_KERNELS(embedding) = {
    entry<launch_forward>("embedding", "tile"),
    entry<launch_backward>("embedding_backward", "tile"),
    {},
};

}  // namespace rooftile
