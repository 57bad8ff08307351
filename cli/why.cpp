#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/answers.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/output.h"
#include "cli/record.h"
#include "cli/table.h"
#include "cli/tuning.h"

namespace rooftile::cli {
namespace {

std::string sentence_of(const Answer& a, const std::string& isa, bool all_chosen) {
  if (a.chosen) return "runs: the first in the list that accepts";
  if (!a.refusal.empty()) return "refuses: " + a.refusal;
  if (!a.available) return "is not part of the plug-in for " + isa;
  if (a.variant->role != Role::standard) return "would take it, when asked for by name";
  return all_chosen ? "would take it, but another comes first" : "would take it";
}

/// From the table alone: no GPU need be here, nor is the emulated device started.
int why_on_gpu(const WhyArguments& arguments, const Op& op, const harness::Case& c, const std::string& call) {
  nlohmann::json row;
  const std::vector<std::string> lines = tuning_of(op, c, row);
  if (arguments.json != "-") {
    say("{} on {}:\n", call, arguments.device == "cuda" ? "a GPU" : "the emulated device");
    for (const std::string& line : lines) say("  {}\n", line);
  }
  if (!arguments.json.empty())
    write_destination(arguments.json, dump({{"call", call}, {"device", arguments.device}, {"tuning", row}}));
  return kOk;
}

}  // namespace

int why(const WhyArguments& arguments) {
  const std::vector<const Op*> named = select_ops({arguments.op});
  const Op* op = nullptr;
  for (const Op* candidate : named)
    if (arguments.backward ? std::string_view(candidate->direction) == "backward" : !op) op = candidate;
  if (!op) refuse("{} has no backward function", arguments.op);
  const harness::Spec* spec = harness::find_spec(op->function);
  if (!spec) fail("{} has no cases, from which a call could be made", op->function);
  harness::Case c;
  c.shape = parse_shape(arguments.shape);
  c.dtype = parse_dtype(arguments.dtype);
  c.parameters = parse_parameters(*spec, arguments.parameters);
  c.in_place = arguments.in_place;
  const std::string& layout = arguments.layout;
  if (!layout.empty() && std::find(layouts().begin(), layouts().end(), layout) == layouts().end())
    refuse("no layout \"{}\"{}; there are {}", layout, suggestion(layout, layouts()),
           fmt::join(layouts(), " "));
  check_rank(*spec, c.shape);
  if (!arguments.isa.empty()) check_isas({arguments.isa});
  check_destination(arguments.json);

  const std::string call = fmt::format("{} {} {}", op->function, to_text(c.shape), name(c.dtype));
  if (arguments.device != "cpu") return why_on_gpu(arguments, *op, c, call);
  const Queue queue = Queue::cpu({.isa = arguments.isa.empty() ? nullptr : arguments.isa.c_str()});
  if (const Status s = queue.status(); !s) throw Failure(kTrouble, s.message());
  const std::vector<Answer> answers = answers_to(queue, *spec, c, layout);

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
