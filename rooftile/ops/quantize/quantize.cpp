#include "rooftile/ops/quantize/quantize.h"

#include "rooftile/core/signature.h"
#include "rooftile/ops/quantize/quantize.problem.h"

namespace rooftile {
namespace {

constexpr Signature::Types kT{'T', {DType::f32, DType::f16, DType::bf16}};
constexpr Signature::Types kF{'F', {DType::f32}};
constexpr Signature::Option kBlock = whole("block", 128, 1);
constexpr const char* kBlocks = "B = (C + block - 1)/block";

constexpr Signature quantizes(const char* function, DType type) {
  return {function,
          {kT, {'Q', {type}}, kF},
          {input("x", 'T', "... C"), optional(input("given", 'F', "... B")), output("codes", 'Q', "... C"),
           output("scale", 'F', "... B")},
          {kBlock},
          kBlocks};
}
constexpr Signature kF8e4m3 = quantizes("quantize_f8e4m3", DType::f8e4m3),
                    kF8e5m2 = quantizes("quantize_f8e5m2", DType::f8e5m2),
                    kI8 = quantizes("quantize_i8", DType::i8);
constexpr Signature kDequantize{
    "dequantize",
    {kT, {'Q', {DType::f8e4m3, DType::f8e5m2, DType::i8}}, kF},
    {input("codes", 'Q', "... C"), input("scale", 'F', "... B"), output("y", 'T', "... C")},
    {kBlock},
    kBlocks};
constexpr Signature::Option kFormat = choice("format", "f8e4m3 f8e5m2 i8");
constexpr Signature kFake{
    "fake_quantize",
    {kT, kF},
    {input("x", 'T', "... C"), optional(input("given", 'F', "... B")), output("y", 'T', "... C", "x")},
    {kBlock, kFormat},
    kBlocks};
constexpr Signature kFakeBackward{"fake_quantize_backward",
                                  {kT, kF},
                                  {input("x", 'T', "... C"), optional(input("given", 'F', "... B")),
                                   input("dy", 'T', "... C"), output("dx", 'T', "... C", "dy x")},
                                  {kBlock, kFormat},
                                  kBlocks};

Status any(const void*) { return {}; }
constexpr Variant kQuantizeVariants[] = {
    {"tile",
     "a block's largest magnitude, then codes by integer arithmetic on what is "
     "held",
     Role::standard, any}};
constexpr Variant kDequantizeVariants[] = {
    {"tile", "a code's bits shifted to an f32's place, and two products", Role::standard, any}};

constexpr Variant kFakeVariants[] = {
    {"tile", "as quantising, codes as what they stand for", Role::standard, any}};
constexpr Variant kBackwardVariants[] = {
    {"tile", "a product of each element, compared with the largest", Role::standard, any}};

DType format_of(const Call& c) {
  constexpr DType kFormats[] = {DType::f8e4m3, DType::f8e5m2, DType::i8};
  return kFormats[c.whole(1)];
}
const float* data_of(const ConstView& scale) {
  return scale.present() ? static_cast<const float*>(scale.data) : nullptr;
}

Status launch(const Queue& queue, const Op& op, const Call& c, const ConstView& values,
              const ConstView& codes, const ConstView& scale, const ConstView& given) {
  const QuantizeProblem p{rows_of(values, codes, scale, given.present() ? given : scale),
                          RowBlocks(values.shape[values.rank - 1], c.whole(0)),
                          const_cast<void*>(values.data),
                          static_cast<std::uint8_t*>(const_cast<void*>(codes.data)),
                          nullptr,
                          static_cast<float*>(const_cast<void*>(scale.data)),
                          data_of(given),
                          values.dtype,
                          code_format(codes.dtype)};
  return dispatch(queue, op, &p, c.variant);
}
Status launch_quantize(const Queue& queue, const Op& op, const Call& c) {
  return launch(queue, op, c, c.view(0), c.view(2), c.view(3), c.view(1));
}
Status launch_dequantize(const Queue& queue, const Op& op, const Call& c) {
  return launch(queue, op, c, c.view(2), c.view(0), c.view(1), {});
}
Status launch_fake(const Queue& queue, const Op& op, const Call& c) {
  const ConstView &x = c.view(0), &given = c.view(1), &y = c.view(2);
  const ConstView& like = given.present() ? given : x;
  const QuantizeProblem p{rows_of(x, y, like, like),
                          RowBlocks(x.shape[x.rank - 1], c.whole(0)),
                          const_cast<void*>(x.data),
                          nullptr,
                          const_cast<void*>(y.data),
                          nullptr,
                          data_of(given),
                          x.dtype,
                          code_format(format_of(c))};
  return dispatch(queue, op, &p, c.variant);
}
Status launch_fake_backward(const Queue& queue, const Op& op, const Call& c) {
  const ConstView &x = c.view(0), &given = c.view(1), &dy = c.view(2), &dx = c.view(3);
  const FakeQuantizeBackwardProblem p{rows_of(dx, x, dy, given.present() ? given : x),
                                      RowBlocks(x.shape[x.rank - 1], c.whole(0)),
                                      c.output(3),
                                      x.data,
                                      dy.data,
                                      data_of(given),
                                      x.dtype,
                                      code_format(format_of(c))};
  return dispatch(queue, op, &p, c.variant);
}

}  // namespace

extern const Op quantize_f8e4m3_op{"quantize_f8e4m3", "forward", "quantize_f8e4m3",
                                   kQuantizeVariants, kF8e4m3,   launch_quantize};
extern const Op quantize_f8e5m2_op{"quantize_f8e5m2", "forward", "quantize_f8e5m2",
                                   kQuantizeVariants, kF8e5m2,   launch_quantize};
extern const Op quantize_i8_op{"quantize_i8",     "forward", "quantize_i8",
                               kQuantizeVariants, kI8,       launch_quantize};
extern const Op dequantize_op{"dequantize",        "forward",   "dequantize",
                              kDequantizeVariants, kDequantize, launch_dequantize};
extern const Op fake_quantize_op{"fake_quantize", "forward", "fake_quantize",
                                 kFakeVariants,   kFake,     launch_fake};
extern const Op fake_quantize_backward_op{"fake_quantize",   "backward",    "fake_quantize_backward",
                                          kBackwardVariants, kFakeBackward, launch_fake_backward};
extern const Op* const quantize_ops[] = {
    &quantize_f8e4m3_op, &quantize_f8e5m2_op,        &quantize_i8_op, &dequantize_op,
    &fake_quantize_op,   &fake_quantize_backward_op, nullptr};

namespace {
Status quantize(const Queue& queue, const Op& op, const ConstView& x, const ConstView& given,
                const View& codes, const View& scale, const QuantizeOptions& options) {
  return call(queue, op, {&x, &given, &codes, &scale}, {static_cast<double>(options.block)}, options.variant);
}
}  // namespace
Status quantize_f8e4m3(const Queue& queue, ConstView x, ConstView given, View codes, View scale,
                       const QuantizeOptions& options) {
  return quantize(queue, quantize_f8e4m3_op, x, given, codes, scale, options);
}
Status quantize_f8e5m2(const Queue& queue, ConstView x, ConstView given, View codes, View scale,
                       const QuantizeOptions& options) {
  return quantize(queue, quantize_f8e5m2_op, x, given, codes, scale, options);
}
Status quantize_i8(const Queue& queue, ConstView x, ConstView given, View codes, View scale,
                   const QuantizeOptions& options) {
  return quantize(queue, quantize_i8_op, x, given, codes, scale, options);
}
Status dequantize(const Queue& queue, ConstView codes, ConstView scale, View y,
                  const QuantizeOptions& options) {
  return call(queue, dequantize_op, {&codes, &scale, &y}, {static_cast<double>(options.block)},
              options.variant);
}

Status fake_quantize(const Queue& queue, ConstView x, ConstView given, View y,
                     const FakeQuantizeOptions& options) {
  return call(queue, fake_quantize_op, {&x, &given, &y},
              {static_cast<double>(options.block), static_cast<double>(options.format)}, options.variant);
}
Status fake_quantize_backward(const Queue& queue, const FakeQuantizeBackwardInputs& in, View dx,
                              const FakeQuantizeOptions& options) {
  return call(queue, fake_quantize_backward_op, {&in.x, &in.given, &in.dy, &dx},
              {static_cast<double>(options.block), static_cast<double>(options.format)}, options.variant);
}

}  // namespace rooftile
