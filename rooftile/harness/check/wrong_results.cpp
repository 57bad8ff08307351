#include "rooftile/harness/check/wrong_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>

namespace rooftile::harness {
namespace {

using Values = std::optional<std::vector<double>>;  // nothing: means nothing for this output and case

Values zeros(const Problem& p, std::size_t o) { return std::vector<double>(p.answer(o).value.size(), 0); }

/// The mean of what is right, so that no other constant is closer. One element is a constant.
Values constant(const Problem& p, std::size_t o) {
  const std::vector<double>& right = p.answer(o).value;
  if (right.size() < 2) return {};
  double sum = 0;
  std::int64_t count = 0;
  for (double v : right)
    if (std::isfinite(v)) sum += v, ++count;
  return std::vector<double>(right.size(), count ? sum / static_cast<double>(count) : 1);
}

Values input(const Problem& p, std::size_t o, std::size_t i) {
  if (!p.is_input(i) || p.operands()[i].shape != p.operands()[o].shape) return {};
  return p.values(i);
}

Values last_row(const Problem& p, std::size_t o) {
  const Operand& output = p.operands()[o];
  if (!output.batched || output.shape.empty() || output.shape[0] < 2) return {};
  std::vector<double> v = p.answer(o).value;
  std::fill(v.end() - static_cast<std::ptrdiff_t>(v.size()) / output.shape[0], v.end(), 0);
  return v;
}

Values last_column(const Problem& p, std::size_t o) {
  const Operand& output = p.operands()[o];
  if (output.shape.size() < (output.batched ? 2u : 1u) || output.shape.back() < 2) return {};
  std::vector<double> v = p.answer(o).value;
  const auto columns = static_cast<std::size_t>(output.shape.back());
  for (std::size_t i = columns - 1; i < v.size(); i += columns) v[i] = 0;
  return v;
}

/// As if the case ended one index earlier in `dim`: what a kernel gives that never reads the last one.
/// Elements of the output that only the longer case has are right.
Values unread(const Problem& p, std::size_t o, std::size_t dim) {
  const Shape& shape = p.what().shape;
  if (dim >= shape.size() || shape[dim] < 2) return {};
  const std::optional<Problem> shorter = p.slice(dim, 0, shape[dim] - 1);
  if (!shorter) return {};
  const std::vector<double>& part = shorter->answer(o).value;
  const Shape &whole_shape = p.operands()[o].shape, &part_shape = shorter->operands()[o].shape;
  std::vector<double> v = p.answer(o).value;
  Shape index(part_shape.size(), 0);
  for (double element : part) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < index.size(); ++d) at = at * whole_shape[d] + index[d];
    v[static_cast<std::size_t>(at)] = element;
    for (std::size_t d = index.size(); d-- > 0 && ++index[d] == part_shape[d];) index[d] = 0;
  }
  const std::vector<double>& right = p.answer(o).value;
  const bool same = std::memcmp(v.data(), right.data(), v.size() * sizeof(double)) == 0;
  return same ? Values{} : v;
}

template <class S>
std::vector<double> run_in(void (*oracle)(const Case&, Arrays<S>&), const Problem& p, std::size_t o) {
  auto arrays = p.arrays<S>();
  oracle(p.what(), arrays);
  std::vector<double> v;
  for (const S& s : arrays[p.operands()[o].name].values()) v.push_back(to_double(s));
  return v;
}

Values lower_precision(const Problem& p, std::size_t o) {
  const Spec& spec = p.spec();
  if (p.what().dtype == DType::f64 && spec.oracle.f32) return run_in(spec.oracle.f32, p, o);
  if (p.what().dtype != DType::f64 && spec.oracle.bf16) return run_in(spec.oracle.bf16, p, o);
  throw std::runtime_error(fmt::format("{}: has no oracle in a lower precision than {}'s", spec.function,
                                       rooftile::name(p.what().dtype)));
}

/// The right bytes, the last finite element one unit off.
std::optional<Bytes> one_unit_off(const Problem& p, std::size_t o) {
  const Answer& right = p.answer(o);
  const DType type = p.operands()[o].dtype;
  const std::size_t width = width_of(type);
  for (std::size_t i = right.value.size(); i-- > 0;) {
    if (!std::isfinite(right.value[i])) continue;
    Bytes bytes = right.rounded;
    std::uint64_t code = 0;
    std::memcpy(&code, bytes.data() + i * width, width);
    code ^= 1;
    std::memcpy(bytes.data() + i * width, &code, width);
    return bytes;
  }
  return {};
}

}  // namespace

namespace {
/// A list's items are one operand: a case that rejects a wrong result as one of them will do for all.
std::string operand_of(const char* item) { return std::string(item, std::strcspn(item, "[")); }
}  // namespace

