#include "rooftile/harness/check/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "rooftile/harness/check/fill.h"

namespace rooftile::harness {
namespace {

/// One value throughout where a stride of 0 will show one element at every index of the first dimension.
void repeat_first(std::vector<double>& values, const Shape& shape) {
  if (shape.empty() || shape[0] < 2) return;
  const std::size_t inner = values.size() / static_cast<std::size_t>(shape[0]);
  for (std::size_t i = inner; i < values.size(); ++i) values[i] = values[i - inner];
}

/// Values of 2^most and more by a power of 2 smaller.
void bound(std::vector<double>& values, int most) {
  int largest = most;
  for (double v : values)
    if (std::isfinite(v) && v != 0) largest = std::max(largest, std::ilogb(v) + 1);
  for (double& v : values)
    if (std::fabs(v) >= std::ldexp(1, most)) v = std::ldexp(v, most - largest);
}

}  // namespace

Problem::Problem(const Spec& spec, const Case& c, std::uint64_t seed)
    : spec_(&spec), case_(c), operands_(spec.operands(c)), values_(operands_.size()) {
  const bool any_batched = std::any_of(operands_.begin(), operands_.end(), [](const Operand& o) {
    return o.batched && o.kind != Operand::Kind::output;
  });
  Arrays<double> inputs;
  for (std::size_t o = 0; o < operands_.size(); ++o) {
    if (!is_input(o)) continue;
    const Operand& operand = operands_[o];
    // What all rows share (a weight) stays finite: a NaN in it would leave nothing else to see.
    const bool shared = any_batched && !operand.batched;
    Fill fill = shared && !finite(c.fill) ? Fill::normal : c.fill;
    if (!fits(fill, operand.dtype)) fill = is_floating(operand.dtype) ? Fill::normal : Fill::bytes;
    std::vector<double> values = fill_values(operand, fill, seed * 0x9E3779B97F4A7C15u + o);
    if (spec.largest_exponent < 1024 && (fill == Fill::huge || fill == Fill::huge_rows))
      bound(values, spec.largest_exponent);
    inputs[operand.name] = Array<double>(std::move(values));
  }
  if (spec.prepare) spec.prepare(c, inputs);
  for (std::size_t o = 0; o < operands_.size(); ++o) {
    if (!is_input(o)) continue;
    values_[o] = inputs[operands_[o].name].values();
    if (c.layout == Layout::broadcast && operands_[o].keeps_layout &&
        operands_[o].kind == Operand::Kind::input)
      repeat_first(values_[o], operands_[o].shape);
  }
  encode_inputs();
  for (std::size_t o = 0; o < operands_.size(); ++o)
    if (is_input(o)) values_[o] = decode(operands_[o].dtype, bytes_[o]);
}

Problem::Problem(const Spec& spec, const Case& c, std::vector<std::vector<double>> values)
    : spec_(&spec), case_(c), operands_(spec.operands(c)), values_(std::move(values)) {
  encode_inputs();
}

void Problem::encode_inputs() {
  bytes_.resize(operands_.size());
  for (std::size_t o = 0; o < operands_.size(); ++o) {
    if (!is_input(o)) continue;
    if (static_cast<std::int64_t>(values_[o].size()) != count_of(operands_[o].shape))
      throw std::runtime_error(fmt::format("{}: {} holds {} values for shape {}", spec_->function,
                                           operands_[o].name, values_[o].size(),
                                           describe(operands_[o].shape)));
    bytes_[o] = encode(operands_[o].dtype, values_[o]);
  }
}

std::size_t Problem::index_of(const std::string& operand) const {
  std::size_t o = 0;
  while (o < operands_.size() && operand != operands_[o].name) ++o;
  return o;
}

const Answer& Problem::answer(std::size_t wanted) const {
  if (answers_.empty()) {
    std::vector<Answer> answers(operands_.size());
    const bool quad = std::any_of(operands_.begin(), operands_.end(), [](const Operand& o) {
      return o.kind != Operand::Kind::input && o.dtype == DType::f64;
    });
    const auto take = [&](auto arrays) {
      for (std::size_t o = 0; o < operands_.size(); ++o) {
        if (!is_output(o)) continue;
        auto& array = arrays[operands_[o].name];
        Answer& answer = answers[o];
        auto& values = array.values();
        answer.magnitude = std::move(array.magnitudes());
        answer.factors = std::move(array.factors());
        if constexpr (std::is_same_v<std::decay_t<decltype(values)>, std::vector<double>>) {
          answer.value = std::move(values);
        } else {
          answer.value.reserve(values.size());
          answer.rest.resize(values.size());
          for (const auto& v : values) {
            const double value = to_double(v);
            if (std::isfinite(value)) answer.rest[answer.value.size()] = to_double(v - value);
            answer.value.push_back(value);
          }
        }
        answer.rounded = encode(operands_[o].dtype, answer.value);
      }
    };
    if (quad && !spec_->tolerance.exact) {
      if (!spec_->oracle.quad)
        throw std::runtime_error(
            fmt::format("{}: has f64 outputs, but no oracle in quadruple precision", spec_->function));
      auto arrays = this->arrays<Quad>();
      spec_->oracle.quad(case_, arrays);
      take(std::move(arrays));
    } else {
      auto arrays = this->arrays<double>();
      spec_->oracle.exact(case_, arrays);
      take(std::move(arrays));
    }
    answers_ = std::move(answers);
  }
  return answers_[wanted];
}

std::vector<double> cut(const std::vector<double>& dense, const Shape& shape, const Shape& begin,
                        const Shape& part) {
  std::vector<double> result;
  result.reserve(static_cast<std::size_t>(count_of(part)));
  if (count_of(part) == 0) return result;
  // Behind the last dimension that is cut, elements are neighbours in both.
  std::size_t cut_last = 0;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (part[d] != shape[d]) cut_last = d;
  std::int64_t run = 1;
  for (std::size_t d = cut_last; d < shape.size(); ++d) run *= part[d];
  Shape index(cut_last, 0);
  for (;;) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < shape.size(); ++d)
      at = at * shape[d] + begin[d] + (d < cut_last ? index[d] : 0);
    result.insert(result.end(), dense.begin() + at, dense.begin() + at + run);
    std::size_t d = cut_last;
    while (d-- > 0 && ++index[d] == part[d]) index[d] = 0;
    if (d >= cut_last) return result;
  }
}

