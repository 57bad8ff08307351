// Idea:    a thread has 4x4 scores in registers: eight words of shared memory serve 64 multiplications.
// Changed: a block takes 64 queries, and shrinks sums once for 32 keys, not for each. Weights pass through
//          shared memory, since another thread's channels want them.
// Binds:   the FMA units of f32, 67 TFLOP/s on an H100, where its tensor cores have 990.
// Next:    mma.sync takes the products over.
#include "rooftile/ops/attention/attention.gpu.h"
#include "rooftile/ops/attention/ladder/ladder.h"

namespace rooftile::ladder {
namespace {
using namespace attention_gpu;

constexpr int kSize = 128, kRows = 4, kTall = kDown * kRows;
constexpr std::size_t kFloats =
    std::size_t(kTall + kColumns) * kPitch<kSize> + std::size_t(kTall) * kWeightPitch;

__global__ void __launch_bounds__(kThreads) attention_registers(const __grid_constant__ AttentionProblem p) {
  ROOFTILE_DYNAMIC_SHARED(bytes);
  float* const q = reinterpret_cast<float*>(bytes);         // 64 x D
  float* const other = q + kTall * kPitch<kSize>;           // 32 x D, then 32 x E
  float* const weights = other + kColumns * kPitch<kSize>;  // 64 x 32
  const Place place(p.b, p.h, p.s, kTall);
  const int down = static_cast<int>(threadIdx.x) / kAcross, across = static_cast<int>(threadIdx.x) % kAcross;
  const int d = static_cast<int>(p.d), e = static_cast<int>(p.e);
  const HeadRows<float> k_rows(p.k, place.batch, place.head / p.group()),
      v_rows(p.v, place.batch, place.head / p.group()), y_rows(p.y, place.batch, place.head);
  load_tile<kSize>(q, HeadRows<float>(p.q, place.batch, place.head), place.first, kTall, p.s - place.first, d,
                   p.scale);

  float m[kRows], l[kRows] = {};
  float4 y[kRows][kGroups<kSize>];
  clear<kSize>(y);
  for (float& one : m) one = -HUGE_VALF;
  const std::int64_t last = place.first + kTall < p.s ? place.first + kTall : p.s;
  const AttentionRange any = p.keys_of(place.first, last);
  for (std::int64_t first = any.begin / kColumns * kColumns; first < any.end; first += kColumns) {
    __syncthreads();
    load_tile<kSize>(other, k_rows, first, kColumns, p.t - first, d);
    __syncthreads();
    float s[kRows][kEach];
    products<kSize>(s, q, other, d);
    // [online]
    ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) {
      const std::int64_t i = place.first + down * kRows + r;
      const AttentionRange keys = i < p.s ? p.keys(i) : AttentionRange{0, 0};
      float most = m[r], sum = 0;
      ROOFTILE_UNROLL for (int c = 0; c < kEach; ++c) {
        const std::int64_t j = first + across + c * kAcross;
        if (j < keys.begin || j >= keys.end) s[r][c] = -HUGE_VALF;
        most = fmaxf(most, s[r][c]);
      }
      most = max_across(most);
      const float from = most == -HUGE_VALF ? 0 : most, shrink = power(m[r] - from);
      m[r] = most;
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
    // [/online]
    put_weights(weights, s);
    __syncthreads();
    load_tile<kSize>(other, v_rows, first, kColumns, p.t - first, e);
    __syncthreads();
    accumulate<kSize>(y, weights, other, e);
  }
  ROOFTILE_UNROLL for (int r = 0; r < kRows; ++r) {
    const std::int64_t i = place.first + down * kRows + r;
    if (i >= p.s) break;
    put_row<kSize>(y_rows, i, y[r], e, l[r] == 0 ? 0 : 1 / l[r]);
    if (p.lse && across == 0)
      p.lse[place.batch * p.lse_stride[0] + place.head * p.lse_stride[1] + i * p.lse_stride[2]] =
          m[r] + logf(l[r]);
  }
}

}  // namespace

Status launch_attention_registers(const CudaLaunch& launch, const AttentionProblem& p) {
  return launch_tiles(launch, "attention", p, p.h, p.s, kTall, kFloats, attention_registers);
}

}  // namespace rooftile::ladder
