#pragma once
// A transpose and a permutation as their equations read, in any scalar.
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// y[…, j, i] = x[…, i, j].
struct TransposeOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t m = c.shape[c.shape.size() - 2], n = c.shape.back();
    const std::int64_t matrices = m > 0 && n > 0 ? a["x"].size() / (m * n) : 0;
    for (std::int64_t b = 0; b < matrices; ++b)
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j)
          a["y"].store((b * n + j) * m + i, a["x"].load((b * m + i) * n + j));
  }
};

/// Dimension d of y is dimension order[d] of x. A case says which of a rank's orders, sorted as words are: 0
/// leaves all in place, 1 exchanges the last two.
inline std::vector<int> order_of(const Case& c) {
  const int rank = static_cast<int>(c.shape.size());
  std::int64_t orders = 1;
  for (int d = 2; d <= rank; ++d) orders *= d;
  std::int64_t rest = static_cast<std::int64_t>(c.parameter("order", 1)) % orders;
  std::vector<int> left, order;
  for (int d = 0; d < rank; ++d) left.push_back(d);
  for (int d = rank; d > 0; --d) {
    orders /= d;
    const auto chosen = left.begin() + rest / orders;
    rest %= orders;
    order.push_back(*chosen);
    left.erase(chosen);
  }
  return order;
}
inline Shape permuted_shape(const Case& c) {
  Shape shape;
  for (int d : order_of(c)) shape.push_back(c.shape[static_cast<std::size_t>(d)]);
  return shape;
}

/// y[i_order[0], i_order[1], …] = x[i_0, i_1, …].
struct PermuteOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::vector<int> order = order_of(c);
    const std::size_t rank = order.size();
    std::vector<std::int64_t> step(rank, 1), index(rank, 0);  // in x, of y's dimensions; an index of y's
    for (std::size_t d = 0; d < rank; ++d)
      for (std::size_t k = static_cast<std::size_t>(order[d]) + 1; k < rank; ++k) step[d] *= c.shape[k];
    const Shape shape = permuted_shape(c);
    std::int64_t from = 0;
    for (std::int64_t to = 0; to < a["y"].size(); ++to) {
      a["y"].store(to, a["x"].load(from));
      for (std::size_t d = rank; d-- > 0;) {
        from += step[d];
        if (++index[d] < shape[d]) break;
        from -= step[d] * shape[d];
        index[d] = 0;
      }
    }
  }
};

}  // namespace rooftile::harness
