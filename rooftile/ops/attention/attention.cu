// Attention on a GPU, in f32 from tiles in shared memory (Dao et al., arXiv:2205.14135). The forward takes a
// tile of queries through all keys, 32 at a time, with the softmax on the way. The backward computes scores
// again: one kernel has tiles of queries and makes dq, one has tiles of keys and makes dk and dv, so that no
// two blocks add to one element.
#include "rooftile/ops/attention/attention.gpu.h"
#include "rooftile/ops/attention/ladder/ladder.h"

namespace rooftile {
namespace {
using namespace attention_gpu;

/// Rows of a tile: as many as leave a block below the 99 KiB that every GPU from sm_80 on has.
template <int kSize>
constexpr int kForwardRows = kSize <= 128 ? 4 : 2;
template <int kSize>
constexpr int kBackwardRows = kSize <= 64    ? 4
                              : kSize <= 128 ? 2
                                             : 1;

// ---- forward

// [forward]
template <int kSize>
__global__ void __launch_bounds__(kThreads, 2) attention_simt(const __grid_constant__ AttentionProblem all) {
  const QueryTile tile(all, kDown * kForwardRows<kSize>);
  if (tile.any) forward_tile<kSize, kForwardRows<kSize>>(tile.p, WholeHead<float>(tile.p, tile.place));
}
// [/forward]

// ---- backward

/// Of query i: what its scores are taken off, +inf where it sees no key, so that each weight is 0.
ROOFTILE_TILE float row_lse(const AttentionProblem& p, std::int64_t batch, std::int64_t head,
                            std::int64_t i) {
  const float lse = p.lse[batch * p.lse_stride[0] + head * p.lse_stride[1] + i * p.lse_stride[2]];
  return lse == -HUGE_VALF ? HUGE_VALF : lse;
}
/// Σ dy·y of a row's channels from `begin` on, every `step`-th.
template <class T>
ROOFTILE_TILE float part_of_delta(const HeadRows<T>& y, const HeadRows<T>& dy, std::int64_t i, int begin,
                                  int step, int size) {
  float sum = 0;
  for (int c = begin; c < size; c += step) sum = fmaf(y.at(i, c), dy.at(i, c), sum);
  return sum;
}

template <int kSize>
constexpr std::size_t kBackwardFloats =
    std::size_t(2 * kDown * kBackwardRows<kSize> + kColumns) * kPitch<kSize> +
    std::size_t(kDown) * kBackwardRows<kSize>* kWeightPitch + 2 * kColumns;

/// dq of a tile of queries.
template <class T, int kSize>
__global__ void __launch_bounds__(kThreads, 2) attention_dq(const __grid_constant__ AttentionProblem all) {
  constexpr int kRows = kBackwardRows<kSize>, kTall = kDown * kRows;
  ROOFTILE_DYNAMIC_SHARED(bytes);
  float* const q = reinterpret_cast<float*>(bytes);         // kTall x D
  float* const dy = q + kTall * kPitch<kSize>;              // kTall x E
  float* const other = dy + kTall * kPitch<kSize>;          // 32 keys' v, then k
  float* const weights = other + kColumns * kPitch<kSize>;  // kTall x 32
  const QueryTile tile(all, kTall);
  if (!tile.any) return;
  const AttentionProblem& p = tile.p;
  const Place& place = tile.place;
  const int down = static_cast<int>(threadIdx.x) / kAcross, across = static_cast<int>(threadIdx.x) % kAcross;
  const int d = static_cast<int>(p.d), e = static_cast<int>(p.e);
  const HeadRows<T> q_rows(p.q, place.batch, place.head), k_rows(p.k, place.batch, place.head / p.group()),
      v_rows(p.v, place.batch, place.head / p.group()), y_rows(p.y, place.batch, place.head),
      dy_rows(p.dy, place.batch, place.head), dq_rows(p.dq, place.batch, place.head);
  load_tile<kSize>(q, q_rows, place.first, kTall, p.s - place.first, d, p.scale);
  load_tile<kSize>(dy, dy_rows, place.first, kTall, p.s - place.first, e);

  AttentionRange range[kRows];
  float lse[kRows], delta[kRows];
  float4 dq[kRows][kGroups<kSize>];
  clear<kSize>(dq);
  ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) {
    const std::int64_t i = place.first + down * kRows + r;
    const bool live = i < p.s;
    range[r] = live ? p.keys(i) : AttentionRange{0, 0};
    lse[r] = live ? row_lse(p, place.batch, place.head, i) : 0;
    delta[r] = sum_across(live ? part_of_delta(y_rows, dy_rows, i, across, kAcross, e) : 0);
  }
  const std::int64_t last = place.first + kTall < p.s ? place.first + kTall : p.s;
  const AttentionRange any = p.keys_of(place.first, last);
  for (std::int64_t first = any.begin / kColumns * kColumns; first < any.end; first += kColumns) {
    float dp[kRows][kEach], s[kRows][kEach];
    __syncthreads();  // k of the tile before was read
    load_tile<kSize>(other, v_rows, first, kColumns, p.t - first, e);
    __syncthreads();
    products<kSize>(dp, dy, other, e);
    __syncthreads();
    load_tile<kSize>(other, k_rows, first, kColumns, p.t - first, d);
    __syncthreads();
    products<kSize>(s, q, other, d);
    if (p.dropout) {
      const unsigned kept = kept_of_queries<kRows>(
          p.dropout, [&](std::int64_t i) { return p.counter(place.batch, place.head, i); }, place.first,
          first);
      ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) ROOFTILE_UNROLL for (int c = 0; c < kEach; ++c)
          dp[r][c] = kept >> (kEach * r + c) & 1 ? dp[r][c] * p.dropout.keep.scale : 0;
    }
    ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) {
      const Seen seen(range[r], first);
      ROOFTILE_UNROLL for (int c = 0; c < kEach; ++c) {
        const int column = across + c * kAcross;
        float ds = 0;
        if (seen[column]) {
          float slope = 1;
          const float score = score_of<T>(p, s[r][c], place.batch, place.head, place.first + down * kRows + r,
                                          first + column, &slope);
          ds = power(score - lse[r]) * (dp[r][c] - delta[r]) * slope;
        }
        s[r][c] = ds;
      }
    }
    put_weights(weights, s);
    __syncthreads();
    accumulate<kSize>(dq, weights, other, d);
  }
  ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) {
    const std::int64_t i = place.first + down * kRows + r;
    if (i < p.s) put_row<kSize>(dq_rows, i, dq[r], d, p.scale);
  }
}

