#pragma once
#include "rooftile/tile/rows.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

template <class T>
ROOFTILE_TILE Row<T> part_or_none(const Row<T>& row, std::int64_t begin, std::int64_t count) {
  return row.data ? row.part(begin, count) : row;
}

/// One row's operands; a null pointer is an absent one.
template <class T>
struct LayerNormRow {
  Row<const T> x, residual;
  Row<T> y, sum;
  RealOf<T>* mean;
  RealOf<T>* rstd;

  ROOFTILE_TILE
  LayerNormRow part(std::int64_t begin, std::int64_t count) const {
    return {x.part(begin, count),
            part_or_none(residual, begin, count),
            y.part(begin, count),
            part_or_none(sum, begin, count),
            mean,
            rstd};
  }
};

/// Calls use(h), h = x or x + residual as memory of type T would hold it: what `sum` receives, and so what
/// the backward will see. Each branch ends in its own use: a tile that comes from one of two places would be
/// passed through memory.
template <bool kAdds, class Team, class T, class C, class Use>
ROOFTILE_TILE void layer_norm_input(const Team& team, const LayerNormRow<T>& row, C chunk, Use use) {
  if (kAdds && row.residual.data) {
    use(team.template round_to<T>(team.load(row.x, chunk) + team.load(row.residual, chunk)));
  } else {
    use(team.load(row.x, chunk));
  }
}

/// What makes y of h: (h · factor - shift) · rstd + offset. The factor is a power of two: 1, but of far rows,
/// whose squares leave f32.
template <class Real>
struct LayerNormScale {
  Real shift, rstd, offset, factor;
};

/// Terms of a second look at a row: h · factor;
struct LayerNormSumAgain {
  static constexpr int kSums = 1;
  float factor;
  template <class Team, class C, class X>
  ROOFTILE_TILE Tiles<X, 1> operator()(const Team&, const C&, const X& h) const {
    return {{h * factor}};
  }
};
/// then that less a shift, and its square.
struct LayerNormMomentsAgain {
  static constexpr int kSums = 2;
  float factor, shift;
  template <class Team, class C, class X>
  ROOFTILE_TILE Tiles<X, 2> operator()(const Team& team, const C& chunk, const X& h) const {
    const X d = team.only(chunk, h * factor - shift, 0);
    return {{d, d * d}};
  }
};

/// What one pass over a row gathers: Σ(h - shift) and Σ(h - shift)².
///
/// With shift = 0 that is the variance by E[h²] - E[h]², which loses all digits where the mean is large. Here
/// the shift is the mean of the row's first eighth (a team that holds the row takes all of it, or of the part
/// that its block has). Whatever the row holds, the mean of an eighth of it lies within √7 standard
/// deviations of the whole's (Cauchy and Schwarz), so the difference below takes at most 8 times the variance
/// from itself: three bits at worst, none as a rule. The second of two exact passes is saved.
template <class Team, class T>
struct LayerNormMoments {
  using Tile = typename Team::Tile;
  using Real = RealOf<T>;
  /// Whether Σ(h - shift) is gathered. A team that holds rows does without where elements have 16 bits: its
  /// shift is the mean, but for what it was rounded by, which the sum tells. That is exact where it counts:
  /// elements far from 0 lie within a power of two or on both sides of one, so that a sum of 1024 of them, a
  /// warp's, has 22 bits at most, and the warps' are added to more than a float holds.
  static constexpr bool sums_differences() { return !Team::kHoldsRows || sizeof(T) == sizeof(float); }
  Real shift, rest;  // rest: what the mean has beside it, where differences are not summed
  typename Team::Accumulator sums, squares;

