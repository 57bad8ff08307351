#pragma once
// Rows of a table and their gradients as the equations read, in any scalar.
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// A case's shape is {…, S, V, D}. "outside": every third token is none of the table's.
struct EmbeddingCase {
  std::int64_t places, rows, columns, tokens = 1, padding;
  explicit EmbeddingCase(const Case& c)
      : places(c.shape[c.shape.size() - 3]),
        rows(c.shape[c.shape.size() - 2]),
        columns(c.shape.back()),
        padding(static_cast<std::int64_t>(c.parameter("padding_idx", -1))) {
    for (std::size_t d = 0; d + 2 < c.shape.size(); ++d) tokens *= c.shape[d];
  }
  std::int64_t outside(const Case& c) const { return c.parameter("outside") != 0 ? (tokens + 2) / 3 : 0; }
  /// -1: outside of the table.
  template <class S>
  std::int64_t token(const Array<S>& tokens_of_it, std::int64_t i) const {
    const double value = to_double(tokens_of_it.load(i));
    return value >= 0 && value < double(rows) ? static_cast<std::int64_t>(value) : -1;
  }
};

struct EmbeddingOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const EmbeddingCase e(c);
    const Array<S>&tokens = a["tokens"], &table = a["table"];
    const Array<S>* position = a.find("position_table");
    Array<S>& y = a["y"];
    for (std::int64_t i = 0; i < e.tokens; ++i) {
      const std::int64_t token = e.token(tokens, i);
      for (std::int64_t d = 0; d < e.columns; ++d) {
        const std::int64_t at = i * e.columns + d;
        if (token < 0) {
          y.store(at, S(HUGE_VAL - HUGE_VAL));
          continue;
        }
        const S x = table.load(token * e.columns + d);
        if (!position) {
          y.store(at, x);
          continue;
        }
        const S place = position->load(i % e.places * e.columns + d);
        y.store(at, x + place, std::fabs(to_double(x)) + std::fabs(to_double(place)));
      }
    }
  }
};

struct EmbeddingBackwardOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const EmbeddingCase e(c);
    const Array<S>&tokens = a["tokens"], &dy = a["dy"];
    Array<S>&dtable = a["dtable"], *position = a.find("dposition_table");
    struct Sum {
      S value = S(0);
      double size = 0;
      void add(const S& x) {
        value += x;
        size += std::fabs(to_double(x));
      }
    };
    std::vector<Sum> rows(static_cast<std::size_t>(e.rows)), places(static_cast<std::size_t>(e.places));
    for (std::int64_t d = 0; d < e.columns; ++d) {
      std::fill(rows.begin(), rows.end(), Sum{});
      std::fill(places.begin(), places.end(), Sum{});
      for (std::int64_t i = 0; i < e.tokens; ++i) {
        const S x = dy.load(i * e.columns + d);
        const std::int64_t token = e.token(tokens, i);
        if (token >= 0 && token != e.padding) rows[static_cast<std::size_t>(token)].add(x);
        if (position) places[static_cast<std::size_t>(i % e.places)].add(x);
      }
      for (std::int64_t v = 0; v < e.rows; ++v) {
        const Sum& its = rows[static_cast<std::size_t>(v)];
        dtable.store(v * e.columns + d, its.value, its.size);
      }
      for (std::int64_t s = 0; position && s < e.places; ++s) {
        const Sum& its = places[static_cast<std::size_t>(s)];
        position->store(s * e.columns + d, its.value, its.size);
      }
    }
  }
};

}  // namespace rooftile::harness
