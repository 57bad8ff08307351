#include "rooftile/harness/row_spec.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "rooftile/core/row_problem.h"
#include "rooftile/harness/gpu_cases.h"
#include "rooftile/harness/signature_spec.h"

namespace rooftile::harness {
namespace {
using rooftile::detail::row_operand;
using rooftile::detail::RowOperand;

double elements(const Shape& shape) {
  double n = 1;
  for (std::int64_t s : shape) n *= static_cast<double>(s);
  return n;
}

/// Word k of a list, or the last one; null where it has none.
const char* word_of(const char* list, int k) {
  static std::map<std::pair<std::string, int>, std::string> words;
  std::string rest = list;
  if (rest.empty()) return nullptr;
  for (int skipped = 0; skipped < k; ++skipped) {
    const std::size_t space = rest.find(' ');
    if (space == std::string::npos) break;
    rest.erase(0, space + 1);
  }
  return (words[{list, k}] = rest.substr(0, rest.find(' '))).c_str();
}

class RowFunction {
 public:
  explicit RowFunction(const RowSpec& row) : absent_(row.absent), op_(find_op(row.function)) {
    if (!op_) throw std::runtime_error(std::string(row.function) + ": no such function");
  }
  const Signature& signature() const { return op_->signature; }
  const Op& op() const { return *op_; }

  double usual(const Signature::Operand& operand) const {
    return std::find(absent_.begin(), absent_.end(), operand.name) == absent_.end() ? 1 : 0;
  }
  bool has(const Case& c, const Signature::Operand& operand) const {
    return !operand.optional || c.parameter(operand.name, usual(operand)) != 0;
  }
  static bool is_shared(const Signature::Operand& operand) {
    return row_operand(operand) == RowOperand::vector || row_operand(operand) == RowOperand::scalar;
  }
  /// Of what all rows share: f32 where one of them is to be.
  DType vector_dtype(const Case& c) const {
    for (int o = 0; o < signature().operand_count(); ++o)
      if (is_shared(signature().operands[o]) && c.parameter(signature().operands[o].name, 1) == 2)
        return DType::f32;
    return c.dtype;
  }
  std::vector<Operand> operands(const Case& c) const {
    std::vector<Operand> list;
    const Shape outer(c.shape.begin(), c.shape.end() - 1), columns{c.shape.back()};
    int outputs = 0;
    for (int o = 0; o < signature().operand_count(); ++o) {
      const Signature::Operand& s = signature().operands[o];
      if (!has(c, s)) continue;
      const bool output = s.role != Signature::Role::input;
      Operand operand{s.name, output ? Operand::Kind::output : Operand::Kind::input, c.dtype, c.shape};
      operand.optional = s.optional;
      switch (row_operand(s)) {
        case RowOperand::rows:
          if (output) operand.may_be = word_of(s.may_be, outputs++);
          // In place of an operand that this case lacks.
          if (operand.may_be && std::none_of(list.begin(), list.end(), [&](const Operand& before) {
                return std::string(before.name) == operand.may_be;
              }))
            operand.may_be = nullptr;
          break;
        case RowOperand::statistic:
          operand.dtype = row_arithmetic(c);
          operand.shape = outer;
          break;
        case RowOperand::vector:
        case RowOperand::scalar:
          operand.dtype = vector_dtype(c);
          operand.shape = row_operand(s) == RowOperand::vector ? columns : Shape{1};
          operand.batched = operand.keeps_layout = false;
      }
      list.push_back(operand);
    }
    return list;
  }
  double bytes(const Case& c) const {
    double sum = 0;
    for (const Operand& o : operands(c)) sum += elements(o.shape) * bits(o.dtype) / 8.0;
    return sum;
  }
  std::vector<Option> options() const {
    std::vector<Option> list = options_of(signature());
    for (int o = 0; o < signature().operand_count(); ++o) {
      const Signature::Operand& s = signature().operands[o];
      const bool shared = is_shared(s) && s.role == Signature::Role::input;
      if (s.optional || shared)
        list.push_back({s.name, Option::Kind::choice, usual(s), s.optional ? 0. : 1., shared ? 2. : 1.});
    }
    return list;
  }
  /// Widths of transformers; many short rows, so that gradients have several blocks, each of many turns where
  /// rows are staged; long rows, of a GPU's block, of several blocks, and such as nothing holds, two in a
  /// block; rows that lie in each way and begin anywhere; each optional operand absent, or f32; each value of
  /// an option.
  std::vector<Case> cases(const std::vector<DType>& dtypes,
                          const std::map<std::string, std::vector<double>>& values) const {
    std::vector<Case> list;
    for (DType type : dtypes) {
      const auto add = [&](const Shape& shape, const std::map<std::string, double>& parameters,
                           Layout layout = Layout::contiguous, Fill fill = Fill::normal,
                           std::int64_t offset = 0, bool in_place = false) {
        list.push_back({shape, type, parameters, layout, fill, offset, in_place});
      };
      for (const Shape& shape : std::vector<Shape>{{2, 3, 768},
                                                   {300, 24},
                                                   {2100, 30},
                                                   {3, 5120},
                                                   {3, 8200},
                                                   {2, 8704},
                                                   {6, 16384},
                                                   {2, 65536},
                                                   {2, 70001},
                                                   {2, 140001},
                                                   {1, 300001}})
        add(shape, {});
      add({1500, 101}, {}, Layout::offset, Fill::normal, 1, true);
      add({70, 1025}, {}, Layout::offset, Fill::normal, 1, true);
      add({48, 16385}, {});
      if (type != DType::f16) {
        add({4111, 520}, {});
        add({4111, 520}, {}, Layout::offset);
      }
      std::map<std::string, double> all, none;  // every optional operand
      for (int o = 0; o < signature().operand_count(); ++o) {
        const Signature::Operand& s = signature().operands[o];
        if (!s.optional) continue;
        all[s.name] = 1;
        none[s.name] = 0;
        for (const Shape& shape : {Shape{5, 100}, Shape{3, 4096}})
          add(shape, {{s.name, usual(s) == 0 ? 1 : 0}});
        if (is_shared(s))
          for (const Shape& shape : {Shape{5, 100}, Shape{3, 4096}, Shape{70, 1025}, Shape{2, 40000}})
            add(shape, {{s.name, 2}});
      }
      for (int o = 0; o < signature().operand_count(); ++o) {
        const Signature::Operand& s = signature().operands[o];
        if (s.optional || !is_shared(s)) continue;
        std::map<std::string, double> alone = none;  // the only one that tells its dtype
        alone[s.name] = 2;
        for (const Shape& shape : {Shape{5, 100}, Shape{3, 4096}, Shape{70, 1025}}) add(shape, alone);
      }
      if (!all.empty())
        for (const Shape& shape : {Shape{300, 24}, Shape{7, 101}, Shape{3, 4096}, Shape{3, 12296},
                                   Shape{2, 40000}, Shape{1, 300001}})
          for (Fill fill : {Fill::normal, Fill::large_offset, Fill::one_nan, Fill::one_infinity})
            add(shape, all, Layout::contiguous, fill);
      for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::transposed}) {
        add({600, 30}, {}, layout);
        add({3, 70}, all, layout);
      }
      for (const auto& [name, its] : values)
        for (double value : its) {
          add({5, 100}, {{name, value}});
          add({3, 1111}, {{name, value}}, Layout::offset, Fill::wide, 1);
        }
    }
    return list;
  }
  /// The oracle's on one row, which is long enough that its scalars count little.
  double flops(const OracleFunctions& oracle, const Case& c) const {
    constexpr std::int64_t kColumns = 64;
    Case one = c;
    one.shape = {1, kColumns};
    Arrays<Counted> arrays;
    for (const Operand& operand : operands(one))
      arrays[operand.name] = Array<Counted>(
          std::vector<Counted>(static_cast<std::size_t>(elements(operand.shape)), Counted(0.5)));
    Counted::operations() = 0;
    oracle.counted(one, arrays);
    return static_cast<double>(Counted::operations()) / kColumns * elements(c.shape);
  }