std::optional<Problem> Problem::slice(std::size_t dim, std::int64_t begin, std::int64_t count) const {
  Case smaller = case_;
  if (dim >= smaller.shape.size()) return {};
  smaller.shape[dim] = count;
  const std::vector<Operand> parts = spec_->operands(smaller);
  if (parts.size() != operands_.size()) return {};
  std::vector<std::vector<double>> values(parts.size());
  for (std::size_t o = 0; o < parts.size(); ++o) {
    const Shape &whole = operands_[o].shape, &part = parts[o].shape;
    if (whole.size() != part.size()) return {};
    Shape from(whole.size(), 0);
    for (std::size_t d = 0; d < whole.size(); ++d) {
      if (part[d] == whole[d]) continue;
      if (whole[d] != case_.shape[dim] || part[d] != count) return {};
      from[d] = begin;
    }
    if (is_input(o)) values[o] = cut(values_[o], whole, from, part);
  }
  return Problem(*spec_, smaller, std::move(values));
}

std::string describe(const Shape& shape) { return fmt::format("{{{}}}", fmt::join(shape, ", ")); }

std::string describe(const Case& c) {
  std::string text = describe(c.shape) + " " + rooftile::name(c.dtype);
  for (const auto& [key, value] : c.parameters) text += fmt::format(" {}={:g}", key, value);
  text += fmt::format(", {}", name(c.layout));
  if (c.layout == Layout::offset) text += fmt::format(" {}", c.offset);
  text += fmt::format(", {}", name(c.fill));
  if (c.in_place) text += ", in place";
  return text;
}

}  // namespace rooftile::harness
