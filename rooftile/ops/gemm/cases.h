#pragma once
#include <algorithm>

#include "rooftile/harness/signature_spec.h"
#include "rooftile/ops/gemm/gemm.h"
#include "rooftile/ops/gemm/gemm.hopper_plan.h"
#include "rooftile/ops/gemm/gemm.packed_cases.h"
#include "rooftile/ops/gemm/oracle.h"

namespace rooftile::harness {

/// A case's shape is {…, M, K, N}. "out" 1: y is f32 where it may; "bias" 1: of y's dtype, 2: f32; "c" 1:
/// there though it is not read, then full of NaN; "ones": a and b hold 1 throughout; "turned" 1: a is kept by
/// columns, 2: b is, 3: both.
struct GemmCase {
  explicit GemmCase(const Case& its)
      : c(its), rank(its.shape.size()), outer(its.shape.begin(), its.shape.end() - 3) {}
  const Case& c;
  std::size_t rank;
  Shape outer;

  std::int64_t m() const { return c.shape[rank - 3]; }
  std::int64_t k() const { return c.shape[rank - 2]; }
  std::int64_t n() const { return c.shape[rank - 1]; }
  Shape matrix(std::int64_t rows, std::int64_t columns) const {
    Shape s = outer;
    s.push_back(rows);
    s.push_back(columns);
    return s;
  }
  bool widens() const { return c.dtype == DType::f16 || c.dtype == DType::bf16 || c.dtype == DType::tf32; }
  DType out() const {
    return c.dtype == DType::i8 ? DType::i32 : widens() && c.parameter("out") != 0 ? DType::f32 : c.dtype;
  }
  bool has_bias() const { return c.parameter("bias") != 0; }
  DType bias() const { return widens() && c.parameter("bias") == 2 ? DType::f32 : out(); }
  bool reads_c() const { return gemm_beta(c) != 0 || gemm_gate(c); }
  bool has_c() const { return reads_c() || c.parameter("c") != 0; }
};

inline std::vector<Operand> gemm_operands(const Case& c) {
  const GemmCase g(c);
  const bool batch = !g.outer.empty();
  const bool a_turned = gemm_turned(c, 'a'), b_turned = gemm_turned(c, 'b');
  std::vector<Operand> list{{"a", Operand::Kind::input, c.dtype,
                             a_turned ? g.matrix(g.k(), g.m()) : g.matrix(g.m(), g.k()), batch || !a_turned},
                            {"b", Operand::Kind::input, c.dtype,
                             b_turned ? g.matrix(g.n(), g.k()) : g.matrix(g.k(), g.n()), batch}};
  Operand y{"y", Operand::Kind::output, g.out(), g.matrix(g.m(), g.n())};
  if (g.has_c()) {
    list.push_back({"c", Operand::Kind::input, g.out(), y.shape});
    list.back().optional = !g.reads_c();
    y.may_be = "c";
  }
  if (g.has_bias()) {
    list.push_back({"bias", Operand::Kind::input, g.bias(), {g.n()}, false});
    list.back().optional = true;
  }
  list.push_back(y);
  return list;
}

inline double gemm_elements(const Shape& shape) {
  double n = 1;
  for (std::int64_t s : shape) n *= static_cast<double>(s);
  return n;
}
inline double gemm_bytes(const Case& c) {
  double sum = 0;
  for (const Operand& o : gemm_operands(c))
    if (std::string_view(o.name) != "c" || GemmCase(c).reads_c())
      sum += gemm_elements(o.shape) * bits(o.dtype) / 8;
  return sum;
}
/// 2·M·N·K, and what the oracle's epilogue takes.
inline double gemm_flops(const Case& c) {
  const GemmCase g(c);
  Case one = c;
  one.shape = {1, 0, 1};
  Arrays<Counted> arrays;
  for (const Operand& o : gemm_operands(one))
    arrays[o.name] =
        Array<Counted>(std::vector<Counted>(static_cast<std::size_t>(gemm_elements(o.shape)), 0.5));
  Counted::operations() = 0;
  GemmOracle::run(one, arrays);
  const double elements = gemm_elements(g.matrix(g.m(), g.n()));
  return elements * (2 * static_cast<double>(g.k()) + static_cast<double>(Counted::operations()));
}

inline Status gemm_call(const Queue& queue, const Case& c, const Arguments& a, const char* variant,
                        Workspace workspace) {
  const auto matrix = [&](const char* name) { return gemm_exchanged(a.in(name), gemm_turned(c, *name)); };
  return gemm(queue, {matrix("a"), matrix("b"), a.in("c"), a.in("bias")}, a.out("y"),
              {c.parameter("alpha", 1), c.parameter("beta"), gemm_activation(c), gemm_gate(c), variant},
              workspace);
}

inline void gemm_prepare(const Case& c, Arrays<double>& inputs) {
  if (!GemmCase(c).reads_c() && inputs.has("c") && c.dtype != DType::i8)
    for (double& v : inputs["c"].values()) v = std::nan("");
  if (c.parameter("ones") != 0)
    for (const char* name : {"a", "b", "packed"})
      if (inputs.has(name))
        for (double& v : inputs[name].values()) v = 1;
  if (c.dtype == DType::i8 && inputs.has("bias"))  // the sums stay within 32 bits
    for (double& v : inputs["bias"].values()) v = std::trunc(v / 4);
}

inline bool gemm_suits(const Case& c) {
  if (c.dtype == DType::i8)
    return gemm_alpha(c) == 1 && gemm_beta(c) == 0 && gemm_activation(c) == GemmActivation::none &&
           !gemm_gate(c);
  return c.dtype != DType::f64 || gemm_activation(c) <= GemmActivation::relu;
}

inline const char* gemm_refuses(const Case& c) {
  if (gemm_suits(c)) return nullptr;
  return c.dtype == DType::i8 ? "exactly" : "activation";
}

/// Both sides of each tile (12 or 6 rows, 8 to 32 columns), of each block, and of what counts as thin.
inline std::vector<Case> gemm_cases() {
  std::vector<Case> cases;
  using Parameters = std::map<std::string, double>;
  for (DType type : {DType::f64, DType::f32, DType::tf32, DType::f16, DType::bf16, DType::i8}) {
    const auto add = [&](Shape shape, Parameters parameters = {}, Layout layout = Layout::contiguous,
                         Fill fill = Fill::normal, std::int64_t offset = 0, bool in_place = false) {
      const Case c{shape, type, parameters, layout, is_floating(type) ? fill : Fill::bytes, offset, in_place};
      if (gemm_suits(c)) cases.push_back(c);
    };
    const Parameters all{{"alpha", 0.7}, {"beta", -0.3}, {"bias", 2}, {"out", 1}, {"activation", 1}};
    for (const Shape& shape : {Shape{13, 70, 33}, Shape{30, 41, 100}}) {
      add(shape, all);
      add(shape, {{"bias", 1}, {"c", 1}});
      add(shape, {{"alpha", -3}, {"beta", 1}, {"activation", 2}});
      add(shape, {{"beta", 0.125}}, Layout::contiguous, Fill::normal, 0, true);
      for (double activation : {1., 2., 3., 4., 5., 6.}) add(shape, {{"activation", activation}});
      for (double bias : {1., 2.}) add(shape, {{"bias", bias}});
      add(shape, {{"out", 1}});
      for (double activation : {0., 4.}) add(shape, {{"gate", 1}, {"bias", 1}, {"activation", activation}});
      add(shape, {{"gate", 1}, {"out", 1}}, Layout::transposed);
      add(shape, {{"gate", 1}}, Layout::contiguous, Fill::normal, 0, true);
    }
    for (const Shape& shape :
         {Shape{12, 64, 32}, Shape{97, 170, 101}, Shape{1, 300, 129}, Shape{130, 40, 1}, Shape{1, 1, 1},
          Shape{5, 0, 7}, Shape{0, 5, 7}, Shape{5, 7, 0}, Shape{16, 400, 16}, Shape{2, 333, 700},
          Shape{700, 333, 2}, Shape{17, 65, 260}, Shape{3, 20, 30, 40}, Shape{2, 2, 5, 6, 7},
          Shape{5, 1, 70, 33}, Shape{2, 0, 3, 4}})
      add(shape);
    add({5, 0, 7}, {{"bias", 1}, {"beta", 0.5}, {"activation", 1}});
    if (type == DType::f32 || type == DType::bf16) add({197, 530, 190}, all);
    for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed,
                          Layout::broadcast}) {
      add({40, 50, 60}, all, layout);
      add({3, 17, 30, 33}, {}, layout);
      add({2, 90, 40}, {}, layout);
      // flashinfer 4724: beta = 0, C full of NaN, every layout: finite.
      add({14, 20, 34}, {{"c", 1}}, layout);
    }
    // The four orders of A and B; whole words of 16 bytes, as a GPU's large tiles want them, and ends; then
    // none.
    for (double turned : {0., 1., 2., 3.}) {
      add({104, 80, 200}, {{"turned", turned}});
      add({2, 37, 51, 45}, {{"turned", turned}});
      if (type != DType::i8) continue;  // whose pieces are of 4 and of 8 bytes, too
      add({68, 36, 100}, {{"turned", turned}});
      add({72, 200, 88}, {{"turned", turned}});
      add({144, 272, 256}, {{"turned", turned}});
    }
    // Hopper: rows of A above 64 that are few all the same, on three multiprocessors.
    if (bits(type) == 16)
      for (const Shape& shape : {Shape{100, 1040, 50}, Shape{128, 272, 64}})
        for (double out : {0., 1.}) add(shape, {{"turned", 2}, {"out", out}, {"bias", out}});
    // Hopper reads i8 and tf32 along K alone: more slices than its ring holds, ends, words and none in y.
    if (type == DType::i8 || type == DType::tf32) {
      const Parameters b_turned{{"turned", 2}};
      for (const Shape& shape : {Shape{136, 1040, 264}, Shape{70, 144, 37}, Shape{2, 3, 40, 64, 50},
                                 Shape{1, 272, 130}, Shape{200, 48, 1}})
        add(shape, b_turned);
      for (double out : {0., 1.}) {
        add({136, 80, 72}, {{"turned", 2}, {"out", out}, {"bias", 1}});
        add({136, 80, 72}, {{"turned", 2}, {"out", out}, {"alpha", -0.7}});
        add({40, 96, 66}, {{"turned", 2}, {"out", out}}, Layout::padded_rows);
      }
      add({90, 64, 52}, {{"turned", 2}, {"alpha", 0.7}, {"beta", -0.3}, {"activation", 4}});
    }
    // cutlass 2697: M = N = 128, K = 8, all ones: K below one stage of a pipeline.
    add({128, 8, 128}, {{"ones", 1}});
    // OpenBLAS 746: scratch that holds NaN must not leak into the next call.
    add({65, 33, 70}, {}, Layout::contiguous, Fill::one_nan);
    add({3, 5, 7});
  }
  return cases;
}

