#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "rooftile/core/signature.h"
#include "rooftile/harness/check/contract.h"
#include "rooftile/harness/check/fill.h"
#include "rooftile/harness/check/standard_cases.h"

namespace rooftile::harness {
namespace {

class Misuse {
 public:
  Misuse(const Problem& p, const Queues& queues, Ledger& ledger)
      : p_(p), queues_(queues), queue_(queues.all[Queues::kOne].queue), ledger_(ledger), memory_(p) {}

  std::vector<View> views() const { return memory_.views(); }

  /// A call with these views must be refused with a sentence, and change nothing.
  void refused(const std::string& what, const std::vector<View>& views, const char* variant = nullptr,
               std::size_t bytes_short = 0) {
    Arguments arguments;
    for (std::size_t o = 0; o < views.size(); ++o) arguments.add(p_.operands()[o].name, views[o]);
    Workspace workspace;
    const Status asked = memory_.workspace(queue_, workspace);
    std::string failure;
    const std::size_t needed = workspace.bytes;
    if (bytes_short && needed < bytes_short) return;
    workspace.bytes -= bytes_short;
    const Status status = asked ? p_.spec().call(queue_, p_.what(), arguments, variant, workspace) : asked;
    const std::string message = status.message();
    std::string damage;
    memory_.take(damage, true);
    if (status)
      failure = "is taken";
    else if (message.find(p_.spec().function) == std::string::npos)
      failure =
          fmt::format("is refused by a sentence that does not name {}: \"{}\"", p_.spec().function, message);
    else if (bytes_short && (message.find(std::to_string(needed)) == std::string::npos ||
                             message.find(std::to_string(needed - bytes_short)) == std::string::npos))
      failure = fmt::format("is refused by a sentence without the {} bytes needed or the {} given: \"{}\"",
                            needed, needed - bytes_short, message);
    else if (!damage.empty())
      failure = "is refused, but " + damage;
    note(what, failure);
  }

  void note(const std::string& what, const std::string& failure) {
    ledger_.note(queues_.isa, Ledger::kChoice,
                 failure.empty() ? "" : fmt::format("{}: {} {}", describe(p_.what()), what, failure));
  }

  /// Whether another operand of the case has the letter of this one's last size, or outer sizes as it has.
  bool shares_last_size(std::size_t o) const {
    const auto& operands = p_.operands();
    const Op* op = find_op(p_.spec().function);
    if (!op)  // a spec of no function of the library's: all of its operands share their sizes
      return std::any_of(operands.begin(), operands.end(), [&](const Operand& other) {
        return &other != &operands[o] && !other.shape.empty();
      });
    const auto shape_of = [&](const Operand& operand) {
      for (const Signature::Operand& its : op->signature.operands)
        if (its.name && std::strcmp(its.name, operand.name) == 0) return its.shape;
      return Signature::Shape{};
    };
    const Signature::Shape mine = shape_of(operands[o]);
    return std::any_of(operands.begin(), operands.end(), [&](const Operand& other) {
      if (&other == &operands[o] || of_unlike_items(operands[o].name, other.name)) return false;
      const Signature::Shape its = shape_of(other);
      if (mine.count == 0) return its.outer && !other.shape.empty();
      return std::find(its.letters, its.letters + its.count, mine.letters[mine.count - 1]) !=
             its.letters + its.count;
    });
  }

  void each_operand() {
    const auto& operands = p_.operands();
    for (std::size_t o = 0; o < operands.size(); ++o) {
      const std::string who = operands[o].name;
      const auto with = [&](auto&& change) {
        std::vector<View> v = views();
        change(v[o]);
        return v;
      };
      if (!operands[o].optional) refused("absent " + who, with([](View& v) { v = View{}; }));
      if (operands[o].dtype != DType::boolean)
        refused(who + " of dtype bool", with([](View& v) { v.dtype = DType::boolean; }));
      const View& whole = memory_.views()[o];
      if (whole.rank > 0 && whole.shape[whole.rank - 1] > 1 && shares_last_size(o))
        refused(who + " one element short", with([](View& v) { --v.shape[v.rank - 1]; }));
      refused(who + " with null data", with([](View& v) { v.data = nullptr; }));
      if (width_of(operands[o].dtype) > 1)
        refused(who + " one byte off its alignment",
                with([](View& v) { v.data = static_cast<const char*>(v.data) + 1; }));
      if (!p_.is_output(o)) continue;
      for (int d = 0; d < whole.rank; ++d)
        if (whole.shape[d] > 1)
          refused(fmt::format("output {} of stride 0 in dimension {}", who, d),
                  with([&](View& v) { v.stride[d] = 0; }));
    }
  }

  /// Different items of lists, which no call compares with each other.
  bool of_unlike_items(const char* one, const char* other) const {
    const Op* op = find_op(p_.spec().function);
    const auto item = [&](const std::string& name) {
      const std::size_t end = std::min(name.find('['), name.size());
      for (const Signature::Operand& its : op->signature.operands)
        if (its.name && its.list && name.substr(0, end) == its.name)
          return end == name.size() ? std::string("[0]") : name.substr(end);
      return std::string();
    };
    return op && op->signature.has_lists() && !item(one).empty() && !item(other).empty() &&
           item(one) != item(other);
  }

