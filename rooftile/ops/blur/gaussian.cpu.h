#pragma once
// A Gaussian blur in two passes for each row of y: down the columns to a row of sums on chip, along it to y.
// Two pixels as far from the middle share a weight; two such pairs share a multiplication of 16-bit numbers.
#include "rooftile/ops/blur/blur.rows.h"
#include "rooftile/tile/cpu/turn.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// Elements of y's rows that a thread computes at a time: rows of that many, as many as a window is high,
/// stay in L2.
inline constexpr std::int64_t kGaussianTile = 4096;

class GaussianBlur {
  using Pixels16 = Vec<std::uint16_t>;
  using Sums = Vec<std::int32_t>;
  static constexpr int kLanes = kVecLanes<std::uint16_t>;
  static constexpr int kStep = 2 * kLanes;  // elements at a time: with AVX-512 whole lines of x
  static constexpr std::int64_t kSpan = kGaussianTile + 2 * 4 * kMaxGaussianRadius + kStep;

 public:
  GaussianBlur(const GaussianProblem& problem, std::byte* scratch, const BlurPart& part)
      : p_(problem.pictures), w_(problem.weights), r_(problem.weights.radius), part_(part) {
    const auto take = [&](auto*& at, std::int64_t count) {
      at = reinterpret_cast<std::remove_reference_t<decltype(at)>>(scratch);
      scratch += (count * std::int64_t(sizeof *at) + 63) / 64 * 64;
    };
    take(middle_, kSpan);
    take(zeros_, kSpan);
    take(out_, kSpan);
    take(rows_, 2 * (kMaxGaussianRadius + 2));
    take(pairs_, kMaxGaussianRadius / 2 + 1);
    const auto weight = [&](int k) { return k == 0 ? w_.at[0] / 2 : k <= r_ ? w_.at[k] : 0; };
    for (int k = 0; k <= r_; k += 2)
      pairs_[k / 2] = static_cast<std::int32_t>(static_cast<std::uint32_t>(weight(k)) |
                                                static_cast<std::uint32_t>(weight(k + 1)) << 16);
    std::memset(zeros_, 0, kSpan);
    std::memset(middle_, 0, kSpan * sizeof *middle_);
  }

  void run() {
    const std::int64_t first = std::max<std::int64_t>(0, part_.left - r_);
    const std::int64_t end = std::min(p_.width, part_.right + r_), channels = p_.channels;
    x_ = p_.x + p_.start(1, part_.picture) + first * p_.x_pixel;
    step_ = p_.dense_x() ? 1 : p_.x_pixel;
    std::uint8_t* y = p_.y + p_.start(0, part_.picture) + part_.left * p_.y_pixel;
    // Pixel i of the picture at middle_[(i - part.left + r) · channels].
    std::uint16_t* const held = middle_ + (first - part_.left + r_) * channels;
    const std::int64_t size = (part_.right - part_.left) * channels;
    for (std::int64_t row = part_.top; row < part_.bottom; ++row) {
      find_rows(row);
      down((end - first) * channels, held);
      fill_edges(first, end);
      std::uint8_t* const to = y + row * p_.y_row;
      along(size, p_.dense_y() ? to : out_);
      if (!p_.dense_y()) scatter_row(out_, part_.right - part_.left, p_.y_pixel, to);
    }
  }

 private:
  /// rows_[2k], rows_[2k + 1]: k above and below. One more pair, of weight 0, where their number is odd.
  void find_rows(std::int64_t row) {
    const auto start = [&](std::int64_t at) {
      const std::int64_t pixel = border_pixel(p_.border, p_.height, at);
      return pixel == kNoPixel ? zeros_ : x_ + pixel * p_.x_row;
    };
    for (std::int64_t k = 0; k <= r_; ++k) {
      rows_[2 * k] = start(row - k);
      rows_[2 * k + 1] = start(row + k);
    }
    rows_[2 * r_ + 2] = rows_[2 * r_ + 3] = rows_[2 * r_];
  }

  template <bool kUpper>
  static ROOFTILE_TILE Sums interleaved(Pixels16 a, Pixels16 b) {
    return (Sums)interleave<kUpper, std::uint16_t>(a, b, std::make_integer_sequence<int, kLanes>());
  }
  /// The low halves of what interleaving led to, in order again.
  template <int... kAt>
  static ROOFTILE_TILE Pixels16 joined_halves(Sums lower, Sums upper, std::integer_sequence<int, kAt...>) {
    return __builtin_shufflevector((Pixels16)lower, (Pixels16)upper,
                                   (kAt / 8 * 8 + kAt % 4 * 2 + (kAt % 8 < 4 ? 0 : kLanes))...);
  }
  template <int... kAt>
  static ROOFTILE_TILE Vec<std::uint8_t> low_bytes(Pixels16 a, Pixels16 b,
                                                   std::integer_sequence<int, kAt...>) {
    return __builtin_shufflevector((Vec<std::uint8_t>)a, (Vec<std::uint8_t>)b, (2 * kAt)...);
  }

