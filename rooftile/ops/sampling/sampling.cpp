#include "rooftile/ops/sampling/sampling.h"

#include "rooftile/core/check.h"
#include "rooftile/core/row_problem.h"
#include "rooftile/core/signature.h"
#include "rooftile/ops/sampling/sampling.problem.h"

namespace rooftile {
namespace {

constexpr Signature::Types kT{'T', {DType::f32, DType::f16, DType::bf16}};
constexpr Signature::Types kS{'S', {DType::i64, DType::i32}};
constexpr Signature::Types kI{'I', {DType::i64}};

constexpr Signature kTopK{
    "top_k",
    {kT, kI},
    {input("x", 'T', "... C"), output("values", 'T', "... K"), output("indices", 'I', "... K")},
    {whole("k", 1, 1, kMaxListed)},
    "K = k; C >= k"};
constexpr Signature kSample{
    "sample",
    {kT, kS, kI},
    {input("logits", 'T', "... C"), input("seed", 'S', "1"), optional(input("offset", 'S', "1")),
     optional(input("seeds", 'S', "...")), optional(input("offsets", 'S', "...")),
     output("token", 'I', "...")},
    {real("temperature", 1, 0), whole("top_k", 0, 0), real("top_p", 1, 0, 1), real("min_p", 0, 0, 1)}};

Status too_long(const char* function, const char* operand, const ConstView& x) {
  return Status::error("%s: %s is %s, its rows must be shorter than 2^31", function, operand,
                       describe(x).text);
}

Status launch_top_k(const Queue& queue, const Op& op, const Call& c) {
  const ConstView &x = c.view(0), &values = c.view(1), &indices = c.view(2);
  TopKProblem p{};
  p.rows = rows_of(x, detail::over_columns(values, x), detail::over_columns(indices, x));
  p.x = x.data;
  p.values = c.output(1);
  p.indices = static_cast<std::int64_t*>(c.output(2));
  p.value_stride = values.stride[values.rank - 1];
  p.index_stride = indices.stride[indices.rank - 1];
  p.dtype = x.dtype;
  p.k = static_cast<int>(c.whole(0));
  if (p.rows.columns > INT32_MAX) return too_long("top_k", "x", x);
  return dispatch(queue, op, &p, c.variant);
}

Status launch_sample(const Queue& queue, const Op& op, const Call& c) {
  const ConstView &logits = c.view(0), &seed = c.view(1), &token = c.view(5);
  const auto of_rows = [&](int operand) {
    return c.view(operand).present() ? detail::over_columns(c.view(operand), logits) : logits;
  };
  const auto data = [&](int operand) { return c.view(operand).present() ? c.view(operand).data : nullptr; };
  const SampleProblem p{rows_of(logits, detail::over_columns(token, logits), of_rows(3), of_rows(4)),
                        logits.data,
                        static_cast<std::int64_t*>(c.output(5)),
                        {seed.data, data(2), seed.dtype == DType::i64},
                        data(3),
                        data(4),
                        logits.dtype,
                        c.options[0],
                        c.options[2],
                        c.options[3],
                        c.whole(1),
                        {}};
  if (p.rows.columns > INT32_MAX) return too_long("sample", "logits", logits);
  return dispatch(queue, op, &p, c.variant);
}

Status takes_all(const void*) { return {}; }
constexpr Variant kTopKVariants[] = {
    {"tile", "one pass: what is larger than the k-th so far joins a list", Role::standard, takes_all}};
constexpr Variant kSampleVariants[] = {
    {"tile", "whole weights; up to 64 tokens from a sorted list, else by histograms of the logits' digits",
     Role::standard, takes_all}};

}  // namespace

extern const Op top_k_op{"top_k", "forward", "top_k", kTopKVariants, kTopK, launch_top_k};
extern const Op sample_op{"sample", "forward", "sample", kSampleVariants, kSample, launch_sample};
extern const Op* const sampling_ops[] = {&top_k_op, &sample_op, nullptr};

Status top_k(const Queue& queue, ConstView x, const TopKOutputs& outputs, const TopKOptions& options) {
  return call(queue, top_k_op, {&x, &outputs.values, &outputs.indices}, {static_cast<double>(options.k)},
              options.variant);
}
Status sample(const Queue& queue, const SampleInputs& in, View token, const SampleOptions& options) {
  return call(queue, sample_op, {&in.logits, &in.seed, &in.offset, &in.seeds, &in.offsets, &token},
              {options.temperature, static_cast<double>(options.top_k), options.top_p, options.min_p},
              options.variant);
}

}  // namespace rooftile