/// Of the SXM boards of H100 and H200, which have 132 multiprocessors.
inline std::vector<std::string> gemm_gpu_plan(const Case& c) {
  if (c.dtype == DType::f32 || c.dtype == DType::f64)
    return {"simt: tiles of 128x128 where they fill the GPU, else of 64x64"};
  const GemmCase g(c);
  const int size = bits(c.dtype) / 8;
  if (size != 2 && (gemm_turned(c, 'a') || !gemm_turned(c, 'b')))
    return {"mma: tiles of 128x128 where they fill the GPU, else of 64x64",
            "wgmma takes " + std::string(name(c.dtype)) + " where A and B are contiguous along K: turned 2"};
  const auto matrices = static_cast<std::int64_t>(gemm_elements(g.outer));
  const gemm_gpu::HopperPlan plan =
      gemm_gpu::hopper_plan(g.m(), g.n(), matrices, !gemm_turned(c, 'a'), gemm_turned(c, 'b'), 132, size);
  const auto text = [](auto number) { return std::to_string(number); };
  return {"compute capability 9.0 with 132 multiprocessors: wgmma, " +
              std::string(plan.skinny ? "few rows, " : "") + "tiles of " + text(plan.height) + "x" +
              text(plan.width) + (plan.cluster > 1 ? ", two blocks share B" : "") + ", slices of " +
              text(plan.depth) + " along K, " + text(plan.stages) + " in flight",
          text(plan.tiles) + " tiles, at most " + text(plan.waves) + " for a multiprocessor",
          "other GPUs from 8.0, and operands without whole 16-byte vectors: mma"};
}

