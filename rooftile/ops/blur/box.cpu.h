#pragma once
// A box blur by running sums. Each column has the sum of its 2r + 1 pixels above and below; from a row to the
// next, one pixel enters and one leaves. A window's sum runs along these: from a pixel to the next, one
// column enters and one leaves. A row is cut into as many parts as a vector has lanes of 16 bytes, which run
// along at once.
#include "rooftile/ops/blur/blur.rows.h"
#include "rooftile/tile/cpu/turn.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// Elements of a row, and of what its windows reach to both sides, whose columns' sums a thread holds.
inline constexpr std::int64_t kBoxSpan = 20 * 1024;
/// Elements that are computed past a row's end: a group of each part, and what is loaded along with them.
inline constexpr std::int64_t kBoxPast = 4 * kVectorBytes;

inline constexpr std::int64_t kMaxSmallBox = 63;

/// kSmall: columns' sums fit 15 bits, and floats do for the division (radius up to kMaxSmallBox).
template <bool kSmall, int kChannels>
class BoxBlur {
  using Sum = std::conditional_t<kSmall, std::uint16_t, std::uint32_t>;
  using Sums = Vec<std::conditional_t<kSmall, std::int32_t, std::uint32_t>>;  // at radius 2047 up to 2^32
  static constexpr int kParts = kVectorBytes / kLaneBytes, kLane = 4;         // sums of windows in a lane
  static constexpr int kStep = 2 * (kChannels == 3 ? 3 : kLane);              // elements of a part at a time
  static constexpr std::int64_t kGroup = 2 * kStep / kChannels;  // pixels of a part that are stored together
  static constexpr auto kAll = std::make_integer_sequence<int, kVecLanes<std::int32_t>>();
  static constexpr auto kAll16 = std::make_integer_sequence<int, kVecLanes<std::uint16_t>>();
  static constexpr auto kBytes = std::make_integer_sequence<int, kVectorBytes>();

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
    take(sums_, kBoxSpan + kBoxPast);
    take(enters_, kBoxSpan);
    take(leaves_, kBoxSpan);
    take(zeros_, kBoxSpan);
    take(out_, kBoxSpan + kBoxPast);
  }

  void run() {
    const BlurRows rows{p_, p_.x + p_.start(1, part_.picture), first_, end_, zeros_};
    std::memset(zeros_, 0, kBoxSpan);
    std::memset(sums_, 0, (kBoxSpan + kBoxPast) * sizeof *sums_);
    begin_columns(rows);
    std::uint8_t* y = p_.y + p_.start(0, part_.picture) + part_.left * p_.y_pixel;
    const std::int64_t width = part_.right - part_.left;
    for (std::int64_t row = part_.top; row < part_.bottom; ++row) {
      if (row > part_.top) slide(rows(row + r_, enters_), rows(row - r_ - 1, leaves_));
      next_[0] = rows.place(row + 1 + r_), next_[1] = rows.place(row - r_);
      fill_edges();
      std::uint8_t* const to = y + row * p_.y_row;
      if (fits(width) && p_.dense_y()) {
        blur_row(width, to);
        continue;
      }
      blur_row(width, out_);
      if (p_.dense_y())
        std::memcpy(to, out_, static_cast<std::size_t>(width * kChannels));
      else
        scatter_row(out_, width, p_.y_pixel, to);
    }
  }

 private:
  /// The sum of pixel i's column.
  Sum* column(std::int64_t i) const { return sums_ + (i - (part_.left - r_ - 1)) * kChannels; }
  std::int64_t size() const { return (end_ - first_) * kChannels; }

  /// The columns' sums of the part's first row. A row outside is one of those within the window.
  void begin_columns(const BlurRows& rows) {
    const std::int64_t top = part_.top - r_, bottom = part_.top + r_;
    Sum* const sums = column(first_);
    for (std::int64_t row = std::max<std::int64_t>(0, top); row <= std::min(p_.height - 1, bottom); ++row) {
      const auto times = static_cast<Sum>(border_times(p_.border, p_.height, row, top, bottom));
      const std::uint8_t* x = rows(row, enters_);
      std::int64_t j = 0;
      for (; j + kVecLanes<Sum> <= size(); j += kVecLanes<Sum>)
        store_unaligned(sums + j, load_unaligned<Vec<Sum>>(sums + j) + bytes(x + j) * splat(times));
      for (; j < size(); ++j) sums[j] = static_cast<Sum>(sums[j] + x[j] * times);
    }
  }
  static ROOFTILE_TILE Vec<Sum> bytes(const std::uint8_t* p) {
    std::conditional_t<kSmall, Vec<std::uint16_t>, Vec<std::int32_t>> v;
    widen(p, v);
    return (Vec<Sum>)v;
  }
  void slide(const std::uint8_t* enter, const std::uint8_t* leave) {
    const std::int64_t n = size();
    Sum* const sums = column(first_);
    std::int64_t j = 0;
#pragma GCC unroll 4
    for (; j + kVecLanes<Sum> <= n; j += kVecLanes<Sum>)
      store_unaligned(sums + j, load_unaligned<Vec<Sum>>(sums + j) + (bytes(enter + j) - bytes(leave + j)));
    for (; j < n; ++j) sums[j] = static_cast<Sum>(sums[j] + enter[j] - leave[j]);
  }
  /// Columns outside of the picture, as far as windows reach. Zeros are there from the beginning.
  void fill_edges() {
    if (p_.border == BlurBorder::zero) return;
    fill(part_.left - r_ - 1, first_);
    fill(end_, part_.right + r_ + 1);
  }
  void fill(std::int64_t begin, std::int64_t end) {
    const auto bytes_of = [](std::int64_t pixels) {
      return static_cast<std::size_t>(pixels * kChannels) * sizeof(Sum);
    };
    // Of an edge all pixels are alike; a reflection's are each another one.
    const bool alike = p_.border == BlurBorder::replicate;
    for (std::int64_t i = begin; i < (alike ? std::min(begin + 1, end) : end); ++i)
      std::memcpy(column(i), column(border_pixel(p_.border, p_.width, i)), bytes_of(1));
    for (std::int64_t have = 1; alike && have < end - begin; have *= 2)
      std::memcpy(column(begin + have), column(begin), bytes_of(std::min(have, end - begin - have)));
  }

  /// Whether no part of a row that is so wide ends past it.
  static constexpr bool fits(std::int64_t width) {
    return kParts == 1 ? width % kGroup == 0 : width >= kGroup * kParts;
  }
  /// One row of y from the columns' sums.
  void blur_row(std::int64_t width, std::uint8_t* y) {
    // The last part ends with the row, and the others begin as far from each other as that allows.
    std::int64_t size = (width + kParts * kGroup - 1) / (kParts * kGroup) * kGroup;
    while (kParts > 1 && width > size && (width - size) % (kParts - 1) != 0) size += kGroup;
    const std::int64_t pitch = kParts == 1 || width <= size ? 0 : (width - size) / (kParts - 1) * kChannels;
    Sums window = before_first(pitch);
    const Sum* leave = sums_;
    const Sum* enter = leave + (2 * r_ + 1) * kChannels;
    for (std::int64_t x = 0; x < size; x += kGroup, y += kGroup * kChannels) {
#pragma GCC unroll 2
      for (const std::uint8_t* from : next_)
#pragma GCC unroll 4
        for (int part = 0; part < kParts; ++part)
          __builtin_prefetch(from + x * kChannels + part * pitch, 0, 3);
      Sums quotient[4];
#pragma GCC unroll 2
      for (int k = 0; k < 4; k += 2) {
        next(enter, leave, pitch, window, quotient[k], quotient[k + 1]);
        quotient[k] = divided(quotient[k]), quotient[k + 1] = divided(quotient[k + 1]);
        enter += kStep, leave += kStep;
      }
      store_lanes(in_order(quotient, kBytes), pitch, y);
    }
  }
  /// Of each lane the windows one pixel to the left of its first.
  Sums before_first(std::int64_t pitch) const {
    alignas(64) std::uint32_t windows[kParts][kLane] = {};
    for (int part = 0; part < kParts; ++part) {
      const Sum* from = sums_ + part * pitch;
      const std::int64_t n = (2 * r_ + 1) * kChannels;
      constexpr int kLanes = kVecLanes<std::int32_t>;
      Sums sum[kChannels] = {};
      std::int64_t j = 0;
      for (; j + kChannels * kLanes <= n; j += kChannels * kLanes)
#pragma GCC unroll 4
        for (int c = 0; c < kChannels; ++c) sum[c] += widened(from + j + c * kLanes);
      std::uint32_t lanes[kChannels * kLanes];
      std::memcpy(lanes, sum, sizeof lanes);
      for (int k = 0; k < kChannels * kLanes; ++k) windows[part][k % kChannels] += lanes[k];
      for (; j < n; ++j) windows[part][j % kChannels] += from[j];
      for (int c = 0; c < kLane; ++c)
        windows[part][c] =
            windows[part][c % kChannels] + (c < kChannels ? static_cast<std::uint32_t>(add()) : 0);
    }
    return load_unaligned<Sums>(windows);
  }
  template <class S>
  static ROOFTILE_TILE Sums widened(const S* p) {
    if constexpr (sizeof(S) == 4)
      return (Sums)load_unaligned<Vec<std::uint32_t>>(p);
    else {
      Sums v;
      widen(reinterpret_cast<const std::uint16_t*>(p), v);
      return v;
    }
  }
  /// What is added to a sum before the division; of floats, half of one more, below.
  std::int32_t add() const {
    return static_cast<std::int32_t>(kSmall ? 2 * r_ * (r_ + 1) : problem_.division.add);
  }

  template <int kBy, int... kAt>
  static ROOFTILE_TILE Sums moved_up(Sums v, std::integer_sequence<int, kAt...>) {
    return __builtin_shufflevector(v, Sums{}, (kAt % kLane < kBy ? int(sizeof...(kAt)) + kAt : kAt - kBy)...);
  }
  /// Σ of a lane's elements up to each.
  static ROOFTILE_TILE Sums added_up(Sums v) {
    v += moved_up<1>(v, kAll);
    return v + moved_up<2>(v, kAll);
  }
  template <int... kAt>
  static ROOFTILE_TILE Sums last_of_lane(Sums v, std::integer_sequence<int, kAt...>) {
    return __builtin_shufflevector(v, v, (kAt / kLane * kLane + kLane - 1)...);
  }
  template <int kFrom, int... kAt>
  static ROOFTILE_TILE Sums upper_halves(Vec<std::uint16_t> v, std::integer_sequence<int, kAt...>) {
    return (Sums)__builtin_shufflevector(v, v, (kAt / 8 * 8 + std::min(7, kFrom + kAt % 8 / 2))...) >> 16;
  }

  /// The windows of the next kStep elements of each part, from those before, which go on.
  static ROOFTILE_TILE void next(const Sum* enter, const Sum* leave, std::int64_t pitch, Sums& window,
                                 Sums& low, Sums& high) {
    const auto load = [&](const Sum* p) ROOFTILE_INLINE {
      return load_lanes<kVectorBytes>(reinterpret_cast<const std::byte*>(p),
                                      pitch * std::int64_t(sizeof(Sum)));
    };
    if constexpr (kSmall) {
      const auto change = (Vec<std::uint16_t>)load(enter) - (Vec<std::uint16_t>)load(leave);
      if constexpr (kChannels == 1) {  // of two pixels the second one's, then the first one's
        high = added_up(multiply_pairs((Sums)change, splat(0x10001))) + window;
        low = high - ((Sums)change >> 16);
        window = last_of_lane(high, kAll);
        return;
      }
      low = upper_halves<0>(change, kAll16), high = upper_halves<kChannels>(change, kAll16);
    } else {
      constexpr int kHalf = kStep / 2;
      low = (Sums)load(enter) - (Sums)load(leave),
      high = (Sums)load(enter + kHalf) - (Sums)load(leave + kHalf);
      if constexpr (kChannels == 1) {
        low = added_up(low) + window;
        high = added_up(high) + last_of_lane(low, kAll);
        window = last_of_lane(high, kAll);
        return;
      }
    }
    low += window;
    high += low;
    window = high;
  }
  /// v / n, rounded down, for v of `add` more than a window's sum.
  ROOFTILE_TILE Sums divided(Sums v) const {
    if constexpr (kSmall) {
      // Half the operations of what follows. v is below 2^24, a float. (v + 1/2) / n is 1 / (2n) or more away
      // from each whole number, which is more than 2^-15 for n < 2^14; the inverse is off by 2^-24, 2^-16 of
      // the quotient, and product and sum by 2^-17.
      return __builtin_convertvector(
          vfma(__builtin_convertvector(v, Vec<float>), splat(inverse_), splat(half_inverse_)), Sums);
    }
    // Upper halves of the products with the multiplier, shifted.
    using Products = Vec<std::uint64_t>;
    const Products m = splat(std::uint64_t{problem_.division.multiplier});
    const Products even = vmul_low((Products)v, m) >> 32;
    const Products odd = vmul_low((Products)v >> 32, m) & splat(std::uint64_t{0xffffffff00000000});
    return (Sums)((Vec<std::uint32_t>)(even | odd) >> problem_.division.shift);
  }

  /// The four vectors' bytes of a lane side by side, as pixels follow each other; of 3 channels 12 bytes.
  template <int... kAt>
  static ROOFTILE_TILE Vec<std::uint8_t> in_order(const Sums (&v)[4], std::integer_sequence<int, kAt...>) {
    const auto all = (Vec<std::uint8_t>)(v[0] | v[1] << 8 | v[2] << 16 | v[3] << 24);
    return __builtin_shufflevector(all, all, (kAt / kLaneBytes * kLaneBytes + place(kAt % kLaneBytes))...);
  }
  /// Byte `at` of a lane: of element e of vector v it is 4e + v.
  static constexpr int place(int at) {
    if (kChannels == 3) return at < 12 ? at % 3 * 4 + at / 3 : 15;
    if (kChannels == 1 && kSmall) return at % 8 / 2 * 4 + at / 8 * 2 + at % 2;  // pairs: next()
    return at % 4 * 4 + at / 4;
  }
  static ROOFTILE_TILE void store_lanes(Vec<std::uint8_t> v, std::int64_t pitch, std::uint8_t* y) {
    constexpr auto lane = std::make_integer_sequence<int, kLaneBytes>();
    store_lane(lane_of<0>(v, lane), y);
    if constexpr (kParts > 1) store_lane(lane_of<1>(v, lane), y + pitch);
    if constexpr (kParts > 2)
      store_lane(lane_of<2>(v, lane), y + 2 * pitch), store_lane(lane_of<3>(v, lane), y + 3 * pitch);
  }
  template <int kPart, int... kAt>
  static ROOFTILE_TILE auto lane_of(Vec<std::uint8_t> v, std::integer_sequence<int, kAt...>) {
    return __builtin_shufflevector(v, v, (kPart * kLaneBytes + kAt)...);
  }
  static ROOFTILE_TILE void store_lane(VectorOf<std::uint8_t, kLaneBytes>::type v, std::uint8_t* y) {
    if constexpr (kChannels != 3) return store_unaligned(y, v);
    const auto halves = (VectorOf<std::uint64_t, kLaneBytes>::type)v;
    const std::uint64_t low = halves[0];
    const auto high = static_cast<std::uint32_t>(halves[1]);
    std::memcpy(y, &low, 8);
    std::memcpy(y + 8, &high, 4);
  }

  const BoxProblem& problem_;
  const Pictures& p_;
  std::int64_t r_;
  BlurPart part_;
  std::int64_t first_, end_;  // the columns of the picture whose sums are held
  Sum* sums_;
  const std::uint8_t* next_[2];  // the rows that enter and leave next
  std::uint8_t *enters_, *leaves_, *zeros_, *out_;
  float inverse_, half_inverse_;
};

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
