#pragma once
// A cache's tokens and attention to them as the equations read, in any scalar.
#include <cmath>

#include "rooftile/ops/attention/oracle.h"
#include "rooftile/ops/quantize/oracle.h"

namespace rooftile::harness {

/// Of the caches: "C" is 0, k's or q's own, or one of those of codes.
inline DType cache_dtype(const Case& c) {
  const double which = c.parameter("C");
  return which == 0 ? c.dtype : which == 1 ? DType::f8e4m3 : DType::f8e5m2;
}

/// A case's shape is {…, G, D, E, P, N}.
struct KvCacheCase {
  std::int64_t tokens = 1, g, d, e, pages, size;
  explicit KvCacheCase(const Case& c) {
    const std::size_t outer = c.shape.size() - 5;
    for (std::size_t k = 0; k < outer; ++k) tokens *= c.shape[k];
    g = c.shape[outer], d = c.shape[outer + 1], e = c.shape[outer + 2], pages = c.shape[outer + 3],
    size = c.shape[outer + 4];
  }
  /// -1: skipped.
  std::int64_t slot(double value) const {
    return value >= 0 && value < double(pages * size) ? static_cast<std::int64_t>(value) : -1;
  }
};

struct KvCacheAppendOracle {
  /// An element divided by its head's scale, if there is one, as the cache's dtype has it: each operation is
  /// one of f32.
  template <class S>
  static S converted(const Case& c, Arrays<S>& a, const char* scales, std::int64_t head, const S& x) {
    const DType type = cache_dtype(c);
    if (type == c.dtype && !a.has(scales)) return x;
    const float scale = a.has(scales) ? static_cast<float>(to_double(a[scales].load(head))) : 1;
    const float product = static_cast<float>(to_double(x)) * (1 / scale);
    return S(type == c.dtype ? double(product) : nearest_code(product, type));
  }
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const KvCacheCase its(c);
    // Of a slot's tokens the last alone is read.
    std::vector<std::int64_t> last(static_cast<std::size_t>(its.pages * its.size), -1);
    for (std::int64_t i = 0; i < its.tokens; ++i)
      if (const std::int64_t slot = its.slot(to_double(a["slots"].load(i))); slot >= 0)
        last[static_cast<std::size_t>(slot)] = i;
    for (const auto& [from, scales, to, channels] :
         {std::tuple{"k", "k_scale", "k_cache", its.d}, {"v", "v_scale", "v_cache", its.e}})
      for (std::size_t slot = 0; slot < last.size(); ++slot)
        for (std::int64_t x = 0, width = its.g * channels; last[slot] >= 0 && x < width; ++x)
          a[to].store(static_cast<std::int64_t>(slot) * width + x,
                      converted(c, a, scales, x / channels, a[from].load(last[slot] * width + x)));
  }
};

/// A case's shape is {B, S, H, D, P, N, G, E, M}. `t`: the length of the sequence that the oracle is at, n.
struct PagedAttentionCase : AttentionCase {
  std::int64_t pages, size, each;
  std::vector<double> table;

  explicit PagedAttentionCase(const Case& c) : AttentionCase(attention_case(c)) {
    pages = c.shape[4], size = c.shape[5], each = c.shape[8];
    right = 0;
    keys_name = "k_cache", values_name = "v_cache";
  }
  bool fits(double length) const { return length >= 0 && length <= double(each * size); }
  /// -1: none of the cache.
  std::int64_t page(std::int64_t n, std::int64_t j) const {
    const double its = table[static_cast<std::size_t>(n * each + j / size)];
    return its >= 0 && its < double(pages) ? static_cast<std::int64_t>(its) : -1;
  }
  std::int64_t key(std::int64_t n, std::int64_t j, std::int64_t head) const {
    return (page(n, j) * size + j % size) * g + key_head(head);
  }
  /// Of a head's keys and values.
  template <class S>
  void take_scales(Arrays<S>& arrays, std::int64_t head) {
    const std::int64_t its = key_head(head);
    if (arrays.has("k_scale"))
      scale = double(static_cast<float>(scale) * static_cast<float>(to_double(arrays["k_scale"].load(its))));
    if (arrays.has("v_scale")) value_scale = to_double(arrays["v_scale"].load(its));
  }

 private:
  /// As attention's: B, S, H, D, T, G, E.
  static Case attention_case(const Case& c) {
    Case its = c;
    its.shape = {c.shape[0], c.shape[1], c.shape[2], c.shape[3], 0, c.shape[6], c.shape[7]};
    return its;
  }
};

struct PagedAttentionOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& arrays) {
    PagedAttentionCase a(c);
    const S nan(std::nan(""));
    a.table.assign(static_cast<std::size_t>(a.b * a.each), -1);
    for (std::int64_t n = 0; n < a.b; ++n) {
      const double length = a.s * a.h > 0 ? to_double(arrays["lengths"].load(n)) : 0;
      a.t = a.fits(length) ? static_cast<std::int64_t>(length) : 0;
      std::vector<S> weight(static_cast<std::size_t>(a.t));
      std::vector<double> terms(static_cast<std::size_t>(a.t));
      for (std::int64_t i = 0; i < a.s; ++i) {
        const auto [first, end] = a.keys(i);
        bool known = a.fits(length);
        for (std::int64_t j = first; a.h > 0 && j < end; ++j) {
          const std::int64_t at = n * a.each + j / a.size;
          a.table[static_cast<std::size_t>(at)] = to_double(arrays["page_table"].load(at));
          known = known && a.page(n, j) >= 0;
        }
        for (std::int64_t head = 0; head < a.h; ++head) {
          if (known) {
            PagedAttentionCase its = a;
            if (end > first) its.take_scales(arrays, head);
            AttentionOracle::row(its, arrays, n, i, head, weight, terms);
            continue;
          }
          if (arrays.has("lse")) arrays["lse"].store(a.row(n, i, head), nan);
          for (std::int64_t x = 0; x < a.e; ++x) arrays["y"].store(a.query(n, i, head) * a.e + x, nan);
        }
      }
    }
  }
};

}  // namespace rooftile::harness
