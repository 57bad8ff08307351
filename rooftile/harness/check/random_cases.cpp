#include "rooftile/harness/check/random_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rooftile/harness/check/fill.h"
#include "rooftile/harness/check/runner.h"
#include "rooftile/harness/check/standard_cases.h"

namespace rooftile::harness {
namespace {

struct Class {
  std::int64_t least, most;
};
constexpr Class kRows[] = {{0, 0},    {1, 1},      {2, 4},       {5, 15},     {16, 64},
                           {65, 300}, {301, 1000}, {1001, 5000}, {5001, 9000}};
constexpr Class kColumns[] = {{0, 0},     {1, 1},      {2, 7},       {8, 31},      {32, 127},
                              {128, 512}, {513, 2048}, {2049, 8192}, {8193, 70001}};
/// A pair whose smallest case has more elements than kMany comes seldom, than kTooMany never.
constexpr std::int64_t kMany = 12'000, kTooMany = 400'000;
constexpr std::int64_t kSeldom = 50;

struct Pair {
  std::size_t rows, columns;
  std::int64_t elements() const { return kRows[rows].least * kColumns[columns].least; }
};
std::vector<Pair> pairs_of(std::int64_t least, std::int64_t most) {
  std::vector<Pair> pairs;
  for (std::size_t r = 0; r < std::size(kRows); ++r)
    for (std::size_t c = 0; c < std::size(kColumns); ++c)
      if (const Pair pair{r, c}; pair.elements() >= least && pair.elements() <= most) pairs.push_back(pair);
  return pairs;
}
template <std::size_t N>
std::size_t class_of(const Class (&classes)[N], std::int64_t n) {
  std::size_t k = 0;
  while (k + 1 < N && n > classes[k].most) ++k;
  return k;
}

class Draw {
 public:
  explicit Draw(std::mt19937_64& random) : random_(random) {}
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }
  std::int64_t from(std::int64_t least, std::int64_t most) { return least + below(most - least + 1); }
  bool one_in(std::int64_t n) { return below(n) == 0; }
  double unit() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  template <class List>
  const auto& one_of(const List& list) {
    return list[static_cast<std::size_t>(below(static_cast<std::int64_t>(std::size(list))))];
  }
  std::mt19937_64& random() { return random_; }