/// dk and dv of a tile of keys, whose weights' columns are queries.
template <class T, int kSize>
__global__ void __launch_bounds__(kThreads, 2) attention_dkv(const __grid_constant__ AttentionProblem all) {
  constexpr int kRows = kBackwardRows<kSize>, kTall = kDown * kRows;
  ROOFTILE_DYNAMIC_SHARED(bytes);
  float* const k = reinterpret_cast<float*>(bytes);         // kTall x D
  float* const v = k + kTall * kPitch<kSize>;               // kTall x E
  float* const other = v + kTall * kPitch<kSize>;           // 32 queries' dy, then q
  float* const weights = other + kColumns * kPitch<kSize>;  // kTall x 32
  float* const lse = weights + kTall * kWeightPitch;        // 32
  float* const delta = lse + kColumns;
  AttentionProblem p = all;
  Place place(p.b, p.g, p.tiles(p.t, kTall), 1);
  if (!p.take_keys(place.first, kTall)) return;
  const int thread = static_cast<int>(threadIdx.x), down = thread / kAcross, across = thread % kAcross;
  const int d = static_cast<int>(p.d), e = static_cast<int>(p.e);
  const HeadRows<T> k_rows(p.k, place.batch, place.head), v_rows(p.v, place.batch, place.head),
      dk_rows(p.dk, place.batch, place.head), dv_rows(p.dv, place.batch, place.head);
  load_tile<kSize>(k, k_rows, place.first, kTall, p.t - place.first, d);
  load_tile<kSize>(v, v_rows, place.first, kTall, p.t - place.first, e);

  AttentionRange range[kRows];
  float4 dk[kRows][kGroups<kSize>], dv[kRows][kGroups<kSize>];
  clear<kSize>(dk);
  clear<kSize>(dv);
  ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) {
    const std::int64_t j = place.first + down * kRows + r;
    range[r] = j < p.t ? p.queries(j) : AttentionRange{0, 0};
  }
  const std::int64_t last = place.first + kTall < p.t ? place.first + kTall : p.t;
  const AttentionRange any = p.queries_of(place.first, last);
  for (std::int64_t head = place.head * p.group(); head < (place.head + 1) * p.group(); ++head) {
    const HeadRows<T> q_rows(p.q, place.batch, head), y_rows(p.y, place.batch, head),
        dy_rows(p.dy, place.batch, head);
    for (std::int64_t first = any.begin / kColumns * kColumns; first < any.end; first += kColumns) {
      float dp[kRows][kEach], s[kRows][kEach];
      __syncthreads();  // all of the tile before was read
      load_tile<kSize>(other, q_rows, first, kColumns, p.s - first, d, p.scale);
      {
        constexpr int kShare = kThreads / kColumns;  // four threads to a query
        const std::int64_t i = first + thread / kShare;
        float sum = 0;
        if (i < p.s) sum = part_of_delta(y_rows, dy_rows, i, thread % kShare, kShare, e);
        for (int far = kShare / 2; far > 0; far /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, far);
        if (thread % kShare == 0) {
          delta[thread / kShare] = sum;
          lse[thread / kShare] = i < p.s ? row_lse(p, place.batch, head, i) : 0;
        }
      }
      __syncthreads();
      products<kSize>(s, k, other, d);
      __syncthreads();
      load_tile<kSize>(other, dy_rows, first, kColumns, p.s - first, e);
      __syncthreads();
      products<kSize>(dp, v, other, e);
      unsigned kept = ~0u;
      if (p.dropout) {
        kept = kept_of_keys<kRows>(
            p.dropout, [&](std::int64_t i) { return p.counter(place.batch, head, i); }, place.first, first);
        ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) ROOFTILE_UNROLL for (int c = 0; c < kEach; ++c)
            dp[r][c] = kept >> (kEach * r + c) & 1 ? dp[r][c] * p.dropout.keep.scale : 0;
      }
      ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) {
        const Seen seen(range[r], first);
        ROOFTILE_UNROLL for (int c = 0; c < kEach; ++c) {
          const int column = across + c * kAcross;
          float weight = 0, slope = 1;
          if (seen[column])
            weight = power(score_of<T>(p, s[r][c], place.batch, head, first + column,
                                       place.first + down * kRows + r, &slope) -
                           lse[column]);
          s[r][c] = weight * (dp[r][c] - delta[column]) * slope;
          dp[r][c] = kept >> (kEach * r + c) & 1 ? weight : 0;
        }
      }
      put_weights(weights, dp);
      __syncthreads();
      accumulate<kSize>(dv, weights, other, e);
      __syncthreads();
      load_tile<kSize>(other, q_rows, first, kColumns, p.s - first, d, p.scale);
      put_weights(weights, s);
      __syncthreads();
      accumulate<kSize>(dk, weights, other, d);
    }
  }
  ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) {
    const std::int64_t j = place.first + down * kRows + r;
    if (j >= p.t) break;
    put_row<kSize>(dk_rows, j, dk[r], d, 1);
    put_row<kSize>(dv_rows, j, dv[r], e, p.dropout.keep.scale);
  }
}

