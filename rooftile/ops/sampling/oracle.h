#pragma once
// Rows sorted, and what sampling says of the sorted row, step by step.
#include <algorithm>
#include <numeric>

#include "rooftile/harness/row_spec.h"
#include "rooftile/ops/sampling/sampling.weights.h"

namespace rooftile::harness {

/// A row's elements, and their places from the largest to the smallest; a NaN is the largest.
struct SortedRow {
  std::vector<double> values;
  std::vector<std::int64_t> places;

  template <class S>
  SortedRow(const Array<S>& x, std::int64_t row, std::int64_t columns)
      : values(static_cast<std::size_t>(columns)), places(static_cast<std::size_t>(columns)) {
    for (std::int64_t i = 0; i < columns; ++i) values[std::size_t(i)] = to_double(x.load(row * columns + i));
    std::iota(places.begin(), places.end(), 0);
    std::stable_sort(places.begin(), places.end(), [&](std::int64_t a, std::int64_t b) {
      const double left = values[std::size_t(a)], right = values[std::size_t(b)];
      return std::isnan(left) ? !std::isnan(right) : left > right;
    });
  }
  double at(std::size_t rank) const { return values[std::size_t(places[rank])]; }
};

struct TopKOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t columns = c.shape.back(), k = static_cast<std::int64_t>(c.parameter("k", 1));
    for (std::int64_t row = 0; row < rows_of_case(c); ++row) {
      const SortedRow sorted(a["x"], row, columns);
      for (std::int64_t i = 0; i < k; ++i) {
        a["values"].store(row * k + i, S(sorted.at(std::size_t(i))));
        a["indices"].store(row * k + i, S(static_cast<double>(sorted.places[std::size_t(i)])));
      }
    }
  }
};

struct SampleOracle {
  template <class S>
  static std::uint64_t whole(Arrays<S>& a, const char* name, std::int64_t at = 0) {
    if (!a.has(name)) return 0;
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(to_double(a[name].load(at))));
  }
  static std::int64_t token(const SortedRow& row, const SampleRule& rule, std::uint64_t random) {
    const std::size_t columns = row.values.size();
    if (columns == 0 || std::isnan(row.at(0)) || row.at(0) == -HUGE_VAL) return -1;
    std::vector<float> shares;
    for (std::size_t i = 0; i < columns; ++i)
      shares.push_back(log2_share(static_cast<float>(row.at(i)), static_cast<float>(row.at(0)), rule.scale));
    std::size_t kept = columns;
    if (rule.top_k > 0) kept = std::min(kept, static_cast<std::size_t>(rule.top_k));
    const auto sum_of = [&](std::size_t n) {
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += weight_of(shares[i]);
      return sum;
    };
    if (rule.nucleus) {
      const std::uint64_t enough = rule.reached(sum_of(kept));
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < kept; ++i)
        if ((sum += weight_of(shares[i])) >= enough) kept = i + 1;
    }
    while (!(shares[kept - 1] >= rule.min_share)) --kept;
    const std::uint64_t target = SampleRule::drawn(random, sum_of(kept));
    std::uint64_t sum = 0;
    std::size_t i = 0;
    while ((sum += weight_of(shares[i])) <= target) ++i;
    return row.places[i];
  }
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const SampleRule rule =
        sample_rule(c.parameter("temperature", 1), static_cast<std::int64_t>(c.parameter("top_k")),
                    c.parameter("top_p", 1), c.parameter("min_p"));
    const std::uint64_t seed = whole(a, "seed"), offset = whole(a, "offset");
    for (std::int64_t row = 0; row < rows_of_case(c); ++row) {
      const SortedRow sorted(a["logits"], row, c.shape.back());
      const bool placed = !a.has("seeds") && !a.has("offsets");
      const std::uint64_t random =
          sample_random(seed + whole(a, "seeds", row),
                        offset + whole(a, "offsets", row) + (placed ? static_cast<std::uint64_t>(row) : 0));
      a["token"].store(row, S(static_cast<double>(token(sorted, rule, random))));
    }
  }
};

}  // namespace rooftile::harness
