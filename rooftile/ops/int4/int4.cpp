#include "rooftile/ops/int4/int4.h"

#include <algorithm>

#include "rooftile/core/signature.h"
#include "rooftile/ops/int4/int4.problem.h"
#include "rooftile/ops/int4/int4.product.h"

namespace rooftile {
namespace {

constexpr Signature::Types kT{'T', {DType::f32, DType::f16, DType::bf16}};
constexpr Signature::Types kP{'P', {DType::u8}};
constexpr Signature::Types kS{'S', {DType::f32, DType::f16, DType::bf16}};
constexpr Signature::Option kGroup = whole("group", 128, 2);
constexpr const char* kSizes = "group % 2 = 0; P = (K + 1)/2; G = (K + group - 1)/group";

constexpr Signature kQuantize{"quantize_int4",
                              {kT, kP, kS},
                              {input("x", 'T', "... K"), output("packed", 'P', "... P"),
                               output("scales", 'S', "... G"), optional(output("zeros", 'P', "... G"))},
                              {kGroup},
                              kSizes};
constexpr Signature kDequantize{"dequantize_int4",
                                {kT, kP, kS},
                                {input("packed", 'P', "... P"), input("scales", 'S', "... G"),
                                 optional(input("zeros", 'P', "... G")), output("y", 'T', "... K")},
                                {kGroup},
                                kSizes};
constexpr Signature kGemm{
    "gemm_int4",
    {kT, kP, kS, {'B', {DType::f32}, 'T'}},
    {input("x", 'T', "... M K"), input("packed", 'P', "N P"), input("scales", 'S', "N G"),
     optional(input("zeros", 'P', "N G")), optional(input("bias", 'B', "N")), output("y", 'T', "... M N")},
    {kGroup},
    kSizes};

Status any(const void*) { return {}; }
constexpr Variant kQuantizeVariants[] = {
    {"tile", "a group's least and greatest, then codes; bytes packed in registers", Role::standard, any}};
constexpr Variant kDequantizeVariants[] = {
    {"tile", "a code less its zero, times its scale, eight elements at a time", Role::standard, any}};

std::uint8_t* bytes_of(const ConstView& v) {
  return v.present() ? static_cast<std::uint8_t*>(const_cast<void*>(v.data)) : nullptr;
}

Status launch_rows(const Queue& queue, const Op& op, const Call& c, const ConstView& values,
                   const ConstView& packed, const ConstView& scales, const ConstView& zeros) {
  const std::int64_t k = values.shape[values.rank - 1];
  const Int4Problem p{.rows = rows_of(values, packed, scales, zeros.present() ? zeros : scales),
                      .values = const_cast<void*>(values.data),
                      .packed = bytes_of(packed),
                      .scales = const_cast<void*>(scales.data),
                      .zeros = bytes_of(zeros),
                      .group = std::min(c.whole(0), std::max<std::int64_t>(k + k % 2, 2)),
                      .dtype = values.dtype,
                      .scale_type = scales.dtype};
  return dispatch(queue, op, &p, c.variant);
}
Status launch_quantize(const Queue& queue, const Op& op, const Call& c) {
  return launch_rows(queue, op, c, c.view(0), c.view(1), c.view(2), c.view(3));
}
Status launch_dequantize(const Queue& queue, const Op& op, const Call& c) {
  return launch_rows(queue, op, c, c.view(3), c.view(0), c.view(1), c.view(2));
}

Status launch_gemm(const Queue& queue, const Op& op, const Call& c) {
  const ConstView &x = c.view(0), &packed = c.view(1), &scales = c.view(2), &zeros = c.view(3),
                  &y = c.view(5);
  GemmCodes<Int4Weight> p{product_of_rows(x, c.view(4), y, c.output(5)),
                          {.packed = bytes_of(packed),
                           .scales = scales.data,
                           .zeros = bytes_of(zeros),
                           .n = y.shape[y.rank - 1],
                           .k = x.shape[x.rank - 1],
                           .packed_row = packed.stride[0],
                           .packed_column = packed.stride[1],
                           .scale_row = scales.stride[0],
                           .scale_column = scales.stride[1],
                           .zero_row = zeros.present() ? zeros.stride[0] : 0,
                           .zero_column = zeros.present() ? zeros.stride[1] : 0,
                           .group = c.whole(0),
                           .group_log = -1,
                           .scale_type = scales.dtype},
                          &c,
                          dequantised_bytes(queue, x, y) != 0};
  Int4Weight& w = p.w;
  if (w.group >= w.k) w.group = std::int64_t{1} << 62;
  if ((w.group & (w.group - 1)) == 0)
    for (w.group_log = 0; std::int64_t{1} << w.group_log < w.group;) ++w.group_log;
  return dispatch(queue, op, &p, c.variant);
}

std::size_t gemm_bytes(const Queue& queue, const Call& c) {
  return dequantised_bytes(queue, c.view(0), c.view(5));
}

}  // namespace

Status Int4Weight::dequantise(const Queue& queue, const Call& call, const View& to) {
  return dequantize_int4(queue, call.view(1), call.view(2), call.view(3), to, {.group = call.whole(0)});
}

extern const Op quantize_int4_op{"quantize_int4",   "forward", "quantize_int4",
                                 kQuantizeVariants, kQuantize, launch_quantize};
extern const Op dequantize_int4_op{"dequantize_int4",   "forward",   "dequantize_int4",
                                   kDequantizeVariants, kDequantize, launch_dequantize};
extern const Op gemm_int4_op{"gemm_int4", "forward",   "gemm_int4", kCodesVariants<Int4Weight>,
                             kGemm,       launch_gemm, gemm_bytes};
extern const Op* const int4_ops[] = {&quantize_int4_op, &dequantize_int4_op, &gemm_int4_op, nullptr};

Status quantize_int4(const Queue& queue, ConstView x, View packed, View scales, View zeros,
                     const Int4Options& options) {
  return call(queue, quantize_int4_op, {&x, &packed, &scales, &zeros}, {static_cast<double>(options.group)},
              options.variant);
}
Status dequantize_int4(const Queue& queue, ConstView packed, ConstView scales, ConstView zeros, View y,
                       const Int4Options& options) {
  return call(queue, dequantize_int4_op, {&packed, &scales, &zeros, &y}, {static_cast<double>(options.group)},
              options.variant);
}
Status gemm_int4(const Queue& queue, const GemmInt4Inputs& in, View y, const Int4Options& options,
                 Workspace workspace) {
  return call(queue, gemm_int4_op, {&in.x, &in.packed, &in.scales, &in.zeros, &in.bias, &y},
              {static_cast<double>(options.group)}, options.variant, workspace);
}
Status gemm_int4_workspace(const Queue& queue, const GemmInt4Inputs& in, View y, const Int4Options& options,
                           std::size_t& bytes) {
  const ConstView* const views[] = {&in.x, &in.packed, &in.scales, &in.zeros, &in.bias, &y};
  const double values[] = {static_cast<double>(options.group)};
  return workspace_of(queue, gemm_int4_op, Call{views, values}, bytes);
}

}  // namespace rooftile
