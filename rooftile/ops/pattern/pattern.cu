#include <algorithm>

#include "rooftile/backend/cuda/launch.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/core/op.h"
#include "rooftile/ops/pattern/ladder/ladder.h"
#include "rooftile/ops/pattern/pattern.problem.h"
#include "rooftile/ops/pattern/pattern.wave.h"
#include "rooftile/tile/cuda/tile.h"

namespace rooftile {
namespace {

constexpr int kThreads = 256;
/// Rows of a tile: of f32 then 0.13 sines per pixel, of u8 0.13, too.
constexpr int kRows = 16;
constexpr std::int64_t kMaxBlocks = 1 << 30;

template <class T>
__device__ __forceinline__ std::uint32_t code_of(float value) {
  if constexpr (std::is_same_v<T, float>)
    return __float_as_uint(value);
  else if constexpr (std::is_same_v<T, std::uint8_t>)
    return static_cast<std::uint32_t>(value * 255.0f + 0.5f);
  else
    return tile::cuda::narrow<T>(value).bits;
}

/// A pixel's bits, as whole words.
template <class T>
struct Word {
  static constexpr int kWords = static_cast<int>(sizeof(T));
  std::uint32_t v[kWords];

  /// One channel's bits, zeros for the others.
  __device__ static Word of(int channel, float value) {
    Word word{};
    const int bit = channel * 8 * static_cast<int>(sizeof(T));
    word.v[bit / 32] = code_of<T>(value) << bit % 32;
    return word;
  }
  __device__ Word operator|(const Word& other) const {
    Word both;
    for (int k = 0; k < kWords; ++k) both.v[k] = v[k] | other.v[k];
    return both;
  }
  /// The code of channel `c`.
  __device__ T at(int c) const {
    const int bit = c * 8 * static_cast<int>(sizeof(T));
    T element;
    const std::uint32_t code = v[bit / 32] >> bit % 32;
    if constexpr (std::is_same_v<T, float>)
      element = __uint_as_float(code);
    else if constexpr (std::is_same_v<T, std::uint8_t>)
      element = static_cast<std::uint8_t>(code);
    else
      element = {static_cast<std::uint16_t>(code)};
    return element;
  }
};

// [kernel]
/// A block's tile: 16 rows, and columns for 16 bytes from each thread. A thread keeps its columns' red in
/// registers; all share the rows' green and the diagonals' blue.
template <class T>
__global__ void __launch_bounds__(kThreads)
    pattern_tables(const __grid_constant__ PatternProblem p, std::int64_t across, std::int64_t tiles,
                   bool whole) {
  constexpr int kPixels = 4 / static_cast<int>(sizeof(T)), kColumns = kThreads * kPixels;
  ROOFTILE_SHARED(green, Word<T>[kRows]);
  ROOFTILE_SHARED(blue, Word<T>[kColumns + kRows]);
  const int thread = static_cast<int>(threadIdx.x);
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const std::int64_t top = tile / across * kRows, left = tile % across * kColumns;
    const std::int64_t first = left + thread * kPixels;
    Word<T> red[kPixels];
    for (int k = 0; k < kPixels; ++k)
      red[k] = Word<T>::of(0, wave::value(wave::phase(p.phase[0], first + k))) | Word<T>::of(3, 1);
    for (int k = thread; k < kColumns + kRows; k += kThreads)
      blue[k] = Word<T>::of(2, wave::value(wave::phase(p.phase[2], top + left + k)));
    if (thread < kRows) green[thread] = Word<T>::of(1, wave::value(wave::phase(p.phase[1], top + thread)));
    __syncthreads();
    const int live = static_cast<int>(p.width - first < kPixels ? p.width - first : kPixels);
    const int rows = static_cast<int>(p.height - top < kRows ? p.height - top : kRows);
    T* y = static_cast<T*>(p.y) + top * p.row + first * p.pixel;
    for (int i = 0; i < rows && live > 0; ++i, y += p.row) {
      std::uint32_t words[4];
      for (int k = 0; k < kPixels; ++k) {
        const Word<T> pixel = red[k] | green[i] | blue[thread * kPixels + k + i];
        for (int w = 0; w < Word<T>::kWords; ++w) words[k * Word<T>::kWords + w] = pixel.v[w];
        if (whole && live == kPixels) continue;
        for (int c = 0; c < 4 && k < live; ++c) y[k * p.pixel + c * p.channel] = pixel.at(c);
      }
      if (whole && live == kPixels)
        *reinterpret_cast<uint4*>(y) = make_uint4(words[0], words[1], words[2], words[3]);
    }
    __syncthreads();  // before the next tile's colours take these ones' place
  }
}
// [/kernel]

template <class T>
Status launch_of(const CudaLaunch& launch, const PatternProblem& p) {
  constexpr std::int64_t kColumns = kThreads * 4 / std::int64_t(sizeof(T));
  const std::int64_t across = (p.width + kColumns - 1) / kColumns,
                     tiles = across * ((p.height + kRows - 1) / kRows);
  if (tiles == 0) return {};
  const bool whole = p.dense() && reinterpret_cast<std::uintptr_t>(p.y) % 16 == 0 &&
                     (p.height <= 1 || p.row * std::int64_t(sizeof(T)) % 16 == 0);
  return cuda::launch(launch, "color_pattern", {static_cast<unsigned>(std::min(tiles, kMaxBlocks)), kThreads},
                      pattern_tables<T>, p, across, tiles, whole);
}

Status launch_tables(const CudaLaunch& launch, const PatternProblem& p) {
  switch (p.dtype) {
    case DType::f32:
      return launch_of<float>(launch, p);
    case DType::f16:
      return launch_of<f16>(launch, p);
    case DType::bf16:
      return launch_of<bf16>(launch, p);
    default:
      return launch_of<std::uint8_t>(launch, p);
  }
}

}  // namespace

ROOFTILE_CUDA_KERNELS(pattern) = {
    entry<launch_tables>("color_pattern", "tables"),
    entry<ladder::launch_pattern_turns>("color_pattern", "02_turns"),
    entry<ladder::launch_pattern_one_pixel>("color_pattern", "01_one_pixel"),
    {},
};

}  // namespace rooftile
