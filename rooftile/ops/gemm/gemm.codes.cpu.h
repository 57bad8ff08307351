#pragma once
// x·Wᵀ on the CPU. Tiles of y are shared among threads. For each block of K, a tile's rows of x are packed,
// and strips of W's rows dequantised in registers into the order in which gemm's micro-kernel reads them:
// lanes are rows of W. Each element is one chain over all of K. A struct of lanes, which a folder defines,
// has
//   Weight                    the weight's struct (gemm.codes.h)
//   set(w, lane, line, k)     what the run from k on of a lane's row shares
//   each(words, put)          put(weights) of each of eight elements of the lanes' words, unrounded
//   one(w, line, k, code)     a weight by itself
#include <cstring>

#include "rooftile/ops/gemm/epilogue.h"
#include "rooftile/ops/gemm/gemm.codes.h"
#include "rooftile/ops/gemm/micro_kernel.h"
#include "rooftile/ops/gemm/pack.h"
#include "rooftile/tile/cpu/launch.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// Weights as T has them, in f32's lanes.
template <class T>
ROOFTILE_TILE Vec<float> rounded(Vec<float> v) {
  if constexpr (std::is_same_v<T, bf16>) {
    const auto bits = (Vec<std::uint32_t>)v;
    const auto nearest = (Vec<float>)((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);  // ties to even
    v = v == v ? nearest : v;
  } else if constexpr (std::is_same_v<T, f16>) {
    T held[kVecLanes<float>];
    store_unaligned(held, narrow(v, static_cast<const T*>(nullptr)));
    widen(held, v);
  }
  return v;
}

/// One thread's part of the product.
template <class T, class Lanes>
class CodesMultiplier {
  using W = typename Lanes::Weight;

 public:
  /// A tile of y; few rows of x are packed again for each strip, so that W's lines come in as few streams as
  /// a strip has rows.
  static constexpr std::int64_t kStrip = kMicroColumns<float>, kRows = 168, kColumns = 192;
  static constexpr std::int64_t kPitch = (kColumns + kLanes<float> - 1) / kLanes<float> * kLanes<float>;
  static constexpr std::int64_t kRun = kCodesRun;
  static_assert(kRows % kMicroRows == 0 && kColumns % kStrip == 0 && kMicroDepth % kRun == 0);
  static_assert(kRows * (kPitch + kMicroDepth) + kStrip * kMicroDepth + 2 * kPitch <=
                std::int64_t(kScratchBytes / sizeof(float)));

  CodesMultiplier(const GemmCodes<W>& problem, std::int64_t columns, std::byte* scratch)
      : w_(problem.w),
        p_{problem.product, 0, problem.product.bias_stride},
        columns_(columns),
        down_((p_.m + kRows - 1) / kRows),
        across_((p_.n + columns - 1) / columns),
        runs_(problem.w.in_runs(1)),
        sums_(reinterpret_cast<float*>(scratch)),
        x_(sums_ + kRows * kPitch),
        weights_(x_ + kRows * kMicroDepth),
        bias_(weights_ + kStrip * kMicroDepth) {}
  std::int64_t tiles() const { return p_.batch.rows * down_ * across_; }

  /// Down the rows first, so that W's lines are still near.
  void run(std::int64_t tile) {
    const std::int64_t matrix = tile / (down_ * across_), i = tile % down_ * kRows,
                       j = tile / down_ % across_ * columns_, rows = std::min(kRows, p_.m - i),
                       columns = std::min(columns_, p_.n - j);
    const T* x = static_cast<const T*>(p_.a) + p_.batch.offset(1, matrix) + i * p_.a_row;
    for (std::int64_t k = 0; k < p_.k; k += kMicroDepth) {
      const std::int64_t depth = std::min<std::int64_t>(kMicroDepth, p_.k - k);
      pack(Block<T>{x + k * p_.a_column, p_.a_row, p_.a_column, rows, depth}, x_, kMicroDepth, 0);
      for (std::int64_t strip = 0; strip < columns; strip += kStrip)
        multiply_strip(rows, j + strip, std::min(kStrip, columns - strip), k, depth, sums_ + strip);
    }
    for (std::int64_t r = 0; p_.k == 0 && r < rows; ++r) std::fill_n(sums_ + r * kPitch, columns, 0.0f);
    finish(p_, EpilogueTile<float>{sums_, kPitch, matrix, i, j, rows, columns, false}, bias_, bias_ + kPitch);
  }

 private:
  void multiply_strip(std::int64_t rows, std::int64_t n, std::int64_t columns, std::int64_t k,
                      std::int64_t depth, float* sums) {
    const void* lines[kMicroLines];  // W's next ones
    for (int l = 0; l < kMicroLines; ++l)
      lines[l] = w_.code(w_.line(n + std::min<std::int64_t>(l, columns - 1)),
                         k + 2 * kMicroDepth <= p_.k ? k + kMicroDepth : k);
    if (rows < kMicroRows)
      for (const void* line : lines) __builtin_prefetch(line);
    if (runs_)
      dequantize_runs(n, columns, k, depth);
    else
      dequantize_each(n, columns, k, depth);
    for (std::int64_t i = 0; i < rows;)
      i += with_rows(rows - i, [&]<int kCount>() ROOFTILE_INLINE {
        multiply_tile<kCount>(x_ + i * kMicroDepth, weights_, kStrip, depth, sums + i * kPitch, kPitch,
                              k == 0, lines);
      });
  }

  /// Runs of 32 weights with one scale, a word of eight from each row at a time. Past W's last row it is 0.
  __attribute__((noinline)) void dequantize_runs(std::int64_t n, std::int64_t columns, std::int64_t k,
                                                 std::int64_t depth) {
    constexpr int kLanes = kVecLanes<float>;
    for (std::int64_t from = 0; from < depth; from += kRun)
      for (int half = 0; half < 2; ++half) {
        alignas(64) std::uint32_t words[kRun / 8][kLanes] = {};
        Lanes lanes{};
        for (int l = 0; l < kLanes && half * kLanes + l < columns; ++l) {
          const auto line = w_.line(n + half * kLanes + l);
          lanes.set(w_, l, line, k + from);
          const std::uint8_t* const run = w_.code(line, k + from);
          for (int w = 0; w < kRun / 8; ++w) std::memcpy(&words[w][l], run + 4 * w, 4);
        }
        float* to = weights_ + from * kStrip + half * kLanes;
        for (const auto& eight : words)
          lanes.each(eight, [&](Vec<float> weights) ROOFTILE_INLINE {
            store_unaligned(to, rounded<T>(weights));
            to += kStrip;
          });
      }
  }
  /// Runs that begin within a byte, have several scales, or bytes apart.
  __attribute__((noinline)) void dequantize_each(std::int64_t n, std::int64_t columns, std::int64_t k,
                                                 std::int64_t depth) {
    std::fill_n(weights_, depth * kStrip, 0.0f);
    for (std::int64_t l = 0; l < columns; ++l) {
      const auto line = w_.line(n + l);
      for (std::int64_t from = 0; from < depth; ++from) {
        const unsigned byte = *w_.code(line, k + from);
        weights_[from * kStrip + l] =
            Lanes::one(w_, line, k + from, w_.high(line, k + from) ? byte >> 4 : byte & 15);
      }
    }
    for (std::int64_t at = 0; at < depth * kStrip; at += kVecLanes<float>)
      store_unaligned(weights_ + at, rounded<T>(load_unaligned<Vec<float>>(weights_ + at)));
  }

  const W& w_;
  const OrientedProduct p_;
  std::int64_t columns_, down_, across_;
  bool runs_;
  float *sums_, *x_, *weights_, *bias_;
};

template <class Lanes>
void launch_codes(const CpuLaunch& launch, const GemmCodes<typename Lanes::Weight>& p) {
  if (p.product.empty()) return;
  with_type<float, f16, bf16>(p.product.type, [&]<class T>() {
    using Multiplier = CodesMultiplier<T, Lanes>;
    // Wide tiles where x's rows are worth packing once for all, and some for each thread.
    std::int64_t columns = p.product.m < kMicroRows ? Multiplier::kStrip : Multiplier::kColumns;
    while (columns > Multiplier::kStrip && launch.threads > 1 &&
           Multiplier(p, columns, nullptr).tiles() < 4 * launch.threads)
      columns -= Multiplier::kStrip;
    const double bytes = double(p.product.batch.rows) * double(p.product.m + 4) * double(p.product.n) *
                         double(p.product.k + 16) / 8;
    for_programs(launch, Multiplier(p, columns, nullptr).tiles(), std::int64_t(std::min(bytes, 1e15)),
                 [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                   Multiplier multiplier(p, columns, scratch.begin);
                   for (std::int64_t tile = begin; tile < end; ++tile) multiplier.run(tile);
                 });
  });
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
