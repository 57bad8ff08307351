#pragma once
#include <algorithm>
#include <set>

#include "rooftile/harness/check/fill.h"
#include "rooftile/harness/letters.h"
#include "rooftile/harness/tensor.h"
#include "rooftile/ops/paged_attention/oracle.h"
#include "rooftile/ops/paged_attention/paged_attention.h"

namespace rooftile::harness {

/// Of any numbers one below `bound`, at random but always the same.
inline std::int64_t scattered(std::int64_t a, std::int64_t b, std::int64_t bound) {
  std::uint64_t x = static_cast<std::uint64_t>(a) * 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(b);
  x = (x ^ x >> 31) * 0xBF58476D1CE4E5B9u;
  x ^= x >> 29;
  return bound > 0 ? static_cast<std::int64_t>(x % static_cast<std::uint64_t>(bound)) : 0;
}
/// Neither a place below `bound` nor -1 alone.
inline double none_below(std::int64_t k, std::int64_t bound) {
  const double none[] = {-1, static_cast<double>(bound), -2147483648., 2147483647.};
  return none[k % 4];
}

// ---- kv_cache_append

/// Token i's slot: some are skipped, some are another's, too.
inline double slot_of(const Case& c, std::int64_t i) {
  const KvCacheCase its(c);
  if (i % 7 == 5) return none_below(i / 7, its.pages * its.size);
  return static_cast<double>(scattered(i / (i % 5 == 4 ? 2 : 1), its.tokens, its.pages * its.size));
}

inline std::vector<Case> kv_cache_cases() {
  std::vector<Case> cases;
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    const auto add = [&](Shape shape, std::map<std::string, double> options = {},
                         Layout layout = Layout::contiguous, Fill fill = Fill::normal,
                         std::int64_t offset = 0) {
      cases.push_back({std::move(shape), type, std::move(options), layout, fill, offset});
    };
    // Letters G, D, E, P, N behind the outer sizes.
    add({5, 2, 64, 64, 4, 16});
    add({3, 4, 2, 33, 17, 4, 5}, {{"I", 1}});
    add({150, 1, 8, 8, 3, 7});  // more tokens than slots
    add({280, 2, 4, 6, 70, 9}, {{"I", 1}});
    for (Shape shape : {Shape{2, 8, 8, 4, 16}, Shape{0, 2, 8, 8, 4, 16}, Shape{5, 0, 8, 8, 4, 16},
                        Shape{5, 2, 0, 8, 4, 16}, Shape{5, 2, 8, 0, 4, 16}, Shape{5, 2, 8, 8, 0, 16},
                        Shape{5, 2, 8, 8, 4, 0}, Shape{1, 1, 1, 1, 1, 1}, Shape{1, 8, 128, 128, 3, 64},
                        Shape{9, 1, 576, 512, 20, 1}, Shape{2, 3, 2, 2, 3, 5, 4, 3}})
      add(shape);
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed,
                          Layout::broadcast})
      add({2, 9, 3, 16, 24, 5, 4}, {}, layout);
    for (std::int64_t offset : {1, 3, 8})
      add({20, 2, 64, 32, 4, 16}, {}, Layout::offset, Fill::normal, offset);
    for (Fill fill : {Fill::one_infinity, Fill::one_nan, Fill::denormals, Fill::huge})
      add({20, 2, 16, 8, 4, 4}, {}, Layout::contiguous, fill);
  }
  return cases;
}

