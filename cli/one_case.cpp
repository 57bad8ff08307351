#include "cli/one_case.h"

#include <filesystem>
#include <system_error>

#include "cli/arguments.h"
#include "cli/failure.h"
#include "cli/table.h"
#include "rooftile/harness/bench/machine.h"
#include "rooftile/harness/check/runner.h"

namespace rooftile::cli {

std::string OneCase::text() const {
  std::string words = fmt::format("{} {} {}", op->function, to_text(c.shape), name(c.dtype));
  for (const auto& [name, value] : c.parameters) words += fmt::format(" {}={:g}", name, value);
  return words;
}

const Op* one_op(const std::string& name, bool backward) {
  const Op* op = nullptr;
  for (const Op* candidate : select_ops({name}))
    if (backward ? std::string_view(candidate->direction) == "backward" : !op) op = candidate;
  if (!op) refuse("{} has no backward function", name);
  return op;
}

OneCase one_case(const CaseArguments& arguments, bool large) {
  const Op* op = one_op(arguments.op, arguments.backward);
  const harness::Spec* spec = harness::find_spec(op->function);
  if (!spec) fail("{} has no cases, from which a call could be made", op->function);
  OneCase one{op, spec, {}};
  const DType wanted = arguments.dtype.empty() ? DType::f32 : parse_dtype(arguments.dtype);
  const harness::BenchCases bench = spec->bench();
  const std::vector<harness::Case>& cases = large && !bench.gpu.empty() ? bench.gpu : bench.cache;
  if (cases.empty() && arguments.shape.empty())
    refuse("{} has no shape of its own to begin with; name one by --shape", op->function);
  const harness::Case* model = cases.empty() ? nullptr : &cases.front();
  for (const harness::Case& c : cases)
    if (!arguments.dtype.empty() && c.dtype == wanted) {
      model = &c;
      break;
    }
  if (model) one.c = *model;
  if (!arguments.dtype.empty()) one.c.dtype = wanted;
  if (!arguments.shape.empty()) {
    one.c.shape = parse_shape(arguments.shape);
    check_rank(*spec, one.c.shape);
  }
  for (const auto& [name, value] : parse_parameters(*spec, arguments.parameters))
    one.c.parameters[name] = value;
  return one;
}

void check_memory(const OneCase& one) {
  const double needed = operand_bytes(*one.spec, one.c);
  const auto there = static_cast<double>(harness::available_memory_bytes());
  if (needed > there)
    fail("{} takes {}, and {} are available", one.text(), in_bytes(needed), in_bytes(there));
}

std::vector<std::string> variants_of(const Op& op, const std::vector<std::string>& named, bool all,
                                     const Queue& queue) {
  if (!all) return named.empty() ? std::vector<std::string>{""} : named;
  std::vector<std::string> variants;
  for (std::size_t v = 0; v < op.variants.size(); ++v)
    if (op.variants[v].role != Role::oracle && harness::has_variant(queue, op, v))
      variants.emplace_back(op.variants[v].name);
  if (variants.empty()) fail("{} has no variant for {}", op.function, queue.isa());
  return variants;
}

std::vector<std::string> source_folders() {
  std::vector<std::string> folders = {"."};
  std::error_code error;
  std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (int up = 0; !error && up < 4 && folder.has_relative_path(); ++up) {
    folders.push_back(folder.string());
    folder = folder.parent_path();
  }
  return folders;
}

}  // namespace rooftile::cli
