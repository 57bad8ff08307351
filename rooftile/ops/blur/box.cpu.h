#pragma once
// A box blur by running sums. Each column has the sum of its 2r + 1 pixels above and below; from a row to the
// next, one pixel enters and one leaves. A window's sum runs along these: from a pixel to the next, one
// column enters and one leaves. Differences of many columns at once, added up within a vector, then carried
// on.
#include "rooftile/ops/blur/blur.rows.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// Elements of a row whose columns' sums a thread holds.
inline constexpr std::int64_t kBoxSpan = 20 * 1024;
/// Pixels past the edge that are put side by side at a time.
inline constexpr std::int64_t kBoxEdge = 256;

inline constexpr std::int64_t kMaxSmallBox = 63;

/// kSmall: columns' sums fit 16 bits, and floats do for the division (radius up to kMaxSmallBox).
template <bool kSmall, int kChannels>
class BoxBlur {
  using Sum = std::conditional_t<kSmall, std::uint16_t, std::uint32_t>;
  using Sums = Vec<std::uint32_t>;
  static constexpr int kLanes = kVecLanes<std::uint32_t>;

 public:
  BoxBlur(const BoxProblem& problem, std::byte* scratch, const BlurPart& part)
      : problem_(problem), p_(problem.pictures), r_(problem.radius), part_(part) {
    const double n = static_cast<double>((2 * r_ + 1) * (2 * r_ + 1));
    inverse_ = static_cast<float>(1 / n);
    half_inverse_ = static_cast<float>(0.5 / n);
    first_ = std::max<std::int64_t>(0, part.left - r_ - 1);
    end_ = std::min(p_.width, part.right + r_ + 1);
    const auto take = [&](auto*& at, std::int64_t count) {
      at = reinterpret_cast<std::remove_reference_t<decltype(at)>>(scratch);
      scratch += (count * std::int64_t(sizeof *at) + 63) / 64 * 64;
    };
    take(sums_, kBoxSpan);
    take(enters_, kBoxSpan);
    take(leaves_, kBoxSpan);
    take(zeros_, kBoxSpan);
    take(out_, kBoxSpan);
    take(times_, size());
    for (auto& edge : edge_) take(edge, kBoxEdge * kChannels);
  }

  void run() {
    const BlurRows rows{p_, p_.x + p_.start(1, part_.picture), first_, end_, zeros_};
    std::memset(zeros_, 0, static_cast<std::size_t>(size()));
    std::memset(sums_, 0, static_cast<std::size_t>(size()) * sizeof *sums_);
    count_columns();
    begin_columns(rows);
    std::uint8_t* y = p_.y + p_.start(0, part_.picture) + part_.left * p_.y_pixel;
    for (std::int64_t row = part_.top; row < part_.bottom; ++row) {
      if (row > part_.top) slide(rows(row + r_, enters_), rows(row - r_ - 1, leaves_));
      if (p_.dense_y()) {
        blur_row(y + row * p_.y_row);
      } else {
        blur_row(out_);
        scatter_row(out_, part_.right - part_.left, p_.y_pixel, y + row * p_.y_row);
      }
    }
  }

 private:
  /// What is added to a sum before the division; of floats, half of one more, below.
  std::uint32_t add() const {
    return kSmall ? static_cast<std::uint32_t>(2 * r_ * (r_ + 1)) : problem_.division.add;
  }
  std::int64_t size() const { return (end_ - first_) * kChannels; }

