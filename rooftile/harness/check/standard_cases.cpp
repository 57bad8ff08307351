#include "rooftile/harness/check/standard_cases.h"

#include <algorithm>
#include <set>

#include "rooftile/harness/check/fill.h"
#include "rooftile/harness/check/random_cases.h"

namespace rooftile::harness {
namespace {

bool any_in_place(const Spec& spec, const Case& c) {
  const std::vector<Operand> operands = spec.operands(c);
  return std::any_of(operands.begin(), operands.end(), [](const Operand& o) { return o.may_be != nullptr; });
}

}  // namespace

Shape shape_of(const Spec& spec, std::int64_t rows, std::int64_t columns) {
  const Shape shape{rows, columns};
  return spec.standard_shape ? spec.standard_shape(shape) : shape;
}

std::vector<Case> standard_cases(const Spec& spec, DType dtype) {
  std::vector<Case> cases;
  if (!spec.standard) return cases;
  const auto add = [&](std::int64_t rows, std::int64_t columns, Layout layout = Layout::contiguous,
                       Fill fill = Fill::bytes, std::int64_t offset = 0, bool in_place = false) {
    Case c{shape_of(spec, rows, columns),
           dtype,
           {},
           layout,
           fits(fill, dtype) ? fill : usual_fill(dtype),
           offset,
           in_place};
    if (in_place && !any_in_place(spec, c)) return;
    if (!spec.suits || spec.suits(c)) cases.push_back(std::move(c));
  };
  for (std::int64_t n : {0,  1,  2,  3,  4,   7,   8,   9,   15,  16,  17,  30,  31,   32,
                         33, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 511, 1024, 1025})
    add(3, n);
  for (std::int64_t n : {0, 1, 2, 4, 5, 8, 31, 64, 65, 130}) add(n, 17);
  add(0, 0);
  add(1, 1);
  add(1, 0);
  add(1, 0, Layout::offset, Fill::bytes, 1);
  add(100, 30);
  add(30, 100);
  add(67, 257);
  for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed,
                        Layout::broadcast}) {
    add(3, 5, layout);
    add(7, 100, layout);
    add(5, 129, layout);
    add(2, 1, layout);
  }
  for (std::int64_t offset = 1; offset <= 15; ++offset) add(3, 129, Layout::offset, Fill::bytes, offset);
  for (Fill fill : kFills) {
    if (!fits(fill, dtype)) continue;
    add(4, 33, Layout::contiguous, fill);
    add(5, 300, Layout::contiguous, fill);
  }
  add(5, 130, Layout::contiguous, Fill::bytes, 0, true);
  add(5, 130, Layout::offset, Fill::bytes, 3, true);
  add(5, 130, Layout::strided_columns, Fill::bytes, 0, true);
  add(5, 130, Layout::transposed, Fill::bytes, 0, true);
  return cases;
}

std::vector<Case> option_cases(const Spec& spec, DType dtype, bool quick) {
  std::vector<Case> cases;
  if (!is_floating(dtype)) return cases;
  const auto add = [&](std::map<std::string, double> parameters, Fill fill) {
    const Case c{shape_of(spec, 4, 100), dtype, std::move(parameters), Layout::contiguous, fill};
    if (fits(fill, dtype) && (!spec.suits || spec.suits(c))) cases.push_back(c);
  };
  for (const Option& real : spec.options) {
    if (real.kind != Option::Kind::real) continue;
    if (quick) {
      add({{real.name, values_of(real, dtype)[2]}}, Fill::huge_rows);
      continue;
    }
    for (double value : values_of(real, dtype))
      for (Fill fill :
           {Fill::normal, Fill::huge, Fill::huge_rows, Fill::masked, Fill::zeros, Fill::denormals}) {
        add({{real.name, value}}, fill);
        for (const Option& choice : spec.options)
          if (choice.kind == Option::Kind::choice && (fill == Fill::normal || fill == Fill::huge_rows))
            for (double other = choice.least; other <= choice.most; ++other)
              if (other != choice.otherwise) add({{real.name, value}, {choice.name, other}}, fill);
      }
  }
  return cases;
}

std::vector<Case> all_cases(const Spec& spec, DType dtype, bool quick) {
  std::vector<Case> own = spec.cases ? spec.cases() : std::vector<Case>{};
  std::erase_if(own, [&](const Case& c) { return c.dtype != dtype; });
  if (quick) {
    std::vector<Case> two;
    const Case plain{shape_of(spec, 5, 100), dtype, {}, Layout::contiguous, usual_fill(dtype)};
    const Case apart{shape_of(spec, 7, 129), dtype, {}, Layout::offset, usual_fill(dtype), 3};
    for (const Case& c : {plain, apart})
      if (spec.standard && (!spec.suits || spec.suits(c))) two.push_back(c);
    for (const Case& c : own)
      if (two.size() < 2) two.push_back(c);
    for (const Case& c : option_cases(spec, dtype, true)) two.push_back(c);
    return two;
  }
  std::vector<Case> cases = standard_cases(spec, dtype);
  for (const Case& c : option_cases(spec, dtype, false)) cases.push_back(c);
  cases.insert(cases.end(), own.begin(), own.end());
  return cases;
}

std::vector<std::map<std::string, double>> parameter_sets(const Spec& spec, DType dtype, std::size_t most) {
  std::vector<std::map<std::string, double>> sets;
  if (spec.standard) sets.push_back({});
  if (spec.cases)
    for (const Case& c : spec.cases())
      if (c.dtype == dtype && std::find(sets.begin(), sets.end(), c.parameters) == sets.end())
        sets.push_back(c.parameters);
  if (sets.empty()) sets.push_back({});
  if (sets.size() > most) sets.resize(most);
  return sets;
}

}  // namespace rooftile::harness
