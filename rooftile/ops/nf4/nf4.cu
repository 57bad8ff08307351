#include <algorithm>

#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/nf4/nf4.problem.h"
#include "rooftile/ops/nf4/nf4.product.gpu.h"
#include "rooftile/ops/nf4/nf4.scales.h"
#include "rooftile/tile/cuda/elements.h"

namespace rooftile {
namespace {
using namespace tile;

/// Elements of a thread at a time: 4 bytes of packed ones, a 16-byte vector or two of the others.
constexpr int kItems = 8;
/// Quantising, a thread block has whole blocks of any size: 4096 elements.
constexpr int kQuantizeThreads = 512;

/// The format's tables as a kernel's parameter, since device code has no arrays of the host's.
struct Tables {
  float levels[16], thresholds[15];
};
constexpr Tables kTables = [] {
  Tables t{};
  for (int i = 0; i < 16; ++i) t.levels[i] = kNf4Levels[i];
  for (int i = 0; i < 15; ++i) t.thresholds[i] = kNf4Thresholds[i];
  return t;
}();

/// How many thresholds it is above; a NaN is above none.
ROOFTILE_TILE unsigned level_of(const Tables& tables, float scaled) {
  unsigned code = 0;
  ROOFTILE_UNROLL for (int i = 0; i < 15; ++i) code += scaled > tables.thresholds[i];
  return code;
}

/// `live` elements of a thread, from index `first` on in row-major order; the rest are 0. kWords: contiguous,
/// and whole 16-byte vectors where all are there.
template <class T, bool kWords>
ROOFTILE_TILE void load_items(const Nf4Problem& p, std::int64_t first, std::int64_t live, T (&x)[kItems]) {
  const T* data = static_cast<const T*>(p.data);
  if (kWords && live >= kItems) {
    constexpr int kPerWord = 16 / int(sizeof(T));
    ROOFTILE_UNROLL for (int w = 0; w < kItems / kPerWord; ++w) {
      Pack<T, kPerWord> pack;
      pack.set_word(0, *reinterpret_cast<const uint4*>(data + first + w * kPerWord));
      ROOFTILE_UNROLL for (int i = 0; i < kPerWord; ++i) x[w * kPerWord + i] = pack.get(i);
    }
    return;
  }
  ROOFTILE_UNROLL for (int i = 0; i < kItems; ++i) {
    x[i] = T{};
    if (i >= live) continue;
    const std::int64_t index = first + i, row = index / p.rows.columns;
    x[i] = data[offset_of(p.rows, 0, row) + (index - row * p.rows.columns) * p.rows.column_stride[0]];
  }
}

template <class T, bool kWords>
__global__ void __launch_bounds__(kQuantizeThreads)
    quantize(const __grid_constant__ Nf4Problem p, const __grid_constant__ Tables tables) {
  ROOFTILE_SHARED(maxima, float[kQuantizeThreads / kWarp]);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
  const std::int64_t first = (std::int64_t{blockIdx.x} * kQuantizeThreads + thread) * kItems;
  const std::int64_t live = p.size() - first;
  T x[kItems];
  load_items<T, kWords>(p, first, live, x);

  // The largest magnitude of the threads that share a block; fmaxf leaves NaN out.
  float most = 0;
  ROOFTILE_UNROLL for (int i = 0; i < kItems; ++i) most = fmaxf(most, fabsf(widen<float>(x[i])));
  const int threads = p.block / kItems;
  for (int far = (threads < kWarp ? threads : kWarp) / 2; far > 0; far /= 2)
    most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, far));
  if (threads > kWarp) {
    if (lane == 0) maxima[warp] = most;
    __syncthreads();
    const int warps = threads / kWarp, mine = warp / warps * warps;
    for (int w = 0; w < warps; ++w) most = fmaxf(most, maxima[mine + w]);
  }
  if (live <= 0) return;
  if (thread % threads == 0) p.absmax[(first >> p.block_log) * p.absmax_stride] = most;

