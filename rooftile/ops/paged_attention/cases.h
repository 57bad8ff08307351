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

/// Caches of codes, and scales.
inline void add_kv_cache_codes(std::vector<Case>& cases) {
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    const auto add = [&](Shape shape, std::map<std::string, double> options,
                         Layout layout = Layout::contiguous, Fill fill = Fill::normal,
                         std::int64_t offset = 0) {
      cases.push_back({std::move(shape), type, std::move(options), layout, fill, offset});
    };
    for (double codes : {1, 2}) {
      add({40, 3, 64, 32, 7, 16}, {{"C", codes}, {"k_scale", 1}, {"v_scale", 1}});
      add({9, 2, 24, 40, 3, 5}, {{"C", codes}, {"k_scale", codes - 1}, {"v_scale", 2 - codes}});
      for (Fill fill : {Fill::wide, Fill::zeros, Fill::denormals, Fill::huge, Fill::one_infinity,
                        Fill::minus_infinities, Fill::one_nan})
        add({20, 2, 17, 8, 4, 4}, {{"C", codes}, {"k_scale", 1}}, Layout::contiguous, fill);
      for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed,
                            Layout::transposed, Layout::broadcast})
        add({2, 9, 3, 16, 70, 5, 4}, {{"C", codes}, {"k_scale", 1}, {"v_scale", 1}}, layout);
      add({20, 2, 64, 32, 4, 16}, {{"C", codes}, {"v_scale", 1}}, Layout::offset, Fill::normal, 3);
    }
    add({40, 3, 64, 32, 7, 16}, {{"k_scale", 1}, {"v_scale", 1}});  // scales without codes
    add({9, 2, 7, 40, 3, 5}, {{"v_scale", 1}});
  }
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
  add_kv_cache_codes(cases);
  return cases;
}

/// What caches of codes hold before a call: nothing larger than `most`.
inline void cut_codes(Arrays<double>& inputs, double most) {
  for (const char* name : {"k_cache", "v_cache"})
    for (double& x : inputs[name].values()) x = std::isfinite(x) ? std::clamp(x, -most, most) : 0;
}

inline Spec kv_cache_spec() {
  Spec spec = spec_of({.function = "kv_cache_append",
                       .oracle = oracles<KvCacheAppendOracle>(),
                       .tolerance = {.exact = true, .reason = "bits are copied, or products rounded"},
                       .absent = {"k_scale", "v_scale"}});
  spec.flops = [](const Case&) { return 0.; };
  spec.bytes = [](const Case& c) {
    const KvCacheCase its(c);
    std::set<std::int64_t> taken;
    for (std::int64_t i = 0; i < its.tokens; ++i) taken.insert(its.slot(slot_of(c, i)));
    taken.erase(-1);
    const double scales = (its.d > 0 ? c.parameter("k_scale") : 0) + (its.e > 0 ? c.parameter("v_scale") : 0);
    return double(its.tokens) * (c.parameter("I") != 0 ? 4 : 8) +
           double(taken.size()) * double(its.g * (its.d + its.e)) * (bits(c.dtype) + bits(cache_dtype(c))) /
               8 +
           (taken.empty() ? 0 : 4 * double(its.g) * scales);
  };
  spec.cases = kv_cache_cases;
  spec.prepare = [](const Case& c, Arrays<double>& inputs) {
    auto& slots = inputs["slots"].values();
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = slot_of(c, static_cast<std::int64_t>(i));
    // What a cache holds before is none of a check's marks, as -NaN is: f8e4m3 has no infinity to become.
    if (c.parameter("C") == 1) cut_codes(inputs, 448);
    // Powers of two keep an f16's or a bf16's few bits: every 16th product is halfway between two codes.
    for (const char* name : {"k_scale", "v_scale"})
      if (Array<double>* scales = inputs.find(name); scales && c.fill == Fill::normal)
        for (double& s : scales->values()) s = std::ldexp(1, s == 0 ? 0 : std::ilogb(s));
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
    for (std::int64_t tokens : {64, 8192})
      b.gpu.push_back(
          {{tokens, 8, 128, 128, 16384, 16}, DType::bf16, {{"C", 1}, {"k_scale", 1}, {"v_scale", 1}}});
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

/// Sequence n's length: the first is full, one of them empty. "outside": some are longer than their pages
/// (flash-attention 2709).
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
/// Caches of codes, and scales.
inline void add_paged_codes(std::vector<Case>& cases) {
  using Options = std::map<std::string, double>;
  const Options scaled = {{"k_scale", 1}, {"v_scale", 1}};
  const auto of_codes = [&](double codes, Options options = {}) {
    options["C"] = codes;
    options.insert(scaled.begin(), scaled.end());
    return options;
  };
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    const auto add = [&](std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t g, std::int64_t d,
                         std::int64_t e, std::int64_t p, std::int64_t n, std::int64_t m,
                         const Options& options, Layout layout = Layout::contiguous, Fill fill = Fill::normal,
                         std::int64_t offset = 0) {
      cases.push_back({{b, s, h, d, p, n, g, e, m}, type, options, layout, fill, offset});
    };
    // Codes: whole words and not, each bucket of channels, rows of one channel more than a word, pages of
    // none.
    for (double codes : {1, 2}) {
      add(3, 1, 4, 2, 64, 64, 20, 16, 6, of_codes(codes));
      add(2, 3, 2, 2, 128, 128, 5, 130, 2, of_codes(codes, {{"softcap", 2}}));
      add(2, 2, 2, 1, 200, 256, 8, 9, 8, of_codes(codes, {{"sink", 1}, {"window_left", 20}}));
      add(3, 2, 4, 2, 9, 17, 12, 6, 5, of_codes(codes));
      add(6, 2, 3, 3, 24, 16, 11, 5, 9, of_codes(codes, {{"outside", 1}}));
      add(2, 9, 40, 1, 8, 16, 9, 4, 3, {{"C", codes}});
      for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed,
                            Layout::transposed, Layout::broadcast})
        add(3, 2, 4, 2, 24, 24, 12, 6, 5, of_codes(codes), layout);
      add(3, 2, 4, 2, 64, 64, 12, 6, 5, of_codes(codes), Layout::offset, Fill::normal, 3);
      add(2, 2, 2, 1, 16, 16, 12, 16, 5, of_codes(codes), Layout::contiguous, Fill::wide);
    }
    add(3, 2, 4, 2, 24, 24, 12, 6, 5, scaled);
    add(4, 1, 4, 2, 16, 8, 12, 6, 5, {{"k_scale", 1}, {"sink", 1}});
    for (double codes : {1, 2}) {
      add(5, 1, 8, 2, 64, 64, 300, 16, 132, of_codes(codes));
      add(2, 3, 4, 1, 128, 100, 9, 700, 3, of_codes(codes, {{"full", 1}, {"sink", 1}}));
    }
    add(2, 2, 4, 2, 24, 40, 40, 33, 40, scaled);
  }
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
    // Of a quick check: pages; several chunks of a GPU's keys, each a block's.
    add(3, 1, 4, 2, 64, 64, 20, 16, 6);
    Options quick = {{"window_left", 900}, {"lse", 0}};
    if (type != DType::f32) quick.insert({{"C", type == DType::f16 ? 1 : 2}, {"k_scale", 1}, {"v_scale", 1}});
    add(4, 4, 6, 2, 40, 24, 90, 25, 84, quick);
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
    // flashinfer 3716: all scores alike, so y is the mean of the values, a tile's tail not among them.
    add(2, 2, 2, 1, 16, 16, 12, 16, 5, {}, Layout::contiguous, Fill::zeros);
    add(7, 4, 6, 2, 40, 24, 40, 7, 6, {{"window_left", 20}, {"lse", 0}});
    // More of chunks; of many sequences, which a block passes through.
    add(5, 1, 8, 2, 64, 64, 300, 16, 132);
    add(2, 3, 4, 1, 128, 100, 9, 700, 3, {{"full", 1}, {"sink", 1}});
    add(3, 20, 2, 2, 16, 24, 50, 64, 20, {{"window_left", 600}, {"softcap", 2}});
    add(2, 2, 2, 1, 200, 256, 40, 33, 40, {{"lse", 0}});
    add(9, 2, 2, 2, 8, 8, 80, 24, 60, {{"outside", 1}});
    add(90, 1, 6, 3, 8, 8, 40, 64, 18, {{"window_left", 900}, {"sink", 1}});
  }
  add_paged_codes(cases);
  return cases;
}