 private:
  std::mt19937_64& random_;
};

/// In a class, near its lower end where there are many; powers of two and their neighbours often.
std::int64_t size_in(Draw& draw, Class c, std::int64_t most) {
  most = std::max(c.least, std::min(c.most, most));
  if (draw.one_in(3))
    for (int attempt = 0; attempt < 8; ++attempt) {
      const std::int64_t n = (std::int64_t{1} << draw.below(17)) + draw.from(-1, 1);
      if (n >= c.least && n <= most) return n;
    }
  return draw.from(c.least, most);
}

/// `rows` rows, or a few more, as the product of up to 7 sizes.
Shape outer_of(Draw& draw, std::int64_t rows, std::int64_t dims) {
  Shape outer;
  std::int64_t product = 1;
  for (std::int64_t d = 1; d < dims; ++d) {
    const std::int64_t size =
        rows == 0 ? draw.below(3)
                  : std::min(draw.from(draw.one_in(6) ? 1 : 2, 3), std::max<std::int64_t>(rows / product, 1));
    outer.push_back(size);
    product *= std::max<std::int64_t>(size, 1);
  }
  outer.push_back(rows == 0 ? 0 : (rows + product - 1) / product);
  std::shuffle(outer.begin(), outer.end(), draw.random());
  return outer;
}

constexpr const char* kKinds[] = {"its default", "exact", "rounded", "negative", "zero", "tiny", "huge"};

double in_range(const Option& option, DType dtype, double value) {
  value = std::clamp(option.least >= 0 ? std::fabs(value) : value, option.least, option.most);
  return dtype == DType::f64 ? value : static_cast<double>(static_cast<float>(value));
}
const char* kind_of(const Option& option, double value) {
  const double size = std::fabs(value);
  if (value == option.otherwise || value == static_cast<double>(static_cast<float>(option.otherwise)))
    return "its default";
  if (size == 0) return "zero";
  if (size < 1e-12) return "tiny";
  if (size > 1e9) return "huge";
  if (value < 0) return "negative";
  int exponent = 0;
  return std::frexp(size, &exponent) == 0.5 ? "exact" : "rounded";
}

double real_value(Draw& draw, const Option& option, DType dtype) {
  const double sign = draw.one_in(3) ? -1 : 1;
  switch (draw.below(7)) {
    case 0:
      return in_range(option, dtype, option.otherwise);
    case 1:
      return in_range(option, dtype, std::ldexp(1, static_cast<int>(draw.from(-4, 4))));
    case 2:
      return in_range(option, dtype, 0.01 + 2 * draw.unit());
    case 3:
      return in_range(option, dtype, -4 * draw.unit());
    case 4:
      return in_range(option, dtype, 0);
    case 5:
      return in_range(option, dtype, sign * std::pow(10, -static_cast<double>(draw.from(13, 42))));
    default:
      return in_range(option, dtype,
                      sign * (1 + 2 * draw.unit()) * std::pow(10, static_cast<double>(draw.from(10, 38))));
  }
}

bool any_in_place(const std::vector<Operand>& operands) {
  return std::any_of(operands.begin(), operands.end(), [](const Operand& o) { return o.may_be != nullptr; });
}

Placement random_placement(const Operand& operand, bool may_repeat, Draw& draw) {
  constexpr std::int64_t kMaxSpan = 1 << 20;
  const Shape& shape = operand.shape;
  const std::int64_t width = static_cast<std::int64_t>(width_of(operand.dtype));
  std::vector<std::size_t> order(shape.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
  Placement p{std::vector<std::int64_t>(shape.size()), 0};
  // 16-byte words may begin anywhere, at their boundary, or at a line's.
  if (!draw.one_in(3)) p.offset = draw.one_in(3) ? 16 / width * draw.below(4) : draw.below(32);
  if (is_packed(operand.dtype)) p.offset *= 2;
  const auto dense = [&] {
    std::int64_t step = 1;
    for (std::size_t d = order.size(); d-- > 0;)
      p.strides[d] = step, step *= std::max<std::int64_t>(shape[d], 1);
    return p;
  };
  const std::int64_t style = draw.below(8);
  if (is_packed(operand.dtype) || style < 2) return dense();
  const bool every = style == 2 || style == 7, permuted = style == 3 || style == 7,
             reversed = style == 4 || style == 7, repeated = (style == 5 || style == 7) && may_repeat,
             apart = style == 6 || style == 7;
  if (permuted) std::shuffle(order.begin(), order.end(), draw.random());
  std::int64_t step = apart ? draw.from(1, 4) : 1;
  for (std::size_t d : order) {
    p.strides[d] = reversed && draw.one_in(2) ? -step : step;
    if (repeated && draw.one_in(shape.size() > 2 ? 3 : 2)) {
      p.strides[d] = 0;
      continue;
    }
    // With `every` no two dimensions merge; else one gap in some of them.
    step = step * std::max<std::int64_t>(shape[d], 1);
    if (every || draw.one_in(3)) step += shape.size() > 3 ? draw.from(1, 3) : draw.from(1, 20);
  }
  return span_of(shape, p) * width > kMaxSpan ? dense() : p;
}

/// "dense", "off a boundary", "reversed", …: each that a placement is.
std::vector<const char*> kinds_of(const Operand& operand, const Placement& p) {
  std::vector<const char*> kinds;
  const Shape& shape = operand.shape;
  bool reversed = false, repeated = false, permuted = false, apart = false, row_major = true;
  int gaps = 0;
  std::int64_t dense = 1, previous = 0;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] < 2) continue;
    const std::int64_t stride = std::abs(p.strides[d]);
    reversed = reversed || p.strides[d] < 0;
    repeated = repeated || stride == 0;
    permuted = permuted || (stride && stride < previous);
    apart = apart || (previous == 0 && stride > 1);
    gaps += dense != 1 && stride != dense;
    row_major = row_major && p.strides[d] == dense;
    dense = stride * shape[d], previous = stride;
    if (stride == 0) dense = -1;
  }
  if (row_major) kinds.push_back("dense");
  if (p.offset % 32) kinds.push_back("off a boundary");
  if (reversed) kinds.push_back("reversed");
  if (repeated) kinds.push_back("repeated");
  if (permuted) kinds.push_back("permuted");
  if (apart) kinds.push_back("apart");
  if (gaps > 0) kinds.push_back("with gaps");
  if (gaps >= 5) kinds.push_back("in six parts that do not merge");
  return kinds;
}

}  // namespace

