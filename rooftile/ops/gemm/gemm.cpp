#include "rooftile/ops/gemm/gemm.h"

#include <algorithm>
#include <cmath>

#include "rooftile/core/check.h"
#include "rooftile/core/signature.h"
#include "rooftile/ops/gemm/gemm.kinds.h"
#include "rooftile/ops/gemm/gemm.operand.h"

namespace rooftile {
namespace {

constexpr const char* kName = "gemm";
constexpr Signature kGemm{
    kName,
    {{'T', {DType::f64, DType::f32, DType::tf32, DType::f16, DType::bf16, DType::i8}},
     {'O', {DType::f32, DType::i32}, 'T'},
     {'B', {DType::f32}, 'O'}},
    {input("a", 'T', "... M K"), input("b", 'T', "... K N"), optional(input("c", 'O', "... M N")),
     optional(input("bias", 'B', "N")), output("y", 'O', "... M N", "c")},
    {kAlpha, kBeta, kActivation, kGate}};
enum Operand { kA, kB, kC, kBias, kY };

long long said(std::int64_t n) { return static_cast<long long>(n); }

Status any_product(const GemmProblem&) { return {}; }

/// The ladders' rungs, on a CPU and on a GPU: one product of one dtype, without an epilogue.
Status bare_product(const GemmProblem& p, DType type) {
  if (p.type != type || p.out != type)
    return Status::error("%s: this rung takes %s, a is %s and y is %s", kName, name(type), name(p.type),
                         name(p.out));
  if (p.batch.rows > 1)
    return Status::error("%s: the ladder's rungs take one product, this is a batch of %lld", kName,
                         said(p.batch.rows));
  if (p.bias || p.reads_c() || p.alpha != 1 || p.activation != 0)
    return Status::error(
        "%s: the ladder's rungs compute A·B alone; alpha is %g, beta is %g, activation is %d, and a bias is "
        "%s",
        kName, p.alpha, p.beta, p.activation, p.bias ? "given" : "absent");
  return {};
}
/// Whether a matrix lies row by row without gaps.
bool by_rows(std::int64_t rows, std::int64_t row, std::int64_t columns, std::int64_t column) {
  return (rows <= 1 || row == columns) && (columns <= 1 || column == 1);
}
Status rows_of(const GemmProblem& p, const char* wanted, bool b_fits) {
  if (by_rows(p.m, p.a_row, p.k, p.a_column) && b_fits && by_rows(p.m, p.y_row, p.n, p.y_column)) return {};
  return Status::error(
      "%s: the ladder's rungs take matrices row by row without gaps%s; strides are %lld, %lld of a, %lld, "
      "%lld "
      "of b, %lld, %lld of y",
      kName, wanted, said(p.a_row), said(p.a_column), said(p.b_row), said(p.b_column), said(p.y_row),
      said(p.y_column));
}
Status plain_product_of(const GemmProblem& p, DType type) {
  ROOFTILE_TRY(bare_product(p, type));
  return rows_of(p, "", by_rows(p.k, p.b_row, p.n, p.b_column));
}
Status plain_product(const GemmProblem& p) { return plain_product_of(p, DType::f32); }

/// The GPU's rungs have a row of blocks for each 8 rows at the least, and a grid at most 65535 of them.
Status grid_product(const GemmProblem& p, DType type) {
  constexpr std::int64_t kMax = std::int64_t{65535} * 8;
  if (p.m > kMax || p.n > kMax || p.k > 0x7fffff00)
    return Status::error("%s: the GPU's rungs take at most %lld rows and columns, y is %lldx%lld", kName,
                         said(kMax), said(p.m), said(p.n));
  return bare_product(p, type);
}
Status gpu_product(const GemmProblem& p) {
  ROOFTILE_TRY(grid_product(p, DType::f32));
  return plain_product(p);
}
/// Words of 16 bytes throughout.
Status word_product(const GemmProblem& p, DType type) {
  ROOFTILE_TRY(grid_product(p, type));
  ROOFTILE_TRY(plain_product_of(p, type));
  const int in_word = 128 / bits(type);
  const auto address = [](const void* data) {
    return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(data) % 16);
  };
  if (p.n % in_word == 0 && p.k % in_word == 0 && address(p.a) == 0 && address(p.b) == 0 && address(p.y) == 0)
    return {};
  return Status::error(
      "%s: this rung moves words of 16 bytes: N and K must be multiples of %d, a, b and y aligned to 16 "
      "bytes; "
      "N is %lld, K is %lld, and they begin %u, %u and %u bytes past such a boundary",
      kName, in_word, said(p.n), said(p.k), address(p.a), address(p.b), address(p.y));
}
Status f32_word_product(const GemmProblem& p) { return word_product(p, DType::f32); }
Status bf16_word_product(const GemmProblem& p) { return word_product(p, DType::bf16); }
/// B by columns: its neighbours are along K.
Status turned_product(const GemmProblem& p) {
  ROOFTILE_TRY(grid_product(p, DType::f32));
  return rows_of(p, ", and of B column by column", by_rows(p.n, p.b_column, p.k, p.b_row));
}

/// Tensor cores: f16, bf16, tf32, i8, any strides.
Status mma_product(const GemmProblem& p) {
  if (p.type != DType::f32 && p.type != DType::f64) return {};
  return Status::error("%s: tensor cores take f16, bf16, tf32 and i8 here, a is %s", kName, name(p.type));
}

/// What Hopper's copy engine brings: a matrix by 16-byte vectors.
Status copied_operand(const GemmProblem& p, const char* operand, int index, std::int64_t mn) {
  const int size = bits(p.type) / 8;
  const gemm_gpu::GpuOperand o = index == 1 ? gemm_gpu::a_of(p, size) : gemm_gpu::b_of(p, size);
  if (size != 2 && !o.k_first)
    return Status::error("%s: wgmma reads %s that is contiguous along K alone; %s has strides %lld and %lld",
                         kName, name(p.type), operand, said(index == 1 ? o.mn_stride : o.k_stride),
                         said(index == 1 ? o.k_stride : o.mn_stride));
  if (gemm_gpu::is_boxed(p, index, o, mn, size)) return {};
  std::int64_t of_batch[2] = {};
  for (int d = 0; d < p.batch.rank; ++d) of_batch[d] = p.batch.stride[index][d];
  return Status::error(
      "%s: wgmma copies 16-byte vectors: an operand must be contiguous along one dimension, its other stride "
      "from 16 bytes, the batch's from 0, multiples of 16 below 2^40, as its address must be; %s is at %p, "
      "its strides are %lld and %lld, the batch's %lld and %lld elements",
      kName, operand, static_cast<const void*>(o.data), said(index == 1 ? o.mn_stride : o.k_stride),
      said(index == 1 ? o.k_stride : o.mn_stride), said(of_batch[0]), said(of_batch[1]));
}
/// Hopper's tensor cores: f16, bf16, tf32, i8.
Status wgmma_product(const GemmProblem& p) {
  ROOFTILE_TRY(mma_product(p));
  if (!gemm_gpu::is_mapped(p))
    return Status::error(
        "%s: wgmma takes M, N, K and matrices up to %lld, K from 1, a batch of %d dimensions; they are %lld, "
        "%lld, %lld and %lld, and the batch's strides make it %d dimensions",
        kName, said(gemm_gpu::kMaxMapped), gemm_gpu::kMaxMappedBatch, said(p.m), said(p.n), said(p.k),
        said(p.batch.rows), p.batch.rank);
  ROOFTILE_TRY(copied_operand(p, "a", 1, p.m));
  return copied_operand(p, "b", 2, p.n);
}

/// The GPU's kernel without them. (The CPU's takes all.)
Status simt_product(const GemmProblem& p) {
  if (p.type == DType::f32 || p.type == DType::f64 || p.type == DType::i8) return {};
  return Status::error("%s: simt takes f32, f64 and i8, a is %s, which tensor cores take: mma", kName,
                       name(p.type));
}

constexpr Variant kVariants[] = {
    {"tile", "packed operands, a tile of y in vector registers; all dtypes and strides", Role::standard,
     accepts<any_product>},
    {"wgmma", "Hopper's tensor cores, tiles brought by its copy engine in a ring; the bits of mma",
     Role::standard, accepts<wgmma_product>},
    {"mma", "tensor cores by mma.sync, of i8 in i32; tiles brought by cp.async in a ring", Role::standard,
     accepts<mma_product>},
    {"simt", "a register tile in each thread; f32, f64 and i8, any strides", Role::standard,
     accepts<simt_product>},
    {"05_packed", "blocks of A and B copied into the order in which they are read", Role::rung,
     accepts<plain_product>},
    {"04_register_tile", "a tile of y stays in registers while K passes", Role::rung, accepts<plain_product>},
    {"03_vectors", "a row of y in vectors, a multiple of a row of B added at a time", Role::rung,
     accepts<plain_product>},
    {"02_loop_order", "the loops' order changed, so that B is read along its rows", Role::rung,
     accepts<plain_product>},
    {"01_scalar", "three loops, as the equation reads", Role::rung, accepts<plain_product>},
    {"09_mma", "a warp multiplies tiles in one instruction, of bf16", Role::gpu_rung,
     accepts<bf16_word_product>},
    {"08_double_buffered", "the next tile is in flight while this one is computed", Role::gpu_rung,
     accepts<f32_word_product>},
    {"07_vector_loads", "16 bytes at a time, shared memory padded", Role::gpu_rung,
     accepts<f32_word_product>},
    {"06_register_tile", "a thread computes a square of y", Role::gpu_rung, accepts<gpu_product>},
    {"05_coarsened", "a thread computes eight elements of a column of y", Role::gpu_rung,
     accepts<gpu_product>},
    {"04_tile_size", "the tile's side chosen at run time", Role::gpu_rung, accepts<gpu_product>},
    {"03_shared", "a block's tiles of A and B in shared memory", Role::gpu_rung, accepts<gpu_product>},
    {"02_coalesced", "a warp reads a row of B", Role::gpu_rung, accepts<gpu_product>},
    {"01_naive", "a thread computes an element, a warp a column of y", Role::gpu_rung, accepts<gpu_product>},
    {"corner_turning", "B given by columns: read along K, turned in shared memory", Role::gpu_rung,
     accepts<turned_product>},
};

Status launch(const Queue& queue, const Op& op, const Call& call) {
  const ConstView &a = call.view(kA), &b = call.view(kB), &y = call.view(kY), &bias = call.view(kBias);
  const bool has_c = call.view(kC).present();
  const ConstView& c = has_c ? call.view(kC) : y;
  const int row = y.rank - 2, column = y.rank - 1;
  GemmProblem p{};
  p.a = a.data;
  p.b = b.data;
  p.c = has_c ? c.data : nullptr;
  p.bias = bias.present() ? bias.data : nullptr;
  p.y = call.output(kY);
  p.type = a.dtype;
  p.out = y.dtype;
  p.bias_type = bias.present() ? bias.dtype : y.dtype;
  p.m = y.shape[row];
  p.n = y.shape[column];
  p.k = a.shape[column];
  const auto strides = [&](const ConstView& v, std::int64_t& of_row, std::int64_t& of_column) {
    of_row = v.stride[row];
    of_column = v.stride[column];
  };
  strides(a, p.a_row, p.a_column);
  strides(b, p.b_row, p.b_column);
  strides(c, p.c_row, p.c_column);
  strides(y, p.y_row, p.y_column);
  p.bias_stride = bias.present() ? bias.stride[0] : 0;
  ROOFTILE_TRY(set_options(kName, p, call, has_c));

  // The batch: each operand's outer dimensions, as rows of one element.
  ConstView outer[] = {y, a, b, c};
  for (ConstView& v : outer) {
    v.rank = y.rank - 1;
    v.shape[row] = v.stride[row] = 1;
  }
  p.batch = rows_of(outer[0], outer[1], outer[2], outer[3]);
  return dispatch(queue, op, &p, call.variant);
}

}  // namespace

extern const Op gemm_op{"gemm", "forward", kName, kVariants, kGemm, launch};
extern const Op gemm_pack_op, gemm_packed_op;  // gemm.packed.cpp
extern const Op* const gemm_ops[] = {&gemm_op, &gemm_pack_op, &gemm_packed_op, nullptr};

Status gemm(const Queue& queue, const GemmInputs& in, View y, const GemmOptions& options,
            Workspace workspace) {
  return call(queue, gemm_op, {&in.a, &in.b, &in.c, &in.bias, &y},
              {options.alpha, options.beta, static_cast<double>(options.activation), double(options.gate)},
              options.variant, workspace);
}

}  // namespace rooftile
