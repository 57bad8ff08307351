// Whole programs in the block language: how rows are held, computed rows kept, and sums carried.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "rooftile/core/convert.h"
#include "rooftile/tile/tile.h"
#include "tests/tile/tile_checks.h"

namespace {
using namespace rooftile;
using namespace rooftile::tile;

constexpr int kWidth = kLanes<float>;

float value(std::int64_t k) {
  return std::sin(static_cast<float>(k) * 1.7f) * std::exp2(static_cast<float>(k % 11 - 5));
}

std::vector<float> row_of(std::int64_t size, std::int64_t first = 0) {
  std::vector<float> x(static_cast<std::size_t>(size));
  for (std::int64_t k = 0; k < size; ++k) x[static_cast<std::size_t>(k)] = value(first + k);
  return x;
}

void expect_row(Checker& checker, const char* what, const std::vector<float>& got,
                const std::vector<float>& expected) {
  for (std::size_t k = 0; k < got.size(); ++k)
    checker.expect(std::memcmp(&got[k], &expected[k], sizeof(float)) == 0,
                   "%s of %zu: element %zu is %.9g, not %.9g", what, got.size(), k, double(got[k]),
                   double(expected[k]));
}

/// A column program: each column's running sum, down the rows. The carry stays in a register for a chunk's
/// width.
template <class Team, class T>
ROOFTILE_TILE void running_sum(Team team, Row<const T> x, Row<T> y, std::int64_t rows,
                               std::int64_t row_stride) {
  using Tile = typename Team::Tile;
  team.each(x.size, [&](auto chunk) {
    Tile carry = team.fill(0);
    for (std::int64_t r = 0; r < rows; ++r) {
      carry += team.load(Row<const T>{x.data + r * row_stride, x.size, x.stride}, chunk);
      team.store(Row<T>{y.data + r * row_stride, y.size, y.stride}, chunk, carry);
    }
  });
}

template <Access kAccess>
void column_program(Checker& checker) {
  for (const std::int64_t columns : {1, 3, kWidth - 1, kWidth, kWidth + 1, 2 * kWidth + 5}) {
    constexpr std::int64_t kRows = 7;
    const std::int64_t stride = kAccess == Access::strided ? 2 : 1, row_stride = columns * stride + 3;
    std::vector<float> x = row_of(kRows * row_stride), y(x.size(), -1), expected = y;
    for (std::int64_t c = 0; c < columns; ++c) {
      float carry = 0;
      for (std::int64_t r = 0; r < kRows; ++r) {
        const std::size_t at = static_cast<std::size_t>(r * row_stride + c * stride);
        expected[at] = carry += x[at];
      }
    }
    running_sum(CpuTeam<float, kAccess>(nullptr), Row<const float>{x.data(), columns, stride},
                Row<float>{y.data(), columns, stride}, kRows, row_stride);
    expect_row(checker, "running sum", y, expected);
  }
}

void columns_down(const TileReport& report) {
  Checker checker(report);
  column_program<Access::cached>(checker);
  column_program<Access::streaming>(checker);
  column_program<Access::strided>(checker);
}

/// Column accumulators add up a block of rows in their order, whatever was in the sums before: the rows
/// tripled, and their squares by a fused product.
template <Access kAccess>
void accumulate(Checker& checker) {
  constexpr bool kFused = kVectorBytes > 16;
  for (const std::int64_t columns : {1, kWidth - 1, kWidth, kWidth + 1, 3 * kWidth + 2}) {
    constexpr std::int64_t kRows = 5;
    std::vector<float> sums(static_cast<std::size_t>(columns) + 1, NAN), squares = sums;
    std::vector<float> expected(static_cast<std::size_t>(columns)), expected_squares = expected;
    for (std::int64_t r = 0; r < kRows; ++r) {
      const std::vector<float> x = row_of(columns, r * 1000);
      const CpuTeam<float, kAccess> team(nullptr);
      const auto totals = team.columns(Row<float>{sums.data(), columns});
      const auto products = team.columns(Row<float>{squares.data(), columns});
      team.each(columns, [&](auto chunk) {
        const auto t = team.load(Row<const float>{x.data(), columns}, chunk);
        totals.add(chunk, t * 3, r == 0);
        products.add_product(chunk, t, t, r == 0);
      });
      for (std::size_t c = 0; c < x.size(); ++c) {
        const float square = x[c] * x[c];
        expected[c] = r == 0 ? x[c] * 3 : expected[c] + x[c] * 3;
        expected_squares[c] = r == 0   ? square
                              : kFused ? std::fma(x[c], x[c], expected_squares[c])
                                       : square + expected_squares[c];
      }
    }
    checker.expect(std::isnan(sums.back()) && std::isnan(squares.back()),
                   "an element behind the sums was written");
    sums.pop_back(), squares.pop_back();
    expect_row(checker, "column sums", sums, expected);
    expect_row(checker, "column sums of products", squares, expected_squares);
  }
}

void accumulators(const TileReport& report) {
  Checker checker(report);
  accumulate<Access::cached>(checker);
  accumulate<Access::streaming>(checker);
  accumulate<Access::strided>(checker);
}

/// Two computed rows side by side, neither of which may touch the other, nor anything behind them.
void scratch_rows(const TileReport& report) {
  Checker checker(report);
  for (std::int64_t size = 1; size < 3 * kWidth; size += 5) {
    const std::vector<float> x = row_of(size);
    const std::size_t whole = static_cast<std::size_t>((size + kWidth - 1) / kWidth * kWidth);
    std::vector<float> room(2 * whole + 1, -3), y(x.size()), expected(x.size());
    CpuTeam<float, Access::cached> team(reinterpret_cast<std::byte*>(room.data()));
    auto squares = team.scratch(size), twice = team.scratch(size);
    const Row<const float> in{x.data(), size};
    // The first row last: what its tail's empty lanes get must not reach the second.
    team.each(size, [&](auto chunk) { twice[chunk] = team.load(in, chunk) * 2; });
    team.each(size, [&](auto chunk) { squares[chunk] = team.load(in, chunk) * team.load(in, chunk); });
    team.each(size, [&](auto chunk) {
      // A place is an operand like a tile: on either side, and of a function.
      team.store(Row<float>{y.data(), size}, chunk, max(squares[chunk], 1) + twice[chunk] * squares[chunk]);
    });
    for (std::size_t k = 0; k < x.size(); ++k) {
      const float square = x[k] * x[k];
      expected[k] = (square > 1 ? square : 1) + x[k] * 2 * square;
    }
    expect_row(checker, "two rows in scratch", y, expected);
    checker.expect(room.back() == -3, "scratch of %lld elements was overrun", (long long)size);
  }
}

/// A held row reads as the row, with its own filling behind the end; prefetching for a row far off changes
/// nothing.
template <Access kAccess>
void hold_rows(Checker& checker) {
  for (std::int64_t size = 1; size < 3 * kWidth; size += 7)
    for (const std::int64_t ahead : {std::int64_t{0}, std::int64_t{1} << 40, -(std::int64_t{1} << 40)}) {
      const std::vector<float> x = row_of(size);
      std::vector<float> y(x.size());
      CpuTeam<float, kAccess> team(nullptr);
      auto row = team.hold(Row<const float>{x.data(), size, 1, ahead}, -kInfinity);
      auto again = team.hold(Row<const float>{x.data(), size, 1, ahead}, 0);
      auto maxima = team.fill(-kInfinity);
      team.each(size, [&](auto chunk) { maxima = max(maxima, row[chunk]); });
      float row_max = -HUGE_VALF;
      for (const float v : x) row_max = v > row_max ? v : row_max;
      checker.expect(team.max(maxima) == row_max, "the greatest of %lld is %g, not %g", (long long)size,
                     double(team.max(maxima)), double(row_max));
      for (int pass = 0; pass < 3; ++pass)
        team.each(size, [&](auto chunk) { team.store(Row<float>{y.data(), size}, chunk, again[chunk]); });
      if (kAccess == Access::streaming) stream_fence();
      expect_row(checker, "a held row", y, x);
    }
}

void held_rows(const TileReport& report) {
  Checker checker(report);
  hold_rows<Access::cached>(checker);
  hold_rows<Access::streaming>(checker);
  hold_rows<Access::strided>(checker);
}

void row_parts(const TileReport& report) {
  Checker checker(report);
  float x[100];
  const Row<float> row{x, 10, 3, 7};
  const Row<float> middle = row.part(4, 3), last = row.part(8, 4);
  checker.expect(middle.data == x + 12 && middle.size == 3 && middle.stride == 3 && middle.ahead == 7,
                 "the middle");
  checker.expect(last.data == x + 24 && last.size == 2, "the last: %lld elements", (long long)last.size);
}

}  // namespace

extern const TileCheck tile_program_checks[] = {
    {"column_program", columns_down}, {"column_accumulators", accumulators},
    {"scratch_rows", scratch_rows},   {"held_rows", held_rows},
    {"row_parts", row_parts},         {}};
