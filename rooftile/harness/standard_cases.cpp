#include "rooftile/harness/standard_cases.h"

#include <algorithm>
#include <set>

#include "rooftile/harness/fill.h"

namespace rooftile::harness {
namespace {

constexpr Fill kFills[] = {Fill::normal,           Fill::wide,   Fill::positive,  Fill::constant_rows,
                           Fill::large_offset,     Fill::zeros,  Fill::denormals, Fill::one_infinity,
                           Fill::minus_infinities, Fill::masked, Fill::one_nan,   Fill::bytes};

Fill usual(DType type) { return is_floating(type) ? Fill::normal : Fill::bytes; }

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
    Case c{shape_of(spec, rows, columns),           dtype,  {},      layout,
           fits(fill, dtype) ? fill : usual(dtype), offset, in_place};
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

std::vector<Case> all_cases(const Spec& spec, DType dtype, bool quick) {
  std::vector<Case> own = spec.cases ? spec.cases() : std::vector<Case>{};
  std::erase_if(own, [&](const Case& c) { return c.dtype != dtype; });
  if (quick) {
    std::vector<Case> two;
    const Case plain{shape_of(spec, 5, 100), dtype, {}, Layout::contiguous, usual(dtype)};
    const Case apart{shape_of(spec, 7, 129), dtype, {}, Layout::offset, usual(dtype), 3};
    for (const Case& c : {plain, apart})
      if (spec.standard && (!spec.suits || spec.suits(c))) two.push_back(c);
    for (const Case& c : own)
      if (two.size() < 2) two.push_back(c);
    return two;
  }
  std::vector<Case> cases = standard_cases(spec, dtype);
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

Case random_case(const Spec& spec, DType dtype, const std::vector<std::map<std::string, double>>& sets,
                 std::mt19937_64& random) {
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  for (int attempt = 0;; ++attempt) {
    std::int64_t columns = below(300);
    if (below(3) == 0) columns = (std::int64_t{1} << below(11)) + below(3) - 1;
    const std::int64_t rows = below(columns > 100 ? 10 : 40);
    Case c{shape_of(spec, rows, columns), dtype, sets[random() % sets.size()]};
    c.fill = kFills[below(std::size(kFills))];
    if (!fits(c.fill, dtype) || below(2) == 0) c.fill = usual(dtype);
    c.in_place = below(4) == 0 && any_in_place(spec, c);
    if (attempt > 100 || !spec.suits || spec.suits(c)) return c;
  }
}

}  // namespace rooftile::harness