  /// `input(chunk, use)` calls use(h); `each_one`: 1 / elements of the whole row; a team may see a part.
  template <class Input>
  ROOFTILE_TILE void begin(const Team& team, std::int64_t row_size, Real each_one, Input input) {
    const std::int64_t size = team.sample(row_size);
    sums = team.accumulator();
    team.each(size, [&](auto chunk) ROOFTILE_INLINE {
      input(chunk, [&](const Tile& h) ROOFTILE_INLINE { sums[chunk] += h; });  // empty lanes are 0
    });
    if constexpr (!Team::kHoldsRows) {
      shift = team.sum(sums) / static_cast<Real>(size);
    } else {
      const float count = static_cast<float>(static_cast<int>(row_size));
      const float each_of = each_of_part(team, row_size, each_one);
      if constexpr (sums_differences()) {
        shift = quotient(team.part_sum(sums), count, each_of);
      } else {
        const auto sum = team.part_sum_in_two(sums);
        shift = quotient(sum.first, count, each_of);
        rest = shift - shift == 0 ? (fused(-shift, count, sum.first) + sum.second) * each_of : 0;
      }
    }
    // Any shift is right, but inf - inf would make a NaN of an infinite mean.
    if (sums_differences() && !(shift - shift == 0)) shift = 0;
    sums = squares = team.accumulator();
  }
  template <class C>
  ROOFTILE_TILE void add(const Team& team, C chunk, const Tile& h) {
    const Tile d = team.only(chunk, h - shift, 0);
    if constexpr (sums_differences()) sums[chunk] += d;
    squares[chunk] = fma(d, d, squares[chunk]);
  }
  /// 1 / the elements that a team's block has of a row.
  ROOFTILE_TILE static float each_of_part(const Team& team, std::int64_t size, float each_one) {
    return team.has_part() ? 1 / static_cast<float>(static_cast<int>(size)) : each_one;
  }
  /// Of a team that holds rows: what its block has of this one.
  ROOFTILE_TILE auto part(const Team& team, std::int64_t size, float each_one) const {
    // Σ(h - mean)² of those about the shift: less the square of what is left of the mean, times their number.
    const auto moments = [&](float from_shift, float sum, auto about_shift) {
      return typename Team::Moments{shift, from_shift, fused(-from_shift, sum, about_shift)};
    };
    const float count = static_cast<float>(static_cast<int>(size));
    if constexpr (!sums_differences()) {
      return moments(rest, rest * count, team.part_sum(squares));
    } else {
      const auto both = team.part_sums(sums, squares);
      return moments(quotient(both.first, count, each_of_part(team, size, each_one)), both.first,
                     both.second);
    }
  }
  /// `factor`: what the row's elements were multiplied by before.
  ROOFTILE_TILE LayerNormScale<Real> finish(const Team& team, const LayerNormRow<T>& row, Real each_one,
                                            Real eps, Real factor = 1) const {
    Real first = shift, delta, variance;  // delta: from there to the mean
    if constexpr (Team::kHoldsRows) {
      const auto all = team.joined(part(team, row.x.size, each_one), row.x.size, each_one);
      first = all.shift;
      delta = all.rest;
      variance = all.squares * each_one;
    } else {
      // As quotients, or the variance of one value throughout would be what 1 / n was rounded by.
      const auto both = team.sums(sums, squares);
      const Real count = static_cast<Real>(row.x.size);
      delta = quotient(both.first, count, each_one);
      variance = quotient(both.second, count, each_one) - delta * delta;
    }
    if (variance < 0) variance = 0;
    const Real rstd = rsqrt(variance + eps * factor * factor);
    team.store_scalars(row.mean, (first + delta) / factor, row.rstd, rstd * factor);
    // h - shift is exact where shift + delta had to be rounded.
    return {first, rstd, -delta * rstd, second_look(first, variance, eps)};
  }
  /// What elements are to be multiplied by where the variance overflows, is NaN since Σ h does, or is so
  /// small that squares lost digits. (Elements far from 0 whose variance is small are all one value.) Of
  /// doubles 1.
  ROOFTILE_TILE static Real second_look(Real mean, Real variance, Real eps) {
    if constexpr (std::is_same_v<Real, double>) return 1;
    if (!(variance - variance == 0)) return kShrinks;
    return variance < kLeastSquares && eps < kLeastSquares && mean * mean < 0x1p-20f ? kGrows : 1;
  }
};

/// Whether a team that holds rows should hold floats: of short rows in shared memory, whose instructions are
/// what takes time (bf16 524288x100, H200: 75.6 µs, so 74.6).
template <class Team, class T>
constexpr bool layer_norm_holds_floats() {
  if constexpr (Team::kHoldsRows)
    return Team::kStaged && sizeof(T) < sizeof(float);
  else
    return false;
}

