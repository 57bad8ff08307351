#include "rooftile/ops/quantize/quantize.h"

#include <algorithm>

#include "rooftile/core/signature.h"
#include "rooftile/ops/quantize/quantize.parts.h"
#include "rooftile/ops/quantize/quantize.problem.h"

namespace rooftile {
namespace {

constexpr Signature::Types kT{'T', {DType::f32, DType::f16, DType::bf16}};
constexpr Signature::Types kF{'F', {DType::f32}};
constexpr Signature::Types kS{'S', {DType::i64, DType::i32}};
constexpr Signature::Option kBlock = whole("block", 128, 1);
constexpr const char* kBlocks = "B = (C + block - 1)/block";

constexpr Signature quantizes(const char* function, DType type) {
  return {
      function,
      {kT, {'Q', {type}}, kF, kS},
      {input("x", 'T', "... C"), optional(input("given", 'F', "... B")), optional(input("seed", 'S', "1")),
       optional(input("offset", 'S', "1")), output("codes", 'Q', "... C"), output("scale", 'F', "... B")},
      {kBlock},
      kBlocks};
}
constexpr Signature kF8e4m3 = quantizes("quantize_f8e4m3", DType::f8e4m3),
                    kF8e5m2 = quantizes("quantize_f8e5m2", DType::f8e5m2),
                    kI8 = quantizes("quantize_i8", DType::i8);
constexpr Signature quantizes_tensor(const char* function, DType type) {
  return {function,
          {kT, {'Q', {type}}, kF, kS},
          {input("x", 'T', "..."), optional(input("seed", 'S', "1")), optional(input("offset", 'S', "1")),
           output("codes", 'Q', "..."), output("scale", 'F', "1")},
          {}};
}
constexpr Signature kTensorF8e4m3 = quantizes_tensor("quantize_tensor_f8e4m3", DType::f8e4m3),
                    kTensorF8e5m2 = quantizes_tensor("quantize_tensor_f8e5m2", DType::f8e5m2),
                    kTensorI8 = quantizes_tensor("quantize_tensor_i8", DType::i8);
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
constexpr Variant kTensorVariants[] = {
    {"tile", "the largest magnitude in chunks on all threads, then codes", Role::standard, any}};
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
              const ConstView& codes, const ConstView& scale, const ConstView& given,
              const PhiloxNumbers& random = {}) {
  const QuantizeProblem p{rows_of(values, codes, scale, given.present() ? given : scale),
                          QuantizeBlocks(values.shape[values.rank - 1], c.whole(0)),
                          const_cast<void*>(values.data),
                          static_cast<std::uint8_t*>(const_cast<void*>(codes.data)),
                          nullptr,
                          static_cast<float*>(const_cast<void*>(scale.data)),
                          data_of(given),
                          values.dtype,
                          code_format(codes.dtype),
                          random};
  return dispatch(queue, op, &p, c.variant);
}
/// Of the operands `seed` and the one after it.
PhiloxNumbers numbers_of(const Call& c, int seed) {
  const ConstView &its = c.view(seed), &offset = c.view(seed + 1);
  if (!its.present()) return {};
  return {its.data, offset.present() ? offset.data : nullptr, its.dtype == DType::i64};
}
Status launch_quantize(const Queue& queue, const Op& op, const Call& c) {
  return launch(queue, op, c, c.view(0), c.view(4), c.view(5), c.view(1), numbers_of(c, 2));
}

/// Elements of a tensor that are a program of their own: without a scale to find there is no other reason.
constexpr std::int64_t kTensorBlock = 4096;

Status launch_tensor(const Queue& queue, const Op& op, const Call& c) {
  const ConstView &x = c.view(0), &codes = c.view(3);
  const PhiloxNumbers random = numbers_of(c, 1);
  ConstView scale = x;  // everywhere the same one
  std::fill_n(scale.stride, kMaxRank, 0);
  const ConstView *all[] = {&x, &codes, &scale, &scale}, *alone[] = {&x};
  // Words follow the elements' order; else rows are as long as they come.
  const Rows<4> rows = random.seed ? row_major_of(all) : elements_of(all);
  auto* its_scale = static_cast<float*>(c.output(4));
  const QuantizeTensorProblem p{{row_major_of(alone), {x.data}, its_scale, x.dtype, DType::f32},
                                {rows, QuantizeBlocks(rows.columns, kTensorBlock), const_cast<void*>(x.data),
                                 static_cast<std::uint8_t*>(c.output(3)), nullptr, nullptr, its_scale,
                                 x.dtype, code_format(codes.dtype), random}};
  return dispatch(queue, op, &p, c.variant);
}
Status launch_dequantize(const Queue& queue, const Op& op, const Call& c) {
  return launch(queue, op, c, c.view(2), c.view(0), c.view(1), {});
}
Status launch_fake(const Queue& queue, const Op& op, const Call& c) {
  const ConstView &x = c.view(0), &given = c.view(1), &y = c.view(2);
  const ConstView& like = given.present() ? given : x;
  const QuantizeProblem p{rows_of(x, y, like, like),
                          QuantizeBlocks(x.shape[x.rank - 1], c.whole(0)),
                          const_cast<void*>(x.data),
                          nullptr,
                          const_cast<void*>(y.data),
                          nullptr,
                          data_of(given),
                          x.dtype,
                          code_format(format_of(c)),
                          {}};
  return dispatch(queue, op, &p, c.variant);
}
Status launch_fake_backward(const Queue& queue, const Op& op, const Call& c) {
  const ConstView &x = c.view(0), &given = c.view(1), &dy = c.view(2), &dx = c.view(3);
  const FakeQuantizeBackwardProblem p{rows_of(dx, x, dy, given.present() ? given : x),
                                      QuantizeBlocks(x.shape[x.rank - 1], c.whole(0)),
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
extern const Op quantize_tensor_f8e4m3_op{"quantize_tensor_f8e4m3", "forward",     "quantize_tensor_f8e4m3",
                                          kTensorVariants,          kTensorF8e4m3, launch_tensor};
extern const Op quantize_tensor_f8e5m2_op{"quantize_tensor_f8e5m2", "forward",     "quantize_tensor_f8e5m2",
                                          kTensorVariants,          kTensorF8e5m2, launch_tensor};
extern const Op quantize_tensor_i8_op{"quantize_tensor_i8", "forward", "quantize_tensor_i8",
                                      kTensorVariants,      kTensorI8, launch_tensor};
extern const Op dequantize_op{"dequantize",        "forward",   "dequantize",
                              kDequantizeVariants, kDequantize, launch_dequantize};
extern const Op fake_quantize_op{"fake_quantize", "forward", "fake_quantize",
                                 kFakeVariants,   kFake,     launch_fake};
extern const Op fake_quantize_backward_op{"fake_quantize",   "backward",    "fake_quantize_backward",
                                          kBackwardVariants, kFakeBackward, launch_fake_backward};
extern const Op* const quantize_ops[] = {&quantize_f8e4m3_op,
                                         &quantize_f8e5m2_op,
                                         &quantize_i8_op,
                                         &quantize_tensor_f8e4m3_op,
                                         &quantize_tensor_f8e5m2_op,
                                         &quantize_tensor_i8_op,
                                         &dequantize_op,
                                         &fake_quantize_op,
                                         &fake_quantize_backward_op,
                                         nullptr};

namespace {
Status quantize(const Queue& queue, const Op& op, const QuantizeInputs& in, const View& codes,
                const View& scale, const QuantizeOptions& options) {
  return call(queue, op, {&in.x, &in.given, &in.seed, &in.offset, &codes, &scale},
              {static_cast<double>(options.block)}, options.variant);
}
Status quantize_tensor(const Queue& queue, const Op& op, const QuantizeTensorInputs& in, const View& codes,
                       const View& scale, const QuantizeTensorOptions& options) {
  return call(queue, op, {&in.x, &in.seed, &in.offset, &codes, &scale}, {}, options.variant);
}
}  // namespace
Status quantize_f8e4m3(const Queue& queue, const QuantizeInputs& in, View codes, View scale,
                       const QuantizeOptions& options) {
  return quantize(queue, quantize_f8e4m3_op, in, codes, scale, options);
}
Status quantize_f8e5m2(const Queue& queue, const QuantizeInputs& in, View codes, View scale,
                       const QuantizeOptions& options) {
  return quantize(queue, quantize_f8e5m2_op, in, codes, scale, options);
}
Status quantize_i8(const Queue& queue, const QuantizeInputs& in, View codes, View scale,
                   const QuantizeOptions& options) {
  return quantize(queue, quantize_i8_op, in, codes, scale, options);
}
Status quantize_tensor_f8e4m3(const Queue& queue, const QuantizeTensorInputs& in, View codes, View scale,
                              const QuantizeTensorOptions& options) {
  return quantize_tensor(queue, quantize_tensor_f8e4m3_op, in, codes, scale, options);
}
Status quantize_tensor_f8e5m2(const Queue& queue, const QuantizeTensorInputs& in, View codes, View scale,
                              const QuantizeTensorOptions& options) {
  return quantize_tensor(queue, quantize_tensor_f8e5m2_op, in, codes, scale, options);
}
Status quantize_tensor_i8(const Queue& queue, const QuantizeTensorInputs& in, View codes, View scale,
                          const QuantizeTensorOptions& options) {
  return quantize_tensor(queue, quantize_tensor_i8_op, in, codes, scale, options);
}
Status dequantize(const Queue& queue, ConstView codes, ConstView scale, View y,
                  const QuantizeOptions& options) {
  return call(queue, dequantize_op, {&codes, &scale, &y}, {static_cast<double>(options.block)},
              options.variant);
}
Status detail::numbers_of_codes(const Queue& queue, const ConstView& codes, const View& y) {
  const Rows<4> rows = elements_of(y, codes, codes, codes);
  const QuantizeProblem p{rows,
                          QuantizeBlocks(rows.columns, kTensorBlock),
                          y.mutable_data(),
                          static_cast<std::uint8_t*>(const_cast<void*>(codes.data)),
                          nullptr,
                          nullptr,
                          nullptr,
                          y.dtype,
                          code_format(codes.dtype),
                          {}};
  return dispatch(queue, dequantize_op, &p, nullptr);
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
