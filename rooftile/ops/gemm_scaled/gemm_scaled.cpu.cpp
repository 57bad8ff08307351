// A product of codes on the CPU. Tiles of y are shared among threads. For each block of K a tile's codes are
// widened as they are packed, gemm's micro-kernel adds up their products, and the sums are scaled into the
// tile's totals.
#include "rooftile/ops/gemm/epilogue.h"
#include "rooftile/ops/gemm/micro_kernel.h"
#include "rooftile/ops/gemm_scaled/gemm_scaled.pack.h"
#include "rooftile/ops/gemm_scaled/gemm_scaled.problem.h"

namespace rooftile {
namespace {
using namespace tile;

/// One thread's part. S: of the sums within a block, f32, or i32 of pairs of i8.
template <class S>
class ScaledMultiplier {
 public:
  static constexpr std::int64_t kStrip = kMicroColumns<S>, kRows = 156, kColumns = 128;
  /// Elements of K in a lane, and of K at a time.
  static constexpr std::int64_t kFold = std::is_integral_v<S> ? 2 : 1, kStep = kMicroDepth * kFold;
  static_assert(kRows % kMicroRows == 0 && kColumns % kStrip == 0 && kColumns % kLanes<float> == 0);
  static_assert(kRows * (2 * kColumns + kMicroDepth) + kStrip * kMicroDepth + 3 * kColumns <=
                std::int64_t(kScratchBytes / sizeof(float)));

  ScaledMultiplier(const GemmScaledProblem& problem, std::int64_t columns, std::byte* scratch)
      : problem_(problem),
        p_{problem.product, 0, problem.product.bias_stride},
        columns_(columns),
        down_((p_.m + kRows - 1) / kRows),
        across_((p_.n + columns - 1) / columns),
        totals_(reinterpret_cast<float*>(scratch)),
        scales_(totals_ + kRows * kColumns),
        bias_(scales_ + kColumns),
        buffer_(bias_ + kColumns),
        sums_(reinterpret_cast<S*>(buffer_ + kColumns)),
        a_(sums_ + kRows * kColumns),
        b_(a_ + kRows * kMicroDepth) {}
  std::int64_t tiles() const { return p_.batch.rows * down_ * across_; }

  /// Down the rows first, so that b's lines are still near.
  void run(std::int64_t tile) {
    matrix_ = tile / (down_ * across_);
    i_ = tile % down_ * kRows;
    j_ = tile / down_ % across_ * columns_;
    rows_ = std::min(kRows, p_.m - i_);
    width_ = std::min(columns_, p_.n - j_);
    for (std::int64_t r = 0; r < rows_; ++r) std::fill_n(totals_ + r * kColumns, kColumns, 0.0f);
    for (std::int64_t t = 0; t < problem_.blocks(); ++t) {
      const std::int64_t begin = t * problem_.block, end = std::min(p_.k, begin + problem_.block);
      for (std::int64_t k = begin; k < end; k += kStep) multiply(k, std::min(kStep, end - k), k == begin);
      promote(t);
    }
    finish(p_, EpilogueTile<float>{totals_, kColumns, matrix_, i_, j_, rows_, width_, false}, bias_, buffer_);
  }

