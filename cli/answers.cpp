#include "cli/answers.h"

#include "cli/failure.h"

namespace rooftile::cli {
namespace {

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
      if (dense > kMax) dense = kMax;  // such a view is refused, for its size
    }
    view.data = take(dense * static_cast<unsigned>(bits(operand.dtype)) / 8 + 1);
    return view;
  }

  void* take(unsigned __int128 bytes) {
    const std::uintptr_t at = next_;
    if (bytes > kMax - next_) refuse("the operands take more than 2^62 bytes together");
    next_ += (static_cast<std::uintptr_t>(bytes) + 2 * kPage - 1) / kPage * kPage;
    return reinterpret_cast<void*>(at);
  }

 private:
  static constexpr std::uintptr_t kPage = 4096;
  static constexpr std::uintptr_t kMax = std::uintptr_t{1} << 62;
  std::uintptr_t next_ = kPage;
};

}  // namespace

std::vector<Answer> answers_to(const Queue& queue, const harness::Spec& spec, const harness::Case& c,
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

void check_taken(const OneCase& one, const std::string& variant) {
  const Queue queue = Queue::cpu({.threads = 1});  // whose kernels they are makes no difference
  if (const Status s = queue.status(); !s) throw Failure(kTrouble, s.message());
  for (const Answer& answer : answers_to(queue, *one.spec, one.c))
    if (answer.variant->name == variant && !answer.refusal.empty())
      throw Failure(kFailedCheck, answer.refusal);
}

}  // namespace rooftile::cli