inline Spec kv_cache_spec() {
  Spec spec = spec_of({.function = "kv_cache_append",
                       .oracle = oracles<KvCacheAppendOracle>(),
                       .tolerance = {.exact = true, .reason = "bits are copied"}});
  spec.flops = [](const Case&) { return 0.; };
  spec.bytes = [](const Case& c) {
    const KvCacheCase its(c);
    std::set<std::int64_t> taken;
    for (std::int64_t i = 0; i < its.tokens; ++i) taken.insert(its.slot(slot_of(c, i)));
    taken.erase(-1);
    return double(its.tokens) * (c.parameter("I") != 0 ? 4 : 8) +
           2 * double(taken.size()) * double(its.g * (its.d + its.e)) * bits(c.dtype) / 8;
  };
  spec.cases = kv_cache_cases;
  spec.prepare = [](const Case& c, Arrays<double>& inputs) {
    auto& slots = inputs["slots"].values();
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = slot_of(c, static_cast<std::int64_t>(i));
  };
  spec.bench_index = [](const Case& c, std::string_view, std::int64_t i) {
    return static_cast<std::int64_t>(std::max(slot_of(c, i), -1.));
  };
  spec.bench = [] {
    BenchCases b;
    for (DType type : {DType::f32, DType::bf16}) {
      b.cache.push_back({{64, 2, 64, 64, 64, 16}, type, {}});
      b.memory.push_back({{8192, 8, 128, 128, 4096, 16}, type, {}});
      b.gpu.push_back({{64, 8, 128, 128, 16384, 16}, type, {}});
      b.gpu.push_back({{8192, 8, 128, 128, 16384, 16}, type, {}});
    }
    for (std::int64_t tokens = 1; tokens <= 1 << 16; tokens *= 2)  // into half of a cache
      b.sweep.push_back({{tokens, 2, 64, 64, (2 * tokens + 15) / 16, 16}, DType::f32, {}});
    return b;
  };
  spec.standard_shape = [](const Shape& rows_columns) {
    // A block for each token: thousands take the emulated device minutes.
    const std::int64_t rows = rows_columns[0] > 16 ? 9 + rows_columns[0] % 8 : rows_columns[0],
                       columns = rows_columns[1] > 300 ? 130 + rows_columns[1] % 64 : rows_columns[1];
    return Shape{rows, 1 + columns % 3, columns, 1 + columns % 9, 2 + columns % 5, 1 + columns % 4};
  };
  return spec;
}

// ---- paged_attention

/// Sequence n's length: the first is full, one of them empty.
inline double length_of(const Case& c, std::int64_t n) {
  const std::int64_t most = c.shape[5] * c.shape[8];
  if (c.parameter("outside") != 0 && n % 3 == 2) return n % 2 ? -1 : static_cast<double>(most + 1);
  if (c.parameter("full") != 0 || n % 6 == 0) return static_cast<double>(most);
  return n % 6 == 5 ? 0 : static_cast<double>(scattered(n, most, most + 1));
}
/// Its m-th page: a permutation where there are enough, else shared.
inline double page_of(const Case& c, std::int64_t n, std::int64_t m) {
  const std::int64_t pages = c.shape[4], i = n * c.shape[8] + m;
  if (c.parameter("outside") != 0 && i % 11 == 3) return none_below(i / 11, pages);
  return static_cast<double>(pages > 0 ? i % pages * 7919 % pages : 0);
}
inline std::vector<Case> paged_cases() {
  using Options = std::map<std::string, double>;
  std::vector<Case> cases;
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    // M pages of N tokens for each of B sequences, of P in all.
    const auto add = [&](std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t g, std::int64_t d,
                         std::int64_t e, std::int64_t p, std::int64_t n, std::int64_t m,
                         const Options& options = {}, Layout layout = Layout::contiguous,
                         Fill fill = Fill::normal, std::int64_t offset = 0) {
      cases.push_back({{b, s, h, d, p, n, g, e, m}, type, options, layout, fill, offset});
    };
    add(3, 1, 4, 2, 64, 64, 20, 16, 6);
    add(7, 4, 6, 2, 40, 24, 40, 7, 6, {{"window_left", 20}, {"lse", 0}});
    add(4, 5, 2, 1, 16, 16, 9, 13, 8, {{"softcap", 2}, {"window_left", 0}});
    add(6, 2, 3, 3, 24, 16, 11, 5, 9, {{"scale", 0.25}, {"outside", 1}});
    // Pages of one token, of more than a tile, one page each: contiguous. Groups of 1, 3, 8, 16, 40 rows of
    // queries.
    add(2, 1, 8, 1, 64, 64, 300, 1, 150);
    add(2, 3, 2, 2, 128, 128, 5, 130, 2);
    add(3, 1, 3, 1, 32, 32, 3, 257, 1, {{"full", 1}});
    add(2, 16, 16, 1, 16, 16, 9, 16, 5);
    add(1, 40, 2, 2, 8, 8, 6, 16, 6);  // a prefill
    add(2, 9, 40, 1, 8, 16, 9, 4, 3);
    add(1, 1, 1, 1, 1, 1, 1, 1, 1);
    add(2, 2, 2, 1, 200, 256, 8, 9, 8);
    add(1, 1, 2, 2, 256, 3, 8, 9, 8);
    add(6, 20, 2, 1, 16, 16, 7, 3, 4);  // fewer tokens than queries
    add(2, 3, 2, 2, 16, 16, 2, 3, 1);   // y's shape is the caches'
    for (std::int64_t zero = 0; zero < 9; ++zero) {
      if (zero == 3 || zero == 7) continue;  // D and E are 1 or more
      Shape shape = {3, 2, 2, 16, 7, 3, 1, 16, 4};
      shape[static_cast<std::size_t>(zero)] = 0;
      if (zero == 6) shape[2] = 0;  // no heads
      cases.push_back({shape, type, {}});
    }
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed,
                          Layout::broadcast})
      add(3, 2, 4, 2, 24, 24, 12, 6, 5, {}, layout);
    add(3, 2, 4, 2, 64, 64, 12, 6, 5, {}, Layout::offset, Fill::normal, 3);
    add(2, 2, 2, 1, 16, 16, 12, 16, 5, {}, Layout::contiguous, Fill::wide);
    add(6, 2, 6, 2, 32, 32, 12, 6, 5, {{"sink", 1}, {"K", 1}});
    add(2, 2, 2, 1, 16, 16, 12, 16, 5, {}, Layout::contiguous, Fill::zeros);
  }
  return cases;
}

