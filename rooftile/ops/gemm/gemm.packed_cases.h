#pragma once
// gemm_pack and gemm_packed: gemm's cases, whose b is laid out by the equations below.
#include <cstring>

#include "rooftile/ops/gemm/gemm.packed.h"
#include "rooftile/ops/gemm/oracle.h"

namespace rooftile::harness {

/// Element (p, j) of b, among packed's: strips of 32 columns, the last of what is left, row after row.
inline std::int64_t packed_place(std::int64_t k, std::int64_t n, std::int64_t p, std::int64_t j) {
  const std::int64_t strip = j / 32, width = std::min<std::int64_t>(32, n - strip * 32);
  return 64 + strip * 32 * k + p * width + j % 32;
}

/// A case's shape: K x N.
struct GemmPackOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& arrays) {
    const std::int64_t k = c.shape[0], n = c.shape[1];
    const PackedHeader header(c.dtype, k, n);
    Array<S>& packed = arrays["packed"];
    for (int i = 0; i < PackedHeader::kSize; ++i) packed.store(i, S(double(header.number[i])));
    for (std::int64_t p = 0; p < k; ++p)
      for (std::int64_t j = 0; j < n; ++j)
        packed.store(packed_place(k, n, p, j), arrays["b"].load(gemm_turned(c, 'b') ? j * k + p : p * n + j));
  }
};

/// A case's shape: … x M x K x N.
struct GemmPackedOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& arrays) {
    const std::size_t rank = c.shape.size();
    const Array<S>& packed = arrays["packed"];
    GemmOracle::product(c, arrays, [&](std::int64_t, std::int64_t p, std::int64_t j) {
      return packed.load(packed_place(c.shape[rank - 2], c.shape[rank - 1], p, j));
    });
  }
};

/// What a bench, which fills operands with one pattern, lacks.
inline void put_packed_header(const Case& c, const Arguments& arguments) {
  const std::size_t rank = c.shape.size(), size = static_cast<std::size_t>(bits(c.dtype) / 8);
  const ConstView packed = arguments.in("packed");
  const PackedHeader header(c.dtype, c.shape[rank - 2], c.shape[rank - 1]);
  for (std::size_t i = 0; i < PackedHeader::kSize; ++i) {
    const std::uint64_t bytes = packed_number(c.dtype, header.number[i]);
    std::memcpy(static_cast<char*>(const_cast<void*>(packed.data)) + i * size, &bytes, size);
  }
}

inline ConstView gemm_exchanged(ConstView v, bool turned) {
  if (turned && v.rank >= 2 && v.rank <= kMaxRank) {
    std::swap(v.shape[v.rank - 1], v.shape[v.rank - 2]);
    std::swap(v.stride[v.rank - 1], v.stride[v.rank - 2]);
  }
  return v;
}

