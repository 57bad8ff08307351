#pragma once
// Convolution as its equation reads, in any scalar.
#include "rooftile/ops/gemm/oracle.h"

namespace rooftile::harness {

/// A case's shape is {N, C, H, W, K, R, S}; "channels_last" 1: tensors are kept as N H W C, filters as K R S
/// C.
struct Conv2dCase {
  std::int64_t n, c, h, w, k, r, s, groups, step[2], padding[2], dilation[2], p, q;
  bool last;

  explicit Conv2dCase(const Case& its)
      : n(its.shape[0]),
        c(its.shape[1]),
        h(its.shape[2]),
        w(its.shape[3]),
        k(its.shape[4]),
        r(its.shape[5]),
        s(its.shape[6]),
        groups(whole(its, "groups", 1)),
        step{whole(its, "stride_h", 1), whole(its, "stride_w", 1)},
        padding{whole(its, "padding_h", 0), whole(its, "padding_w", 0)},
        dilation{whole(its, "dilation_h", 1), whole(its, "dilation_w", 1)},
        p((h + 2 * padding[0] - dilation[0] * (r - 1) - 1) / step[0] + 1),
        q((w + 2 * padding[1] - dilation[1] * (s - 1) - 1) / step[1] + 1),
        last(its.parameter("channels_last") != 0) {}
  static std::int64_t whole(const Case& c, const char* name, double otherwise) {
    return static_cast<std::int64_t>(c.parameter(name, otherwise));
  }
  std::int64_t channels() const { return c / groups; }
  std::int64_t filters() const { return k / groups; }
  /// The group of one of K or of C; a wrong result looks at a case whose last group is cut short.
  std::int64_t group_of(std::int64_t at, std::int64_t each) const {
    return std::min(at / std::max<std::int64_t>(each, 1), groups - 1);
  }
  double products() const {
    return double(n) * double(k) * double(p) * double(q) * double(r) * double(s) * double(channels());
  }

  std::int64_t at(std::int64_t i, std::int64_t channel, std::int64_t y, std::int64_t x,
                  std::int64_t channels_, std::int64_t height, std::int64_t width) const {
    return last ? ((i * height + y) * width + x) * channels_ + channel
                : ((i * channels_ + channel) * height + y) * width + x;
  }
  std::int64_t in_x(std::int64_t i, std::int64_t channel, std::int64_t y, std::int64_t x) const {
    return at(i, channel, y, x, c, h, w);
  }
  std::int64_t in_w(std::int64_t i, std::int64_t channel, std::int64_t y, std::int64_t x) const {
    return at(i, channel, y, x, channels(), r, s);
  }
  std::int64_t in_y(std::int64_t i, std::int64_t channel, std::int64_t y, std::int64_t x) const {
    return at(i, channel, y, x, k, p, q);
  }
  /// The pixel's row or column that a tap sees; -1 outside.
  std::int64_t seen(int axis, std::int64_t window, std::int64_t tap) const {
    const std::int64_t at = window * step[axis] - padding[axis] + tap * dilation[axis];
    return at < (axis == 0 ? h : w) ? std::max<std::int64_t>(at, -1) : -1;
  }
  /// The window whose tap sees a pixel; -1: none.
  std::int64_t seeing(int axis, std::int64_t pixel, std::int64_t tap) const {
    const std::int64_t at = pixel + padding[axis] - tap * dilation[axis];
    return at < 0 || at % step[axis] != 0 || at / step[axis] >= (axis == 0 ? p : q) ? -1 : at / step[axis];
  }
};

/// A sum of products and of their magnitudes.
template <class S>
struct Conv2dSum {
  S sum = S(0);
  double terms = 0;
  void add(const S& a, const S& b) {
    const S product = a * b;
    sum += product;
    // A product that a subnormal cuts short is off by as much.
    terms += std::fmax(std::fabs(to_double(product)), 0x1p-126);
  }
};

struct Conv2dOracle {
  template <class S>
  static void run(const Case& its, Arrays<S>& arrays) {
    const Conv2dCase z(its);
    Array<S>&x = arrays["x"], &w = arrays["w"], &y = arrays["y"];
    const Array<S>* bias = arrays.find("bias");
    const auto activation = static_cast<GemmActivation>(static_cast<int>(its.parameter("activation")));
    for (std::int64_t n = 0; n < z.n; ++n)
      for (std::int64_t k = 0; k < z.k; ++k)
        for (std::int64_t p = 0; p < z.p; ++p)
          for (std::int64_t q = 0; q < z.q; ++q) {
            Conv2dSum<S> all;
            const std::int64_t first = z.group_of(k, z.filters()) * z.channels();  // of the group's channels
            for (std::int64_t r = 0; r < z.r; ++r)
              for (std::int64_t s = 0; s < z.s; ++s)
                for (std::int64_t c = 0; c < z.channels(); ++c) {
                  const std::int64_t row = z.seen(0, p, r), column = z.seen(1, q, s);
                  all.add(w.load(z.in_w(k, c, r, s)),
                          row < 0 || column < 0 ? S(0) : x.load(z.in_x(n, first + c, row, column)));
                }
            if (bias) {
              all.sum = all.sum + bias->load(k);
              all.terms += std::fabs(to_double(bias->load(k)));
            }
            const S value = GemmOracle::activation_of(activation, all.sum);
            // No activation's slope is above 1.13; its own rounding is a few of its value's.
            if (activation != GemmActivation::none)
              all.terms = 1.13 * all.terms + std::fabs(to_double(value));
            y.store(z.in_y(n, k, p, q), value, all.terms);
          }
  }
};

struct Conv2dBackwardOracle {
  template <class S>
  static void run(const Case& its, Arrays<S>& arrays) {
    const Conv2dCase z(its);
    Array<S>&x = arrays["x"], &w = arrays["w"], &dy = arrays["dy"];
    if (Array<S>* dx = arrays.find("dx")) data(z, w, dy, *dx);
    if (Array<S>* dw = arrays.find("dw")) weight(z, x, dy, *dw);
    Array<S>* dbias = arrays.find("dbias");
    for (std::int64_t k = 0; dbias && k < z.k; ++k) {
      S sum(0);
      double terms = 0;
      for_windows(z, [&](std::int64_t n, std::int64_t p, std::int64_t q) {
        sum += dy.load(z.in_y(n, k, p, q));
        terms += std::fabs(to_double(dy.load(z.in_y(n, k, p, q))));
      });
      dbias->store(k, sum, terms);
    }
  }

