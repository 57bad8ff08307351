#include "rooftile/harness/check/invariance.h"
#include "rooftile/harness/check/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "rooftile/harness/check/fill.h"
#include "rooftile/harness/check/standard_cases.h"

namespace rooftile::harness {
namespace {

std::vector<Placement> placements(const Problem& p, Layout inputs, Layout outputs) {
  std::vector<Placement> result;
  for (std::size_t o = 0; o < p.operands().size(); ++o)
    result.push_back(place(p.operands()[o], p.is_output(o) ? outputs : inputs, 0));
  return result;
}
/// Dense, `inputs` and `outputs` elements behind a boundary: weights, too.
std::vector<Placement> at_offsets(const Problem& p, std::int64_t inputs, std::int64_t outputs) {
  std::vector<Placement> result = placements(p, Layout::contiguous, Layout::contiguous);
  for (std::size_t o = 0; o < result.size(); ++o) result[o].offset = p.is_output(o) ? outputs : inputs;
  return result;
}

/// One variant on one instruction set.
class Invariance {
 public:
  Invariance(const Spec& spec, const Queues& queues, const char* variant, Ledger& ledger)
      : queues_(queues), variant_(variant), role_(role_of(spec, variant)), ledger_(ledger) {}

  /// On a problem with dense operands. `thorough`: each offset and layout; `paths`: one of each.
  void meet(const Problem& p, bool thorough, bool paths) {
    Memory dense(p, placements(p, Layout::contiguous, Layout::contiguous), false);
    const Run reference = run(queue(Queues::kOne), p, dense, variant_);
    if (reference.refused) return refuse(p, "on dense operands", reference.message);
    if (!reference.damage.empty()) return note(p, reference.damage);

    const auto differs = [&](const std::string& how, std::size_t q, Memory& memory) {
      const Run again = run(queue(q), p, memory, variant_);
      if (again.refused) return refuse(p, how, again.message);
      note(p, again.damage.empty() ? differ(p, how, p, again.outputs, reference.outputs, 0) : again.damage);
    };
    const auto in_place = [&] {
      for (std::size_t o = 0; o < p.operands().size(); ++o) {
        if (in_place_of(p, o) == p.operands().size()) continue;
        Memory same(p, placements(p, Layout::contiguous, Layout::contiguous), true);
        differs("in place", Queues::kOne, same);
        if (!paths) differs("in place and streaming", Queues::kOneStreaming, same);
        break;
      }
    };
    if (paths) {
      if (!thorough || role_ == Role::named) return;
      Memory unaligned(p, at_offsets(p, 1, 1), false),
          strided(p, placements(p, Layout::strided_columns, Layout::strided_columns), false);
      differs("1 element behind a boundary", Queues::kThreeStreaming, unaligned);
      differs("with strided columns", Queues::kThreeStreaming, strided);
      return in_place();
    }
    differs("a second time", Queues::kOne, dense);
    if (role_ == Role::named) return;
    for (std::size_t q = Queues::kTwo; q < queues_.all.size(); ++q) {
      if (role_ != Role::standard && q != Queues::kTwo && q != Queues::kOneStreaming) continue;
      differs(fmt::format("with {}", queues_.all[q].name), q, dense);
    }
    for (std::size_t dim : independent_dimensions(p.spec(), p.what())) parts(p, reference.outputs, dim);
    if (!thorough) return;

    const std::int64_t within = 64 / static_cast<std::int64_t>(width_of(p.what().dtype));
    for (std::int64_t k = 1; k < within; ++k) {
      Memory all(p, at_offsets(p, k, k), false);
      differs(fmt::format("{} elements behind a boundary", k), k % 2 ? Queues::kOne : Queues::kOneStreaming,
              all);
      Memory one(p, at_offsets(p, k % 3 ? 0 : 1, k), false);
      differs(fmt::format("with outputs {} elements behind a boundary", k),
              k % 2 ? Queues::kOneStreaming : Queues::kOne, one);
    }
    for (Layout layout :
         {Layout::padded_rows, Layout::strided_columns, Layout::reversed, Layout::transposed}) {
      Memory both(p, placements(p, layout, layout), false),
          in(p, placements(p, layout, Layout::contiguous), false),
          out(p, placements(p, Layout::contiguous, layout), false);
      const std::string which = name(layout);
      differs(which, Queues::kOne, both);
      differs(which + " and three threads, streaming", Queues::kThreeStreaming, both);
      differs("inputs " + which, Queues::kOne, in);
      differs("outputs " + which, Queues::kOneStreaming, out);
    }
    in_place();
  }