inline Spec gemm_pack_spec(const std::vector<DType>& dtypes) {
  static const auto elements = [](const Case& c) { return c.shape[0] * c.shape[1]; };
  return {
      .function = "gemm_pack",
      .axes = "k x n",
      .dtypes = dtypes,
      .operands = [](const Case& c) -> std::vector<Operand> {
        Shape b = c.shape;
        if (gemm_turned(c, 'b')) std::swap(b[0], b[1]);
        return {{"b", Operand::Kind::input, c.dtype, b, false},
                {"packed", Operand::Kind::output, c.dtype, {64 + elements(c)}, false}};
      },
      .call =
          [](const Queue& queue, const Case& c, const Arguments& a, const char* variant, Workspace) {
            return gemm_pack(queue, gemm_exchanged(a.in("b"), gemm_turned(c, 'b')), a.out("packed"),
                             {variant});
          },
      .oracle = oracles<GemmPackOracle>(),
      .flops = [](const Case&) { return 0.; },
      .bytes = [](const Case& c) { return double(2 * elements(c) + 64) * bits(c.dtype) / 8; },
      .tolerance = {.exact = true, .reason = "every bit is copied"},
      .cases =
          [dtypes] {
            std::vector<Case> cases;
            for (DType type : dtypes)
              for (double turned : {0., 2.}) {
                const Fill fill = is_floating(type) ? Fill::normal : Fill::bytes;
                for (const Shape& shape : {Shape{1, 1}, Shape{5, 31}, Shape{64, 32}, Shape{33, 33},
                                           Shape{70, 96}, Shape{130, 101}, Shape{0, 7}, Shape{7, 0}})
                  cases.push_back({shape, type, {{"turned", turned}}, Layout::contiguous, fill});
                for (Layout layout :
                     {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed})
                  cases.push_back({{40, 70}, type, {{"turned", turned}}, layout, fill});
              }
            return cases;
          },
      .bench =
          [] {
            BenchCases b;
            for (DType type : {DType::f32, DType::bf16})
              for (double turned : {0., 2.}) {
                b.cache.push_back({{256, 256}, type, {{"turned", turned}}});
                b.memory.push_back({{4096, 4096}, type, {{"turned", turned}}});
              }
            return b;
          },
      .options = {{"turned", Option::Kind::choice, 0, 0, 3}},
      .least_rank = 2,
      .letters = "KN",
      .outer = false,
  };
}

/// `gemm`: its spec.
inline Spec gemm_packed_spec(Spec gemm) {
  static const Spec whole = gemm;
  Spec spec = gemm;
  spec.function = "gemm_packed";
  spec.operands = [](const Case& c) {
    std::vector<Operand> list = whole.operands(c);
    const std::size_t rank = c.shape.size();
    list[1] = {"packed", Operand::Kind::input, c.dtype, {64 + c.shape[rank - 2] * c.shape[rank - 1]}, false};
    list[1].keeps_layout = false;
    return list;
  };
  spec.call = [](const Queue& queue, const Case& c, const Arguments& a, const char* variant,
                 Workspace workspace) {
    return gemm_packed(
        queue, {gemm_exchanged(a.in("a"), gemm_turned(c, 'a')), a.in("packed"), a.in("c"), a.in("bias")},
        a.out("y"), {c.parameter("alpha", 1), c.parameter("beta"), gemm_activation(c), gemm_gate(c), variant},
        workspace);
  };
  spec.oracle = oracles<GemmPackedOracle, true>();
  spec.cases = [] {
    std::vector<Case> cases = whole.cases();
    std::erase_if(cases, [](const Case& c) { return gemm_turned(c, 'b'); });
    return cases;
  };
  spec.bench = [] {
    BenchCases b;
    const auto add = [&](Shape shape, DType type) {
      b.cache.push_back(
          {std::move(shape), type, {}, Layout::contiguous, is_floating(type) ? Fill::normal : Fill::bytes});
    };
    for (DType type : {DType::f32, DType::bf16}) {
      for (std::int64_t rows : {1, 4, 16, 64}) add({rows, 4096, 4096}, type);
      for (std::int64_t side : {256, 1024, 2048}) add({side, side, side}, type);
    }
    for (DType type : {DType::f64, DType::f16, DType::i8}) add({16, 4096, 4096}, type);
    return b;
  };
  for (Option& option : spec.options)
    if (std::string_view(option.name) == "turned") option.most = 1;
  spec.independent = "M";
  spec.repeats = false;
  spec.prepare = [](const Case& c, Arrays<double>& inputs) {
    whole.prepare(c, inputs);
    const std::size_t rank = c.shape.size();
    const PackedHeader header(c.dtype, c.shape[rank - 2], c.shape[rank - 1]);
    for (int i = 0; i < PackedHeader::kSize; ++i)
      inputs["packed"].values()[static_cast<std::size_t>(i)] = header.number[i];
  };
  spec.bench_prepare = put_packed_header;
  spec.gpu_plan = nullptr;
  return spec;
}

}  // namespace rooftile::harness
