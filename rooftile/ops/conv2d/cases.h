#pragma once
#include <algorithm>
#include <numeric>

#include "rooftile/harness/letters.h"
#include "rooftile/ops/conv2d/oracle.h"

namespace rooftile::harness {

inline bool conv2d_has_channels(const std::string& operand) {
  return operand != "bias" && operand != "dbias";
}

/// What both directions try: {N, C, H, W, K, R, S}. Pictures and filters that are not square, each option
/// alone and all of them, groups, both sides of a CPU's and a GPU's tiles, nothing.
inline std::vector<Case> conv2d_cases(bool backward) {
  std::vector<Case> cases;
  using Parameters = std::map<std::string, double>;
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    const auto add = [&](Shape shape, Parameters parameters = {}, Layout layout = Layout::contiguous,
                         Fill fill = Fill::normal) {
      cases.push_back({std::move(shape), type, std::move(parameters), layout, fill});
    };
    const auto both = [&](const Shape& shape, Parameters parameters = {}) {
      for (double last : {0., 1.}) {
        parameters["channels_last"] = last;
        add(shape, parameters);
      }
    };
    // PyTorch 163347: ones * ones, bf16, CPU: 4. Its suite's hard one: 8 to 10 channels, filter 3x5.
    add({1, 1, 2, 2, 1, 2, 2}, {{"bias", 0}}, Layout::contiguous, Fill::constant_rows);
    both({2, 8, 12, 16, 10, 3, 5}, {{"stride_h", 2}, {"padding_h", 4}, {"padding_w", 2}, {"dilation_h", 3}});
    both({2, 16, 9, 7, 24, 3, 3}, {{"padding_h", 1}, {"padding_w", 1}});
    both({1, 40, 11, 13, 72, 3, 1}, {{"stride_h", 2}, {"stride_w", 3}, {"padding_h", 1}});
    both({3, 3, 17, 19, 8, 7, 5}, {{"stride_h", 2}, {"stride_w", 2}, {"padding_h", 3}, {"padding_w", 2}});
    both({2, 33, 6, 5, 65, 1, 1});                                          // 1x1: gemm
    both({2, 8, 6, 5, 16, 1, 1}, {{"stride_h", 2}, {"stride_w", 2}});       // with pixels that none sees
    both({2, 16, 6, 8, 24, 1, 1});                                          // pixels in words, in one row
    both({1, 16, 9, 16, 8, 1, 1}, {{"stride_h", 2}});                       // and in many
    both({1, 16, 17, 12, 72, 3, 3}, {{"padding_h", 1}, {"padding_w", 1}});  // several tiles of words
    both({3, 8, 12, 11, 120, 3, 2}, {{"padding_h", 2}, {"stride_w", 2}});   // and wider ones
    both({1, 72, 13, 12, 250, 2, 2}, {{"dilation_h", 2}, {"padding_w", 1}});
    both({2, 12, 8, 9, 12, 3, 3}, {{"groups", 12}, {"padding_h", 1}, {"padding_w", 1}});  // depthwise
    both({2, 24, 9, 8, 24, 3, 2}, {{"groups", 24}, {"padding_h", 1}, {"stride_w", 2}});   // by vectors
    both({1, 6, 7, 8, 12, 2, 3}, {{"groups", 3}, {"stride_w", 2}, {"dilation_w", 2}});
    both({1, 16, 7, 8, 32, 3, 3}, {{"groups", 2}, {"padding_w", 2}});
    add({1, 2, 1, 300, 3, 1, 9}, {{"padding_w", 4}});  // one row
    add({2, 5, 3, 2, 4, 3, 2});                        // one window
    add({1, 1, 1, 1, 1, 1, 1}, {{"padding_h", 2}, {"padding_w", 3}, {"stride_h", 2}});
    add({1, 2, 3, 3, 2, 3, 3}, {{"padding_h", 2}, {"padding_w", 2}, {"stride_h", 5}, {"stride_w", 5}});
    for (const Shape& shape :
         {Shape{0, 3, 4, 5, 2, 3, 3}, Shape{2, 0, 4, 5, 3, 3, 3}, Shape{2, 3, 4, 5, 0, 3, 3}})
      add(shape, {{"padding_h", 1}});
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed,
                          Layout::broadcast}) {
      add({2, 8, 6, 10, 9, 3, 2}, {{"padding_h", 1}}, layout);
      add({2, 8, 6, 10, 16, 3, 2}, {{"padding_h", 1}, {"channels_last", 1}}, layout);
    }
    for (Fill fill : {Fill::one_nan, Fill::one_infinity, Fill::wide, Fill::zeros})
      add({2, 4, 5, 6, 3, 3, 3}, {{"padding_h", 1}}, Layout::contiguous, fill);
    add({2, 4, 5, 6, 3, 3, 3}, {{"bias", 0}, {"dw", 0}, {"B", 1}});
    add({2, 4, 5, 6, 3, 3, 3}, {{"dbias", 0}, {"G", 1}, {"channels_last", 1}});
    add({2, 4, 5, 6, 3, 3, 3}, {{"dw", 0}, {"dbias", 0}});
    if (backward) {
      both({5, 8, 19, 21, 8, 3, 3}, {{"padding_h", 1}});  // parts of windows
    } else {
      for (double activation : {1., 2., 3., 4., 5., 6.})
        add({1, 4, 5, 6, 10, 2, 3}, {{"activation", activation}, {"channels_last", activation > 3}});
    }
  }
  for (Case& c : cases)  // what the direction lacks
    for (const char* name : {"bias", "dw", "dbias", "G"})
      if ((std::string_view(name) == "bias") == backward) c.parameters.erase(name);
  return cases;
}

