#include "rooftile/ops/nf4/nf4.h"

#include <algorithm>

#include "rooftile/core/check.h"
#include "rooftile/core/signature.h"
#include "rooftile/ops/nf4/nf4.problem.h"
#include "rooftile/ops/nf4/nf4.product.h"
#include "rooftile/ops/nf4/nf4.scales.h"

namespace rooftile {
namespace {

constexpr Signature::Types kT{'T', {DType::f32, DType::f16, DType::bf16}};
constexpr Signature::Types kP{'P', {DType::u8}};
constexpr Signature::Types kF{'F', {DType::f32}};
constexpr Signature::Option kBlock = whole("block", 64, 32, 4096);

constexpr Signature kQuantize{
    "quantize_nf4",
    {kT, kP, kF},
    {input("x", 'T', "..."), output("packed", 'P', "N"), output("absmax", 'F', "B")},
    {kBlock},
    "4096 % block = 0; N = (outer + 1)/2; B = (outer + block - 1)/block"};
constexpr Signature kDequantize{
    "dequantize_nf4",
    {kT, kP, kF},
    {input("packed", 'P', "N"), input("absmax", 'F', "B"), output("y", 'T', "...")},
    {kBlock, whole("first", 0, 0)},
    "4096 % block = 0; N >= (first + outer + 1)/2; B >= (first + outer + block - 1)/block"};
constexpr Signature kGemm{"gemm_nf4",
                          {kT, kP, kF, {'B', {DType::f32}, 'T'}},
                          {input("x", 'T', "... M K"), input("packed", 'P', "P"), input("absmax", 'F', "B"),
                           optional(input("bias", 'B', "N")), output("y", 'T', "... M N")},
                          {kBlock},
                          "4096 % block = 0; P = (N*K + 1)/2; B = (N*K + block - 1)/block"};

constexpr Signature kQuantizeScales{"quantize_scales",
                                    {kF, kP},
                                    {input("scales", 'F', "B"), input("offset", 'F', "1"),
                                     output("codes", 'P', "B"), output("absmax", 'F', "D")},
                                    {},
                                    "D = (B + 255)/256"};
constexpr Signature kDequantizeScales{"dequantize_scales",
                                      {kP, kF},
                                      {input("codes", 'P', "B"), input("absmax", 'F', "D"),
                                       input("offset", 'F', "1"), output("scales", 'F', "B")},
                                      {},
                                      "D = (B + 255)/256"};

Status any(const void*) { return {}; }
constexpr Variant kQuantizeVariants[] = {
    {"tile", "a block's largest magnitude, then a search among 15 thresholds; bytes packed in registers",
     Role::standard, any}};
constexpr Variant kDequantizeVariants[] = {
    {"tile", "16 levels in a table, eight elements at a time", Role::standard, any}};

Nf4Problem problem_of(const ConstView& tensor, void* data, const ConstView& packed, const ConstView& absmax,
                      std::int64_t block, std::int64_t first) {
  const ConstView* const views[] = {&tensor};
  Nf4Problem p{.rows = row_major_of(views),
               .data = data,
               .packed = static_cast<std::uint8_t*>(const_cast<void*>(packed.data)),
               .packed_stride = packed.stride[0],
               .absmax = static_cast<float*>(const_cast<void*>(absmax.data)),
               .absmax_stride = absmax.stride[0],
               .first = first,
               .block = static_cast<int>(block),
               .block_log = 0,
               .dtype = tensor.dtype};
  while (1 << p.block_log < p.block) ++p.block_log;
  return p;
}
Status launch_quantize(const Queue& queue, const Op& op, const Call& c) {
  const Nf4Problem p =
      problem_of(c.view(0), const_cast<void*>(c.view(0).data), c.view(1), c.view(2), c.whole(0), 0);
  return dispatch(queue, op, &p, c.variant);
}
Status launch_dequantize(const Queue& queue, const Op& op, const Call& c) {
  const Nf4Problem p = problem_of(c.view(2), c.output(2), c.view(0), c.view(1), c.whole(0), c.whole(1));
  return dispatch(queue, op, &p, c.variant);
}

Status launch_gemm(const Queue& queue, const Op& op, const Call& c) {
  const ConstView &x = c.view(0), &packed = c.view(1), &absmax = c.view(2), &bias = c.view(3), &y = c.view(4);
  GemmCodes<Nf4Weight> p{product_of_rows(x, bias, y, c.output(4)),
                         {.packed = static_cast<const std::uint8_t*>(packed.data),
                          .packed_stride = packed.stride[0],
                          .absmax = static_cast<const float*>(absmax.data),
                          .absmax_stride = absmax.stride[0],
                          .n = y.shape[y.rank - 1],
                          .k = x.shape[x.rank - 1],
                          .block_log = 0},
                         &c,
                         dequantised_bytes(queue, x, y) != 0};
  while (1 << p.w.block_log < c.whole(0)) ++p.w.block_log;
  return dispatch(queue, op, &p, c.variant);
}

std::size_t gemm_bytes(const Queue& queue, const Call& c) {
  return dequantised_bytes(queue, c.view(0), c.view(4));
}

constexpr Variant kScalesVariants[] = {
    {"tile", "256 scales a block, a search of eight steps in a map", Role::standard, any}};

Status launch_scales(const Queue& queue, const Op& op, const Call& c, const ConstView& scales,
                     const ConstView& offset, const ConstView& codes, const ConstView& absmax) {
  const Nf4ScalesProblem p{static_cast<float*>(const_cast<void*>(scales.data)),
                           scales.stride[0],
                           static_cast<const float*>(offset.data),
                           static_cast<std::uint8_t*>(const_cast<void*>(codes.data)),
                           codes.stride[0],
                           static_cast<float*>(const_cast<void*>(absmax.data)),
                           absmax.stride[0],
                           scales.shape[0]};
  return dispatch(queue, op, &p, c.variant);
}
Status launch_quantize_scales(const Queue& queue, const Op& op, const Call& c) {
  return launch_scales(queue, op, c, c.view(0), c.view(1), c.view(2), c.view(3));
}
Status launch_dequantize_scales(const Queue& queue, const Op& op, const Call& c) {
  return launch_scales(queue, op, c, c.view(3), c.view(2), c.view(0), c.view(1));
}

}  // namespace

Status Nf4Weight::dequantise(const Queue& queue, const Call& call, const View& to) {
  return dequantize_nf4(queue, call.view(1), call.view(2), to, {.block = call.whole(0)});
}

extern const Op quantize_scales_op{"quantize_scales", "forward",       "quantize_scales",
                                   kScalesVariants,   kQuantizeScales, launch_quantize_scales};
extern const Op dequantize_scales_op{"dequantize_scales", "forward",         "dequantize_scales",
                                     kScalesVariants,     kDequantizeScales, launch_dequantize_scales};
extern const Op quantize_nf4_op{"quantize_nf4",    "forward", "quantize_nf4",
                                kQuantizeVariants, kQuantize, launch_quantize};
extern const Op dequantize_nf4_op{"dequantize_nf4",    "forward",   "dequantize_nf4",
                                  kDequantizeVariants, kDequantize, launch_dequantize};
extern const Op gemm_nf4_op{"gemm_nf4", "forward",   "gemm_nf4", kCodesVariants<Nf4Weight>,
                            kGemm,      launch_gemm, gemm_bytes};
extern const Op* const nf4_ops[] = {&quantize_nf4_op,      &dequantize_nf4_op, &quantize_scales_op,
                                    &dequantize_scales_op, &gemm_nf4_op,       nullptr};

Status quantize_nf4(const Queue& queue, ConstView x, View packed, View absmax, const Nf4Options& options) {
  return call(queue, quantize_nf4_op, {&x, &packed, &absmax}, {static_cast<double>(options.block)},
              options.variant);
}
Status dequantize_nf4(const Queue& queue, ConstView packed, ConstView absmax, View y,
                      const DequantizeNf4Options& options) {
  return call(queue, dequantize_nf4_op, {&packed, &absmax, &y},
              {static_cast<double>(options.block), static_cast<double>(options.first)}, options.variant);
}

Status gemm_nf4(const Queue& queue, const GemmNf4Inputs& in, View y, const Nf4Options& options,
                Workspace workspace) {
  return call(queue, gemm_nf4_op, {&in.x, &in.packed, &in.absmax, &in.bias, &y},
              {static_cast<double>(options.block)}, options.variant, workspace);
}
Status gemm_nf4_workspace(const Queue& queue, const GemmNf4Inputs& in, View y, const Nf4Options& options,
                          std::size_t& bytes) {
  const ConstView* const views[] = {&in.x, &in.packed, &in.absmax, &in.bias, &y};
  const double values[] = {static_cast<double>(options.block)};
  return workspace_of(queue, gemm_nf4_op, Call{views, values}, bytes);
}

Status quantize_scales(const Queue& queue, ConstView scales, ConstView offset, View codes, View absmax,
                       const ScalesOptions& options) {
  return call(queue, quantize_scales_op, {&scales, &offset, &codes, &absmax}, {}, options.variant);
}
Status dequantize_scales(const Queue& queue, ConstView codes, ConstView absmax, ConstView offset, View scales,
                         const ScalesOptions& options) {
  return call(queue, dequantize_scales_op, {&codes, &absmax, &offset, &scales}, {}, options.variant);
}

}  // namespace rooftile
