#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/output.h"
#include "cli/record.h"
#include "cli/table.h"

namespace rooftile::cli {
namespace {

struct Answer {
  const Op* op;
  const Variant* variant;
  bool available, chosen;
  std::string refusal;
};

/// Addresses for operands that nobody will read or write: each on a page of its own, none over another.
class Places {
 public:
  View place(const harness::Operand& operand, bool strided, bool padded, bool transposed) {
    View view;
    view.dtype = operand.dtype;
    view.rank = static_cast<int>(operand.shape.size());
    const bool turned = transposed && view.rank >= 2;
    const auto axis = [&](int d) {  // the dimension that lies d-th in memory
      return turned && d >= view.rank - 2 ? 2 * view.rank - 3 - d : d;
    };
    unsigned __int128 dense = strided ? 2 : 1;
    for (int d = view.rank - 1; d >= 0; --d) {
      const std::int64_t size = operand.shape[static_cast<std::size_t>(axis(d))];
      view.shape[axis(d)] = size;
      view.stride[axis(d)] = static_cast<std::int64_t>(dense);
      dense *= static_cast<unsigned __int128>(size > 0 ? size : 1);
      if (padded && d == view.rank - 1) dense += 7;
      if (dense > kMost) dense = kMost;  // such a view is refused, for its size
    }
    view.data = take(dense * static_cast<unsigned>(bits(operand.dtype)) / 8 + 1);
    return view;
  }

  void* take(unsigned __int128 bytes) {
    const std::uintptr_t at = next_;
    if (bytes > kMost - next_) refuse("the operands take more than 2^62 bytes together");
    next_ += (static_cast<std::uintptr_t>(bytes) + 2 * kPage - 1) / kPage * kPage;
    return reinterpret_cast<void*>(at);
  }

 private:
  static constexpr std::uintptr_t kPage = 4096;
  static constexpr std::uintptr_t kMost = std::uintptr_t{1} << 62;
  std::uintptr_t next_ = kPage;
};

/// What every variant answers to the case. Throws a Failure with the op's own sentence where it refuses the
/// call.
std::vector<Answer> ask(const Queue& queue, const harness::Spec& spec, const harness::Case& c,
                        const std::string& layout) {
  Places places;
  harness::Arguments operands;
  for (const harness::Operand& operand : spec.operands(c)) {
    const bool follows = operand.keeps_layout;
    View view;
    if (c.in_place && operand.may_be)
      static_cast<ConstView&>(view) = operands.in(operand.may_be);
    else
      view = places.place(operand, follows && layout == "strided_columns", follows && layout == "padded_rows",
                          follows && layout == "transposed");
    operands.add(operand.name, view);
  }
  Workspace workspace;
  if (spec.workspace) {
    if (const Status s = spec.workspace(queue, c, operands, workspace.bytes); !s)
      throw Failure(kFailedCheck, s.message());
    workspace.pointer = places.take(workspace.bytes);
  }
  std::vector<Answer> answers;
  const auto answer = [](void* context, const Op& op, const Variant& variant, bool available, bool chosen,
                         const Status& status) {
    static_cast<std::vector<Answer>*>(context)->push_back(
        {&op, &variant, available, chosen, status.message()});
  };
  set_explanation(queue, {&answers, answer});
  const Status status = spec.call(queue, c, operands, nullptr, workspace);
  set_explanation(queue, {});
  if (!status) throw Failure(kFailedCheck, status.message());
  return answers;
}

std::string sentence_of(const Answer& a, const std::string& isa, bool all_chosen) {
  if (a.chosen) return "runs: the first in the list that accepts";
  if (!a.refusal.empty()) return "refuses: " + a.refusal;
  if (!a.available) return "is not part of the plug-in for " + isa;
  if (a.variant->role != Role::standard) return "would take it, when asked for by name";
  return all_chosen ? "would take it, but another comes first" : "would take it";
}

}  // namespace

int why(const WhyArguments& arguments) {
  const std::vector<const Op*> named = select_ops({arguments.op});
  const Op* op = nullptr;
  for (const Op* candidate : named)
    if (arguments.backward ? std::string_view(candidate->direction) == "backward" : !op) op = candidate;
  if (!op) refuse("{} has no backward function", arguments.op);
  const harness::Spec* spec = harness::find_spec(op->function);
  if (!spec) fail("{} has no cases.h entry, from which a call could be made", op->function);
  harness::Case c;
  c.shape = parse_shape(arguments.shape);
  c.dtype = parse_dtype(arguments.dtype);
  c.parameters = parse_parameters(*spec, arguments.parameters);
  c.in_place = arguments.in_place;
  const std::string& layout = arguments.layout;
  if (!layout.empty() && layout != "contiguous" && layout != "padded_rows" && layout != "strided_columns" &&
      layout != "transposed")
    refuse("no layout \"{}\"; there are contiguous, padded_rows, strided_columns and transposed", layout);
  check_rank(*spec, c.shape);
  if (!arguments.isa.empty()) check_isas({arguments.isa});
  check_destination(arguments.json);

  const Queue queue = Queue::cpu({.isa = arguments.isa.empty() ? nullptr : arguments.isa.c_str()});
  if (const Status s = queue.status(); !s) throw Failure(kTrouble, s.message());
  const std::vector<Answer> answers = ask(queue, *spec, c, layout);

  const Answer* chosen = nullptr;
  for (const Answer& a : answers)
    if (a.chosen && !chosen) chosen = &a;
  nlohmann::json variants = nlohmann::json::array();
  Table table({"variant", "role", "answer"});
  for (const Answer& a : answers) {
    const std::string sentence = sentence_of(a, queue.isa(), chosen != nullptr);
    const char* role = role_name(a.variant->role);
    table.add({a.variant->name, role, sentence});
    variants.push_back({{"function", a.op->function},
                        {"variant", a.variant->name},
                        {"role", role},
                        {"available", a.available},
                        {"chosen", a.chosen},
                        {"answer", sentence}});
  }
  const std::string call = fmt::format("{} {} {}", op->function, to_text(c.shape), name(c.dtype));
  if (arguments.json != "-") {
    say("{} on {}, {} thread{}: {}\n", call, queue.isa(), queue.threads(), queue.threads() == 1 ? "" : "s",
        chosen            ? fmt::format("{} ({})", chosen->variant->name, chosen->variant->idea)
        : answers.empty() ? std::string("nothing runs, since there is nothing to compute")
                          : std::string("no variant that the library may choose takes it"));
    if (!answers.empty()) print_text(table.text());
  }
  if (!arguments.json.empty())
    write_destination(arguments.json,
                      dump({{"call", call},
                            {"isa", queue.isa()},
                            {"isa_reason", queue.isa_reason()},
                            {"threads", queue.threads()},
                            {"chosen", chosen ? nlohmann::json(chosen->variant->name) : nullptr},
                            {"answers", variants}}));
  return chosen || answers.empty() ? kOk : kFailedCheck;
}

}  // namespace rooftile::cli
