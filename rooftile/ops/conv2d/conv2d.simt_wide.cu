// f32 without tensor cores in large tiles, where channels are 16-byte vectors. A thread computes 8 filters of
// 16 windows: six words from shared memory for 128 multiply-adds. Its vectors of the stage after the next
// come between the steps of K, through registers, and are turned on their way: shared memory has a row for
// each step. For each element one chain over ascending (r, s, c): the bits of conv2d.cu.
#include "rooftile/ops/conv2d/conv2d.vectors.h"

namespace rooftile::conv_gpu {
namespace {

constexpr int kDown = 8, kAcross = 16;  // of a thread, in groups of four
constexpr int kFilters = 64, kWindows = 256, kWideThreads = 128, kStages = 3;
constexpr int kDepth = 16, kLanes = kDepth / 4;  // of K in a stage; threads that have a row's vectors
// Lanes that turn vectors write columns of four: rows 4 words longer are in other banks.
constexpr int kFilterPitch = kFilters + 4, kWindowPitch = kWindows + 4;
constexpr int kFilterPart = kDepth * kFilterPitch, kStage = kFilterPart + kDepth * kWindowPitch;
constexpr int kStep = kWideThreads / kLanes;  // rows from a thread's vector to its next
constexpr int kOfFilters = kFilters / kStep, kOfWindows = kWindows / kStep;
// A vector is asked for so many steps before it is put: 128 multiply-adds of two warps each.
constexpr int kVectors = kOfFilters + kOfWindows, kHeld = 4;
static_assert(kVectors + kHeld <= kDepth);

/// A thread's vectors, stage after stage.
class Vectors {
 public:
  ROOFTILE_TILE Vectors(const VectorPicture& picture, const GpuConv& p, int window, int filter)
      : rows_(picture, window),
        term_(picture, static_cast<int>(threadIdx.x) % kLanes),
        tap_(term_.tap(picture)) {
    const int t = static_cast<int>(threadIdx.x);
    filter_ =
        static_cast<const float*>(p.columns.data) + (filter + t / kLanes) * p.columns.n + t % kLanes * 4;
    left_ = static_cast<int>(p.n - filter) - t / kLanes;
    depth_ = static_cast<int>(p.k) - t % kLanes * 4;
  }
  ROOFTILE_TILE float4 bring(const VectorPicture& picture, const GpuConv& p, int i) const {
    if (i < kOfFilters)
      return i * kStep < left_ && depth_ > 0
                 ? *reinterpret_cast<const float4*>(filter_ + i * kStep * p.columns.n)
                 : float4{};
    return rows_.inside(i - kOfFilters, tap_)
               ? *reinterpret_cast<const float4*>(rows_.vector(picture, i - kOfFilters, tap_))
               : float4{};
  }
  ROOFTILE_TILE static void put(const float4& vector, float* stage, int i) {
    const int t = static_cast<int>(threadIdx.x), row = t / kLanes, step = t % kLanes * 4;
    const int pitch = i < kOfFilters ? kFilterPitch : kWindowPitch;
    float* const to = stage +
                      (i < kOfFilters ? row + i * kStep : kFilterPart + row + (i - kOfFilters) * kStep) +
                      step * pitch;
    to[0] = vector.x, to[pitch] = vector.y, to[2 * pitch] = vector.z, to[3 * pitch] = vector.w;
  }
  ROOFTILE_TILE void next(const VectorPicture& picture) {
    term_.next(picture);
    tap_ = term_.tap(picture);
    filter_ += kDepth;
    depth_ -= kDepth;
  }

