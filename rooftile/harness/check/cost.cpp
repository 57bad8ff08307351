#include <fmt/format.h>

#include <cmath>

#include "rooftile/harness/check/contract.h"
#include "rooftile/harness/check/fill.h"
#include "rooftile/harness/check/standard_cases.h"

namespace rooftile::harness {

void check_cost(const Spec& spec, DType dtype, Ledger& ledger) {
  if (!spec.oracle.counted) {
    ledger.note("any", Ledger::kOracle, "has no oracle on the counting scalar");
    return;
  }
  const Fill usual = is_floating(dtype) ? Fill::normal : Fill::bytes;
  for (const auto& parameters : parameter_sets(spec, dtype, 16)) {
    const Case c{shape_of(spec, 7, 300), dtype, parameters, Layout::contiguous, usual};
    if ((spec.refuses && spec.refuses(c)) || (spec.suits && !spec.suits(c))) continue;
    const Problem p(spec, c, 3);
    auto arrays = p.arrays<Counted>();
    Counted::operations() = 0;
    spec.oracle.counted(c, arrays);
    const double flops = static_cast<double>(Counted::operations());
    double bytes = 0;
    for (const Operand& operand : p.operands()) {
      const auto& array = arrays[operand.name];
      const bool both = operand.kind == Operand::Kind::inout;
      bytes += static_cast<double>(both ? array.read() + array.written() : array.touched()) *
               bits(operand.dtype) / 8;
    }

    std::string failure;
    const double stated_flops = spec.flops(c), stated_bytes = spec.bytes(c);
    if (!(std::fabs(stated_flops - flops) <= 0.02 * flops))
      failure =
          fmt::format("{}: {:g} flops are stated, the oracle takes {:g}", describe(c), stated_flops, flops);
    else if (stated_bytes != bytes)
      failure =
          fmt::format("{}: {:g} bytes are stated, the oracle touches {:g}", describe(c), stated_bytes, bytes);
    ledger.note("any", Ledger::kOracle, failure);
  }
}

}  // namespace rooftile::harness