 private:
  template <class F>
  static void for_windows(const Conv2dCase& z, F f) {
    for (std::int64_t n = 0; n < z.n; ++n)
      for (std::int64_t p = 0; p < z.p; ++p)
        for (std::int64_t q = 0; q < z.q; ++q) f(n, p, q);
  }
  template <class S>
  static void data(const Conv2dCase& z, const Array<S>& w, const Array<S>& dy, Array<S>& dx) {
    for (std::int64_t n = 0; n < z.n; ++n)
      for (std::int64_t c = 0; c < z.c; ++c)
        for (std::int64_t i = 0; i < z.h; ++i)
          for (std::int64_t j = 0; j < z.w; ++j) {
            Conv2dSum<S> all;
            const std::int64_t first = z.group_of(c, z.channels()) * z.filters();
            for (std::int64_t r = 0; r < z.r; ++r)
              for (std::int64_t s = 0; s < z.s; ++s)
                for (std::int64_t k = first; k < first + z.filters(); ++k) {
                  const std::int64_t p = z.seeing(0, i, r), q = z.seeing(1, j, s);
                  all.add(w.load(z.in_w(k, c - first / std::max<std::int64_t>(z.filters(), 1) * z.channels(),
                                        r, s)),
                          p < 0 || q < 0 ? S(0) : dy.load(z.in_y(n, k, p, q)));
                }
            dx.store(z.in_x(n, c, i, j), all.sum, all.terms);
          }
  }
  template <class S>
  static void weight(const Conv2dCase& z, const Array<S>& x, const Array<S>& dy, Array<S>& dw) {
    for (std::int64_t k = 0; k < z.k; ++k)
      for (std::int64_t c = 0; c < z.channels(); ++c)
        for (std::int64_t r = 0; r < z.r; ++r)
          for (std::int64_t s = 0; s < z.s; ++s) {
            Conv2dSum<S> all;
            const std::int64_t channel = z.group_of(k, z.filters()) * z.channels() + c;
            for_windows(z, [&](std::int64_t n, std::int64_t p, std::int64_t q) {
              const std::int64_t row = z.seen(0, p, r), column = z.seen(1, q, s);
              all.add(dy.load(z.in_y(n, k, p, q)),
                      row < 0 || column < 0 ? S(0) : x.load(z.in_x(n, channel, row, column)));
            });
            dw.store(z.in_w(k, c, r, s), all.sum, all.terms);
          }
  }
};

}  // namespace rooftile::harness
