#pragma once
// Small random views that no memory stands behind, and their elements one by one: what clever code is
// compared with.
#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "rooftile/core/view.h"

namespace rooftile {

class RandomViews {
 public:
  explicit RandomViews(std::uint64_t seed) : random_(seed) {}

  std::int64_t number(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(number(0, static_cast<std::int64_t>(list.size()) - 1))];
  }

  /// `rank` sizes of 0 to 4, few of them 0.
  std::vector<std::int64_t> shape(int rank) {
    std::vector<std::int64_t> s;
    for (int d = 0; d < rank; ++d) s.push_back(number(0, 40) == 0 ? 0 : number(1, rank > 5 ? 2 : 4));
    return s;
  }

  /// Strides as layouts have them (dense, permuted, reversed, padded, broadcast), or any from -9 to 9.
  View view_of(const std::vector<std::int64_t>& shape) {
    View v;
    v.rank = static_cast<int>(shape.size());
    std::vector<int> order;
    for (int d = v.rank - 1; d >= 0; --d) order.push_back(d);
    const std::int64_t style = number(0, 5);
    if (style == 1) std::shuffle(order.begin(), order.end(), random_);
    std::int64_t next = style == 2 ? number(1, 3) : 1;
    for (int d : order) {
      v.shape[d] = shape[static_cast<std::size_t>(d)];
      v.stride[d] = style >= 4 ? number(-9, 9) : next;
      if (style == 3 && number(0, 1)) v.stride[d] = -v.stride[d];
      next *= v.shape[d] > 0 ? v.shape[d] : 1;
      if (style == 2 && number(0, 2) == 0) next += number(1, 5);
      if (number(0, 12) == 0) v.stride[d] = 0;
      if (v.shape[d] <= 1 && number(0, 3) == 0) v.stride[d] = number(-1000, 1000);
    }
    return v;
  }

 private:
  std::mt19937_64 random_;
};

/// Each element's distance from the view's data, in elements, in row-major order.
inline std::vector<std::int64_t> offsets_of(const ConstView& v) {
  std::vector<std::int64_t> offsets{0};
  for (int d = 0; d < v.rank; ++d) {
    std::vector<std::int64_t> longer;
    for (const std::int64_t at : offsets)
      for (std::int64_t i = 0; i < v.shape[d]; ++i) longer.push_back(at + i * v.stride[d]);
    offsets = longer;
  }
  return offsets;
}

}  // namespace rooftile
