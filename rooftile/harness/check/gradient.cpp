#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "rooftile/harness/check/contract.h"
#include "rooftile/harness/check/fill.h"
#include "rooftile/harness/check/standard_cases.h"

namespace rooftile::harness {
namespace {

using Values = std::map<std::string, std::vector<double>>;

/// Every operand's values after the oracle ran on these inputs.
Values run_oracle(const Spec& spec, const Case& c, const Values& inputs) {
  Arrays<double> arrays;
  for (const Operand& operand : spec.operands(c)) {
    const auto it = inputs.find(operand.name);
    const bool given = operand.kind != Operand::Kind::output && it != inputs.end();
    arrays[operand.name] = Array<double>(
        given ? it->second : std::vector<double>(static_cast<std::size_t>(count_of(operand.shape))));
  }
  spec.oracle.exact(c, arrays);
  Values values;
  for (const auto& [name, array] : arrays.all()) values[name] = array.values();
  return values;
}

/// Σ over the forward outputs of gradient · value: its derivatives are what the backward computes.
double loss(const Values& outputs, const Values& gradients) {
  double sum = 0;
  for (const auto& [name, gradient] : gradients)
    for (std::size_t i = 0; i < gradient.size(); ++i) sum += gradient[i] * outputs.at(name)[i];
  return sum;
}

std::string compare_gradient(const Spec& backward, const Spec& forward, const Case& c, int& compared) {
  Arrays<double> filled;
  std::uint64_t seed = 100;
  for (const Operand& operand : forward.operands(c))
    if (operand.kind != Operand::Kind::output)
      filled[operand.name] = Array<double>(fill_values(operand, Fill::normal, ++seed));
  if (forward.prepare) forward.prepare(c, filled);
  Values inputs;
  for (const auto& [name, array] : filled.all()) inputs[name] = array.values();
  const Values outputs = run_oracle(forward, c, inputs);

  Values gradients, backward_inputs;
  for (const Operand& operand : backward.operands(c)) {
    if (operand.kind == Operand::Kind::output) continue;
    const std::string name = operand.name;
    if (outputs.count(name)) {
      backward_inputs[name] = outputs.at(name);
      continue;
    }
    backward_inputs[name] = fill_values(operand, Fill::normal, ++seed);
    if (name.size() > 1 && name[0] == 'd' && outputs.count(name.substr(1)))
      gradients[name.substr(1)] = backward_inputs[name];
    else
      return fmt::format("input {} is neither an operand of {} nor the gradient of one", name,
                         forward.function);
  }
  // A loss that is no number (a mean of no rows, a masked logarithm) has no differences.
  if (!std::isfinite(loss(outputs, gradients))) return "";
  const Values analytic = run_oracle(backward, c, backward_inputs);

  for (const Operand& operand : backward.operands(c)) {
    const std::string name = operand.name;
    if (operand.kind == Operand::Kind::input || name[0] != 'd') continue;
    const auto input = inputs.find(name.substr(1));
    if (input == inputs.end()) continue;
    const std::vector<double>& found = analytic.at(name);
    if (found.size() != input->second.size())
      return fmt::format("{} has {} elements, {} has {}", name, found.size(), name.substr(1),
                         input->second.size());
    double largest = 0;
    for (double v : found) largest = std::max(largest, std::fabs(v));
    for (std::size_t i = 0; i < found.size(); ++i) {
      // Error of central differences: h² for the formula, 1e-16 / h for the subtraction.
      const double h = 1e-5 * std::max(1.0, std::fabs(input->second[i]));
      Values moved = inputs;
      moved[input->first][i] = input->second[i] + h;
      const double up = loss(run_oracle(forward, c, moved), gradients);
      moved[input->first][i] = input->second[i] - h;
      const double down = loss(run_oracle(forward, c, moved), gradients);
      const double numeric = (up - down) / (2 * h);
      if (!(std::fabs(numeric - found[i]) <= 1e-6 * (1 + largest)))
        return fmt::format("{}: the oracle gives {:.9g}, differences of {} give {:.9g}",
                           element_name(operand, static_cast<std::int64_t>(i)), found[i], forward.function,
                           numeric);
      ++compared;
    }
  }
  return "";
}

}  // namespace

void check_gradient(const Spec& spec, const Spec& forward, DType dtype, Ledger& ledger) {
  int compared = 0;
  for (const auto& parameters : parameter_sets(spec, dtype, 16)) {
    Case c{shape_of(spec, 3, 7), dtype, parameters};
    if (spec.adjust) spec.adjust(c);
    if ((spec.refuses && spec.refuses(c)) || (spec.suits && !spec.suits(c))) continue;
    const std::string failure = compare_gradient(spec, forward, c, compared);
    ledger.note("any", Ledger::kOracle, failure.empty() ? "" : describe(c) + ": gradient " + failure);
  }
  if (compared == 0)
    ledger.note("any", Ledger::kOracle,
                fmt::format("gradient of {}: no output is called d<an input of it>", forward.function));
}

}  // namespace rooftile::harness