  /// Inputs with a stride of 0 against the same values laid out in full.
  void meet_broadcast(const Problem& p) {
    Memory full(p, placements(p, Layout::contiguous, Layout::contiguous), false);
    Memory broadcast(p, placements(p, Layout::broadcast, Layout::contiguous), false);
    const Run reference = run(queue(Queues::kOne), p, full, variant_);
    if (reference.refused) return;
    const Run again = run(queue(Queues::kOne), p, broadcast, variant_);
    if (again.refused) return refuse(p, "broadcast", again.message);
    note(p, differ(p, "broadcast", p, again.outputs, reference.outputs, 0));
  }

 private:
  const Queue& queue(std::size_t q) const { return queues_.all[q].queue; }
  std::string label() const { return variant_ ? variant_ : Ledger::kChoice; }
  void note(const Problem& p, const std::string& failure) {
    ledger_.note(queues_.isa, label(), failure.empty() ? "" : describe(p.what()) + ": " + failure);
  }
  void refuse(const Problem& p, const std::string& how, const std::string& message) {
    if (variant_)
      ++ledger_.of(queues_.isa, label()).refused;
    else
      note(p, fmt::format("is refused {}: {}", how, message));
  }

  static std::string differ(const Problem& p, const std::string& how, const Problem& got_of,
                            const std::vector<Bytes>& got, const std::vector<Bytes>& reference,
                            std::int64_t from) {
    const std::string what = difference(p, reference, got_of, got, from);
    return what.empty() ? "" : fmt::format("bits differ {}: {}", how, what);
  }

  /// Indices of dimension `dim` alone: the outermost, or one whose indices know nothing of each other.
  void parts(const Problem& p, const std::vector<Bytes>& batch, std::size_t dim) {
    if (p.what().shape.empty()) return;
    const std::int64_t n = p.what().shape[dim];
    const auto part = [&](std::int64_t begin, std::int64_t count, std::size_t q) {
      const std::optional<Problem> alone = p.slice(dim, begin, count);
      if (!alone) return;
      for (std::size_t o = 0; o < p.operands().size();
           ++o)  // what is added up over the rows is another problem
        if (dim == 0 && p.is_input(o) && p.operands()[o].shape != alone->operands()[o].shape &&
            !p.operands()[o].batched)
          return;
      Memory memory(*alone, placements(*alone, Layout::contiguous, Layout::contiguous), false);
      const std::string how =
          dim == 0 ? fmt::format("rows {} to {} alone", begin, begin + count - 1)
                   : fmt::format("indices {} to {} of dimension {} alone", begin, begin + count - 1, dim);
      const Run again = run(queue(q), *alone, memory, variant_);
      if (again.refused) return refuse(p, how, again.message);
      note(p, differ(p, how, *alone, again.outputs, batch, begin));
    };
    for (std::int64_t row : {std::int64_t{0}, std::int64_t{1}, n / 2, n - 2, n - 1})
      if (row >= 0 && row < n && n > 1) part(row, 1, row % 2 ? Queues::kOneStreaming : Queues::kOne);
    if (n > 4) part(1, 3, Queues::kTwo);
    if (n > 1000) part(n / 3, n - n / 3, Queues::kThree);
  }

