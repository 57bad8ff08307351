#pragma once
#include "rooftile/ops/transpose/oracle.h"
#include "rooftile/ops/transpose/transpose.h"

namespace rooftile::harness {

inline double transpose_elements(const Case& c) {
  double n = 1;
  for (std::int64_t s : c.shape) n *= static_cast<double>(s);
  return n;
}

/// Every kernel knows of a dtype only how wide it is; each width has one here, and the widths that models
/// are made of have all.
inline constexpr DType kTransposeDTypes[] = {DType::f64,  DType::f32, DType::f16,
                                             DType::bf16, DType::i32, DType::u8};

/// A tile's side is 16 to 256 elements: both sides of each, tails in both directions, whole tiles with none,
/// batches, and matrices so thin that hardly a lane is used.
inline std::vector<Case> transpose_cases() {
  std::vector<Case> cases;
  for (DType type : kTransposeDTypes) {
    const Fill fill = is_floating(type) ? Fill::normal : Fill::bytes;
    const auto add = [&](Shape shape, Layout layout = Layout::contiguous, std::int64_t offset = 0) {
      cases.push_back({shape, type, {}, layout, fill, offset});
    };
    for (std::int64_t side : {63, 64, 65, 128, 160}) add({side, side});
    add({72, 136});
    add({129, 255});
    add({64, 192});
    add({192, 64});
    add({1, 1000});
    add({1000, 1});
    add({2, 1500});
    add({1500, 3});
    add({700, 16});
    add({3, 70, 130});
    add({2, 3, 33, 40});
    add({300, 3, 4});
    add({5, 1, 77});
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed,
                          Layout::broadcast}) {
      add({70, 90}, layout);
      add({3, 64, 80}, layout);
    }
    // Of rows that begin anywhere a tile has 32 to 256 times 64.
    add({257, 65});
    add({301, 131});
    add({2, 523, 67}, Layout::padded_rows);
    for (std::int64_t offset : {1, 2, 4, 8}) add({96, 160}, Layout::offset, offset);
    add({512, 128}, Layout::offset, 3);
  }
  return cases;
}

inline BenchCases transpose_bench() {
  BenchCases b;
  for (DType type : {DType::f32, DType::bf16, DType::u8, DType::f64}) {
    const std::int64_t narrow = 32 / bits(type) > 0 ? 32 / bits(type) : 1;
    const Fill fill = is_floating(type) ? Fill::normal : Fill::bytes;
    b.cache.push_back({{256, 256 * narrow}, type, {}, Layout::contiguous, fill});
    b.memory.push_back({{8192, 4096}, type, {}, Layout::contiguous, fill});
  }
  // 128 MiB moved or more: squares, tall ones and wide ones, a vocabulary that no word divides, a batch of
  // heads, and a matrix one element off a boundary.
  for (DType type : {DType::bf16, DType::f32}) {
    for (const Shape& shape : std::vector<Shape>{{8192, 8192},
                                                 {16384, 16384},
                                                 {4096, 16384},
                                                 {32768, 2048},
                                                 {50257, 1024},
                                                 {8191, 8191},
                                                 {256, 2048, 128}})
      b.gpu.push_back({shape, type, {}});
    Case off{{8192, 8192}, type, {}, Layout::offset};
    off.offset = 1;
    b.gpu.push_back(off);
  }
  b.gpu.push_back({{8192, 8192}, DType::f64, {}});
  b.gpu.push_back({{16384, 16384}, DType::u8, {}, Layout::contiguous, Fill::bytes});
  for (std::int64_t n = 16; n <= 8192; n *= 2)  // powers of two, and between them none
    for (const std::int64_t side : {n, n * 3 / 2}) b.sweep.push_back({{side, side}, DType::f32, {}});
  return b;
}

/// The orders of four dimensions that models use, as numbers of order_of.
inline constexpr double kHeadsFirst = 2, kChannelsLast = 3, kChannelsFirst = 4, kReversed = 23;

/// Rows that stay whole, planes of 2 to 9 channels taken apart and put together, whole tiles, dimensions too
/// small for any.
inline std::vector<Case> permute_cases() {
  std::vector<Case> cases;
  for (DType type : kTransposeDTypes) {
    const Fill fill = is_floating(type) ? Fill::normal : Fill::bytes;
    const auto add = [&](Shape shape, double order, Layout layout = Layout::contiguous,
                         std::int64_t offset = 0) {
      cases.push_back({shape, type, {{"order", order}}, layout, fill, offset});
    };
    add({7}, 0);
    for (std::int64_t head : {1, 16, 33}) add({2, 9, 5, head}, kHeadsFirst);
    for (std::int64_t channels : {2, 3, 4, 5, 9}) {
      add({2, 21, 17, channels}, kChannelsFirst);
      add({2, channels, 21, 17}, kChannelsLast);
    }
    add({1, 40, 60, 3}, kChannelsFirst);
    add({1, 3, 40, 60}, kChannelsLast);
    add({2, 9, 11, 64}, kChannelsFirst);
    add({2, 64, 9, 11}, kChannelsLast);
    add({2, 3, 4, 5}, kReversed);
    add({3, 4, 5, 6, 7}, 77);
    add({2, 3, 1, 2, 3, 2, 2, 3}, 12345);
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed,
                          Layout::broadcast})
      for (double order : {kHeadsFirst, kChannelsLast, kChannelsFirst}) add({3, 5, 37, 4}, order, layout);
    for (double order : {kHeadsFirst, kChannelsFirst}) add({2, 30, 40, 3}, order, Layout::offset, 1);
    add({2, 3, 30, 40}, kChannelsLast, Layout::offset, 1);
  }
  return cases;
}