/// Sizes that fit each other, and few products.
inline void conv2d_adjust(Case& c) {
  Shape& s = c.shape;
  s[0] = s[0] % 4, s[1] %= 20, s[2] %= 16, s[3] %= 20, s[4] %= 24, s[5] = 1 + s[5] % 4, s[6] = 1 + s[6] % 5;
  if (c.parameter("channels_last") != 0 && s[4] % 2 == 0) s[1] = (s[1] + 7) / 8 * 8;  // vectors
  const auto option = [&](const char* name, std::int64_t least, std::int64_t count) {
    const auto value = static_cast<std::int64_t>(c.parameter(name, double(least)));
    c.parameters[name] = static_cast<double>(least + value % count);
    return least + value % count;
  };
  option("stride_h", 1, 3), option("stride_w", 1, 3);
  for (int axis : {0, 1}) {
    const std::int64_t dilation = option(axis == 0 ? "dilation_h" : "dilation_w", 1, 3);
    const char* padding = axis == 0 ? "padding_h" : "padding_w";
    const std::int64_t wanted = dilation * (s[5 + axis] - 1) + 1 - s[2 + axis];
    c.parameters[padding] =
        static_cast<double>(std::max(option(padding, 0, 4), (std::max<std::int64_t>(wanted, 0) + 1) / 2));
  }
  const std::int64_t common = std::gcd(s[1], s[4]);
  const auto groups = static_cast<std::int64_t>(c.parameter("groups", 1)) % 3;
  c.parameters["groups"] = groups == 0 || common == 0 ? 1
                                                      : double(groups == 1       ? common
                                                               : common % 2 == 0 ? 2
                                                                                 : 1);
}

inline double conv2d_chain(const Case& c, std::string_view) {
  const Conv2dCase z(c);
  return std::max(
             {double(z.r * z.s * z.channels()), double(z.r * z.s * z.filters()), double(z.n * z.p * z.q)}) +
         4;
}

/// Bytes of operands that are read in vain or not at all: pixels between the windows, what no gradient needs.
inline double conv2d_untouched(const Case& c, bool backward) {
  const Conv2dCase z(c);
  const double size = bits(c.dtype) / 8;
  const auto has = [&](const char* gradient) { return c.parameter(gradient, 1) != 0; };
  const auto seen = [&](int axis) {
    double count = 0;
    for (std::int64_t at = 0; at < (axis == 0 ? z.h : z.w); ++at)
      for (std::int64_t tap = 0; tap < (axis == 0 ? z.r : z.s); ++tap)
        if (z.seeing(axis, at, tap) >= 0) {
          ++count;
          break;
        }
    return count;
  };
  const double pixels = double(z.h * z.w), read = !backward || has("dw") ? seen(0) * seen(1) : 0;
  double bytes = double(z.n * z.c) * (pixels - read) * size;
  return bytes;
}