 private:
  WindowRows<kOfWindows, kLanes> rows_;
  Term term_;
  Tap tap_;
  const float* filter_;
  int left_, depth_;  // filters and K from the thread's first on
};

/// Four filters of a window.
ROOFTILE_TILE void finish_wide(const GpuConv& p, std::int64_t filter, int window, const float (&sums)[4]) {
  const std::int64_t rest = p.n - filter;
  if (rest <= 0 || window >= p.m) return;
  const int live = rest < 4 ? static_cast<int>(rest) : 4;
  Four v{{sums[0], sums[1], sums[2], sums[3]}};
  if (p.bias)
    v = v + gemm_gpu::floats_at(p.bias, filter * p.bias_stride, p.bias_stride, live, p.bias_dtype, false);
  if (p.activation != 0) v = gemm_gpu::activated(v, p.activation);
  const std::int64_t at = pixel_of(p.out, window) + filter * p.out.i_stride;
  if (p.fours) return store_four(p.out, at, v);
  ROOFTILE_UNROLL for (int l = 0; l < 4; ++l) {
    if (l < live) store_one(p.out, at + l * p.out.i_stride, v.v[l]);
  }
}

__global__ void __launch_bounds__(kWideThreads, 2)
    conv_simt_wide(const __grid_constant__ VectorPicture picture, const __grid_constant__ GpuConv p,
                   std::int64_t first_tile) {
  ROOFTILE_DYNAMIC_SHARED(bytes);
  float* const ring = reinterpret_cast<float*>(bytes);
  const GpuTile tile = tile_at(p, first_tile + blockIdx.x);
  const int first_window = static_cast<int>(tile.row), first_filter = static_cast<int>(tile.column);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp / 2 * 4 * kDown + lane / 8 * 4;       // filters, and 16 further
  const int column = warp % 2 * 8 * kAcross + lane % 8 * 4;  // windows, and 32 further
  const int stages = static_cast<int>((p.k + kDepth - 1) / kDepth);
  Vectors vectors(picture, p, first_window, first_filter);

  ROOFTILE_UNROLL for (int s = 0; s < kStages - 1; ++s) {
    ROOFTILE_UNROLL for (int i = 0; i < kVectors; ++i)
        Vectors::put(vectors.bring(picture, p, i), ring + s * kStage, i);
    vectors.next(picture);
  }
  float sums[kDown][kAcross] = {};
  float left[2][kDown], right[2][kAcross];
  const auto load = [&](int to, const float* stage, int step) {
    ROOFTILE_UNROLL for (int g = 0; g < kDown; g += 4)
        memcpy(&left[to][g], stage + step * kFilterPitch + row + 4 * g, 16);
    ROOFTILE_UNROLL for (int g = 0; g < kAcross; g += 4)
        memcpy(&right[to][g], stage + kFilterPart + step * kWindowPitch + column + 8 * g, 16);
  };
  int slot = 0, free_slot = kStages - 1;
  ROOFTILE_UNROLL_BY(1) for (int s = 0; s < stages; ++s) {
    __syncthreads();  // the stage is here for all, and all have read the one before
    const float* const stage = ring + slot * kStage;
    float* const to = ring + free_slot * kStage;
    float4 held[kHeld];
    load(0, stage, 0);
    ROOFTILE_UNROLL for (int step = 0; step < kDepth; ++step) {
      if (step >= kHeld && step - kHeld < kVectors) Vectors::put(held[step % kHeld], to, step - kHeld);
      if (step < kVectors) held[step % kHeld] = vectors.bring(picture, p, step);
      if (step + 1 < kDepth) load((step + 1) % 2, stage, step + 1);
      ROOFTILE_UNROLL for (int i = 0; i < kDown; ++i) {
        ROOFTILE_UNROLL for (int j = 0; j < kAcross; ++j) sums[i][j] =
            __fmaf_rn(left[step % 2][i], right[step % 2][j], sums[i][j]);
      }
    }
    vectors.next(picture);
    free_slot = slot;
    slot = slot + 1 == kStages ? 0 : slot + 1;
  }

  ROOFTILE_UNROLL_BY(1) for (int e = 0; e < kDown / 4 * kAcross; ++e) {
    float four[4] = {};
    ROOFTILE_UNROLL for (int g = 0; g < kDown / 4; ++g) {
      ROOFTILE_UNROLL for (int j = 0; j < kAcross; ++j) {
        if (g * kAcross + j != e) continue;  // which registers, the compiler must know
        ROOFTILE_UNROLL for (int l = 0; l < 4; ++l) four[l] = sums[4 * g + l][j];
      }
    }
    const int g = e / kAcross, j = e % kAcross;
    finish_wide(p, first_filter + row + g * 16, first_window + column + j / 4 * 32 + j % 4, four);
  }
}

}  // namespace

Status multiply_wide(const CudaLaunch& launch, const ConvProblem& problem, const ConvProduct& product) {
  const GpuConv p = gpu_conv(problem, product, kWindows, kFilters, true);
  const VectorPicture picture = vector_picture(product.right, 4, kLanes);
  for (std::int64_t first = 0; first < p.tiles; first += kMaxBlocks) {
    const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(p.tiles - first, kMaxBlocks));
    if (Status s =
            rooftile::cuda::launch(launch, "conv2d", {blocks, kWideThreads, kStages * kStage * sizeof(float)},
                                   conv_simt_wide, picture, p, first);
        !s)
      return s;
  }
  return {};
}

}  // namespace rooftile::conv_gpu