  /// How often the first window of each row meets each column: the same for all rows.
  void count_columns() {
    for (std::int64_t i = first_; i < end_; ++i)
      for (int c = 0; c < kChannels; ++c)
        times_[(i - first_) * kChannels + c] = static_cast<std::uint16_t>(
            border_times(p_.border, p_.width, i, part_.left - r_, part_.left + r_));
  }
  /// The columns' sums of the part's first row. A row outside is one of those within the window.
  void begin_columns(const BlurRows& rows) {
    const std::int64_t top = part_.top - r_, bottom = part_.top + r_;
    for (std::int64_t row = std::max<std::int64_t>(0, top); row <= std::min(p_.height - 1, bottom); ++row) {
      const auto times = static_cast<Sum>(border_times(p_.border, p_.height, row, top, bottom));
      const std::uint8_t* x = rows(row, enters_);
      std::int64_t j = 0;
      for (; j + kVecLanes<Sum> <= size(); j += kVecLanes<Sum>)
        store_unaligned(sums_ + j, load_unaligned<Vec<Sum>>(sums_ + j) + bytes(x + j) * splat(times));
      for (; j < size(); ++j) sums_[j] = static_cast<Sum>(sums_[j] + x[j] * times);
    }
  }
  static ROOFTILE_TILE Vec<Sum> bytes(const std::uint8_t* p) {
    std::conditional_t<kSmall, Vec<std::uint16_t>, Vec<std::int32_t>> v;
    widen(p, v);
    return (Vec<Sum>)v;
  }
  template <class S>
  static ROOFTILE_TILE Sums widened(const S* p) {
    if constexpr (sizeof(S) == 4) return load_unaligned<Sums>(p);
    Vec<std::int32_t> v;
    widen(reinterpret_cast<const std::uint16_t*>(p), v);
    return (Sums)v;
  }

  void slide(const std::uint8_t* enter, const std::uint8_t* leave) {
    const std::int64_t n = size();
    std::int64_t j = 0;
    for (; j + kVecLanes<Sum> <= n; j += kVecLanes<Sum>)
      store_unaligned(sums_ + j, load_unaligned<Vec<Sum>>(sums_ + j) + bytes(enter + j) - bytes(leave + j));
    for (; j < n; ++j) sums_[j] = static_cast<Sum>(sums_[j] + enter[j] - leave[j]);
  }

  /// Columns' sums from position `i` on, side by side; `count` becomes how many, of those asked for.
  const Sum* columns(std::int64_t i, std::int64_t& count, Sum* edge) const {
    if (i >= 0 && i < p_.width) {
      count = std::min(count, p_.width - i);
      return sums_ + (i - first_) * kChannels;
    }
    count = std::min({count, kBoxEdge, i < 0 ? -i : kBoxEdge});
    // Of a line's edge all pixels are alike; a reflection's are each another one.
    const bool alike = p_.border != BlurBorder::reflect_101;
    for (std::int64_t k = 0; k < (alike ? 1 : count); ++k) {
      const std::int64_t at = border_pixel(p_.border, p_.width, i + k);
      for (int c = 0; c < kChannels; ++c)
        edge[k * kChannels + c] = at == kNoPixel ? Sum{0} : sums_[(at - first_) * kChannels + c];
    }
    for (std::int64_t have = 1; alike && have < count; have *= 2)
      std::memcpy(edge + have * kChannels, edge,
                  static_cast<std::size_t>(std::min(have, count - have) * kChannels) * sizeof *edge);
    return edge;
  }

  /// One row of y from the columns' sums.
  void blur_row(std::uint8_t* y) {
    // Lane by lane as if they were the last elements before the row: the window one pixel to the left.
    Sums window = before_first();
    std::int64_t x = part_.left;
    while (x < part_.right) {
      std::int64_t n = part_.right - x;
      const Sum* enter = columns(x + r_, n, edge_[0]);
      const Sum* leave = columns(x - r_ - 1, n, edge_[1]);
      window = run_along(enter, leave, n * kChannels, window, y);
      y += n * kChannels;
      x += n;
    }
  }
  Sums before_first() {
    Sums sum[kChannels] = {};
    const std::int64_t n = (std::min(end_, part_.left + r_ + 1) - first_) * kChannels;
    std::int64_t j = 0;
    for (; j + kChannels * kLanes <= n; j += kChannels * kLanes)
#pragma GCC unroll 4
      for (int c = 0; c < kChannels; ++c)
        sum[c] += widened(sums_ + j + c * kLanes) * widened(times_ + j + c * kLanes);
    std::uint32_t total[kChannels] = {}, lanes[kChannels * kLanes];
    std::memcpy(lanes, sum, sizeof lanes);
    for (int k = 0; k < kChannels * kLanes; ++k) total[k % kChannels] += lanes[k];
    for (; j < n; ++j) total[j % kChannels] += std::uint32_t{sums_[j]} * times_[j];
    std::int64_t one = 1;
    const Sum* enter = columns(part_.left + r_, one, edge_[0]);
    const Sum* leave = columns(part_.left - r_ - 1, one, edge_[1]);
    Sums before = {};
    for (int c = 0; c < kChannels; ++c)
      before[kLanes - kChannels + c] = total[c] - enter[c] + leave[c] + add();
    return before;
  }