  const Queues& queues_;
  const char* variant_;
  Role role_;
  Ledger& ledger_;
};

/// The variants to compare. Where the library has one standard variant to choose, its choice runs that one,
/// and says more: a refusal fails it.
std::vector<const char*> compared(const Spec& spec, const Subjects& subjects, const Queues& queues) {
  std::vector<const char*> left = subjects.of(queues);
  const auto standard = [&](const char* variant) {
    return variant && role_of(spec, variant) == Role::standard;
  };
  const Op* op = find_op(spec.function);
  int choices = 0;
  for (std::size_t v = 0; op && v < op->variants.size(); ++v)
    choices += standard(op->variants[v].name) && has_variant(queues.all[Queues::kOne].queue, *op, v);
  if (choices == 1 && std::count(left.begin(), left.end(), nullptr)) std::erase_if(left, standard);
  return left;
}

}  // namespace

Role role_of(const Spec& spec, const char* variant) {
  const Op* op = find_op(spec.function);
  if (op && variant)
    for (const Variant& v : op->variants)
      if (std::strcmp(v.name, variant) == 0) return v.role;
  return Role::standard;
}

std::string difference(const Problem& p, const std::vector<Bytes>& reference, const Problem& got_of,
                       const std::vector<Bytes>& got, std::int64_t from) {
  const bool cut = &p != &got_of;
  for (std::size_t o = 0; o < p.operands().size(); ++o) {
    const Operand &output = p.operands()[o], &part = got_of.operands()[o];
    if (!p.is_output(o) || got[o].empty()) continue;
    // The dimension that was cut: of an output without it, the part is another problem.
    std::size_t dim = 0, times = 1;
    if (cut) {
      if (part.shape.size() != output.shape.size()) continue;
      for (; dim < part.shape.size() && part.shape[dim] == output.shape[dim]; ++dim)
        times *= static_cast<std::size_t>(part.shape[dim]);
      if (dim == part.shape.size() || (dim == 0 && !output.batched)) continue;
    }
    const std::size_t width = width_of(output.dtype), run = got[o].size() / times,
                      whole = reference[o].size() / times;
    const std::size_t begin =
        cut ? static_cast<std::size_t>(from) * run / static_cast<std::size_t>(part.shape[dim]) : 0;
    if (begin + run > whole) continue;
    for (std::size_t t = 0; t < times; ++t) {
      const std::byte *is_at = got[o].data() + t * run, *was_at = reference[o].data() + t * whole + begin;
      const std::int64_t at = first_difference(output.dtype, is_at, was_at, run);
      if (at < 0) continue;
      const std::size_t i = static_cast<std::size_t>(at);
      double is = 0, was = 0;
      decode(output.dtype, is_at + i * width, 1, &is);
      decode(output.dtype, was_at + i * width, 1, &was);
      return fmt::format("{} is {}, was {}",
                         element_name(output, static_cast<std::int64_t>((t * whole + begin) / width + i)),
                         value_text(is), value_text(was));
    }
  }
  return "";
}

void check_invariance(const Spec& spec, DType dtype, const Subjects& subjects, Ledger& ledger) {
  struct Base {
    std::int64_t rows, columns;
    bool thorough, long_row;
  };
  // Enough rows and bytes for seven threads; every offset and layout; a row of two tiles and a tail; a row
  // that is not held; every offset and layout of rows that fill several warps of a GPU, and of others in
  // whole words that fill a part of one, all of one or none; elements too few for the threads that they get;
  // rows of which sums go to several teams of a warp; many rows, of each remainder by 4.
  constexpr Base kBases[] = {{67, 1009, false, false}, {9, 133, true, false},   {2, 70001, false, true},
                             {2, 2048, true, true},    {5, 136, true, true},    {3, 1000, true, true},
                             {9, 24, true, true},      {131, 40, true, true},   {5001, 9, false, false},
                             {6002, 5, false, false},  {7003, 3, false, false}, {5004, 7, false, false}};
  const Fill usual = is_floating(dtype) ? Fill::normal : Fill::bytes;
  const auto sets = parameter_sets(spec, dtype, 6);
  const auto meet = [&](const Base& base, std::size_t s, Fill fill) {
    if (base.long_row && s > 0) return;
    const Case c{shape_of(spec, base.rows, base.columns), dtype, sets[s], Layout::contiguous, fill};
    if (spec.refuses && spec.refuses(c)) return;
    if (spec.suits && !spec.suits(c)) return;
    const Problem p(spec, c, 77 + s);
    Case repeated = c;
    repeated.layout = Layout::broadcast;
    const Problem b(spec, repeated, 78 + s);
    for (Queues& queues : subjects.isas) {
      const bool paths = std::count(subjects.brief.begin(), subjects.brief.end(), queues.isa);
      if (paths && base.rows > 1000 && s > 0) continue;
      for (const char* variant : compared(spec, subjects, queues)) {
        const Role role = role_of(spec, variant);
        // A block for each of thousands of rows takes the emulated device minutes.
        const bool costly = base.long_row || (base.rows > 1000 && role == Role::gpu_rung);
        if (role == Role::oracle || (costly && role != Role::standard)) continue;
        Invariance invariance(spec, queues, variant, ledger);
        invariance.meet(p, base.thorough && s < 2, paths);
        if (!paths && base.thorough && role == Role::standard) invariance.meet_broadcast(b);
      }
    }
  };
  for (std::size_t s = 0; s < sets.size(); ++s) {
    for (const Base& base : kBases) {
      meet(base, s, usual);
      if (s == 0)
        for (const Fill fill : spec.fills_alone) meet(base, s, fill);
    }
  }
}

}  // namespace rooftile::harness