  void overlaps() {
    const auto& operands = p_.operands();
    for (std::size_t o = 0; o < operands.size(); ++o) {
      if (!p_.is_output(o)) continue;
      for (std::size_t other = 0; other < operands.size(); ++other) {
        if (other == o || (p_.is_output(other) && other > o)) continue;
        if (of_unlike_items(operands[o].name, operands[other].name)) continue;
        const bool alike =
            operands[o].dtype == operands[other].dtype && operands[o].shape == operands[other].shape;
        if (count_of(operands[o].shape) < 2 || count_of(operands[other].shape) < 2) continue;
        std::vector<View> v = views();
        const std::size_t shift = alike ? width_of(operands[o].dtype) : 0;
        v[o].data = static_cast<const std::byte*>(v[other].data) + shift;
        refused(fmt::format("output {} half over {}", operands[o].name, operands[other].name), v);
        if (alike && p_.is_output(other)) {
          v[o] = v[other];
          refused(fmt::format("output {} as {}", operands[o].name, operands[other].name), v);
        }
        if (alike && !operands[o].shape.empty() && !p_.is_output(other) && !is_packed(operands[o].dtype))
          interleaved(o, other);
      }
    }
  }

  /// Each operand that begins in the workspace, or ends there.
  void over_the_workspace() {
    Workspace workspace;
    if (!memory_.workspace(queue_, workspace) || workspace.bytes == 0) return;
    const auto& operands = p_.operands();
    for (std::size_t o = 0; o < operands.size(); ++o) {
      const std::size_t width = width_of(operands[o].dtype);
      const std::size_t bytes = static_cast<std::size_t>(count_of(operands[o].shape)) * width;
      if (bytes == 0) continue;
      auto* begin = static_cast<std::byte*>(workspace.pointer);
      for (const std::byte* place : {begin, begin + workspace.bytes - width, begin - bytes + width}) {
        std::vector<View> v = views();
        v[o].data = place;
        refused(fmt::format("{} over the workspace", operands[o].name), v);
      }
    }
  }

  /// Output x[…, 1::2] beside input x[…, ::2].
  void interleaved(std::size_t o, std::size_t i) {
    const Operand &output = p_.operands()[o], &input = p_.operands()[i];
    const std::string what = fmt::format("output {} between the elements of {}", output.name, input.name);
    Shape wide = output.shape;
    wide.back() *= 2;
    Operand buffer = input;
    buffer.shape = wide;
    const Tensor both(input.dtype, wide, place(buffer, Layout::contiguous, 0));
    std::vector<View> v = views();
    const std::size_t width = width_of(output.dtype);
    for (std::size_t k : {o, i}) {
      v[k] = both.view();
      v[k].shape[v[k].rank - 1] /= 2;
      v[k].stride[v[k].rank - 1] *= 2;
      if (k == o) v[k].data = static_cast<const std::byte*>(v[k].data) + width;
    }
    scatter(v[i], p_.bytes(i).data());
    if (p_.is_input(o)) scatter(v[o], p_.bytes(o).data());
    Arguments arguments;
    for (std::size_t k = 0; k < v.size(); ++k) arguments.add(p_.operands()[k].name, v[k]);
    Workspace workspace;
    Status status = memory_.workspace(queue_, workspace);
    std::string chosen;
    const Observed observed(queue_, chosen);
    if (status) status = p_.spec().call(queue_, p_.what(), arguments, nullptr, workspace);
    if (!status) return note(what, fmt::format("is refused: {}", status.message()));
    Bytes got(static_cast<std::size_t>(v[o].size()) * width);
    gather(v[o], got.data());
    std::string damage;
    memory_.take(damage);
    const Comparison c = compare(limits_of(p_.spec(), p_.what(), chosen), output, p_.answer(o), got);
    note(what, c.failure);
  }

 private:
  const Problem& p_;
  const Queues& queues_;
  Queue queue_;
  Ledger& ledger_;
  Memory memory_;
};

}  // namespace

void check_refusals(const Spec& spec, DType dtype, const Subjects& subjects, Ledger& ledger) {
  const Fill usual = is_floating(dtype) ? Fill::normal : Fill::bytes;
  for (const auto& parameters : parameter_sets(spec, dtype, 8)) {
    const Case c{shape_of(spec, 3, 5), dtype, parameters, Layout::contiguous, usual};
    if ((spec.refuses && spec.refuses(c)) || (spec.suits && !spec.suits(c))) continue;
    const Problem p(spec, c, 9);
    const Queues& queues = subjects.isas.front();  // refusals are the library's, not the plug-ins'
    if (has_own_memory(queues.all[Queues::kOne].queue))
      return;  // and no views of the host's memory are a GPU's
    Misuse misuse(p, queues, ledger);
    misuse.each_operand();
    misuse.overlaps();
    misuse.over_the_workspace();
    misuse.refused("the unknown variant \"nothing\"", misuse.views(), "nothing");
    misuse.refused("a workspace one byte short", misuse.views(), nullptr, 1);
  }
}

}  // namespace rooftile::harness