  /// v with each lane moved up by kBy, zeros below.
  template <int kBy, int... kLane>
  static ROOFTILE_TILE Sums moved_up(Sums v, std::integer_sequence<int, kLane...>) {
    return __builtin_shufflevector(v, Sums{}, (kLane < kBy ? kLanes + kLane : kLane - kBy)...);
  }
  /// Each lane the last element of its channel, going on behind v.
  template <int... kLane>
  static ROOFTILE_TILE Sums last_of_channel(Sums v, std::integer_sequence<int, kLane...>) {
    return __builtin_shufflevector(v, v, (kLanes - kChannels + kLane % kChannels)...);
  }
  template <int kBy = kChannels>
  static ROOFTILE_TILE Sums added_up(Sums v) {
    if constexpr (kBy >= kLanes)
      return v;
    else
      return added_up<2 * kBy>(v + moved_up<kBy>(v, std::make_integer_sequence<int, kLanes>()));
  }
  static ROOFTILE_TILE Sums next(const Sum* enter, const Sum* leave, Sums before) {
    return added_up(widened(enter) - widened(leave)) +
           last_of_channel(before, std::make_integer_sequence<int, kLanes>());
  }
  /// v / n, rounded down, for v of `add` more than a window's sum.
  ROOFTILE_TILE Vec<std::int32_t> divided(Sums v) const {
    if constexpr (kSmall) {
      // Half the operations of what follows. v is below 2^24, a float. (v + 1/2) / n is 1 / (2n) or more away
      // from each whole number, which is more than 2^-15 for n < 2^14; the inverse is off by 2^-24, 2^-16 of
      // the quotient, and product and sum by 2^-17.
      const auto sum = __builtin_convertvector((Vec<std::int32_t>)v, Vec<float>);
      return __builtin_convertvector(vfma(sum, splat(inverse_), splat(half_inverse_)), Vec<std::int32_t>);
    }
    // Upper halves of the products with the multiplier, shifted.
    using Products = Vec<std::uint64_t>;
    const Products m = splat(std::uint64_t{problem_.division.multiplier});
    const Products even = vmul_low((Products)v, m) >> 32;
    const Products odd = vmul_low((Products)v >> 32, m) & splat(std::uint64_t{0xffffffff00000000});
    return (Vec<std::int32_t>)((Sums)(even | odd) >> problem_.division.shift);
  }

  /// `n` elements of a row; the windows' sums, of which the last ones before are in `window`'s last lanes.
  /// They are again, afterwards.
  Sums run_along(const Sum* enter, const Sum* leave, std::int64_t n, Sums window, std::uint8_t* y) const {
    std::int64_t j = 0;
    for (; j + 4 * kLanes <= n; j += 4 * kLanes) {
      Vec<std::int32_t> quotient[4];
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        window = next(enter + j + k * kLanes, leave + j + k * kLanes, window);
        quotient[k] = divided(window);
      }
      store_unaligned(y + j, narrow_all(quotient));
    }
    while (j < n) {
      const int live = static_cast<int>(std::min<std::int64_t>(kLanes, n - j));
      Sum ends[2][kLanes] = {};
      std::memcpy(ends[0], enter + j, static_cast<std::size_t>(live) * sizeof(Sum));
      std::memcpy(ends[1], leave + j, static_cast<std::size_t>(live) * sizeof(Sum));
      const Sums now = next(ends[0], ends[1], window);
      const Vec<std::int32_t> quotient[4] = {divided(now)};
      const Vec<std::uint8_t> bytes = narrow_all(quotient);
      std::memcpy(y + j, &bytes, static_cast<std::size_t>(live));
      std::uint32_t last[2 * kLanes];  // the live ones at the end
      std::memcpy(last, &window, sizeof window);
      std::memcpy(last + kLanes, &now, sizeof now);
      std::memcpy(&window, last + live, sizeof window);
      j += live;
    }
    return window;
  }

  const BoxProblem& problem_;
  const Pictures& p_;
  std::int64_t r_;
  BlurPart part_;
  std::int64_t first_, end_;  // the columns whose sums are held
  Sum* sums_;
  std::uint8_t *enters_, *leaves_, *zeros_, *out_;
  std::uint16_t* times_;
  Sum* edge_[2];
  float inverse_, half_inverse_;
};

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
