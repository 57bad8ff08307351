#pragma once
#include "rooftile/harness/gpu_cases.h"
#include "rooftile/harness/letters.h"
#include "rooftile/ops/cumsum/oracle.h"

namespace rooftile::harness {

/// Lengths on both sides of a vector, a CPU's part, a warp's rows and a block's tile: some each way, the
/// others one after the other by another way.
inline std::vector<Case> cumsum_cases() {
  std::vector<Case> cases;
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    int turn = 0;
    const auto add = [&](Shape shape, int way, Layout layout = Layout::contiguous, Fill fill = Fill::normal,
                         std::int64_t offset = 0, bool in_place = false) {
      const std::map<std::string, double> p = {{"exclusive", way & 1}, {"reverse", way >> 1 & 1}};
      cases.push_back({std::move(shape), type, p, layout, fill, offset, in_place});
    };
    for (int way = 0; way < 4; ++way) {
      for (std::int64_t n : {1, 33, 1025}) add({3, n}, way);
      for (Fill fill : {Fill::one_infinity, Fill::one_nan}) add({3, 150}, way, Layout::contiguous, fill);
    }
    for (std::int64_t n : {2, 3, 7, 15, 16, 17, 31, 63, 65, 129, 255, 1023, 1024, 2047, 2049, 4100})
      add({3, n}, turn++);
    add({1, 20001}, turn++);
    for (const Shape& shape : {Shape{0, 17}, Shape{3, 0}, Shape{40, 30}, Shape{3, 4, 5, 33}})
      add(shape, turn++);
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed,
                          Layout::broadcast})
      for (std::int64_t n : {131, 1130}) add({2, 2, n}, turn++, layout);
    for (std::int64_t offset : {1, 3}) add({3, 1290}, turn++, Layout::offset, Fill::normal, offset);
    for (Fill fill : {Fill::wide, Fill::constant_rows, Fill::large_offset, Fill::zeros, Fill::denormals,
                      Fill::minus_infinities})
      add({5, 300}, turn++, Layout::contiguous, fill);
    for (std::int64_t n : {77, 2500})
      for (int way : {0, 3}) add({3, n}, way, Layout::contiguous, Fill::normal, 0, true);
    add({3, 2500}, turn++, Layout::offset, Fill::normal, 1, true);
  }
  return cases;
}

inline Spec cumsum_spec(const char* function, const OracleFunctions& oracle) {
  Spec spec = spec_of({.function = function,
                       .oracle = oracle,
                       .tolerance = {.c = 2,
                                     // A CPU's vectors of 4 lanes in a part of 1024, then the parts.
                                     .chain =
                                         [](const Case& c, std::string_view) {
                                           const auto n = static_cast<double>(c.shape.back());
                                           return std::ceil(std::min(n, 1024.) / 4) + std::ceil(n / 1024) + 8;
                                         },
                                     .accumulator = [](const Case&) { return DType::f32; },
                                     .reason = "sums within a vector or a tile, of these, and of parts"}});
  spec.flops = [](const Case& c) { return static_cast<double>(rows_of_case(c) * c.shape.back()); };
  spec.cases = cumsum_cases;
  spec.bench = [] {
    BenchCases b;
    for (DType type : {DType::f32, DType::bf16, DType::f16}) {
      b.cache.push_back({{128, 1024}, type, {}});
      b.memory.push_back({{65536, 4096}, type, {}});
    }
    b.gpu = gpu_rows();
    return b;
  };
  spec.largest_exponent = 100;  // sums are numbers
  return spec;
}

inline std::vector<Spec> cumsum_specs() {
  return {cumsum_spec("cumsum", oracles<CumsumOracle>()),
          cumsum_spec("cumsum_backward", oracles<CumsumBackwardOracle>())};
}

}  // namespace rooftile::harness
