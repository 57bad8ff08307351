#pragma once
// The kernels that docs/block-language.md shows. Each is compiled and run by block_language_test.cpp.
#include "rooftile/tile/cpu/launch.h"
#include "rooftile/tile/tile.h"

namespace rooftile::language {
using namespace rooftile::tile;

// [scaled]
/// One row: y = alpha·x.
template <class Team, class T>
ROOFTILE_TILE void scaled(Team team, Row<const T> x, Row<T> y, float alpha) {
  team.each(x.size, [&](auto chunk) { team.store(y, chunk, team.load(x, chunk) * alpha); });
}
// [/scaled]

// [softmax]
/// One row: y = exp(x - max) / Σ exp(x - max).
template <class Team, class T>
ROOFTILE_TILE void softmax(Team team, Row<const T> x, Row<T> y) {
  using Tile = typename Team::Tile;
  auto row = team.hold(x, -kInfinity);  // read from memory once; lanes past the end read -inf
  auto exps = team.scratch(x.size);     // float32, on chip

  Tile maxima = team.fill(-kInfinity);
  team.each(x.size, [&](auto chunk) { maxima = max(maxima, row[chunk]); });
  const float row_max = team.max(maxima);

  Tile sums = team.fill(0);
  team.each(x.size, [&](auto chunk) { sums += exps[chunk] = exp(row[chunk] - row_max); });
  const float inverse = 1 / team.sum(sums);

  team.each(x.size, [&](auto chunk) { team.store(y, chunk, exps[chunk] * inverse); });
}
// [/softmax]

// [variance]
/// One row: the mean of (x - mean)², in two passes.
template <class Team, class T>
ROOFTILE_TILE float variance(Team team, Row<const T> x) {
  using Tile = typename Team::Tile;
  const float count = static_cast<float>(x.size);
  auto row = team.hold(x, 0);

  Tile sums = team.fill(0);
  team.each(x.size, [&](auto chunk) { sums += row[chunk]; });  // empty lanes add 0: right without `only`
  const float mean = team.sum(sums) / count;

  Tile squares = team.fill(0);
  team.each(x.size, [&](auto chunk) {
    const Tile apart = team.only(chunk, row[chunk] - mean, 0);  // empty lanes would add mean²
    squares = fma(apart, apart, squares);
  });
  return team.sum(squares) / count;
}
// [/variance]

// [causal]
/// One row of attention scores: -inf behind the position `last`, which a query may not see.
template <class Team, class T>
ROOFTILE_TILE void causal(Team team, Row<const T> x, Row<T> y, std::int32_t last) {
  team.each(x.size, [&](auto chunk) {
    const auto hidden = team.iota(chunk) > last;
    team.store(y, chunk, select(hidden, team.fill(-kInfinity), team.load(x, chunk)));
  });
}
// [/causal]

// [dot]
/// Σ x·y in f64; its elements may be f32 in memory.
template <class T>
ROOFTILE_TILE double dot(CpuTeam<double, Access::cached> team, Row<const T> x, Row<const T> y) {
  auto sums = team.fill(0);
  team.each(x.size, [&](auto chunk) { sums = fma(team.load(x, chunk), team.load(y, chunk), sums); });
  return team.sum(sums);
}
// [/dot]

// [gray]
/// One row of pixels: (77·r + 150·g + 29·b + 128) / 256, rounded to nearest.
template <class Team>
ROOFTILE_TILE void gray(Team team, Row<const std::uint8_t> rgb, Row<std::uint8_t> y) {
  team.each(y.size, [&](auto chunk) {
    typename Team::Integers plane[3];
    team.template load_planes<3>(rgb, chunk, plane);
    team.store(y, chunk, (plane[0] * 77 + plane[1] * 150 + plane[2] * 29 + 128) >> 8);
  });
}
// [/gray]

// [column_means]
/// A column program: the mean of each column over a window of `window` rows that slides down. The sum is
/// carried from row to row, so each element is read twice whatever the window.
template <class Team>
ROOFTILE_TILE void column_means(Team team, const float* x, float* y, std::int64_t rows, std::int64_t columns,
                                std::int64_t window) {
  const auto in = [&](std::int64_t row) { return Row<const float>{x + row * columns, columns}; };
  const auto out = [&](std::int64_t row) { return Row<float>{y + row * columns, columns}; };
  const float share = 1 / static_cast<float>(window);
  team.each(columns, [&](auto chunk) {  // this block of columns, then the next
    typename Team::Tile sum = team.fill(0);
    for (std::int64_t row = 0; row < rows; ++row) {
      sum += team.load(in(row), chunk);
      if (row >= window) sum = sum - team.load(in(row - window), chunk);
      if (row + 1 >= window) team.store(out(row + 1 - window), chunk, sum * share);
    }
  });
}
// [/column_means]

// [weight_gradient]
/// Rows of one block, which also add to sums by column: dw += dy·x.
template <class Team, class RowAt>
ROOFTILE_TILE void weight_gradient(Team team, std::int64_t begin, std::int64_t end, RowAt x, RowAt dy,
                                   Row<float> block_sums) {
  auto dw = team.columns(block_sums);
  for (std::int64_t row = begin; row < end; ++row)
    team.each(block_sums.size, [&](auto chunk) {  // the block's first row begins the sums
      dw.add(chunk, team.load(dy(row), chunk) * team.load(x(row), chunk), row == begin);
    });
  dw.write();
}
// [/weight_gradient]

// [launch]
struct Problem {
  Rows<2> rows;  // of x, y
  const void* x;
  void* y;
  DType dtype;
};

inline void launch_softmax(const CpuLaunch& launch, const Problem& p) {
  for_each_row(launch, p.rows, p.dtype,
               [&]<class T>(auto team, std::int64_t row, std::int64_t end) ROOFTILE_INLINE {
                 const auto x = row_of<const T>(p.rows, 0, p.x, row, end);
                 softmax(team, x, row_of<T>(p.rows, 1, p.y, row, end));
               });
}
// [/launch]

}  // namespace rooftile::language
