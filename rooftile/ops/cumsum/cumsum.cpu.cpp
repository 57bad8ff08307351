// A part of a row is widened into scratch, summed there vector by vector, and written. Within a vector of W
// lanes, log2 W steps add what lies 1, 2, 4, … lanes before; the sum of all vectors before is one addition
// more, and the only one that the next vector waits for.
#include "rooftile/ops/cumsum/cumsum.problem.h"
#include "rooftile/tile/cpu/launch.h"

namespace rooftile {
namespace {
using namespace tile;

constexpr std::int64_t kPart = 1024;  // 4 KiB of f32: stays in L1
constexpr int kWidth = kVecLanes<float>;

/// Lanes moved by n toward the end of the row, or its beginning; zeros come in.
template <int n, bool kReverse, std::size_t... I>
ROOFTILE_TILE Vec<float> moved(Vec<float> v, std::index_sequence<I...>) {
  constexpr auto from = [](int i) {
    const int its = kReverse ? i + n : i - n;
    return its >= 0 && its < kWidth ? its : kWidth;
  };
  return __builtin_shufflevector(v, Vec<float>{}, from(static_cast<int>(I))...);
}
template <int n, bool kReverse>
ROOFTILE_TILE Vec<float> moved(Vec<float> v) {
  return moved<n, kReverse>(v, std::make_index_sequence<kWidth>());
}
/// The running sums of one vector.
template <bool kReverse, int n = 1>
ROOFTILE_TILE Vec<float> running(Vec<float> v) {
  v += moved<n, kReverse>(v);
  if constexpr (2 * n < kWidth) return running<kReverse, 2 * n>(v);
  return v;
}
template <std::size_t... I>
ROOFTILE_TILE Vec<float> everywhere(float value, std::index_sequence<I...>) {
  return Vec<float>{((void)I, value)...};
}

// [part]
/// Whole vectors in place. `base`: the sum of the parts before, to which this one's is added.
template <bool kReverse>
__attribute__((noinline)) void sum_part(float* data, std::int64_t count, bool exclusive, float& base) {
  constexpr auto kLanesOf = std::make_index_sequence<kWidth>();
  const Vec<float> before = everywhere(base, kLanesOf);
  Vec<float> carry{};
  for (std::int64_t v = 0; v < count; v += kWidth) {
    float* at = data + (kReverse ? count - kWidth - v : v);
    const Vec<float> sums = running<kReverse>(load_unaligned<Vec<float>>(at));
    store_unaligned(at, before + (carry + (exclusive ? moved<1, kReverse>(sums) : sums)));
    carry += everywhere(sums[kReverse ? 0 : kWidth - 1], kLanesOf);
  }
  base += carry[0];
}
// [/part]

template <class Team, class T>
ROOFTILE_TILE void sum_row(const Team& team, const Row<const T>& x, const Row<T>& y, bool exclusive,
                           bool reverse) {
  const std::int64_t parts = (x.size + kPart - 1) / kPart;
  float base = 0;
  for (std::int64_t i = 0; i < parts; ++i) {
    Team reader = team;
    const std::int64_t begin = (reverse ? parts - 1 - i : i) * kPart;
    Row<const T> part = x.part(begin, kPart);
    if (parts > 1) part.ahead = reverse ? -kPart : kPart;
    const auto held = reader.hold(part, 0);
    const auto sums = reader.scratch(kPart);
    reader.each(part.size, [&](auto chunk) ROOFTILE_INLINE { sums[chunk] = held[chunk]; });
    // Lanes past the end are zeros, up to whole vectors.
    const std::int64_t whole = (part.size + kWidth - 1) / kWidth * kWidth;
    if (reverse)
      sum_part<true>(sums.data, whole, exclusive, base);
    else
      sum_part<false>(sums.data, whole, exclusive, base);
    const Row<T> to = y.part(begin, kPart);
    team.each(part.size, [&](auto chunk) ROOFTILE_INLINE {
      team.store(to, chunk, static_cast<typename Team::Tile>(sums[chunk]));
    });
  }
}

void launch_cumsum(const CpuLaunch& launch, const CumsumProblem& p) {
  for_each_row(launch, p.rows, p.dtype,
               [&]<class T>(auto team, std::int64_t row, std::int64_t end) ROOFTILE_INLINE {
                 sum_row(team, row_of<const T>(p.rows, CumsumProblem::kX, p.x, row, end),
                         row_of<T>(p.rows, CumsumProblem::kY, p.y, row, end), p.exclusive, p.reverse);
               });
}

}  // namespace

ROOFTILE_CPU_KERNELS(cumsum) = {
    entry<launch_cumsum>("cumsum", "tile"),
    entry<launch_cumsum>("cumsum_backward", "tile"),
    {},
};

}  // namespace rooftile