  const float each_one = __fdiv_rn(1.0f, most);
  unsigned word = 0;  // in memory's order of bytes
  ROOFTILE_UNROLL for (int i = 0; i < kItems; ++i) {
    const unsigned code = i < live ? level_of(tables, widen<float>(x[i]) * each_one) : 7u;  // the level 0
    word |= code << (i / 2 * 8 + (i % 2 ? 0 : 4));
  }
  std::uint8_t* packed = p.packed + first / 2 * p.packed_stride;
  if (kWords && live >= kItems) {
    *reinterpret_cast<unsigned*>(packed) = word;
    return;
  }
  ROOFTILE_UNROLL for (int b = 0; b < kItems / 2; ++b) {
    if (2 * b < live) packed[b * p.packed_stride] = static_cast<std::uint8_t>(word >> (8 * b));
  }
}

/// Dequantising: 256 threads, each four times eight elements, all loads issued first.
constexpr int kThreads = 256, kTimes = 4;

template <class T, bool kWords>
__global__ void __launch_bounds__(kThreads)
    dequantize(const __grid_constant__ Nf4Problem p, const __grid_constant__ Tables tables) {
  // In shared memory, a bank for each level: 32 lanes read any of them at once.
  ROOFTILE_SHARED(levels, float[16]);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < 16) levels[thread] = tables.levels[thread];
  const std::int64_t begin = std::int64_t{blockIdx.x} * (kThreads * kTimes * kItems) + thread * kItems;
  unsigned words[kTimes];
  float scales[kTimes];
  ROOFTILE_UNROLL for (int k = 0; k < kTimes; ++k) {
    const std::int64_t first = begin + k * (kThreads * kItems), live = p.size() - first;
    words[k] = 0;
    scales[k] = 0;
    if (kWords && live >= kItems) {
      const std::int64_t at = p.first + first;
      words[k] = *reinterpret_cast<const unsigned*>(p.packed + at / 2);
      scales[k] = p.absmax[(at >> p.block_log) * p.absmax_stride];
    }
  }
  __syncthreads();
  T* data = static_cast<T*>(p.data);
  ROOFTILE_UNROLL for (int k = 0; k < kTimes; ++k) {
    const std::int64_t first = begin + k * (kThreads * kItems), live = p.size() - first;
    if (kWords && live >= kItems) {
      constexpr int kPerWord = 16 / int(sizeof(T));
      ROOFTILE_UNROLL for (int w = 0; w < kItems / kPerWord; ++w) {
        Tile<float, kPerWord> y;
        ROOFTILE_UNROLL for (int i = 0; i < kPerWord; ++i) {
          const int item = w * kPerWord + i;
          y.v[i] = levels[words[k] >> (item / 2 * 8 + (item % 2 ? 0 : 4)) & 15] * scales[k];
        }
        *reinterpret_cast<uint4*>(data + first + w * kPerWord) = narrowed<T>(y).word(0);
      }
      continue;
    }
    ROOFTILE_UNROLL_BY(1) for (int i = 0; i < kItems; ++i) {
      if (i >= live) break;
      const std::int64_t index = first + i, at = p.first + index, row = index / p.rows.columns;
      const unsigned byte = p.packed[at / 2 * p.packed_stride];
      const float y =
          levels[at % 2 ? byte & 15 : byte >> 4] * p.absmax[(at >> p.block_log) * p.absmax_stride];
      data[offset_of(p.rows, 0, row) + (index - row * p.rows.columns) * p.rows.column_stride[0]] =
          narrow<T>(y);
    }
  }
}

bool in_words(const Nf4Problem& p) {
  return p.contiguous() && reinterpret_cast<std::uintptr_t>(p.data) % 16 == 0 && p.packed_stride == 1 &&
         reinterpret_cast<std::uintptr_t>(p.packed) % 4 == 0 && p.first % kItems == 0;
}
/// Launches one of two kernels for all elements, `each` of them to a thread block.
Status launch_all(const CudaLaunch& launch, const char* name, const Nf4Problem& p, int threads,
                  std::int64_t each, void (*words)(Nf4Problem, Tables), void (*any)(Nf4Problem, Tables)) {
  const std::int64_t blocks = (p.size() + each - 1) / each;
  if (blocks == 0) return {};
  if (blocks > kMaxBlocks)
    return Status::error("%s: %lld elements take more blocks than the %lld of a launch", name,
                         static_cast<long long>(p.size()), static_cast<long long>(kMaxBlocks));
  return rooftile::cuda::launch(launch, name, {static_cast<unsigned>(blocks), static_cast<unsigned>(threads)},
                                in_words(p) ? words : any, p, kTables);
}
Status launch_quantize(const CudaLaunch& launch, const Nf4Problem& p) {
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    return launch_all(launch, "quantize_nf4", p, kQuantizeThreads, kQuantizeThreads * kItems,
                      quantize<T, true>, quantize<T, false>);
  });
}
Status launch_dequantize(const CudaLaunch& launch, const Nf4Problem& p) {
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    return launch_all(launch, "dequantize_nf4", p, kThreads, kThreads * kTimes * kItems, dequantize<T, true>,
                      dequantize<T, false>);
  });
}

