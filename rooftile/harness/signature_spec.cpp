#include "rooftile/harness/signature_spec.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "rooftile/harness/gpu_cases.h"

namespace rooftile::harness {
namespace {

double elements(const Case& c) {
  double n = 1;
  for (std::int64_t s : c.shape) n *= static_cast<double>(s);
  return n;
}

/// The first word of the inputs that an output may be: in place is tried with that one.
const char* first_word(const char* list) {
  static std::map<std::string, std::string> words;
  const std::string all = list;
  return all.empty() ? nullptr : (words[all] = all.substr(0, all.find(' '))).c_str();
}

std::vector<Operand> operands_of(const Signature& signature, const Case& c) {
  std::vector<Operand> list;
  bool first_output = true;
  for (int o = 0; o < signature.operand_count(); ++o) {
    const Signature::Operand& s = signature.operands[o];
    const bool output = s.role == Signature::Role::output;
    Operand operand{s.name, output ? Operand::Kind::output : Operand::Kind::input, c.dtype, c.shape};
    if (s.role == Signature::Role::in_out) operand.kind = Operand::Kind::inout;
    // Of several outputs only the first: they may not be one another.
    if (output && first_output) operand.may_be = first_word(s.may_be);
    first_output = first_output && !output;
    list.push_back(operand);
  }
  return list;
}

/// Each operand's elements once; what is read and written, twice.
double bytes_of(const Signature& signature, const Case& c) {
  int times = 0;
  for (int o = 0; o < signature.operand_count(); ++o)
    times += signature.operands[o].role == Signature::Role::in_out ? 2 : 1;
  return times * elements(c) * bits(c.dtype) / 8;
}

/// What the oracle takes for one element, times the elements.
double flops_of(const Signature& signature, const OracleFunctions& oracle, const Case& c) {
  Case one = c;
  one.shape = {1};
  Arrays<Counted> arrays;
  for (const Operand& operand : operands_of(signature, one))
    arrays[operand.name] = Array<Counted>(std::vector<Counted>(1, Counted(0.5)));
  Counted::operations() = 0;
  oracle.counted(one, arrays);
  return static_cast<double>(Counted::operations()) * elements(c);
}

/// Beside the standard shapes: several threads' and blocks' parts, more outer dimensions, each edge of the
/// number line, and each value of the option.
std::vector<Case> cases_of(const Signature& signature, const std::vector<DType>& dtypes,
                           const std::vector<double>& values) {
  std::vector<Case> cases;
  for (DType type : dtypes) {
    const auto add = [&](const std::map<std::string, double>& parameters) {
      cases.push_back({{3, 70, 130}, type, parameters, Layout::transposed, Fill::wide});
      cases.push_back({{70001}, type, parameters, Layout::contiguous, Fill::wide});
      cases.push_back({{9, 1111}, type, parameters, Layout::offset, Fill::normal, 1});
      for (Fill fill : {Fill::one_infinity, Fill::minus_infinities, Fill::one_nan, Fill::denormals})
        cases.push_back({{5, 65}, type, parameters, Layout::contiguous, fill});
    };
    if (signature.option_count() == 0) add({});
    for (double value : values) add({{signature.options[0].name, value}});
  }
  return cases;
}

BenchCases bench_of(const std::vector<DType>& dtypes) {
  BenchCases b;
  for (DType type : dtypes) {
    b.cache.push_back({{128, 1024}, type, {}});
    b.memory.push_back({{65536, 4096}, type, {}});
  }
  b.gpu = gpu_rows();
  return b;
}

}  // namespace

std::vector<DType> dtypes_of(const Signature& signature) {
  std::vector<DType> dtypes;
  for (int t = 0; t < kDTypes; ++t)
    if (signature.types[0].mask >> t & 1) dtypes.push_back(static_cast<DType>(t));
  return dtypes;
}

std::vector<Option> options_of(const Signature& signature) {
  std::vector<Option> options;
  for (int k = 0; k < signature.option_count(); ++k) {
    const Signature::Option& o = signature.options[k];
    const bool real = o.kind == Signature::Option::Kind::real || o.kind == Signature::Option::Kind::any;
    // Each value of a choice is tried; of a whole number's range the first four.
    const double most = o.kind == Signature::Option::Kind::whole
                            ? std::min(o.most, std::max(o.least, -kMaxFloat) + 3)
                            : o.most;
    options.push_back({o.name, real ? Option::Kind::real : Option::Kind::choice, o.otherwise,
                       std::max(o.least, -kMaxFloat), std::min(most, kMaxFloat)});
  }
  return options;
}

Status call_with_defaults(const Queue& queue, const Op& op, const std::vector<ConstView>& views) {
  const ConstView* pointers[Signature::kMaxOperands];
  double options[Signature::kMaxOptions];
  for (std::size_t o = 0; o < views.size(); ++o) pointers[o] = &views[o];
  for (int k = 0; k < op.signature.option_count(); ++k) options[k] = op.signature.options[k].otherwise;
  return call(queue, op, Call{pointers, options});
}

Spec elements_spec(const char* function, const OracleFunctions& oracle, std::vector<double> values,
                   bool exact) {
  const Op* op = find_op(function);
  if (!op) throw std::runtime_error(std::string(function) + ": no such function");
  const Signature& s = op->signature;
  if (values.empty() && s.option_count() > 0 && s.options[0].kind == Signature::Option::Kind::flag)
    values = {0, 1};
  Spec spec{};
  spec.function = function;
  spec.axes = "any shape";
  spec.dtypes = dtypes_of(s);
  spec.operands = [&s](const Case& c) { return operands_of(s, c); };
  spec.options = options_of(s);
  if (!values.empty()) spec.options[0].otherwise = values[0];
  spec.call = [op, options = spec.options](const Queue& queue, const Case& c, const Arguments& arguments,
                                           const char* variant, Workspace workspace) {
    return with_call(op->signature, options, c, arguments, [&](Call its) {
      its.variant = variant;
      its.workspace = workspace;
      return call(queue, *op, its);
    });
  };
  spec.oracle = oracle;
  spec.flops = [&s, oracle](const Case& c) { return flops_of(s, oracle, c); };
  spec.bytes = [&s](const Case& c) { return bytes_of(s, c); };
  spec.tolerance.exact = exact;
  if (exact) {
    spec.tolerance.reason = "no arithmetic";
  } else {
    spec.tolerance.c = 4;
    spec.tolerance.chain = [](const Case&, std::string_view) { return 1.0; };
    spec.tolerance.accumulator = [](const Case& c) {
      return c.dtype == DType::f64 ? DType::f64 : DType::f32;
    };
    spec.tolerance.reason =
        "a kernel's exponential, reciprocal or polynomial is within 4 roundings where the oracle's bound "
        "counts one";
  }
  spec.cases = [&s, dtypes = spec.dtypes, values] { return cases_of(s, dtypes, values); };
  spec.bench = [dtypes = spec.dtypes] { return bench_of(dtypes); };
  if (std::strcmp(op->direction, "backward") == 0) spec.gradient_of = op->name;
  return spec;
}

}  // namespace rooftile::harness