inline void prepare_paged(const Case& c, Arrays<double>& inputs) {
  if (c.fill == Fill::wide)  // as attention's
    for (const char* name : {"q", "k_cache"})
      for (double& v : inputs[name].values()) v = std::fmax(-8, std::fmin(8, v));
  auto &lengths = inputs["lengths"].values(), &table = inputs["page_table"].values();
  const std::int64_t each = c.shape[8];
  for (std::size_t n = 0; n < lengths.size(); ++n) lengths[n] = length_of(c, static_cast<std::int64_t>(n));
  for (std::size_t i = 0; i < table.size(); ++i)
    table[i] = page_of(c, static_cast<std::int64_t>(i) / each, static_cast<std::int64_t>(i) % each);
}

/// What a case reads and computes. A query that sees a page of none reads the table, and is NaN.
struct PagedCounts {
  double entries = 0, tokens = 0, rows = 0,
         pairs = 0;  ///< of the table, the caches, one head's queries with keys

  explicit PagedCounts(const Case& c) {
    PagedAttentionCase a(c);
    if (a.s == 0 || a.h == 0) return;
    std::vector<bool> taken(static_cast<std::size_t>(a.pages * a.size));
    std::vector<double> page(static_cast<std::size_t>(a.each));
    for (std::int64_t n = 0; n < a.b; ++n) {
      const double length = length_of(c, n);
      if (!a.fits(length)) continue;
      a.t = static_cast<std::int64_t>(length);
      const std::int64_t begin = a.keys(0).first, end = a.keys(a.s - 1).second;
      if (end <= begin) continue;
      entries += double((end - 1) / a.size - begin / a.size + 1);
      for (std::int64_t m = begin / a.size; m * a.size < end; ++m)
        page[static_cast<std::size_t>(m)] = page_of(c, n, m);
      for (std::int64_t i = 0; i < a.s; ++i) {
        const auto [first, last] = a.keys(i);
        bool known = last > first;
        for (std::int64_t j = first; j < last; ++j) {
          const double its = page[static_cast<std::size_t>(j / a.size)];
          known = known && its >= 0 && its < double(a.pages);
        }
        if (!known) continue;
        ++rows;
        pairs += double(last - first);
        for (std::int64_t j = first; j < last; ++j) {
          const auto at =
              static_cast<std::int64_t>(page[static_cast<std::size_t>(j / a.size)]) * a.size + j % a.size;
          tokens += !taken[static_cast<std::size_t>(at)];
          taken[static_cast<std::size_t>(at)] = true;
        }
      }
    }
  }
};
inline double paged_bytes(const Case& c) {
  const PagedAttentionCase a(c);
  const PagedCounts n(c);
  const double width = bits(c.dtype) / 8, lse = c.parameter("lse", 1) != 0 ? 4 : 0,
               sink = c.parameter("sink") == 0 ? 0
                      : c.parameter("K") == 0  ? width
                                               : 4;
  return (n.rows * double(a.h * a.d) + double(a.b * a.s * a.h * a.e) + n.tokens * double(a.g * (a.d + a.e))) *
             width +
         4 * (n.entries + double(a.s * a.h > 0 ? a.b : 0)) + lse * double(a.b * a.s * a.h) +
         sink * double(a.h);
}
/// A score, its maximum, exponential and sum, and E times two; of a row one maximum less, E quotients, the
/// lse.
inline double paged_flops(const Case& c) {
  const PagedAttentionCase a(c);
  const PagedCounts n(c);
  const double lse = c.parameter("lse", 1) != 0 ? 2 : 0;
  return double(a.h) * (n.pairs * (2 * double(a.d) + 1 + (a.cap != 0 ? 6 : 0) + 4 + 2 * double(a.e)) +
                        n.rows * (double(a.e) - 1 + lse));
}