inline void prepare_paged(const Case& c, Arrays<double>& inputs) {
  // Codes beyond their range would be NaN or infinite, and what is masked must be finite.
  if (const double codes = c.parameter("C"); codes != 0) cut_codes(inputs, codes == 1 ? 448 : 57344);
  if (c.fill == Fill::wide)  // as attention's
    for (const char* name : {"q", "k_cache"})
      for (double& v : inputs[name].values()) v = std::fmax(-8, std::fmin(8, v));
  for (const char* name : {"k_scale", "v_scale"})
    if (Array<double>* scales = inputs.find(name))
      for (double& s : scales->values())
        s = double(float(std::isfinite(s) ? std::clamp(std::fabs(s), 0.25, 4.) : 0.5));
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
  return (n.rows * double(a.h * a.d) + double(a.b * a.s * a.h * a.e)) * width +
         n.tokens * double(a.g * (a.d + a.e)) * bits(cache_dtype(c)) / 8 +
         (n.rows > 0 ? 4 * double(a.g) * (c.parameter("k_scale") + c.parameter("v_scale")) : 0) +
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
                        n.rows * (double(a.e) - 1 + lse + c.parameter("v_scale")));
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
               .absent = {"sink", "k_scale", "v_scale"}});
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
    for (std::int64_t batch : {64, 1})
      for (double codes : {1, 2}) {
        Case c = decode(batch, batch == 1 ? 131072 : 4096, 16, DType::bf16);
        c.parameters.insert({{"C", codes}, {"k_scale", 1}, {"v_scale", 1}});
        b.gpu.push_back(c);
      }
    for (std::int64_t length : {1024, 4096, 16384, 131072})
      b.gpu.push_back(decode(1, length, 16, DType::bf16));
    for (std::int64_t length = 1; length <= 1 << 16; length *= 2)
      b.sweep.push_back(decode(1, length, std::min<std::int64_t>(length, 16), DType::f32, 1, 8, 2));
    return b;
  };
  return spec;
}

inline std::vector<Spec> paged_attention_specs() { return {kv_cache_spec(), paged_spec()}; }

}  // namespace rooftile::harness
