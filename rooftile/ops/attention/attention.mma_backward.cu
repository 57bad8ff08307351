// The backward on tensor cores: of f16 and bf16, any heads, masks and strides. First delta of each query,
// then dk and dv by blocks of keys, then dq by blocks of queries, over what held delta.
#include "rooftile/ops/attention/attention.mma_backward.h"
#include "rooftile/tile/cuda/row_range.h"

namespace rooftile::attention_gpu {
namespace {

/// Of keys, and of queries. The plain ones take whole words, heads of kSize channels on both sides, neither
/// bias, cap nor dropout.
template <int kSize, bool kPlain>
struct Shapes {
  using Keys = BackwardShape<kSize, 1, 4, 1, 32>;
  using Queries = BackwardShape<kSize, 1, 4, 1, 32>;
  static constexpr int kBlocks = 2;  ///< of an SM
};
template <>
struct Shapes<64, true> {
  using Keys = BackwardShape<64, 2, 4, 1, 32>;
  using Queries = BackwardShape<64, 2, 4, 1, 32>;
  static constexpr int kBlocks = 2;
};
/// 256 channels of dk and dv are too many for a warp: two share them. What they have in shared memory fits
/// the 99 KiB of every GPU from sm_80 on.
template <>
struct Shapes<256, false> {
  using Keys = BackwardShape<256, 1, 4, 2, 16>;
  using Queries = BackwardShape<256, 1, 4, 1, 16>;
  static constexpr int kBlocks = 1;
};

constexpr int kDeltaThreads = 256;
/// A row is `width` lanes' words, 8, 16 or 32; which of them it is changes no bit, since they add zeros.
template <class T>
__global__ void __launch_bounds__(kDeltaThreads)
    attention_delta(const __grid_constant__ AttentionProblem p, int width, std::int64_t rows) {
  const int thread = static_cast<int>(threadIdx.x), word = thread % width, each = kDeltaThreads / width;
  for (std::int64_t first = std::int64_t{blockIdx.x} * each; first < rows;
       first += std::int64_t{gridDim.x} * each) {
    const std::int64_t row = first + thread / width, at = row < rows ? row : rows - 1;
    const std::int64_t head = at % p.h, query = at / p.h % p.s, batch = at / p.h / p.s;
    const HeadRows<T> y(p.y, batch, head), dy(p.dy, batch, head);
    const int channels = static_cast<int>(p.e) - word * 8;
    float sum = 0;
    if (channels > 0) {
      const auto load = [&](const HeadRows<T>& from) {
        const T* const its = from.row(query) + word * 8 * from.stride;
        return p.words ? *reinterpret_cast<const uint4*>(its)
                       : tile::gather_word(its, from.stride, channels, tile::narrow<T>(0.f));
      };
      const uint4 words[2] = {load(y), load(dy)};
      T elements[2][8];
      memcpy(elements, words, sizeof words);
      ROOFTILE_UNROLL for (int c = 0; c < 8; ++c) sum =
          fmaf(tile::widen<float>(elements[0][c]), tile::widen<float>(elements[1][c]), sum);
    }
    for (int far = width / 2; far > 0; far /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, far);
    if (word == 0 && row < rows) put_delta(HeadRows<T>(p.dq, batch, head), query, sum);
  }
}

/// One kernel for both passes: half as many to compile and to load.
template <class T, class S, bool kPlain>
__global__ void __launch_bounds__(S::Keys::kThreads, S::kBlocks)
    attention_backward_mma(const __grid_constant__ AttentionProblem all, bool keys) {
  if (!keys) {
    const QueryTile tile(all, S::Queries::kRows);
    if (tile.any) backward_mma<T, typename S::Queries, kPlain, false>(tile.p, tile.place);
    return;
  }
  AttentionProblem p = all;
  constexpr int kRows = S::Keys::kRows;
  const std::int64_t tiles = p.tiles(p.t, kRows);
  Place place(p.b, p.g, tiles, 1, p.together);
  place.first = tiles - 1 - place.first;  // a causal mask leaves the first keys most to do
  if (p.take_keys(place.first, kRows)) backward_mma<T, typename S::Keys, kPlain, true>(p, place);
}

template <class T, class S, bool kPlain>
Status launch_passes(const CudaLaunch& launch, const AttentionProblem& p) {
  const char* const function = "attention_backward";
  const auto pass = [&]<class Shape>(std::int64_t heads, std::int64_t rows, bool keys, Shape) -> Status {
    const std::int64_t blocks = p.b * heads * p.tiles(rows, Shape::kRows);
    if (blocks == 0) return {};
    if (blocks > 0x7fffffff)
      return Status::error("%s: a grid has at most 2147483647 blocks, this call would take %lld", function,
                           static_cast<long long>(blocks));
    AttentionProblem its = p;
    its.together = heads_together(p, keys);
    return cuda::launch(launch, function, {static_cast<unsigned>(blocks), Shape::kThreads, Shape::kShared},
                        attention_backward_mma<T, S, kPlain>, its, keys);
  };
  if (Status s = pass(p.g, p.t, true, typename S::Keys{}); !s) return s;
  return pass(p.h, p.s, false, typename S::Queries{});
}

}  // namespace

Status launch_delta(const CudaLaunch& launch, const AttentionProblem& p) {
  const std::int64_t rows = p.b * p.s * p.h;
  if (rows == 0) return {};
  return tile::with_type<f16, bf16>(p.dtype, [&]<class T>() {
    const int width = p.e <= 64 ? 8 : p.e <= 128 ? 16 : 32;
    const std::int64_t each = kDeltaThreads / width, blocks = (rows + each - 1) / each, most = 1 << 20;
    return cuda::launch(launch, "attention_backward",
                        {static_cast<unsigned>(blocks < most ? blocks : most), kDeltaThreads},
                        attention_delta<T>, p, width, rows);
  });
}

Status launch_backward_mma(const CudaLaunch& launch, const AttentionProblem& problem) {
  AttentionProblem p = problem;
  p.words = in_words(p.q, p.d) && in_words(p.k, p.d) && in_words(p.v, p.e) && in_words(p.y, p.e) &&
            in_words(p.dy, p.e) && in_words(p.dq, p.d) && in_words(p.dk, p.d) && in_words(p.dv, p.e);
  if (Status s = launch_delta(launch, p); !s) return s;
  return tile::with_type<f16, bf16>(p.dtype, [&]<class T>() {
    return with_size(p, [&]<int kSize>() {
      // Which of the two it is changes no bit.
      if constexpr (kSize <= 128)
        if (p.words && p.d == kSize && p.e == kSize && p.plain())
          return launch_passes<T, Shapes<kSize, true>, true>(launch, p);
      return launch_passes<T, Shapes<kSize, false>, false>(launch, p);
    });
  });
}

}  // namespace rooftile::attention_gpu