const Excuse* WrongResults::excuse(const char* wrong_result, const char* output, const Case& c) const {
  for (const Excuse& e : spec_.excuses) {
    if (std::strcmp(e.wrong_result, wrong_result) != 0) continue;
    if (e.operand && std::strcmp(e.operand, output) != 0) continue;
    if (!e.applies || e.applies(c)) return &e;
  }
  return nullptr;
}

void WrongResults::show(const Problem& p) {
  constexpr std::int64_t kMaxElements = 40000;  // of the case; the long rows would take as long again
  constexpr int kMaxExcused = 8;                // cases that an excuse is held against
  std::int64_t elements = 0;
  for (const Operand& operand : p.operands()) elements += count_of(operand.shape);
  if (elements > kMaxElements || p.what().fill == Fill::zeros) return;

  const Limits limits = limits_of(spec_, p.what(), variant_);
  for (std::size_t o = 0; o < p.operands().size(); ++o) {
    const Operand& output = p.operands()[o];
    if (!p.is_output(o) || count_of(output.shape) == 0) continue;
    const auto meet = [&](const char* wrong_result, const char* detail, auto&& make) {
      const std::string one = std::string(wrong_result) + detail;
      const std::string who = operand_of(output.name);
      Record& record = records_[{who, one}];
      const Excuse* excused = excuse(one.c_str(), who.c_str(), p.what());
      if (!excused) excused = excuse(wrong_result, who.c_str(), p.what());
      if (excused ? record.excused >= kMaxExcused || !record.false_excuse.empty() : record.rejected) return;
      const auto values = make();
      if (!values) return;
      Bytes bytes;
      if constexpr (std::is_same_v<std::decay_t<decltype(*values)>, Bytes>)
        bytes = *values;
      else
        bytes = encode(output.dtype, *values);
      const Comparison c = compare(limits, output, p.answer(o), bytes);
      if (!excused) {
        record.tried = true;
        record.rejected = !c.failure.empty();
      } else {
        ++record.excused;
        if (!c.failure.empty())
          record.false_excuse = fmt::format(
              "{}: wrong result \"{}\" as {} is excused (\"{}\"), but differs at {}: {}", spec_.function,
              wrong_result, output.name, excused->reason, describe(p.what()), c.failure);
      }
    };
    meet("zeros", "", [&] { return zeros(p, o); });
    meet("constant", "", [&] { return constant(p, o); });
    for (std::size_t i = 0; i < p.operands().size(); ++i)
      if (p.is_input(i) && p.operands()[i].shape == output.shape)
        meet("input", fmt::format(" {}", operand_of(p.operands()[i].name)).c_str(),
             [&] { return input(p, o, i); });
    meet("last_row", "", [&] { return last_row(p, o); });
    meet("last_column", "", [&] { return last_column(p, o); });
    if (spec_.letters.empty()) {
      meet("unread_tail", "", [&] { return unread(p, o, p.what().shape.size() - 1); });
    } else {  // each letter in turn
      const std::size_t outer = outer_sizes(spec_, p.what());
      for (std::size_t l = 0; l < spec_.letters.size(); ++l)
        meet("unread_tail", fmt::format(" {}", spec_.letters[l]).c_str(),
             [&] { return unread(p, o, outer + l); });
    }
    // Where rows are added up, the last of them, too.
    if (spec_.letters.empty() && !output.batched && p.what().shape.size() > 1)
      meet("unread_row", "", [&] { return unread(p, o, 0); });
    if (spec_.tolerance.exact)
      meet("lower_precision", "", [&] { return one_unit_off(p, o); });
    else
      meet("lower_precision", "", [&] { return lower_precision(p, o); });
  }
}

std::vector<std::string> WrongResults::verdict() const {
  std::vector<std::string> sentences;
  for (const auto& [key, record] : records_) {
    if (!record.false_excuse.empty()) sentences.push_back(record.false_excuse);
    if (record.tried && !record.rejected)
      sentences.push_back(fmt::format(
          "{} {}: no case rejects the wrong result \"{}\" as {}; cases.h needs one that does, or an "
          "excuse with its reason",
          spec_.function, rooftile::name(dtype_), key.second, key.first));
  }
  if (records_.empty())
    sentences.push_back(fmt::format("{} {}: no case was small enough to show wrong results to",
                                    spec_.function, rooftile::name(dtype_)));
  return sentences;
}

int WrongResults::rejected() const {
  int n = 0;
  for (const auto& [key, record] : records_) n += record.rejected;
  return n;
}

int WrongResults::tried() const {
  int n = 0;
  for (const auto& [key, record] : records_) n += record.tried;
  return n;
}

}  // namespace rooftile::harness