 private:
  std::vector<std::string> absent_;
  const Op* op_;
};

/// The cases, and far rows: with the usual options, without eps, and so with every optional operand.
std::vector<Case> with_far_rows(std::vector<Case> cases, const RowFunction& f,
                                const std::vector<DType>& dtypes) {
  std::map<std::string, double> all;
  for (int o = 0; o < f.signature().operand_count(); ++o)
    if (f.signature().operands[o].optional) all[f.signature().operands[o].name] = 1;
  all["eps"] = 0;
  for (DType type : dtypes) {
    if (type == DType::f64) continue;  // there is no second look at them
    for (const auto& parameters : {std::map<std::string, double>{}, {{"eps", 0}}, all})
      for (const Case& c : far_row_cases(type, parameters)) cases.push_back(c);
  }
  return cases;
}

BenchCases row_bench(const std::vector<DType>& dtypes) {
  BenchCases b;
  for (DType type : dtypes) {
    if (type == DType::f64) continue;  // taken for its digits
    b.cache.push_back({{64, 1024}, type, {}});
    b.cache.push_back({{1024, 1024}, type, {}});
    b.memory.push_back({{65536, 4096}, type, {}});
  }
  b.gpu = gpu_rows();
  return b;
}

/// The longest chain of additions: a row, over the fewest lanes that a tile has, four vectors of four, or of
/// two doubles; of a gradient the rows. A CPU puts each 32768 elements' sums aside; 1024 threads of a GPU
/// share a row. 16-bit elements around 1000 are a handful of values, whose terms round the same way at each
/// of a thousand steps: errors add up as the steps, not as their root (l2_normalize, bf16 1x300001,
/// baseline: 6.5e-5 of the norm, where 18751 steps may lose 1.1e-3).
double row_chain(const Case& c, std::string_view) {
  constexpr double kManySteps = 1000, kPart = 32768, kThreads = 1024;
  const double lanes = c.dtype == DType::f64 ? 8 : 16;
  const double columns = static_cast<double>(c.shape.back());
  const double parts = columns > kPart ? columns / (kThreads * lanes) : 0;
  const double steps = std::ceil(std::fmin(columns, kPart) / lanes + parts) + lanes;
  const bool alike = c.fill == Fill::large_offset && bits(c.dtype) == 16 && steps > kManySteps;
  return alike ? steps * steps : steps;
}
double gradient_chain(const Case& c, std::string_view variant) {
  return std::fmax(row_chain(c, variant), static_cast<double>(rows_of_case(c)));
}

}  // namespace