constexpr int kSinkThreads = 1024;
/// dsink of a block's head: a warp takes every 32nd of its queries.
template <class T>
__global__ void __launch_bounds__(kSinkThreads) attention_dsink(const __grid_constant__ AttentionProblem p) {
  ROOFTILE_SHARED(sums, double[kSinkThreads / 32]);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t head = blockIdx.x;
  const int e = static_cast<int>(p.e);
  const float sink = sink_of<T>(p, head);
  double sum = 0;
  for (std::int64_t i = warp; i < p.b * p.s; i += kSinkThreads / 32) {
    const std::int64_t batch = i / p.s, query = i % p.s;
    const HeadRows<T> y(p.y, batch, head), dy(p.dy, batch, head);
    float delta = part_of_delta(y, dy, query, lane, 32, e);
    for (int far = 16; far > 0; far /= 2) delta += __shfl_xor_sync(0xffffffffu, delta, far);
    if (sink != -HUGE_VALF) sum -= double(power(sink - row_lse(p, batch, head, query))) * double(delta);
  }
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < kSinkThreads / 32; ++w) sum += sums[w];
  const std::int64_t at = head * p.dsink_stride;
  if (p.sink_dtype == DType::f32)
    static_cast<float*>(p.dsink)[at] = static_cast<float>(sum);
  else
    static_cast<T*>(p.dsink)[at] = tile::narrow<T>(static_cast<float>(sum));
}

