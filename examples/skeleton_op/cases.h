#pragma once
#include "rooftile/ops/skeleton/oracle.h"
#include "rooftile/ops/skeleton/skeleton.h"

namespace rooftile::harness {

/// Beside the hostile shapes, strides and values that every op gets: what is special to this one.
inline std::vector<Case> skeleton_cases() {
  return {{{3, 70001}, DType::f32, {}}, {{4, 300}, DType::f32, {}, Layout::contiguous, Fill::large_offset}};
}

inline BenchCases skeleton_bench() {
  BenchCases b;
  b.cache.push_back({{64, 1024}, DType::f32, {}});
  b.memory.push_back({{65536, 4096}, DType::f32, {}});
  return b;
}

inline std::vector<Spec> skeleton_specs() {
  return {Spec{
      .function = "skeleton",
      .axes = "rows x columns (more outer dimensions may precede)",
      .dtypes = {DType::f32, DType::f16, DType::bf16},
      .operands = [](const Case& c) -> std::vector<Operand> {
        return {{"x", Operand::Kind::input, c.dtype, c.shape},
                {"y", Operand::Kind::output, c.dtype, c.shape, true, "x"}};
      },
      .call = [](const Queue& q, const Case&, const Arguments& a, const char* variant,
                 Workspace) { return skeleton(q, a.in("x"), a.out("y"), {variant}); },
      .oracle = oracles<SkeletonOracle>(),
      .flops =
          [](const Case& c) {
            double n = 1;
            for (std::int64_t s : c.shape) n *= static_cast<double>(s);
            return 2 * n;
          },
      .bytes =
          [](const Case& c) {
            double n = 1;
            for (std::int64_t s : c.shape) n *= static_cast<double>(s);
            return 2 * n * bits(c.dtype) / 8;
          },
      .tolerance = {.c = 2,
                    .chain =
                        [](const Case& c, std::string_view variant) {
                          // A row's sum is split over the lanes of a tile, 16 at least; the rung has one
                          // accumulator.
                          const double n = static_cast<double>(c.shape.back());
                          return variant == "01_scalar" ? n : n / 16 + 16;
                        },
                    .accumulator = [](const Case&) { return DType::f32; },
                    .reason = "a quotient and a difference beside the sum"},
      .excuses = {},
      .cases = skeleton_cases,
      .bench = skeleton_bench,
      .largest_exponent = 100,  // a row's sum is to be a number
  }};
}

}  // namespace rooftile::harness
