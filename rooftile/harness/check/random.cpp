// Random cases, run and compared.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "rooftile/harness/check/invariance.h"
#include "rooftile/harness/check/survive.h"

namespace rooftile::harness {
namespace {

bool repeats(const Problem& p, const std::vector<Placement>& where, std::size_t o, std::size_t d) {
  return where[o].strides[d] == 0 && p.operands()[o].shape[d] > 1;
}
/// Whether a stride of 0 makes elements of an input equal.
bool repeats(const Problem& p, const std::vector<Placement>& where) {
  bool any = false;
  for (std::size_t o = 0; o < where.size(); ++o)
    for (std::size_t d = 0; p.is_input(o) && d < where[o].strides.size(); ++d)
      any = any || repeats(p, where, o, d);
  return any;
}

/// With the values that the memory of such an input holds.
Problem as_placed(Problem drawn, const std::vector<Placement>& where) {
  if (!repeats(drawn, where)) return drawn;
  std::vector<std::vector<double>> values(where.size());
  for (std::size_t o = 0; o < where.size(); ++o) {
    if (!drawn.is_input(o)) continue;
    values[o] = drawn.values(o);
    const Shape& shape = drawn.operands()[o].shape;
    for (std::size_t d = 0, outer = 1, inner = values[o].size(); d < shape.size(); ++d) {
      const auto size = static_cast<std::size_t>(shape[d]);
      if (size == 0) break;
      inner /= size;
      if (repeats(drawn, where, o, d))
        for (std::size_t a = 0; a < outer; ++a)
          for (std::size_t i = inner; i < size * inner; ++i) {
            const std::size_t at = a * size * inner + i;
            values[o][at] = values[o][at - inner];
          }
      outer *= size;
    }
  }
  return Problem(drawn.spec(), drawn.what(), std::move(values));
}

/// Whether an input shows one value again and again.
bool alike(const Problem& p, const std::vector<Placement>& where) {
  return p.what().fill == Fill::constant_rows || p.what().fill == Fill::huge_rows || repeats(p, where);
}

std::vector<Placement> dense(const Problem& p) {
  std::vector<Placement> all;
  for (const Operand& operand : p.operands()) all.push_back(place(operand, Layout::contiguous, 0));
  return all;
}

/// Some indices of a dimension whose indices know nothing of each other in a call of their own, on dense
/// operands.
std::string part_alone(const Queue& queue, const Problem& p, const std::vector<Bytes>& whole,
                       const char* variant, std::mt19937_64& random) {
  const Shape& shape = p.what().shape;
  if (shape.size() < 2) return "";
  const std::vector<std::size_t> dims = independent_dimensions(p.spec(), p.what());
  const std::size_t dim = dims.size() == 1 ? 0 : dims[random() % dims.size()];
  if (shape[dim] < 2) return "";
  const std::int64_t n = shape[dim];
  const std::int64_t begin = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  const std::int64_t count = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n - begin));
  const std::optional<Problem> part = p.slice(dim, begin, count);
  if (!part) return "";
  for (std::size_t o = 0; o < p.operands().size(); ++o)
    if (dim == 0 && p.is_input(o) && p.operands()[o].shape != part->operands()[o].shape &&
        !p.operands()[o].batched)
      return "";
  Memory memory(*part, dense(*part), false);
  const Run got = run(queue, *part, memory, variant);
  if (got.refused) return "";
  const std::string what = difference(p, whole, *part, got.outputs, begin);
  return what.empty() ? ""
                      : fmt::format("bits differ with indices {} to {} of dimension {} alone: {}", begin,
                                    begin + count - 1, dim, what);
}

}  // namespace

void check_random(const Spec& spec, DType dtype, int count, std::uint64_t seed, const Subjects& subjects,
                  Ledger& ledger, Coverage& coverage) {
  // The dtypes share the pairs of sizes.
  const auto before = std::find(spec.dtypes.begin(), spec.dtypes.end(), dtype) - spec.dtypes.begin();
  for (int k = 0; k < count; ++k) {
    std::mt19937_64 random((seed * 1000003 + static_cast<std::uint64_t>(k)) * 31 +
                           static_cast<std::uint64_t>(dtype));
    const Case c = random_case(spec, dtype, before * count + k, random);
    if (spec.refuses && spec.refuses(c)) continue;
    Problem drawn(spec, c, random());
    const std::vector<Placement> where = random_placements(drawn, random);
    const Problem p = as_placed(std::move(drawn), where);

    const Queues& queues = subjects.isas[random() % subjects.isas.size()];
    const std::vector<const char*> variants = subjects.of(queues);
    if (variants.empty()) return;
    // Most on one thread: what else there is shows as other bits.
    const NamedQueue& queue = queues.all[random() % 3 ? Queues::kOne : random() % queues.all.size()];
    const char* variant = random() % 2 ? variants[random() % variants.size()] : variants[0];
    const std::string label = variant ? variant : Ledger::kChoice;
    announce_context(fmt::format("random case {} of seed {}, ", k, seed));
    Memory memory(p, where, c.in_place);
    const Run got = run(queue.queue, p, memory, variant);
    if (got.refused && variant) {
      ++ledger.of(queues.isa, label).refused;
      continue;
    }
    coverage.add(spec, c, p.operands(), where);
    std::string failure = got.refused ? "is refused: " + got.message : got.damage;
    const Limits limits = limits_of(spec, c, got.chosen, alike(p, where));
    for (std::size_t o = 0; failure.empty() && o < where.size(); ++o) {
      if (!p.is_output(o)) continue;
      Comparison comparison = compare(limits, p.operands()[o], p.answer(o), got.outputs[o]);
      comparison.gated = false;
      failure = comparison.failure;
      ledger.add(queues.isa, label, comparison);
    }
    if (failure.empty() && role_of(spec, variant) == Role::standard) {
      Memory plain(p, dense(p), false);
      const Run again = run(queues.all[Queues::kOne].queue, p, plain, variant);
      if (!again.refused) failure = difference(p, again.outputs, p, got.outputs, 0);
      if (!failure.empty()) failure = "bits differ from dense operands on one thread: " + failure;
      if (failure.empty() && (k % 4 == 0 || count_of(c.shape) > 1000))
        failure = part_alone(queues.all[Queues::kOneStreaming].queue, p, got.outputs, variant, random);
    }
    if (!failure.empty())
      failure = fmt::format("random case {} of seed {}, {}, {}, {}: {}", k, seed, describe(c), queue.name,
                            memory.describe(), failure);
    ledger.note(queues.isa, label, failure);
  }
  announce_context("");
}

}  // namespace rooftile::harness
