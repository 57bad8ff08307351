// A tile's colours are a sine for each of its columns (red), rows (green) and diagonals (blue), each already
// at its place in a pixel whose other bits are 0. A pixel is then red | green | blue: two loads and a store.
#include <algorithm>

#include "rooftile/core/op.h"
#include "rooftile/ops/pattern/pattern.problem.h"
#include "rooftile/ops/pattern/pattern.wave.h"
#include "rooftile/tile/cpu/launch.h"

namespace rooftile {
namespace {
using namespace tile;

/// A tile: of f32 its tables take 8 and 12 KB, so that both stay in L1; 0.012 sines per pixel.
constexpr std::int64_t kColumns = 512, kRows = 256;

using Words = Vec<std::uint32_t>;
constexpr int kLanes = kVecLanes<std::uint32_t>;

/// wave::value of as many phases as a vector holds: the same products and sums.
ROOFTILE_TILE Vec<float> values(Words phase) {
  const Words back = 0x80000000u - phase;
  const Words outer = (Words)((Vec<std::int32_t>)(phase + 0x40000000u) < 0);
  const auto folded = (Vec<std::int32_t>)((back & outer) | (phase & ~outer));
  const Vec<float> v = __builtin_convertvector(folded, Vec<float>) * 0x1p-30f, u = v * v;
  constexpr const float(&c)[5] = wave::kSine;
  const Vec<float> p = (((c[4] * u + c[3]) * u + c[2]) * u + c[1]) * u + c[0];
  return 0.5f + v * p;
}

/// Values as elements of T, each in the lower end of a word.
template <class T>
ROOFTILE_TILE Words codes(Vec<float> value) {
  if constexpr (std::is_same_v<T, float>)
    return (Words)value;
  else if constexpr (std::is_same_v<T, std::uint8_t>)
    return (Words) __builtin_convertvector(value * 255.0f + 0.5f, Vec<std::int32_t>);
  else {
    const auto narrowed = narrow(value, static_cast<const T*>(nullptr));
    return __builtin_convertvector((load_unaligned<Narrow<std::uint16_t, float>>(&narrowed)), Words);
  }
}

template <class T>
class Tile4 {
  static constexpr int kWords = static_cast<int>(sizeof(T));  // of a pixel: four elements
  static constexpr int kBits = 8 * kWords;                    // of an element

 public:
  Tile4(const PatternProblem& p, std::byte* scratch)
      : p_(p), red_(reinterpret_cast<std::uint32_t*>(scratch)) {
    blue_ = red_ + kColumns * kWords + kLanes;
    buffer_ = blue_ + (kColumns + kRows) * kWords + kLanes;
  }
  static constexpr std::int64_t kScratch =
      std::int64_t{4} * ((3 * kColumns + kRows) * kWords + 2 * kLanes + kLanes);

  template <bool kStream>
  void run(std::int64_t top, std::int64_t bottom, std::int64_t left, std::int64_t right) {
    const std::int64_t width = right - left, words = width * kWords;
    fill(red_, 0, p_.phase[0], left, width);
    for (std::int64_t k = 0; k < width; ++k) red_[k * kWords + 3 * kBits / 32] |= alpha() << 3 * kBits % 32;
    fill(blue_, 2, p_.phase[2], top + left, width + bottom - top);
    T* y = static_cast<T*>(p_.y) + top * p_.row + left * p_.pixel;
    for (std::int64_t i = 0; i < bottom - top; ++i, y += p_.row) {
      alignas(kVectorBytes) std::uint32_t green[kLanes] = {};
      const std::uint32_t code = codes<T>(values(splat(wave::phase(p_.phase[1], top + i))))[0];
      for (int k = kBits / 32; k < kLanes; k += kWords) green[k] = code << kBits % 32;
      if (p_.dense()) {
        or_row<kStream>(blue_ + i * kWords, green, words, reinterpret_cast<std::byte*>(y));
      } else {
        or_row<false>(blue_ + i * kWords, green, words, reinterpret_cast<std::byte*>(buffer_));
        const T* from = reinterpret_cast<const T*>(buffer_);
        for (std::int64_t k = 0; k < width; ++k)
          for (int c = 0; c < 4; ++c) y[k * p_.pixel + c * p_.channel] = from[4 * k + c];
      }
    }
  }