inline Spec conv2d_spec(bool backward) {
  Spec spec = spec_of(
      {.function = backward ? "conv2d_backward" : "conv2d",
       .oracle = backward ? oracles<Conv2dBackwardOracle>() : oracles<Conv2dOracle>(),
       .tolerance = {.c = 2,
                     .chain = backward ? conv2d_chain
                                       : [](const Case& c, std::string_view) {
                                           const Conv2dCase z(c);
                                           return double(z.r * z.s * z.channels()) + 4;
                                         },
                     .accumulator = [](const Case&) { return DType::f32; },
                     .reason = "one chain of fused multiply-adds over a filter, or over all windows; on an ISA "
                               "without them each rounds twice"},
       .independent = "N"});
  // NHWC: the same views with permuted strides.
  spec.options.push_back({"channels_last"});
  spec.operands = [operands = spec.operands](const Case& c) {
    std::vector<Operand> list = operands(c);
    for (Operand& o : list)
      if (c.parameter("channels_last") != 0 && conv2d_has_channels(o.name))
        std::rotate(o.shape.begin() + 1, o.shape.begin() + 2, o.shape.end());
    return list;
  };
  const auto permuted = [operands = spec.operands](const Case& c, const Arguments& arguments) {
    Arguments made;
    for (const Operand& o : operands(c)) {
      View v = arguments.out(o.name);
      if (c.parameter("channels_last") != 0 && conv2d_has_channels(o.name) && v.rank == 4) {
        std::rotate(v.shape + 1, v.shape + 3, v.shape + 4);
        std::rotate(v.stride + 1, v.stride + 3, v.stride + 4);
      }
      made.add(o.name, v);
    }
    return made;
  };
  spec.call = [inner = spec.call, permuted](const Queue& queue, const Case& c, const Arguments& arguments,
                                            const char* variant, Workspace workspace) {
    return inner(queue, c, permuted(c, arguments), variant, workspace);
  };
  if (spec.workspace)
    spec.workspace = [inner = spec.workspace, permuted](const Queue& queue, const Case& c,
                                                        const Arguments& arguments, std::size_t& bytes) {
      return inner(queue, c, permuted(c, arguments), bytes);
    };
  spec.bytes = [inner = spec.bytes, backward](const Case& c) {
    return inner(c) - conv2d_untouched(c, backward);
  };
  spec.cases = [backward] { return conv2d_cases(backward); };
  spec.adjust = conv2d_adjust;
  spec.standard_shape = [](const Shape& s) {
    return Shape{std::min<std::int64_t>(s[0], 3), 2, 3, 2 + s[1] % 4, 2, 2, 2};
  };
  spec.suits = [inner = spec.suits](const Case& c) {  // as much padding as the oracle has time for
    return inner(c) && c.parameter("padding_h") <= 7 && c.parameter("padding_w") <= 7;
  };
  spec.largest_exponent = 50;  // sums of products of two stay numbers
  spec.bench = [] {
    BenchCases b;
    const std::map<std::string, double> same = {{"padding_h", 1}, {"padding_w", 1}, {"channels_last", 1}};
    std::map<std::string, double> planes = same, depthwise = same;
    planes["channels_last"] = 0, depthwise["groups"] = 256;
    for (DType type : {DType::f32, DType::bf16}) {
      for (const auto& layout : {same, planes}) {
        b.cache.push_back({{1, 64, 56, 56, 64, 3, 3}, type, layout});
        b.cache.push_back({{1, 256, 14, 14, 256, 3, 3}, type, layout});
        b.gpu.push_back({{32, 64, 56, 56, 64, 3, 3}, type, layout});
        b.gpu.push_back({{32, 256, 14, 14, 256, 3, 3}, type, layout});
      }
      b.gpu.push_back({{32, 256, 28, 28, 256, 3, 3}, type, depthwise});
    }
    return b;
  };
  return spec;
}

inline std::vector<Spec> conv2d_specs() {
  Spec forward = conv2d_spec(false), backward = conv2d_spec(true);
  forward.flops = [](const Case& c) {
    Case one = c;  // what follows the products
    one.shape = {1, 0, 1, 1, 1, 1, 1};
    one.parameters = {{"activation", c.parameter("activation")}, {"bias", c.parameter("bias", 1)}};
    Arrays<Counted> arrays;
    for (const char* name : {"x", "w"}) arrays[name] = Array<Counted>(std::vector<Counted>{});
    if (c.parameter("bias", 1) != 0) arrays["bias"] = Array<Counted>(std::vector<Counted>(1, 0.5));
    arrays["y"] = Array<Counted>(std::vector<Counted>(1, 0.5));
    Counted::operations() = 0;
    Conv2dOracle::run(one, arrays);
    const Conv2dCase z(c);
    return 2 * z.products() + double(z.n * z.k * z.p * z.q) * static_cast<double>(Counted::operations());
  };
  backward.flops = [](const Case& c) {
    const Conv2dCase z(c);
    double sum = 2 * double(z.n * z.c * z.h * z.w) * double(z.r * z.s) * double(z.filters());
    if (c.parameter("dw", 1) != 0) sum += 2 * z.products();
    if (c.parameter("dbias", 1) != 0) sum += double(z.n * z.k * z.p * z.q);
    return sum;
  };
  return {forward, backward};
}

}  // namespace rooftile::harness