std::vector<Case> far_row_cases(DType type, const std::map<std::string, double>& parameters) {
  std::vector<Case> cases;
  for (const Shape& shape :
       {Shape{60, 24}, Shape{30, 100}, Shape{28, 1024}, Shape{14, 1111}, Shape{14, 4096}, Shape{8, 8200},
        Shape{8, 16384}, Shape{4, 16385}, Shape{4, 40000}, Shape{2, 70001}, Shape{2, 140001}})
    cases.push_back({shape, type, parameters, Layout::contiguous, Fill::far_rows});
  for (const Shape& shape : {Shape{30, 100}, Shape{28, 1025}, Shape{14, 12295}})
    cases.push_back({shape, type, parameters, Layout::offset, Fill::far_rows, 1, true});
  for (Layout layout : {Layout::padded_rows, Layout::strided_columns, Layout::transposed})
    cases.push_back({{28, 300}, type, parameters, layout, Fill::far_rows});
  return cases;
}

std::int64_t rows_of_case(const Case& c) {
  std::int64_t rows = 1;
  for (std::size_t d = 0; d + 1 < c.shape.size(); ++d) rows *= c.shape[d];
  return rows;
}

double real_of(const Case& c, const char* option, double otherwise) {
  const double value = c.parameter(option, otherwise);
  return c.dtype == DType::f64 ? value : static_cast<float>(value);
}
double least_normal(const Case& c) { return c.dtype == DType::f64 ? 0x1p-1022 : 0x1p-126; }

double rounded_to(DType type, double value) {
  switch (type) {
    case DType::f64:
      return value;
    case DType::f16:
      return to_float(from_double<f16>(value));
    case DType::bf16:
      return to_float(from_double<bf16>(value));
    default:
      return static_cast<float>(value);
  }
}

Spec row_spec(const RowSpec& row) {
  const RowFunction f(row);
  const Signature& s = f.signature();
  bool gradients = false;
  for (int o = 0; o < s.operand_count(); ++o)
    gradients =
        gradients || (RowFunction::is_shared(s.operands[o]) && s.operands[o].role != Signature::Role::input);
  Spec spec{};
  spec.function = row.function;
  spec.axes = "rows x columns (more outer dimensions may precede)";
  spec.dtypes = dtypes_of(s);
  spec.operands = [f](const Case& c) { return f.operands(c); };
  spec.call = [f](const Queue& queue, const Case& c, const Arguments& arguments, const char* variant,
                  Workspace workspace) {
    return with_call(f.signature(), f.options(), c, arguments, [&](Call its) {
      its.variant = variant;
      its.workspace = workspace;
      return call(queue, f.op(), its);
    });
  };
  if (f.op().workspace)
    spec.workspace = [f](const Queue& queue, const Case& c, const Arguments& arguments, std::size_t& bytes) {
      return with_call(f.signature(), f.options(), c, arguments,
                       [&](const Call& its) { return workspace_of(queue, f.op(), its, bytes); });
    };
  spec.oracle = row.oracle;
  spec.flops = [f, oracle = row.oracle](const Case& c) { return f.flops(oracle, c); };
  spec.bytes = [f](const Case& c) { return f.bytes(c); };
  spec.tolerance.c = row.c;
  spec.tolerance.chain = gradients ? gradient_chain : row_chain;
  spec.tolerance.accumulator = row_arithmetic;
  spec.tolerance.reason = row.reason;
  spec.cases = [f, dtypes = spec.dtypes, values = row.values, far = row.far_rows] {
    std::vector<Case> cases = f.cases(dtypes, values);
    return far ? with_far_rows(std::move(cases), f, dtypes) : cases;
  };
  if (row.far_rows) spec.fills_alone = {Fill::far_rows};
  spec.bench = [dtypes = spec.dtypes] { return row_bench(dtypes); };
  spec.gradient_of = row.gradient_of;
  spec.options = f.options();
  return spec;
}

}  // namespace rooftile::harness