 private:
  void multiply(std::int64_t k, std::int64_t depth, bool first) {
    const void* lines[kMicroLines];  // none are requested ahead: each is where the tile's scales are
    std::fill_n(lines, kMicroLines, scales_);
    using Code = std::conditional_t<std::is_integral_v<S>, std::int8_t, std::uint8_t>;
    const auto* a =
        static_cast<const Code*>(p_.a) + p_.batch.offset(1, matrix_) + i_ * p_.a_row + k * p_.a_column;
    const auto* b =
        static_cast<const Code*>(p_.b) + p_.batch.offset(2, matrix_) + k * p_.b_row + j_ * p_.b_column;
    pack_a({a, p_.a_row, p_.a_column, rows_, depth});
    for (std::int64_t strip = 0; strip < width_; strip += kStrip) {
      pack_b({b + strip * p_.b_column, p_.b_row, p_.b_column, depth, std::min(kStrip, width_ - strip)});
      for (std::int64_t i = 0; i < rows_;)
        i += with_rows(rows_ - i, [&]<int kCount>() ROOFTILE_INLINE {
          multiply_tile<kCount>(a_ + i * kMicroDepth, b_, kStrip, (depth + kFold - 1) / kFold,
                                sums_ + i * kColumns + strip, kColumns, first, lines);
        });
    }
  }
  void pack_a(const Block<std::int8_t>& from) { pack_pairs_across(from, a_, kMicroDepth); }
  void pack_b(const Block<std::int8_t>& from) { pack_pairs_down(from, b_, kStrip, kStrip); }
  void pack_a(const Block<std::uint8_t>& from) { pack_codes(p_.type, from, a_, kMicroDepth, 0); }
  void pack_b(const Block<std::uint8_t>& from) { pack_codes(problem_.b_type, from, b_, kStrip, kStrip); }

  /// totals += sums · scales of block t.
  __attribute__((noinline)) void promote(std::int64_t t) {
    const float* of_a = problem_.scale_a + problem_.scales.offset(0, matrix_) + t * problem_.a_block;
    const float* of_b = problem_.scale_b + problem_.scales.offset(1, matrix_) + t * problem_.b_block;
    for (std::int64_t j = 0; j < width_; ++j)
      scales_[j] = of_b[(j_ + j) / problem_.block_n * problem_.b_column];
    std::fill(scales_ + width_, scales_ + kColumns, 0.0f);
    for (std::int64_t r = 0; r < rows_; ++r) {
      const Vec<float> of_row = splat(of_a[(i_ + r) * problem_.a_row]);
      float* total = totals_ + r * kColumns;
      const S* sum = sums_ + r * kColumns;
      for (std::int64_t j = 0; j < width_; j += kVecLanes<float>) {
        const Vec<float> sums = __builtin_convertvector(load_unaligned<Vec<S>>(sum + j), Vec<float>);
        store_unaligned(total + j, vfma(sums, of_row * load_unaligned<Vec<float>>(scales_ + j),
                                        load_unaligned<Vec<float>>(total + j)));
      }
    }
  }

  const GemmScaledProblem& problem_;
  const OrientedProduct p_;
  std::int64_t columns_, down_, across_;
  float *totals_, *scales_, *bias_, *buffer_;
  S *sums_, *a_, *b_;
  std::int64_t matrix_ = 0, i_ = 0, j_ = 0, rows_ = 0, width_ = 0;  // of the tile
};

template <class S>
void multiply_scaled(const CpuLaunch& launch, const GemmScaledProblem& p) {
  using Multiplier = ScaledMultiplier<S>;
  // Some tiles for each thread.
  std::int64_t columns = Multiplier::kColumns;
  while (columns > Multiplier::kStrip && launch.threads > 1 &&
         Multiplier(p, columns, nullptr).tiles() < 4 * launch.threads)
    columns -= Multiplier::kStrip;
  // As many bytes as take as long to move: a thread does some 8 multiplications in the time of a byte.
  const double bytes = double(p.product.batch.rows) * double(p.product.m + 4) * double(p.product.n) *
                       double(p.product.k + 16) / 8;
  for_programs(launch, Multiplier(p, columns, nullptr).tiles(), std::int64_t(std::min(bytes, 1e15)),
               [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                 Multiplier multiplier(p, columns, scratch.begin);
                 for (std::int64_t tile = begin; tile < end; ++tile) multiplier.run(tile);
               });
}

void launch_tile(const CpuLaunch& launch, const GemmScaledProblem& p) {
  if (p.product.empty()) return;
  if (p.integers())
    multiply_scaled<std::int32_t>(launch, p);
  else
    multiply_scaled<float>(launch, p);
}

}  // namespace

ROOFTILE_CPU_KERNELS(gemm_scaled) = {entry<launch_tile>("gemm_scaled", "tile"), {}};

}  // namespace rooftile
