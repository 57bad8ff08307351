#pragma once
#include <algorithm>

#include "rooftile/harness/letters.h"
#include "rooftile/harness/tensor.h"
#include "rooftile/ops/embedding/embedding.h"
#include "rooftile/ops/embedding/oracle.h"

namespace rooftile::harness {

inline std::vector<Case> embedding_cases() {
  using Options = std::map<std::string, double>;
  std::vector<Case> cases;
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    const auto add = [&](Shape shape, Options options = {}, Layout layout = Layout::contiguous,
                         Fill fill = Fill::normal, std::int64_t offset = 0) {
      cases.push_back({std::move(shape), type, std::move(options), layout, fill, offset});
    };
    // Letters S, V, D behind the outer sizes. The first sets are those that bits, refusals, edges and
    // gradients are checked with.
    add({2, 9, 5, 64}, {});
    add({2, 9, 5, 64}, {{"position_table", 1}, {"I", 1}});
    add({3, 7, 40, 33}, {{"padding_idx", 2}, {"dposition_table", 0}});
    add({30, 30, 24}, {});
    add({40, 10, 24}, {{"outside", 1}, {"position_table", 1}});
    // Reported elsewhere: 769 tokens, all of them the padding (PyTorch 28716).
    add({769, 4, 8}, {{"padding_idx", 3}, {"same", 1}});
    add({769, 4, 8}, {{"same", 1}});    // and none
    add({5000, 3, 4}, {});              // chunks of a GPU's sort
    add({2100, 70000, 2}, {{"I", 1}});  // tokens of three digits in base 256
    add({3, 300, 257, 8}, {{"position_table", 1}});
    for (std::int64_t d : {1, 2, 3, 7, 8, 15, 16, 17, 31, 63, 65, 100, 130, 300, 1030})
      add({3, 4, d}, {{"position_table", 1}});
    for (Shape shape : {Shape{0, 3, 4}, Shape{3, 0, 4}, Shape{3, 4, 0}, Shape{2, 0, 3, 4}, Shape{0, 2, 3, 4},
                        Shape{1, 1, 1}, Shape{2, 3, 2, 5, 6, 8}})
      add(shape, {{"position_table", 1}});
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed,
                          Layout::broadcast})
      add({2, 3, 9, 6, 20}, {{"position_table", 1}, {"padding_idx", 3}}, layout);
    for (std::int64_t offset : {1, 3, 8}) add({2, 9, 5, 64}, {}, Layout::offset, Fill::normal, offset);
    for (Fill fill : {Fill::one_infinity, Fill::one_nan, Fill::denormals, Fill::huge, Fill::wide})
      add({2, 9, 5, 24}, {{"position_table", 1}}, Layout::contiguous, fill);
  }
  return cases;
}

inline void prepare_embedding(const Case& c, Arrays<double>& inputs) {
  const double last = static_cast<double>(c.shape[c.shape.size() - 2] - 1);
  if (c.parameter("same") != 0)
    std::fill(inputs["tokens"].values().begin(), inputs["tokens"].values().end(), std::max(last, 0.));
  if (c.parameter("outside") == 0 && c.shape[c.shape.size() - 2] > 0) return;
  auto& tokens = inputs["tokens"].values();
  const double none[] = {-1, static_cast<double>(c.shape[c.shape.size() - 2]), -2147483648., 2147483647.};
  for (std::size_t i = 0; i < tokens.size(); i += 3) tokens[i] = none[i / 3 % 4];
}

inline Spec embedding_spec(const char* function, const OracleFunctions& oracle, Tolerance tolerance,
                           std::vector<std::string> absent) {
  Spec spec = spec_of({.function = function, .oracle = oracle, .tolerance = tolerance, .absent = absent});
  spec.cases = embedding_cases;
  spec.bench = [] {
    BenchCases b;
    for (DType type : {DType::f32, DType::bf16}) {
      b.cache.push_back({{8, 16, 64, 64}, type, {}});
      b.memory.push_back({{8, 4096, 32768, 1024}, type, {}});
      b.gpu.push_back({{8, 4096, 128256, 4096}, type, {}});
      b.gpu.push_back({{4, 2048, 50304, 768}, type, {}});
    }
    return b;
  };
  spec.standard_shape = [](const Shape& rows_columns) {
    return Shape{rows_columns[0], 2 + rows_columns[1] % 3, 1 + rows_columns[1] % 2, rows_columns[1]};
  };
  spec.prepare = prepare_embedding;
  spec.largest_exponent = 100;  // sums of many
  return spec;
}

inline std::vector<Spec> embedding_specs() {
  Spec forward = embedding_spec("embedding", oracles<EmbeddingOracle>(),
                                {.c = 1,
                                 .chain = nullptr,
                                 .accumulator = [](const Case&) { return DType::f32; },
                                 .reason = "one sum in f32, which is then rounded to 16 bits"},
                                {"position_table"});
  forward.flops = [](const Case& c) {
    const EmbeddingCase e(c);
    return c.parameter("position_table") != 0 ? double((e.tokens - e.outside(c)) * e.columns) : 0.;
  };
  forward.excuses = {{"lower_precision", "one sum, rounded to bf16 as y is",
                      [](const Case& c) { return c.dtype == DType::bf16; }}};
  // Of the table no more rows than there are tokens.
  forward.bytes = [its = forward.bytes](const Case& c) {
    const EmbeddingCase e(c);
    return its(c) - double((e.rows - std::min(e.rows, e.tokens)) * e.columns) * bits(c.dtype) / 8;
  };
  Spec backward = embedding_spec(
      "embedding_backward", oracles<EmbeddingBackwardOracle>(),
      {.c = 2,
       .chain = [](const Case& c,
                   std::string_view) { return double(std::max<std::int64_t>(EmbeddingCase(c).tokens, 1)); },
       .accumulator = [](const Case&) { return DType::f32; },
       .reason = "a sum in f32 of as many terms as there are tokens, at most"},
      {});
  backward.flops = [](const Case& c) {
    const EmbeddingCase e(c);
    const std::int64_t placed = c.parameter("dposition_table", 1) != 0 ? e.tokens : 0;
    return double((e.tokens - e.outside(c) + placed) * e.columns);
  };
  backward.bytes = [its = backward.bytes](const Case& c) {  // the table is not read
    const EmbeddingCase e(c);
    return its(c) - double(e.rows * e.columns) * bits(c.dtype) / 8;
  };
  backward.excuses = {{"input dy", "of one sequence the sum over all is it",
                       [](const Case& c) { return c.shape.size() == 3; }, "dposition_table"}};
  return {forward, backward};
}

}  // namespace rooftile::harness