/// `off`: h - scale.shift.
template <class Team, class T, class Weight, class C>
ROOFTILE_TILE void layer_norm_write_off(const Team& team, const LayerNormRow<T>& row,
                                        const LayerNormScale<RealOf<T>>& scale, const Weight& weight,
                                        const Weight& bias, C chunk, const typename Team::Tile& off) {
  const typename Team::Tile y = fma(off, scale.rstd, scale.offset);
  team.store(row.y, chunk, fma(y, weight.load(team, chunk), bias.load(team, chunk)));
}
/// `kMayBeFar`: also of a far row.
template <bool kMayBeFar = false, class Team, class T, class Weight, class C>
ROOFTILE_TILE void layer_norm_write(const Team& team, const LayerNormRow<T>& row,
                                    const LayerNormScale<RealOf<T>>& scale, const Weight& weight,
                                    const Weight& bias, C chunk, const typename Team::Tile& h) {
  if constexpr (!Team::kHoldsRows) {  // which wrote it
    if (row.sum.data) team.store(row.sum, chunk, h);
  }
  if constexpr (kMayBeFar)
    layer_norm_write_off(team, row, scale, weight, bias, chunk, fma(h, scale.factor, -scale.shift));
  else
    layer_norm_write_off(team, row, scale, weight, bias, chunk, h - scale.shift);
}
/// Where a row that is read once more has h: in `sum`, if a team wrote that at once, perhaps in their place.
template <class Team, class T>
ROOFTILE_TILE void layer_norm_again(const LayerNormRow<T>& row, Row<const T>& x, Row<const T>& residual) {
  x = row.x, residual = row.residual;
  if (!layer_norm_holds_floats<Team, T>() || !row.sum.data) return;
  x.data = row.sum.data, x.stride = row.sum.stride;
  residual.data = nullptr;
}
/// A far row's statistics, from a second look at it.
template <class Team, class T>
ROOFTILE_TILE LayerNormScale<float> layer_norm_look_again(const Team& team, const LayerNormRow<T>& row,
                                                          float factor, float eps, float each_one) {
  Row<const T> x, residual;
  layer_norm_again<Team>(row, x, residual);
  const float count = static_cast<float>(team.length(row.x));
  const float shift = quotient(sums_again(team, x, residual, LayerNormSumAgain{factor})[0], count, each_one);
  const auto both = sums_again(team, x, residual, LayerNormMomentsAgain{factor, shift});
  const float delta = quotient(both[0], count, each_one);
  const float variance = quotient(both[1], count, each_one) - delta * delta;
  const float rstd = rsqrt((variance < 0 ? 0 : variance) + eps * factor * factor);
  // The shift is the mean, and what it was rounded by counts for y alone: Σ (h - shift) may be rounded by
  // more, where one element is far from all others, which are alike.
  const bool far = factor != 1;
  team.store_scalars(far ? row.mean : nullptr, shift / factor, far ? row.rstd : nullptr, rstd * factor);
  return {shift, rstd, -delta * rstd, factor};
}
/// A far row as a whole; of a warp's rows those that are not far, too, from their `scale`. Weights come from
/// memory.
template <class Team, class T, class Weight>
ROOFTILE_TILE void layer_norm_far(const Team& team, const LayerNormRow<T>& row, LayerNormScale<float> scale,
                                  const Weight& weight, const Weight& bias, float eps, float each_one) {
  const LayerNormScale<float> again = layer_norm_look_again(team, row, scale.factor, eps, each_one);
  if (scale.factor != 1) scale = again;
  Row<const T> x, residual;
  layer_norm_again<Team>(row, x, residual);
  each_again(team, row.x.size, [&](int, auto chunk) {
    typename Team::Tile h = load_again(team, x, chunk);
    if (residual.data) h = team.template round_to<T>(h + load_again(team, residual, chunk));
    if (!layer_norm_holds_floats<Team, T>() && row.sum.data) store_again(team, row.sum, chunk, h);
    const typename Team::Tile y = fma(fma(h, scale.factor, -scale.shift), scale.rstd, scale.offset);
    store_again(team, row.y, chunk, fma(y, weight.load_again(team, chunk), bias.load_again(team, chunk)));
  });
}
#if !defined(__CUDACC__) && !defined(ROOFTILE_EMULATED)
/// Each as a call, which takes no register from rows that are not far.
template <Access kAccess, class T, class Weight>
__attribute__((noinline, cold)) void layer_norm_far_apart(const LayerNormRow<T>& row,
                                                          const LayerNormScale<float>& scale,
                                                          const Weight weight, const Weight bias, float eps,
                                                          float each_one, DType half) {
  layer_norm_far(AgainTeam<kAccess>(nullptr, half), row, scale, weight, bias, eps, each_one);
}
template <Access kAccess, class T>
__attribute__((noinline, cold)) LayerNormScale<float> layer_norm_look_again_apart(const LayerNormRow<T>& row,
                                                                                  float factor, float eps,
                                                                                  float each_one,
                                                                                  DType half) {
  return layer_norm_look_again(AgainTeam<kAccess>(nullptr, half), row, factor, eps, each_one);
}
#endif
/// Rows `begin` to `end`: y = (h - mean) · rstd · weight + bias. While one row is written, the next is read:
/// alone, each would wait idle for its last sum, its root and its quotient (64x1024 f32 in L2: 0.36 of a
/// copy, together 0.53). `row_at(i)` gives row i's operands, `each_one` is 1 / columns. `kHeld`: h waits as
/// floats in scratch, where reading it again would take more than a load; bits do not depend on it.
/// `weight_again`, `bias_again`: in memory, for far rows. A CPU stops behind one that it has read; `scale` is
/// then its.
template <class T, bool kAdds, bool kHeld, class Team, class RowAt, class Weight, class Again>
ROOFTILE_TILE std::int64_t layer_norm_near(Team team, std::int64_t begin, std::int64_t end, RowAt row_at,
                                           Weight weight, Weight bias, RealOf<T> eps, RealOf<T> each_one,
                                           const Again& weight_again, const Again& bias_again,
                                           LayerNormScale<RealOf<T>>& stopped_at) {
  using Tile = typename Team::Tile;
  LayerNormRow<T> coming = row_at(begin), row = coming;
  const std::int64_t size = coming.x.size;
  LayerNormMoments<Team, T> moments;
  LayerNormScale<RealOf<T>> scale{};
  // Row i - 1, chunk by chunk replaced by row i; as memory has it where a team holds rows anyway, or as
  // floats, from which the shift is taken as soon as it is known.
  const auto scratch = team.scratch(kHeld && !Team::kHoldsRows ? size : 0);
  constexpr bool kFloats = layer_norm_holds_floats<Team, T>();
  typename Team::template Held<T> h{};
  const auto held = [&](auto chunk) ROOFTILE_INLINE -> Tile {
    if constexpr (Team::kHoldsRows && !kFloats)
      return h[chunk];
    else
      return scratch[chunk];
  };

  const auto step = [&](std::int64_t i, auto reads, auto writes) ROOFTILE_INLINE -> bool {
    if (writes) {
      row = coming;
      scale = moments.finish(team, row, each_one, eps);
      if (any_of_warp<Team>(scale.factor != 1)) [[unlikely]] {
        if constexpr (Team::kOverlapsRows) {
          return false;  // to what has room for a call
        } else if constexpr (Team::kHoldsRows) {
          // What is held is scaled and looked at once more: read anew from memory, its addresses would take
          // registers from all rows (bf16 rows of a block: 272 bytes spilled, and not 36).
          const float factor = scale.factor;
          if constexpr (kFloats) {  // from which the shift was taken; the row is in shared memory
            Row<const T> x, residual;
            layer_norm_again<Team>(row, x, residual);
            team.each(size, [&](auto chunk) {
              Tile t = load_again(team, x, chunk);
              if (residual.data) t = team.template round_to<T>(t + load_again(team, residual, chunk));
              scratch[chunk] = t * factor;
            });
          } else {
            if (row.sum.data) team.each(size, [&](auto chunk) { team.store(row.sum, chunk, h[chunk]); });
            row.sum.data = nullptr;
            team.each(size, [&](auto chunk) { h.set(chunk, h[chunk] * factor); });
          }
          moments.begin(team, size, each_one, [&](auto chunk, auto use) { use(held(chunk)); });
          team.each(size, [&](auto chunk) {
            moments.add(team, chunk, held(chunk));
            if constexpr (kFloats) scratch[chunk] = scratch[chunk] - moments.shift;
          });
          scale = moments.finish(team, row, each_one, eps, factor);
        } else {
          layer_norm_far(team, row, scale, weight_again, bias_again, eps, each_one);
          return true;
        }
      }
      // Not before all have read the row: `sum` may be in the place of x, and a thread's last word in
      // another's. Between y's chunks these branches would keep a chunk's weights from coming with the
      // others'.
      if constexpr (Team::kHoldsRows && !kFloats) {
        if (row.sum.data) team.each(size, [&](auto chunk) { team.store(row.sum, chunk, h[chunk]); });
      }
    }
    Team reader = team;
    const auto input = [&](auto chunk, auto use)
                           ROOFTILE_INLINE { layer_norm_input<kAdds>(team, coming, chunk, use); };
    if (reads) {
      coming = row_at(i);
      if constexpr (Team::kHoldsRows) {
        static_assert(kHeld, "rooftile::kernels::layer_norm: a team that holds rows holds h, too");
        h = team.hold(coming.x, 0);
        if (kAdds && (Team::kStreams || coming.residual.data)) {
          const auto residual = team.hold(coming.residual, 0);
          team.each(size, [&](auto chunk) { h.set(chunk, h[chunk] + residual[chunk]); });
        }
        weight.ask(team);
        bias.ask(team);
        if constexpr (kFloats) {  // rows of 16 bits in shared memory, which all wait for
          if (coming.sum.data) team.each(size, [&](auto chunk) { team.store(coming.sum, chunk, h[chunk]); });
          team.each(size, [&](auto chunk) { scratch[chunk] = h[chunk]; });
        }
        moments.begin(team, size, each_one, [&](auto chunk, auto use) ROOFTILE_INLINE { use(held(chunk)); });
      } else {
        if (writes) {
          reader.hold(coming.x, 0);
          if (coming.residual.data) reader.hold(coming.residual, 0);
        }
        moments.begin(reader, size, each_one, input);
      }
    }
    reader.each(size, [&](auto chunk) ROOFTILE_INLINE {
      const auto write = [&](const Tile& t)
                             ROOFTILE_INLINE { layer_norm_write(team, row, scale, weight, bias, chunk, t); };
      const auto gather = [&](const Tile& t) ROOFTILE_INLINE { moments.add(reader, chunk, t); };
      if constexpr (kFloats) {
        if (writes) layer_norm_write_off(team, row, scale, weight, bias, chunk, scratch[chunk]);
        if (!reads) return;
        gather(scratch[chunk]);
        scratch[chunk] = scratch[chunk] - moments.shift;
      } else if constexpr (kHeld) {
        if (writes) write(held(chunk));
        if (!reads) return;
        if constexpr (!Team::kHoldsRows)
          input(chunk, [&](const Tile& t) ROOFTILE_INLINE { scratch[chunk] = t; });
        gather(held(chunk));
      } else {
        if (writes) layer_norm_input<kAdds>(team, row, chunk, write);
        if (reads) layer_norm_input<kAdds>(team, coming, chunk, gather);
      }
    });
    return true;
  };
  if constexpr (Team::kOverlapsRows) {
    const std::int64_t stopped = team.rows(begin, end, step);
    if (stopped <= end) stopped_at = scale;
    return stopped;
  } else {
    team.rows(begin, end, step);
    return end + 1;
  }
}
/// All rows. Far ones are a CPU's calls, behind which no register holds anything.
template <class T, bool kAdds, bool kHeld, class Team, class RowAt, class Weight, class Again>
ROOFTILE_TILE void layer_norm(Team team, std::int64_t begin, std::int64_t end, RowAt row_at, Weight weight,
                              Weight bias, RealOf<T> eps, RealOf<T> each_one, const Again& weight_again,
                              const Again& bias_again) {
  using Scale = LayerNormScale<RealOf<T>>;
  const auto near = [&](std::int64_t from, Scale& scale) ROOFTILE_INLINE {
    return layer_norm_near<T, kAdds, kHeld>(team, from, end, row_at, weight, bias, eps, each_one,
                                            weight_again, bias_again, scale);
  };
  Scale scale{};
  if constexpr (Team::kOverlapsRows && std::is_same_v<RealOf<T>, float>) {
    for (std::int64_t i = begin; i < end;) {
      i = near(i, scale);
      if (i <= end)
        layer_norm_far_apart<Team::kReads>(LayerNormRow<T>(row_at(i - 1)), Scale(scale), weight, bias, eps,
                                           each_one, team.half());
    }
  } else {
    near(begin, scale);
  }
}
/// The same where weights are in memory anyway.
template <class T, bool kAdds, bool kHeld, class Team, class RowAt, class Weight>
ROOFTILE_TILE void layer_norm(Team team, std::int64_t begin, std::int64_t end, RowAt row_at, Weight weight,
                              Weight bias, RealOf<T> eps, RealOf<T> each_one) {
  layer_norm<T, kAdds, kHeld>(team, begin, end, row_at, weight, bias, eps, each_one, weight, bias);
}

}  // namespace rooftile::kernels