  /// Σ over pairs of weights of kStep elements, rounded, shifted. pair(k, v): the sum of both pixels k away,
  /// of the v-th kLanes elements.
  template <class Pair>
  ROOFTILE_TILE void weigh(int shift, Pixels16 (&sum)[2], Pair pair) const {
    Sums lower[2], upper[2];
    for (int v = 0; v < 2; ++v) lower[v] = upper[v] = splat(std::int32_t{1} << (shift - 1));
    for (std::int64_t k = 0; k <= r_; k += 2) {
      const Sums weights = splat(pairs_[k / 2]);
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        const Pixels16 a = pair(k, v), b = pair(k + 1, v);
        lower[v] += multiply_pairs(interleaved<false>(a, b), weights);
        upper[v] += multiply_pairs(interleaved<true>(a, b), weights);
      }
    }
    for (int v = 0; v < 2; ++v)
      sum[v] = joined_halves(lower[v] >> shift, upper[v] >> shift, std::make_integer_sequence<int, kLanes>());
  }

  /// A row of middle_: each column's pixels weighed. Of elements that are apart, or fewer than a step,
  /// copies.
  void down(std::int64_t size, std::uint16_t* to) {
    const int shift = w_.bits - kGaussianFraction;
    Pixels16 sum[2];
    std::int64_t j = 0;
    for (; step_ == 1 && j + kStep <= size; j += kStep) {
      weigh(shift, sum, [&](std::int64_t k, int v) ROOFTILE_INLINE {
        Pixels16 above, below;
        widen(rows_[2 * k] + j + v * kLanes, above);
        widen(rows_[2 * k + 1] + j + v * kLanes, below);
        return above + below;
      });
      store_unaligned(to + j, sum[0]);
      store_unaligned(to + j + kLanes, sum[1]);
    }
    for (; j < size; j += kStep) {
      const std::int64_t live = std::min<std::int64_t>(kStep, size - j);
      weigh(shift, sum, [&](std::int64_t k, int v) {
        std::uint16_t both[kLanes] = {};
        const std::uint8_t *above = rows_[2 * k], *below = rows_[2 * k + 1];
        const std::int64_t above_step = above == zeros_ ? 1 : step_, below_step = below == zeros_ ? 1 : step_;
        const std::int64_t begin = j + v * kLanes, end = std::min(begin + kLanes, j + live);
        for (std::int64_t e = begin; e < end; ++e)
          both[e - begin] = static_cast<std::uint16_t>(above[e * above_step] + below[e * below_step]);
        return load_unaligned<Pixels16>(both);
      });
      std::memcpy(to + j, sum, static_cast<std::size_t>(live) * sizeof *to);
    }
  }

  /// What stands left and right of the picture, as far as windows reach.
  void fill_edges(std::int64_t first, std::int64_t end) {
    const std::int64_t channels = p_.channels;
    const auto place = [&](std::int64_t i) { return middle_ + (i - part_.left + r_) * channels; };
    const auto fill = [&](std::int64_t i) {
      const std::int64_t from = border_pixel(p_.border, p_.width, i);
      for (std::int64_t c = 0; c < channels; ++c) place(i)[c] = from == kNoPixel ? 0 : place(from)[c];
    };
    for (std::int64_t i = part_.left - r_; i < first; ++i) fill(i);
    for (std::int64_t i = end; i < part_.right + r_; ++i) fill(i);
  }

  /// A row of y from middle_, of which a step past the end may be read.
  void along(std::int64_t size, std::uint8_t* y) const {
    const int shift = w_.bits + kGaussianFraction;
    const std::uint16_t* const center = middle_ + r_ * p_.channels;
    for (std::int64_t j = 0; j < size; j += kStep) {
      Pixels16 sum[2];
      weigh(shift, sum, [&](std::int64_t k, int v) ROOFTILE_INLINE {
        const std::uint16_t* at = center + j + v * kLanes;
        const std::int64_t away = std::min(k, r_) * p_.channels;
        return load_unaligned<Pixels16>(at - away) + load_unaligned<Pixels16>(at + away);
      });
      const Vec<std::uint8_t> bytes =
          low_bytes(sum[0], sum[1], std::make_integer_sequence<int, 2 * kLanes>());
      if (j + kStep <= size)
        store_unaligned(y + j, bytes);
      else
        std::memcpy(y + j, &bytes, static_cast<std::size_t>(size - j));
    }
  }

  const Pictures& p_;
  const GaussianWeights& w_;
  std::int64_t r_;
  BlurPart part_;
  const std::uint8_t* x_ = nullptr;
  std::int64_t step_ = 1;
  std::uint16_t* middle_;
  std::uint8_t *zeros_, *out_;
  const std::uint8_t** rows_;
  std::int32_t* pairs_;
};

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
