#include "rooftile/ops/nf4/nf4.h"

#include "rooftile/core/signature.h"
#include "rooftile/ops/nf4/nf4.problem.h"

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

}  // namespace

extern const Op quantize_nf4_op{"quantize_nf4",    "forward", "quantize_nf4",
                                kQuantizeVariants, kQuantize, launch_quantize};
extern const Op dequantize_nf4_op{"dequantize_nf4",    "forward",   "dequantize_nf4",
                                  kDequantizeVariants, kDequantize, launch_dequantize};
extern const Op* const nf4_ops[] = {&quantize_nf4_op, &dequantize_nf4_op, nullptr};

Status quantize_nf4(const Queue& queue, ConstView x, View packed, View absmax, const Nf4Options& options) {
  return call(queue, quantize_nf4_op, {&x, &packed, &absmax}, {static_cast<double>(options.block)},
              options.variant);
}
Status dequantize_nf4(const Queue& queue, ConstView packed, ConstView absmax, View y,
                      const DequantizeNf4Options& options) {
  return call(queue, dequantize_nf4_op, {&packed, &absmax, &y},
              {static_cast<double>(options.block), static_cast<double>(options.first)}, options.variant);
}

}  // namespace rooftile