inline BenchCases gemm_bench() {
  BenchCases b;
  for (DType type : {DType::f32, DType::f64, DType::bf16, DType::f16})
    for (std::int64_t side : {256, 1024, 2048}) b.cache.push_back({{side, side, side}, type, {}});
  // A transformer's products, thin and whole.
  for (DType type : {DType::f32, DType::bf16})
    for (const Shape& shape : {Shape{1, 4096, 4096}, Shape{4, 4096, 4096}, Shape{16, 4096, 4096},
                               Shape{128, 4096, 4096}, Shape{512, 768, 3072}, Shape{512, 3072, 768}})
      b.cache.push_back({shape, type, {}});
  // As a Linear has them: W's rows {N, K} lie along K.
  for (DType type : {DType::f32, DType::bf16})
    for (std::int64_t rows : {1, 4, 16}) b.cache.push_back({{rows, 4096, 4096}, type, {{"turned", 2}}});
  for (DType type : {DType::bf16, DType::f16, DType::tf32, DType::f32}) {
    for (std::int64_t side : {1024, 2048, 4096, 8192}) b.gpu.push_back({{side, side, side}, type, {}});
    for (std::int64_t rows : {1, 16, 64, 512}) b.gpu.push_back({{rows, 4096, 4096}, type, {}});
  }
  for (double turned : {1., 2., 3.}) b.gpu.push_back({{4096, 4096, 4096}, DType::bf16, {{"turned", turned}}});
  b.gpu.push_back({{4096, 4096, 4096}, DType::f64, {}});
  b.gpu.push_back({{4096, 4096, 4096}, DType::i8, {}, Layout::contiguous, Fill::bytes});
  // As a Linear has them, which is how Hopper's tensor cores read tf32 and i8.
  for (DType type : {DType::i8, DType::tf32})
    for (const Shape& shape : {Shape{1024, 1024, 1024}, Shape{4096, 4096, 4096}, Shape{8192, 8192, 8192},
                               Shape{16, 4096, 4096}, Shape{64, 4096, 4096}, Shape{512, 4096, 4096}})
      b.gpu.push_back(
          {shape, type, {{"turned", 2}}, Layout::contiguous, type == DType::i8 ? Fill::bytes : Fill::normal});
  for (std::int64_t n = 16; n <= 2048; n *= 2)  // powers of two, and between them none
    for (const std::int64_t side : {n, n * 3 / 2}) b.sweep.push_back({{side, side, side}, DType::f32, {}});
  return b;
}

