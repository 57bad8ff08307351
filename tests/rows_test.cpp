#include "rooftile/core/rows.h"

#include <gtest/gtest.h>

#include <array>
#include <climits>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/random_views.h"

namespace rooftile {
namespace {

using Numbers = std::vector<std::int64_t>;

std::string told(const ConstView& v) {
  std::string text = "shape";
  for (int d = 0; d < v.rank; ++d) text += " " + std::to_string(v.shape[d]);
  text += " strides";
  for (int d = 0; d < v.rank; ++d) text += " " + std::to_string(v.stride[d]);
  return text;
}

TEST(Rows, OfRandomViewsFindEachElement) {
  RandomViews random(1);
  int merged = 0, unmerged = 0, empty = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const Numbers shape = random.shape(static_cast<int>(random.number(1, kMaxRank)));
    const View a = random.view_of(shape), b = random.view_of(shape), c = random.view_of(shape);
    const Rows<3> rows = rows_of(a, b, c);
    const Numbers expected[] = {offsets_of(a), offsets_of(b), offsets_of(c)};
    ASSERT_EQ(rows.columns, shape.back());
    std::int64_t count = 1;
    for (std::size_t d = 0; d + 1 < shape.size(); ++d) count *= shape[d];
    ASSERT_EQ(rows.rows, count) << told(a);
    for (int o = 0; o < 3; ++o) {
      std::size_t at = 0;
      for (std::int64_t row = 0; row < rows.rows; ++row)
        for (std::int64_t column = 0; column < rows.columns; ++column, ++at)
          ASSERT_EQ(rows.offset(o, row) + column * rows.column_stride[o], expected[o][at])
              << "operand " << o << " row " << row << " column " << column << " of " << told(a) << "; "
              << told(b) << "; " << told(c);
      ASSERT_EQ(at, expected[o].size());
      if (rows.rows == 0) ASSERT_EQ(rows.offset(o, rows.rows), 0);  // no division by an extent of 0
    }
    empty += rows.rows * rows.columns == 0;
    merged += rows.rank <= 1 && shape.size() > 3;
    unmerged += rows.rank > 2;
  }
  EXPECT_GT(merged, 500);
  EXPECT_GT(unmerged, 500);
  EXPECT_GT(empty, 500);
}

/// The offsets of one element in all three operands.
using Triple = std::array<std::int64_t, 3>;

std::vector<Triple> sorted_triples(const View (&views)[3]) {
  const Numbers a = offsets_of(views[0]), b = offsets_of(views[1]), c = offsets_of(views[2]);
  std::vector<Triple> all;
  for (std::size_t i = 0; i < a.size(); ++i) all.push_back({a[i], b[i], c[i]});
  std::sort(all.begin(), all.end());
  return all;
}

TEST(Elements, OfRandomViewsAreEachVisitedOnce) {
  RandomViews random(2);
  for (int trial = 0; trial < 20000; ++trial) {
    const Numbers shape = random.shape(static_cast<int>(random.number(0, kMaxRank)));
    const View views[3] = {random.view_of(shape), random.view_of(shape), random.view_of(shape)};
    const Rows<3> rows = elements_of(views[0], views[1], views[2]);
    ASSERT_EQ(rows.rows * rows.columns, views[0].size()) << told(views[0]);
    std::vector<Triple> seen;
    for (std::int64_t row = 0; row < rows.rows; ++row)
      for (std::int64_t column = 0; column < rows.columns; ++column) {
        Triple t;
        for (int o = 0; o < 3; ++o)
          t[static_cast<std::size_t>(o)] = rows.offset(o, row) + column * rows.column_stride[o];
        seen.push_back(t);
      }
    std::sort(seen.begin(), seen.end());
    ASSERT_EQ(seen, sorted_triples(views))
        << told(views[0]) << "; " << told(views[1]) << "; " << told(views[2]);
  }
}

TEST(Rows, OfDenseTensorsMergeToOneDimension) {
  float x[1];
  const View v = view(x, {2, 3, 1, 4, 5});
  const Rows<2> rows = rows_of(v, v);
  EXPECT_EQ(rows.rank, 1);
  EXPECT_EQ(rows.rows, 24);
  EXPECT_EQ(rows.offset(0, 23), 115);
  EXPECT_TRUE(rows.dense());
  EXPECT_EQ(rows_of(view(x, {1, 1, 7})).rank, 0);
  EXPECT_FALSE(rows_of(view(x, {2, 3}, {6, 2})).dense());
  EXPECT_TRUE(rows_of(view(x, {2, 1}, {6, 2})).dense());  // one column has no stride
  // Merged only where every operand allows it.
  EXPECT_EQ(rows_of(v, view(x, {2, 3, 1, 4, 5}, {100, 20, 20, 5, 1})).rank, 2);
}

TEST(Elements, OfLikeLayoutsAreOneLongRow) {
  float x[1];
  const View dense = view(x, {2, 3, 4}), turned = view(x, {2, 3, 4}, {1, 8, 2}),
             back = view(x, {2, 3, 4}, {-12, -4, -1});
  for (const View& v : {dense, turned, back}) {
    const Rows<2> rows = elements_of(v, v);
    EXPECT_EQ(rows.rows, 1) << told(v);
    EXPECT_EQ(rows.columns, 24) << told(v);
  }
  const Rows<2> mixed = elements_of(dense, turned);  // only the last two dimensions go together in both
  EXPECT_EQ(mixed.rows, 2);
  EXPECT_EQ(mixed.columns, 12);
  const Rows<1> scalar = elements_of(scalar_view(x));
  EXPECT_EQ(scalar.rows, 1);
  EXPECT_EQ(scalar.columns, 1);
  const Rows<1> none = elements_of(view(x, {3, 0, 2}));
  EXPECT_EQ(none.rows * none.columns, 0);
}

TEST(Elements, TheStrideOfASingleElementMeansNothing) {
  float x[1];
  const Rows<1> rows = elements_of(view(x, {1, 4, 1}, {INT64_MIN, 1, INT64_MAX}));
  EXPECT_EQ(rows.rows, 1);
  EXPECT_EQ(rows.columns, 4);
  EXPECT_EQ(rows.column_stride[0], 1);
}

}  // namespace
}  // namespace rooftile