std::vector<double> values_of(const Option& option, DType dtype) {
  std::vector<double> values;
  for (double v : {option.otherwise, 0.125, 0.08838834764831845, -0.7, -3., 0., 1e-30, 1e-40, 1e30, -3e38}) {
    v = in_range(option, dtype, v);
    if (std::find(values.begin(), values.end(), v) == values.end()) values.push_back(v);
  }
  return values;
}

/// A shape of any letters, small enough for an oracle: classes of sizes meet by their letters.
void draw_letters(const Spec& spec, Draw& draw, Case& c) {
  constexpr Class kSizes[] = {{0, 0}, {1, 1}, {2, 7}, {8, 31}, {32, 127}, {128, 512}, {513, 1100}};
  constexpr double kMaxElements = 40'000, kMaxFlops = 4e6;
  c.shape.clear();
  if (spec.outer && !draw.one_in(3))
    c.shape = outer_of(draw, draw.one_in(12) ? 0 : draw.from(1, 6), draw.from(1, 3));
  const std::size_t outer = c.shape.size();
  for (std::size_t l = 0; l < spec.letters.size(); ++l) {
    const Class its = kSizes[draw.one_in(12) ? 0 : draw.from(1, 6)];
    c.shape.push_back(size_in(draw, its, its.most));
  }
  const auto too_large = [&] {
    double elements = 0;
    for (const Operand& o : spec.operands(c)) elements += static_cast<double>(count_of(o.shape));
    return elements > kMaxElements || (spec.flops && spec.flops(c) > kMaxFlops);
  };
  if (spec.adjust) spec.adjust(c);
  while (too_large()) {
    std::size_t longest = outer;
    for (std::size_t d = 0; d < c.shape.size(); ++d)
      if (c.shape[d] > c.shape[longest]) longest = d;
    c.shape[longest] /= draw.one_in(2) ? 2 : 3;
    if (spec.adjust) spec.adjust(c);
  }
}

Case random_case(const Spec& spec, DType dtype, std::int64_t k, std::mt19937_64& random) {
  static const std::vector<Pair> few = pairs_of(0, kMany), many = pairs_of(kMany + 1, kTooMany);
  Draw draw(random);
  for (int attempt = 0;; ++attempt) {
    const auto at = static_cast<std::size_t>(k);
    const Pair pair = k % kSeldom == kSeldom - 1 ? many[at / kSeldom % many.size()] : few[at % few.size()];
    const Class rows_class = kRows[pair.rows], columns_class = kColumns[pair.columns];
    const std::int64_t room =
        std::max(pair.elements(), std::min<std::int64_t>(4 * pair.elements(), kMany)) + 200;
    const std::int64_t columns =
        size_in(draw, columns_class, room / std::max<std::int64_t>(rows_class.least, 1));
    const std::int64_t rows = size_in(draw, rows_class, room / std::max<std::int64_t>(columns, 1));
    Case c{spec.letters.empty() ? shape_of(spec, rows, columns) : Shape{}, dtype, {}};
    for (const Option& option : spec.options)
      c.parameters[option.name] =
          option.kind == Option::Kind::real
              ? real_value(draw, option, dtype)
              : static_cast<double>(draw.from(static_cast<std::int64_t>(option.least),
                                              static_cast<std::int64_t>(option.most)));
    if (!spec.letters.empty()) {
      draw_letters(spec, draw, c);
    } else if (!spec.standard_shape) {
      const std::int64_t dims = draw.one_in(2) ? 1 : draw.from(2, kMaxRank - 1);
      c.shape = outer_of(draw, rows, dims);
      c.shape.push_back(columns);
      if (rows == 1 && spec.least_rank < 2 && draw.one_in(4)) c.shape = {columns};
      const auto too_many = [&] {
        const std::vector<Operand> operands = spec.operands(c);
        return std::any_of(operands.begin(), operands.end(),
                           [](const Operand& o) { return o.shape.size() > std::size_t{kMaxRank}; });
      };
      while (c.shape.size() > 2 && too_many()) {
        c.shape[1] *= c.shape[0];
        c.shape.erase(c.shape.begin());
      }
    }
    c.fill = draw.one_of(kFills);
    if (!fits(c.fill, dtype) || draw.one_in(2)) c.fill = usual_fill(dtype);
    c.in_place = draw.one_in(4) && any_in_place(spec.operands(c));
    if (attempt > 100 || !spec.suits || spec.suits(c)) return c;
  }
}