inline Spec gemm_spec() {
  return {
      .function = "gemm",
      .axes = "m x k x n (a batch's dimensions may precede)",
      .dtypes = {DType::f64, DType::f32, DType::tf32, DType::f16, DType::bf16, DType::i8},
      .operands = gemm_operands,
      .call = gemm_call,
      .oracle = oracles<GemmOracle, true>(),
      .flops = gemm_flops,
      .bytes = gemm_bytes,
      .tolerance = {.c = 2,
                    // And what comes after the products: a factor, a bias, a function, c.
                    .chain = [](const Case& c,
                                std::string_view) { return static_cast<double>(GemmCase(c).k()) + 4; },
                    .accumulator =
                        [](const Case& c) {
                          return c.dtype == DType::f64 || c.dtype == DType::i8 ? GemmCase(c).out()
                                                                               : DType::f32;
                        },
                    .reason = "one chain of K fused multiply-adds; on an ISA without them each rounds twice"},
      .excuses = {},
      .cases = gemm_cases,
      .bench = gemm_bench,
      .options = {{"alpha", Option::Kind::real, 1, -kMaxFloat, kMaxFloat},
                  {"beta", Option::Kind::real, 0, -kMaxFloat, kMaxFloat},
                  {"activation", Option::Kind::choice, 0, 0, 6},
                  {"gate"},
                  {"bias", Option::Kind::choice, 0, 0, 2},
                  {"out"},
                  {"turned", Option::Kind::choice, 0, 0, 3}},
      .least_rank = 3,
      // Products of two stay numbers.
      .largest_exponent = 56,
      .standard_shape =
          [](const Shape& s) {
            return Shape{s[0], 1 + (31 * s[0] + 17 * s[1]) % 61, s[1]};
          },
      // A gate takes no beta; and what overflows before a gate makes it small again is infinite.
      .suits =
          [](const Case& c) { return !gemm_gate(c) || (gemm_beta(c) == 0 && std::fabs(gemm_alpha(c)) <= 4); },
      .letters = "MKN",
      .independent = "MN",
      // Of random options those that a dtype takes.
      .adjust =
          [](Case& c) {
            if (c.dtype == DType::i8)
              c.parameters["alpha"] = 1, c.parameters["beta"] = c.parameters["activation"] = 0,
              c.parameters["gate"] = 0;
            if (c.dtype == DType::f64 && gemm_activation(c) > GemmActivation::relu)
              c.parameters["activation"] = 1;
            if (gemm_gate(c))
              c.parameters["beta"] = 0, c.parameters["alpha"] = std::clamp(gemm_alpha(c), -4., 4.);
          },
      .prepare = gemm_prepare,
      .refuses = gemm_refuses,
      // DeepGEMM 238: M·K beyond 2^31.
      .huge_case =
          [] {
            return Case{{1048577, 2100, 5}, DType::bf16, {}};
          },
      .gpu_plan = gemm_gpu_plan,
  };
}

inline std::vector<Spec> gemm_specs() {
  const Spec gemm = gemm_spec();
  return {gemm, gemm_pack_spec(gemm.dtypes), gemm_packed_spec(gemm)};
}

}  // namespace rooftile::harness