 private:
  static std::uint32_t alpha() { return codes<T>(splat(1.0f))[0]; }

  /// The colour of `count` places at its channel of pixels that are 0 else.
  void fill(std::uint32_t* table, int channel, std::uint64_t start, std::int64_t first, std::int64_t count) {
    std::memset(table, 0, static_cast<std::size_t>(count * kWords) * sizeof *table);
    std::uint64_t phase = start + static_cast<std::uint64_t>(first) * wave::kStep;
    for (std::int64_t k = 0; k < count; k += kLanes) {
      std::uint32_t at[kLanes];
      for (int lane = 0; lane < kLanes; ++lane, phase += wave::kStep)
        at[lane] = static_cast<std::uint32_t>(phase >> 32);
      const Words code = codes<T>(values(load_unaligned<Words>(at))) << channel * kBits % 32;
      store_unaligned(at, code);
      const std::int64_t live = std::min<std::int64_t>(kLanes, count - k);
      for (std::int64_t lane = 0; lane < live; ++lane)
        table[(k + lane) * kWords + channel * kBits / 32] = at[lane];
    }
  }

  template <bool kStream>
  void or_row(const std::uint32_t* blue, const std::uint32_t* greens, std::int64_t words,
              std::byte* y) const {
    const Words green = load_unaligned<Words>(greens);
    std::int64_t k = 0;
    if (kStream) {  // whole pixels up to a vector's boundary, where y has whole pixels before one
      const auto behind = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(y) % kVectorBytes);
      if (behind % (4 * kWords) == 0) {
        const std::int64_t head = std::min(words, (kVectorBytes - behind) % kVectorBytes / 4);
        part(blue, green, 0, head, y);
        for (k = head; k + kLanes <= words; k += kLanes)
          stream(y + 4 * k, load_unaligned<Words>(red_ + k) | green | load_unaligned<Words>(blue + k));
      }
    }
    for (; k + kLanes <= words; k += kLanes)
      store_unaligned(y + 4 * k, load_unaligned<Words>(red_ + k) | green | load_unaligned<Words>(blue + k));
    part(blue, green, k, words - k, y);
  }
  /// Fewer words than a vector holds; tables may be read that far past their ends.
  void part(const std::uint32_t* blue, Words green, std::int64_t k, std::int64_t words, std::byte* y) const {
    const Words pixels = load_unaligned<Words>(red_ + k) | green | load_unaligned<Words>(blue + k);
    std::memcpy(y + 4 * k, &pixels, static_cast<std::size_t>(words) * 4);
  }

  const PatternProblem& p_;
  std::uint32_t *red_, *blue_, *buffer_;
};

template <class T>
void launch_of(const CpuLaunch& launch, const PatternProblem& p) {
  static_assert(Tile4<T>::kScratch <= 64 * 1024);
  if (p.height == 0 || p.width == 0) return;
  const std::int64_t across = (p.width + kColumns - 1) / kColumns,
                     bytes = p.height * p.width * 4 * std::int64_t(sizeof(T));
  const std::int64_t wanted =
      std::max((p.height + kRows - 1) / kRows, (launch.threads + across - 1) / across);
  const std::int64_t rows = (p.height + wanted - 1) / wanted, down = (p.height + rows - 1) / rows;
  const bool streaming = kHasStreaming && bytes > launch.streaming_bytes;
  for_programs(launch, across * down, bytes,
               [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                 Tile4<T> tile(p, scratch.begin);
                 for (std::int64_t at = begin; at < end; ++at) {
                   const std::int64_t top = at / across * rows, left = at % across * kColumns;
                   const std::int64_t bottom = std::min(p.height, top + rows),
                                      right = std::min(p.width, left + kColumns);
                   if (streaming)
                     tile.template run<true>(top, bottom, left, right);
                   else
                     tile.template run<false>(top, bottom, left, right);
                 }
                 if (streaming) stream_fence();
               });
}

void launch_tables(const CpuLaunch& launch, const PatternProblem& p) {
  with_type<float, f16, bf16, std::uint8_t>(p.dtype, [&]<class T>() { launch_of<T>(launch, p); });
}

}  // namespace

ROOFTILE_CPU_KERNELS(pattern) = {
    entry<launch_tables>("color_pattern", "tables"),
    {},
};

}  // namespace rooftile