inline BenchCases permute_bench() {
  BenchCases b;
  const auto of = [](Shape shape, double order, DType type) {
    return Case{
        shape, type, {{"order", order}}, Layout::contiguous, is_floating(type) ? Fill::normal : Fill::bytes};
  };
  const auto add = [&](std::vector<Case>& list, std::int64_t images, std::int64_t side) {
    list.push_back(of({images, side, 64, 64}, kChannelsFirst, DType::f32));
    list.push_back(of({images, 64, side, 64}, kChannelsLast, DType::f32));
    list.push_back(of({4 * images, side, 256, 3}, kChannelsFirst, DType::u8));
    list.push_back(of({4 * images, 3, side, 256}, kChannelsLast, DType::u8));
    list.push_back(of({images, side, 32, 128}, kHeadsFirst, DType::bf16));
    list.push_back(of({images, side, 32, 32}, kHeadsFirst, DType::bf16));
  };
  add(b.cache, 1, 16);
  add(b.memory, 16, 256);
  add(b.gpu, 64, 512);
  for (std::int64_t n = 1; n <= 1 << 14; n *= 2)
    b.sweep.push_back(of({1, n, 32, 32}, kHeadsFirst, DType::f32));
  return b;
}

inline Spec permute_spec() {
  return {
      .function = "permute",
      .axes = "x's sizes; order: which of their orders y has, sorted as words are",
      .dtypes = {std::begin(kTransposeDTypes), std::end(kTransposeDTypes)},
      .operands = [](const Case& c) -> std::vector<Operand> {
        const bool batched = c.shape.size() > 1 && order_of(c)[0] == 0;
        return {{"x", Operand::Kind::input, c.dtype, c.shape, batched},
                {"y", Operand::Kind::output, c.dtype, permuted_shape(c), batched}};
      },
      .call =
          [](const Queue& q, const Case& c, const Arguments& a, const char* variant, Workspace) {
            const std::vector<int> order = order_of(c);
            return permute(q, permuted(a.in("x"), order.data(), order.size()), a.out("y"), {variant});
          },
      .oracle = oracles<PermuteOracle, true>(),
      .flops = [](const Case&) { return 0.0; },
      .bytes = [](const Case& c) { return 2 * transpose_elements(c) * bits(c.dtype) / 8; },
      .tolerance = {.exact = true, .reason = "no arithmetic"},
      .excuses = {},
      .cases = permute_cases,
      .bench = permute_bench,
      .options = {{"order", Option::Kind::choice, 1, 0, 23}},
      .huge_case =
          [] {
            return Case{{65537, 5, 6554}, DType::u8, {}, Layout::contiguous, Fill::bytes};
          },
  };
}

inline std::vector<Spec> transpose_specs() {
  return {{
              .function = "transpose",
              .axes = "m x n (a batch's dimensions may precede)",
              .dtypes = {std::begin(kTransposeDTypes), std::end(kTransposeDTypes)},
              .operands = [](const Case& c) -> std::vector<Operand> {
                Shape turned = c.shape;
                std::swap(turned[turned.size() - 1], turned[turned.size() - 2]);
                const bool batched = c.shape.size() > 2;  // x's first dimension is y's, too
                return {{"x", Operand::Kind::input, c.dtype, c.shape, batched},
                        {"y", Operand::Kind::output, c.dtype, turned, batched}};
              },
              .call = [](const Queue& q, const Case&, const Arguments& a, const char* variant,
                         Workspace) { return transpose(q, a.in("x"), a.out("y"), {variant}); },
              .oracle = oracles<TransposeOracle, true>(),
              .flops = [](const Case&) { return 0.0; },
              .bytes = [](const Case& c) { return 2 * transpose_elements(c) * bits(c.dtype) / 8; },
              .tolerance = {.exact = true, .reason = "no arithmetic"},
              .excuses = {},
              .cases = transpose_cases,
              .bench = transpose_bench,
              .least_rank = 2,
              // A batch, whose matrices can be looked at one by one.
              .huge_case =
                  [] {
                    return Case{{65537, 5, 6554}, DType::u8, {}, Layout::contiguous, Fill::bytes};
                  },
          },
          permute_spec()};
}

}  // namespace rooftile::harness