// ---- scales: a thread for each, a thread block for each block

__global__ void __launch_bounds__(kScaleBlock)
    quantize_scale(const __grid_constant__ Nf4ScalesProblem p, const __grid_constant__ Nf4ScaleMap map) {
  ROOFTILE_SHARED(numbers, float[256]);
  ROOFTILE_SHARED(maxima, float[kScaleBlock / kWarp]);
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t i = std::int64_t{blockIdx.x} * kScaleBlock + thread;
  numbers[thread] = map.at[thread];
  const bool there = i < p.count;
  const float above = there ? p.scales[i * p.scales_stride] - *p.offset : 0;
  float most = fmaxf(0, fabsf(above));
  for (int far = kWarp / 2; far > 0; far /= 2) most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, far));
  if (thread % kWarp == 0) maxima[thread / kWarp] = most;
  __syncthreads();
  for (float its : maxima) most = fmaxf(most, its);
  if (thread == 0) p.absmax[blockIdx.x * p.absmax_stride] = most;
  const float each_one = __fdiv_rn(1.0f, most);
  if (there)
    p.codes[i * p.codes_stride] = static_cast<std::uint8_t>(nf4_scale_code(numbers, above * each_one));
}
__global__ void __launch_bounds__(kScaleBlock)
    dequantize_scale(const __grid_constant__ Nf4ScalesProblem p, const __grid_constant__ Nf4ScaleMap map) {
  ROOFTILE_SHARED(numbers, float[256]);
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t i = std::int64_t{blockIdx.x} * kScaleBlock + thread;
  numbers[thread] = map.at[thread];
  __syncthreads();
  if (i < p.count)
    p.scales[i * p.scales_stride] =
        numbers[p.codes[i * p.codes_stride]] * p.absmax[blockIdx.x * p.absmax_stride] + *p.offset;
}
Status launch_scales(const CudaLaunch& launch, const char* name, const Nf4ScalesProblem& p,
                     void (*kernel)(Nf4ScalesProblem, Nf4ScaleMap)) {
  const std::int64_t blocks = (p.count + kScaleBlock - 1) / kScaleBlock;
  if (blocks == 0) return {};
  if (blocks > kMaxBlocks)
    return Status::error("%s: %lld scales take more blocks than the %lld of a launch", name,
                         static_cast<long long>(p.count), static_cast<long long>(kMaxBlocks));
  return rooftile::cuda::launch(launch, name, {static_cast<unsigned>(blocks), kScaleBlock}, kernel, p,
                                kNf4ScaleMap);
}
Status launch_quantize_scales(const CudaLaunch& launch, const Nf4ScalesProblem& p) {
  return launch_scales(launch, "quantize_scales", p, quantize_scale);
}
Status launch_dequantize_scales(const CudaLaunch& launch, const Nf4ScalesProblem& p) {
  return launch_scales(launch, "dequantize_scales", p, dequantize_scale);
}

}  // namespace

ROOFTILE_CUDA_KERNELS(nf4) = {
    entry<launch_quantize>("quantize_nf4", "tile"),
    entry<launch_dequantize>("dequantize_nf4", "tile"),
    entry<launch_quantize_scales>("quantize_scales", "tile"),
    entry<launch_dequantize_scales>("dequantize_scales", "tile"),
    entry<codes_gpu::launch_few<nf4_gpu::Nf4Values>>("gemm_nf4", "few_rows"),
    entry<codes_gpu::launch_mma<nf4_gpu::Nf4Values>>("gemm_nf4", "mma"),
    entry<codes_gpu::launch_simt<nf4_gpu::Nf4Values>>("gemm_nf4", "simt"),
    {},
};

}  // namespace rooftile