template <class F>
Status with_dtype(DType dtype, F&& f) {
  if (dtype == DType::f32) return f.template operator()<float>();
  if (dtype == DType::f16) return f.template operator()<f16>();
  return f.template operator()<bf16>();
}

Status launch_simt(const CudaLaunch& launch, const AttentionProblem& p) {
  return with_size(p, [&]<int kSize>() {
    return launch_tiles(launch, "attention", p, p.h, p.s, kDown * kForwardRows<kSize>,
                        kForwardFloats<kSize, kForwardRows<kSize>>, attention_simt<kSize>);
  });
}
Status launch_dsink(const CudaLaunch& launch, const AttentionProblem& p) {
  if (!p.dsink || p.h == 0) return {};
  return with_dtype(p.dtype, [&]<class T>() {
    return cuda::launch(launch, "attention_backward", {static_cast<unsigned>(p.h), kSinkThreads},
                        attention_dsink<T>, p);
  });
}
Status launch_backward_tile(const CudaLaunch& launch, const AttentionProblem& p) {
  if (Status s = launch_dsink(launch, p); !s) return s;
  return with_dtype(p.dtype, [&]<class T>() {
    const auto of_size = [&]<int kSize>() {
      constexpr int kTall = kDown * kBackwardRows<kSize>;
      const char* const function = "attention_backward";
      if (Status s = launch_tiles(launch, function, p, p.h, p.s, kTall, kBackwardFloats<kSize>,
                                  attention_dq<T, kSize>);
          !s)
        return s;
      return launch_tiles(launch, function, p, p.g, p.t, kTall, kBackwardFloats<kSize>,
                          attention_dkv<T, kSize>);
    };
    if constexpr (std::is_same_v<T, float>)
      return with_size(p, of_size);
    else  // mma's, but for heads of one channel or by name: one size for all, in the same bits
      return of_size.template operator()<256>();
  });
}
template <auto kLaunch>
Status launch_backward_tensor_cores(const CudaLaunch& launch, const AttentionProblem& p) {
  if (Status s = launch_dsink(launch, p); !s) return s;
  return kLaunch(launch, p);
}

}  // namespace

ROOFTILE_CUDA_KERNELS(attention) = {
    entry<launch_hopper>("attention", "wgmma", 90, true),
    entry<launch_mma>("attention", "mma"),
    entry<launch_simt>("attention", "simt"),
    entry<ladder::launch_attention_mma>("attention", "05_mma"),
    entry<ladder::launch_attention_registers>("attention", "04_registers"),
    entry<ladder::launch_attention_online>("attention", "03_online"),
    entry<ladder::launch_attention_fused>("attention", "02_fused"),
    entry<ladder::launch_attention_standard>("attention", "01_standard"),
    entry<launch_backward_tensor_cores<launch_backward_hopper>>("attention_backward", "wgmma", 90, true),
    entry<launch_backward_tensor_cores<launch_backward_mma>>("attention_backward", "mma"),
    entry<launch_backward_tile>("attention_backward", "tile"),
    {},
};

}  // namespace rooftile
