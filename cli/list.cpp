#include <map>
#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/commands.h"

#include "cli/failure.h"
#include "cli/output.h"
#include "cli/record.h"
#include "cli/table.h"
#include "cli/tuning.h"
#include "rooftile/harness/check/runner.h"
#include "rooftile/harness/signature_text.h"
#include "rooftile/runtime/queue_state.h"

namespace rooftile::cli {
int list(const ListArguments& arguments) {
  const std::vector<const Op*> ops = select_ops(arguments.ops);
  check_destination(arguments.json);
  if (arguments.tuning) {
    nlohmann::json rows = nlohmann::json::array();
    const Table table = tuning_table(ops, rows);
    if (arguments.json != "-") print_text(table.text());
    if (!arguments.json.empty()) write_destination(arguments.json, dump({{"tuning", rows}}));
    return kOk;
  }
  const Queue queue = Queue::cpu({.threads = 1});
  if (const Status s = queue.status(); !s) throw Failure(kTrouble, s.message());

  nlohmann::json all = nlohmann::json::array();
  for (const Op* op : ops) {
    const harness::Spec* spec = harness::find_spec(op->function);
    std::vector<std::string> dtypes;
    if (spec)
      for (const DType type : spec->dtypes) dtypes.emplace_back(name(type));
    nlohmann::json operands = nlohmann::json::array(), options = nlohmann::json::array();
    Table takes({"operand", "role", "dtypes", "shape", ""});
    for (const harness::OperandText& o : harness::operand_texts(op->signature)) {
      takes.add({o.name, o.role, o.dtypes, o.shape, o.notes});
      operands.push_back(
          {{"name", o.name}, {"role", o.role}, {"dtypes", o.dtypes}, {"shape", o.shape}, {"notes", o.notes}});
    }
    Table numbers({"option", "values", "default"});
    for (const harness::OptionText& o : harness::option_texts(op->signature)) {
      numbers.add({o.name, o.values, o.default_value});
      options.push_back({{"name", o.name}, {"values", o.values}, {"default", o.default_value}});
    }
    nlohmann::json variants = nlohmann::json::array();
    Table table({"variant", "role", queue.isa(), "idea"});
    for (std::size_t v = 0; v < op->variants.size(); ++v) {
      const Variant& variant = op->variants[v];
      const bool here = harness::has_variant(queue, *op, v);
      table.add({variant.name, role_name(variant.role), here ? "yes" : "no", variant.idea});
      variants.push_back({{"name", variant.name},
                          {"role", role_name(variant.role)},
                          {"idea", variant.idea},
                          {"here", here}});
    }
    all.push_back({{"function", op->function},
                   {"op", op->name},
                   {"direction", op->direction},
                   {"dtypes", dtypes},
                   {"axes", spec ? spec->axes : ""},
                   {"operands", operands},
                   {"options", options},
                   {"variants", variants}});
    if (arguments.json == "-") continue;
    const std::string with_options = options.empty() ? "" : numbers.text("  ") + "\n";
    say("{} ({} {}; {}; {})\n{}\n{}{}\n", op->function, op->name, op->direction, fmt::join(dtypes, " "),
        spec ? spec->axes : "no cases", takes.text("  "), with_options, table.text("  "));
  }
  if (!arguments.json.empty())
    write_destination(arguments.json,
                      dump({{"rooftile", ROOFTILE_VERSION}, {"isa", queue.isa()}, {"functions", all}}));
  return kOk;
}

}  // namespace rooftile::cli
