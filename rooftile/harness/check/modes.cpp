// The caller's rounding mode and traps must not show: neither in a bit, nor by a trap.
#include <fmt/format.h>

#include <cfenv>

#include "rooftile/harness/check/invariance.h"
#include "rooftile/harness/check/standard_cases.h"

namespace rooftile::harness {
namespace {

constexpr FpMode kModes[] = {{"rounding up", FE_UPWARD, 0},
                             {"rounding down", FE_DOWNWARD, 0},
                             {"rounding toward zero", FE_TOWARDZERO, 0},
                             {"all traps on", FE_TONEAREST, FE_ALL_EXCEPT}};

/// Numbers that a float holds: rounding a case's own to options is not the library's.
std::vector<std::map<std::string, double>> exact_options(const Spec& spec) {
  std::map<std::string, double> usual;
  for (const Option& o : spec.options) usual[o.name] = o.kind == Option::Kind::real ? 0.75 : o.otherwise;
  std::vector<std::map<std::string, double>> sets{usual};
  for (const Option& o : spec.options)
    if (o.kind == Option::Kind::choice)
      for (double value = o.least; value <= o.most; ++value)
        if (value != o.otherwise) sets.push_back(usual), sets.back()[o.name] = value;
  return sets;
}

}  // namespace

void check_modes(const Spec& spec, DType dtype, const Subjects& subjects, Ledger& ledger) {
  for (const auto& parameters : exact_options(spec)) {
    for (std::int64_t columns : {777, 1, 0}) {
      const Case c{shape_of(spec, 3, columns), dtype, parameters, Layout::contiguous, usual_fill(dtype)};
      if ((spec.suits && !spec.suits(c)) || (spec.refuses && spec.refuses(c))) continue;
      const Problem p(spec, c, 7);
      for (const Queues& queues : subjects.isas) {
        for (const char* variant : subjects.of(queues)) {
          const NamedQueue& queue = queues.all[Queues::kOne];
          Memory memory(p);
          const Run plain = run(queue.queue, p, memory, variant);
          if (plain.refused) continue;
          for (const FpMode& mode : kModes) {
            // A driver's own arithmetic is not the library's.
            if (mode.traps && has_own_memory(queue.queue)) continue;
            const Run got = run(queue.queue, p, memory, variant, &mode);  // a trap ends the process
            std::string failure = got.refused ? "is refused: " + got.message : "";
            for (std::size_t o = 0; o < p.operands().size() && failure.empty(); ++o)
              if (p.is_output(o) && first_difference(p.operands()[o].dtype, got.outputs[o].data(),
                                                     plain.outputs[o].data(), got.outputs[o].size()) >= 0)
                failure = fmt::format("{}: bits differ", p.operands()[o].name);
            ledger.note(queues.isa, variant ? variant : Ledger::kChoice,
                        failure.empty() ? "" : fmt::format("{}, {}: {}", describe(c), mode.name, failure));
          }
        }
      }
    }
  }
}

}  // namespace rooftile::harness