inline Spec paged_spec() {
  Spec spec =
      spec_of({.function = "paged_attention",
               .oracle = oracles<PagedAttentionOracle>(),
               // As attention's.
               .tolerance = {.c = 1,
                             .chain =
                                 [](const Case& c, std::string_view) {
                                   return double(std::max({c.shape[3], c.shape[5] * c.shape[8], c.shape[7]}));
                                 },
                             .accumulator = [](const Case&) { return DType::f32; },
                             .factor_rounding = rounding_of_weights,
                             .reason = "two sums of products, an exponential, and the rescaling of a "
                                       "row's sums when its maximum grows"},
               .independent = "B",
               .absent = {"sink"}});
  spec.cases = paged_cases;
  spec.prepare = prepare_paged;
  spec.bytes = paged_bytes;
  spec.flops = paged_flops;
  spec.largest_exponent = 3;  // as attention's
  spec.suits = [its = spec.suits](const Case& c) {
    const double scale = c.parameter("scale");
    return its(c) && scale < 100 && (scale == 0 || scale >= 1e-30) && finite(c.fill) &&
           c.fill != Fill::large_offset && c.fill != Fill::huge && c.fill != Fill::huge_rows;
  };
  spec.adjust = [](Case& c) {
    std::int64_t &h = c.shape[2], &d = c.shape[3], &g = c.shape[6], &e = c.shape[7];
    g %= 4;
    h = g * (1 + h % 3);
    for (std::int64_t* size : {&d, &e}) *size = *size < 1 ? 1 : *size % 257 == 0 ? 256 : *size % 257;
  };
  spec.standard_shape = [](const Shape& rows_columns) {
    const std::int64_t rows = rows_columns[0] > 16 ? 9 + rows_columns[0] % 8 : rows_columns[0],
                       columns = rows_columns[1] > 300 ? 130 + rows_columns[1] % 64 : rows_columns[1],
                       size = 1 + columns % 17, each = (columns + size - 1) / size;
    return Shape{rows, 1 + columns % 4, 4, 3 + columns % 6, each + 3, size, 2, 2 + columns % 7, each};
  };
  spec.bench_index = [](const Case& c, std::string_view operand, std::int64_t i) {
    return operand == "lengths" ? c.shape[5] * c.shape[8]
                                : static_cast<std::int64_t>(page_of(c, i / c.shape[8], i % c.shape[8]));
  };
  spec.bench = [] {
    BenchCases b;
    const auto decode = [](std::int64_t batch, std::int64_t length, std::int64_t size, DType type,
                           std::int64_t queries = 1, std::int64_t heads = 32, std::int64_t keys = 8) {
      const std::int64_t each = length / size;
      return Case{{batch, queries, heads, 128, batch * each, size, keys, 128, each}, type, {{"full", 1}}};
    };
    for (DType type : {DType::f32, DType::bf16}) {
      b.cache.push_back(decode(1, 64, 16, type, 1, 8, 2));
      b.memory.push_back(decode(8, 4096, 16, type));
    }
    b.memory.push_back(decode(8, 4096, 4096, DType::bf16));
    for (std::int64_t size : {1, 16, 64, 4096}) b.gpu.push_back(decode(64, 4096, size, DType::bf16));
    b.gpu.push_back(decode(64, 4096, 16, DType::bf16, 4));
    for (std::int64_t length = 1; length <= 1 << 16; length *= 2)
      b.sweep.push_back(decode(1, length, std::min<std::int64_t>(length, 16), DType::f32, 1, 8, 2));
    return b;
  };
  return spec;
}

inline std::vector<Spec> paged_attention_specs() { return {kv_cache_spec(), paged_spec()}; }

}  // namespace rooftile::harness
