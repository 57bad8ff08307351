#include "rooftile/ops/transpose/transpose.h"

#include <utility>

#include "rooftile/core/check.h"
#include "rooftile/core/signature.h"
#include "rooftile/ops/transpose/transpose.problem.h"

namespace rooftile {
namespace {

constexpr const char* kName = "transpose";
constexpr Signature::Types kAll{
    'T',
    {DType::f64, DType::f32, DType::tf32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2, DType::i64,
     DType::i32, DType::i8, DType::u8, DType::boolean}};
constexpr Signature kTranspose{kName, {kAll}, {input("x", 'T', "... M N"), output("y", 'T', "... N M")}};
constexpr Signature kPermute{"permute", {kAll}, {input("x", 'T', "..."), output("y", 'T', "...")}};

/// The rungs: one matrix of 32-bit elements, row by row.
Status plain_matrix(const TransposeProblem& p) {
  if (p.width() != 4)
    return Status::error("%s: the ladder's rungs take elements of 32 bits, x is %s", kName, name(p.dtype));
  if (!p.plain)
    return Status::error(
        "%s: the ladder's rungs take one matrix, in x and y row by row without gaps; these are %lld matrices "
        "of %lldx%lld, or there are gaps",
        kName, static_cast<long long>(p.m > 0 && p.n > 0 ? p.size() / p.m / p.n : 0),
        static_cast<long long>(p.m), static_cast<long long>(p.n));
  return {};
}
/// The GPU's first rungs have a row of blocks for each 32 rows of a matrix; a grid has at most 65535 such.
Status grid_matrix(const TransposeProblem& p) {
  if (Status s = plain_matrix(p); !s) return s;
  constexpr std::int64_t kMax = std::int64_t{65535} * 32;
  if (p.m <= kMax && p.n <= kMax) return {};
  return Status::error("%s: this rung takes at most %lld rows and columns, x is %lldx%lld", kName,
                       static_cast<long long>(kMax), static_cast<long long>(p.m),
                       static_cast<long long>(p.n));
}
/// Words of 16 bytes, in x and in y.
Status word_matrix(const TransposeProblem& p) {
  if (Status s = grid_matrix(p); !s) return s;
  const auto address = [](const void* data) {
    return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(data) % 16);
  };
  if (p.m % 4 == 0 && p.n % 4 == 0 && address(p.x) == 0 && address(p.y) == 0) return {};
  return Status::error(
      "%s: this rung moves words of 16 bytes: rows and columns must be multiples of 4, x and y aligned to 16 "
      "bytes; x is %lldx%lld, x and y begin %u and %u bytes behind such a boundary",
      kName, static_cast<long long>(p.m), static_cast<long long>(p.n), address(p.x), address(p.y));
}
Status any_matrix(const TransposeProblem&) { return {}; }

constexpr Variant kVariants[] = {
    {"tile", "squares turned in registers, whole lines on both sides; all widths and strides", Role::standard,
     accepts<any_matrix>},
    {"04_streaming", "whole lines of y, written past the caches", Role::rung, accepts<plain_matrix>},
    {"03_vectors", "squares turned in vector registers", Role::rung, accepts<plain_matrix>},
    {"02_blocked", "block by block, so that each line is used while it is near", Role::rung,
     accepts<plain_matrix>},
    {"01_scalar", "one element after the other, as the equation reads", Role::rung, accepts<plain_matrix>},
    {"05_vectorised", "a thread turns 4x4 elements, in words of 16 bytes", Role::gpu_rung,
     accepts<word_matrix>},
    {"04_padded", "one more column in shared memory, and no two lanes want one bank", Role::gpu_rung,
     accepts<grid_matrix>},
    {"03_shared", "a tile turned in shared memory; both sides coalesced", Role::gpu_rung,
     accepts<grid_matrix>},
    {"02_coalesced_writes", "a warp writes a row of y, and reads a column of x", Role::gpu_rung,
     accepts<grid_matrix>},
    {"01_naive", "a warp reads a row of x, and writes a column of y", Role::gpu_rung, accepts<grid_matrix>},
};

/// x, with its last two dimensions exchanged.
template <class V>
V exchanged(V v) {
  std::swap(v.shape[v.rank - 1], v.shape[v.rank - 2]);
  std::swap(v.stride[v.rank - 1], v.stride[v.rank - 2]);
  return v;
}

/// y's neighbours are `down`; x's, where they are others, are `across`; else the next of y's dimensions is.
void find_axes(TransposeProblem& p) {
  const Rows<2>& rows = p.rows;
  p.down = {rows.columns, rows.column_stride[1], rows.column_stride[0]};
  p.batch = rows;
  p.batch.columns = 1;
  p.batch.column_stride[0] = p.batch.column_stride[1] = 1;
  if (rows.rank == 0) return;
  int chosen = rows.rank - 1;
  std::int64_t closest = std::llabs(p.down.x_stride);
  for (int d = 0; d < rows.rank; ++d) {  // of equally close ones the last, which is closest in y, too
    const std::int64_t stride = std::llabs(rows.stride[1][d]);
    if (stride == 0 || stride > closest || (stride == closest && closest == std::llabs(p.down.x_stride)))
      continue;
    chosen = d;
    closest = stride;
  }
  p.across = {rows.extent[chosen], rows.stride[1][chosen], rows.stride[0][chosen]};
  p.batch.rows /= p.across.size;
  --p.batch.rank;
  for (int d = chosen; d < p.batch.rank; ++d) {
    p.batch.extent[d] = rows.extent[d + 1];
    for (int o = 0; o < 2; ++o) p.batch.stride[o][d] = rows.stride[o][d + 1];
  }
}

Status launch(const Queue& queue, const Op& op, const Call& c) {
  const ConstView &x = c.view(0), &y = c.view(1);
  TransposeProblem problem{};
  problem.x = x.data;
  problem.y = c.output(1);
  problem.dtype = x.dtype;
  problem.m = x.shape[x.rank - 2];
  problem.n = x.shape[x.rank - 1];
  problem.plain = is_dense(x) && is_dense(y) && x.size() == problem.m * problem.n;
  problem.rows = elements_of(exchanged(y), x);
  find_axes(problem);
  return dispatch(queue, op, &problem, c.variant);
}

/// The same walk, whatever the dimensions: it knows of rows, and of which of their dimensions x has
/// neighbours in.
Status launch_permute(const Queue& queue, const Op& op, const Call& c) {
  const ConstView &x = c.view(0), &y = c.view(1);
  TransposeProblem problem{};
  problem.x = x.data;
  problem.y = c.output(1);
  problem.dtype = x.dtype;
  problem.rows = elements_of(y, x);
  find_axes(problem);
  return dispatch(queue, op, &problem, c.variant);
}

constexpr Variant kPermuteVariants[] = {
    {"tile", "transpose's tiles over the dimensions in which x and y have neighbours", Role::standard,
     accepts<any_matrix>},
};

}  // namespace

extern const Op transpose_op{"transpose", "forward", kName, kVariants, kTranspose, launch};
extern const Op permute_op{"permute", "forward", "permute", kPermuteVariants, kPermute, launch_permute};
extern const Op* const transpose_ops[] = {&transpose_op, &permute_op, nullptr};

Status transpose(const Queue& queue, ConstView x, View y, const TransposeOptions& options) {
  return call(queue, transpose_op, {&x, &y}, {}, options.variant);
}
Status permute(const Queue& queue, ConstView x, View y, const PermuteOptions& options) {
  return call(queue, permute_op, {&x, &y}, {}, options.variant);
}

}  // namespace rooftile