std::vector<Placement> random_placements(const Problem& problem, std::mt19937_64& random) {
  Draw draw(random);
  const std::vector<Operand>& operands = problem.operands();
  std::vector<Placement> where;
  // An input that an output may be written over has that one's strides, none of them 0.
  std::vector<std::size_t> host(operands.size(), operands.size());
  if (problem.what().in_place)
    for (std::size_t o = 0; o < operands.size(); ++o) host[o] = in_place_of(problem, o);
  const bool dense = draw.one_in(6);  // but for their offsets: what rungs and fast ways take
  for (const Operand& operand : operands) {
    Placement p =
        random_placement(operand, problem.spec().repeats && operand.kind == Operand::Kind::input, draw);
    if (dense) p.strides = place(operand, Layout::contiguous, 0).strides;
    where.push_back(p);
  }
  for (std::size_t o = 0; o < operands.size(); ++o)
    if (host[o] < operands.size()) where[host[o]] = where[o];
  return where;
}

void Coverage::add(const Spec& spec, const Case& c, const std::vector<Operand>& operands,
                   const std::vector<Placement>& placements) {
  ++cases;
  if (spec.letters.empty() && !spec.standard_shape && !c.shape.empty()) {
    const std::int64_t columns = c.shape.back();
    const std::int64_t rows = count_of(Shape(c.shape.begin(), c.shape.end() - 1));
    pairs.insert({class_of(kRows, rows), class_of(kColumns, columns)});
  }
  for (std::size_t o = 0; o < operands.size(); ++o)
    for (const char* kind : kinds_of(operands[o], placements[o])) layouts[operands[o].name].insert(kind);
  for (const Option& option : spec.options) {
    const double value = c.parameter(option.name, option.otherwise);
    option_values[option.name].insert(option.kind == Option::Kind::real ? kind_of(option, value)
                                                                        : fmt::format("{:g}", value));
  }
}

std::string Coverage::describe(const Spec& spec) const {
  std::string text = fmt::format("{}: {} random cases", spec.function, cases);
  if (spec.letters.empty() && !spec.standard_shape)
    text += fmt::format(" with {} of {} pairs of row and column counts", pairs.size(),
                        pairs_of(0, kTooMany).size());
  text += "; kinds of layout: ";
  bool first = true;
  for (const auto& [operand, kinds] : layouts) {
    text += fmt::format("{}{} {}", first ? "" : ", ", operand, kinds.size());
    first = false;
  }
  for (const Option& option : spec.options) {
    const auto seen = option_values.find(option.name);
    std::size_t all = std::size(kKinds);
    if (option.kind == Option::Kind::choice)
      all = static_cast<std::size_t>(option.most - option.least) + 1;
    else if (option.least >= 0)
      --all;  // none is negative
    text += fmt::format("; {}: {} of {} kinds of value", option.name,
                        seen == option_values.end() ? 0 : seen->second.size(), all);
  }
  return text;
}

}  // namespace rooftile::harness
