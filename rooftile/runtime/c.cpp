#include "rooftile/c.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <iterator>
#include <new>
#include <string_view>

#include "rooftile/backend/cpu/cpu_count.h"
#include "rooftile/core/signature.h"

struct rooftile_queue {
  rooftile::Queue queue;
};

namespace rooftile {
namespace {

static_assert(sizeof(rooftile_view) == sizeof(ConstView) &&
              offsetof(rooftile_view, dtype) == offsetof(ConstView, dtype) &&
              offsetof(rooftile_view, rank) == offsetof(ConstView, rank) &&
              offsetof(rooftile_view, shape) == offsetof(ConstView, shape) &&
              offsetof(rooftile_view, stride) == offsetof(ConstView, stride));
static_assert(std::size(rooftile_function{}.operand) == Signature::kMaxOperands &&
              std::size(rooftile_function{}.option) == Signature::kMaxOptions &&
              sizeof rooftile_operand{}.letters == kMaxRank + 1 &&
              ROOFTILE_IN_OUT == static_cast<int>(Signature::Role::in_out) &&
              ROOFTILE_ANY_REAL == static_cast<int>(Signature::Option::Kind::any));
static_assert(sizeof(rooftile_status) == sizeof(Status) && ROOFTILE_U4 == static_cast<int>(DType::u4));

rooftile_status told(const Status& status) {
  rooftile_status result;
  std::strcpy(result.message, status.message());
  return result;
}

rooftile_status give(const Queue& queue, rooftile_queue** result) {
  *result = queue.status() ? new (std::nothrow) rooftile_queue{queue} : nullptr;
  if (queue.status() && !*result) return told(Status::error("rooftile_queue: no memory is left"));
  return told(queue.status());
}

/// Every function by its name, found in some 10 ns; made by the first call, without an allocation.
class Functions {
 public:
  Functions() {
    for (const Op* op : all_ops()) slots_[place(op->function)] = op;
  }
  const Op* find(const char* function) const { return slots_[place(function)]; }

 private:
  static constexpr std::size_t kSlots = 1024;  // many times the functions there are
  /// Where the function is, or would be: behind those that hash alike.
  std::size_t place(const char* function) const {
    std::size_t at = std::hash<std::string_view>{}(function) % kSlots;
    while (slots_[at] && std::strcmp(slots_[at]->function, function) != 0) at = (at + 1) % kSlots;
    return at;
  }
  const Op* slots_[kSlots] = {};
};
const Op* find(const char* function) {
  static const Functions functions;
  return functions.find(function);
}

/// The operands as the library takes them: the same bytes, an absent view for NULL.
template <class Use>
rooftile_status with_operands(const char* function, const rooftile_view* const* views, std::int64_t tensors,
                              const double* options, Use use) {
  const Op* op = function ? find(function) : nullptr;
  if (!op) return told(Status::error("rooftile_call: no function \"%s\"", function ? function : "NULL"));
  static const ConstView absent{};
  const ConstView* pointers[Signature::kMaxOperands];
  for (int o = 0; o < op->signature.operand_count(); ++o)
    pointers[o] =
        views[o] || op->signature.operands[o].list ? reinterpret_cast<const ConstView*>(views[o]) : &absent;
  return told(use(*op, Call{pointers, options, nullptr, {}, tensors}));
}
template <class Use>
rooftile_status with_call(const rooftile_queue* queue, const char* function,
                          const rooftile_view* const* views, std::int64_t tensors, const double* options,
                          Use use) {
  if (!queue) return told(Status::error("%s: the queue is NULL", function ? function : "rooftile_call"));
  return with_operands(function, views, tensors, options, use);
}

const Signature::Types& types_of(const Signature& signature, char letter) {
  const Signature::Types* its = signature.types;
  while (its->letter != letter) ++its;
  return *its;
}

rooftile_operand operand_of(const Signature& signature, const Signature::Operand& it) {
  const Signature::Types& types = types_of(signature, it.type);
  rooftile_operand o{};
  o.name = it.name;
  o.may_be = it.may_be;
  o.sum_of = it.sum_of;
  o.type = it.type;
  o.or_as = types.or_as;
  o.wide_as = types.wide_as;
  for (const Signature::Types* t = &types;; t = &types_of(signature, t->or_as)) {
    o.dtypes |= t->mask | (t->wide_as ? 1u << ROOFTILE_F64 : 0);
    if (!t->or_as) break;
  }
  o.role = static_cast<std::uint8_t>(it.role);
  o.optional = it.optional;
  o.below = it.below;
  o.list = it.list;
  o.one = it.shape.one;
  o.outer = it.shape.outer;
  if (!it.shape.one) std::copy_n(it.shape.letters, it.shape.count, o.letters);
  return o;
}

/// Of one name, the op of direction "backward" is the gradient of the one of direction "forward".
const char* backward_of(const Op& forward) {
  if (std::strcmp(forward.direction, "forward") != 0) return nullptr;
  for (const Op* op : all_ops())
    if (std::strcmp(op->direction, "backward") == 0 && std::strcmp(op->name, forward.name) == 0)
      return op->function;
  return nullptr;
}

}  // namespace
}  // namespace rooftile

using namespace rooftile;

rooftile_status rooftile_queue_cpu(int threads, rooftile_queue** queue) {
  return give(Queue::cpu({.threads = threads}), queue);
}
rooftile_status rooftile_queue_cuda(int device, void* stream, rooftile_queue** queue) {
  return give(Queue::cuda({.stream = stream, .device = device}), queue);
}
rooftile_status rooftile_queue_emulated(int architecture, int checked, rooftile_queue** queue) {
  return give(Queue::emulated({.architecture = architecture, .checked = checked != 0}), queue);
}
rooftile_status rooftile_queue_new(const char* device, const rooftile_queue_options* options,
                                   rooftile_queue** queue) {
  static constexpr rooftile_queue_options kDefaults = ROOFTILE_QUEUE_DEFAULTS;
  const rooftile_queue_options& o = options ? *options : kDefaults;
  const std::string_view name = device ? device : "NULL";
  if (name == "cpu") {
    Executor threads;
    if (o.executor)
      threads = {o.executor->self, o.executor->threads ? o.executor->threads : cpu::usable_cpus(),
                 o.executor->parallel};
    return give(Queue::cpu({.threads = o.threads,
                            .isa = o.isa,
                            .executor = o.executor ? &threads : nullptr,
                            .plugin_folder = o.plugin_folder}),
                queue);
  }
  if (name == "cuda")
    return give(Queue::cuda({.stream = o.stream, .device = o.device, .plugin_folder = o.plugin_folder}),
                queue);
  if (name == "emulated")
    return give(Queue::emulated({.architecture = o.architecture,
                                 .threads = o.threads,
                                 .seed = o.seed,
                                 .checked = o.checked != 0,
                                 .plugin_folder = o.plugin_folder}),
                queue);
  *queue = nullptr;
  return told(
      Status::error("rooftile_queue: device is \"%.40s\", must be cpu, cuda or emulated", name.data()));
}
rooftile_status rooftile_queue_about(const rooftile_queue* queue, rooftile_queue_facts* facts) {
  if (!queue) return told(Status::error("rooftile_queue_about: the queue is NULL"));
  static constexpr const char* kDevices[] = {"cpu", "cuda", "emulated"};
  const Queue& q = queue->queue;
  *facts = {kDevices[static_cast<int>(q.device())],
            q.isa(),
            q.isa_reason(),
            q.threads(),
            q.architecture(),
            q.index()};
  return told(Status());
}
void rooftile_queue_free(rooftile_queue* queue) { delete queue; }

rooftile_status rooftile_call(const rooftile_queue* queue, const char* function,
                              const rooftile_view* const* views, const double* options, const char* variant,
                              rooftile_workspace workspace) {
  return rooftile_call_lists(queue, function, views, 1, options, variant, workspace);
}

rooftile_status rooftile_call_lists(const rooftile_queue* queue, const char* function,
                                    const rooftile_view* const* views, int64_t tensors, const double* options,
                                    const char* variant, rooftile_workspace workspace) {
  return with_call(queue, function, views, tensors, options, [&](const Op& op, Call c) {
    c.variant = variant;
    c.workspace = {workspace.pointer, workspace.bytes};
    return call(queue->queue, op, c);
  });
}

rooftile_status rooftile_workspace_of(const rooftile_queue* queue, const char* function,
                                      const rooftile_view* const* views, const double* options,
                                      std::size_t* bytes) {
  return rooftile_workspace_of_lists(queue, function, views, 1, options, bytes);
}

rooftile_status rooftile_workspace_of_lists(const rooftile_queue* queue, const char* function,
                                            const rooftile_view* const* views, int64_t tensors,
                                            const double* options, std::size_t* bytes) {
  return with_call(queue, function, views, tensors, options,
                   [&](const Op& op, const Call& c) { return workspace_of(queue->queue, op, c, *bytes); });
}

rooftile_status rooftile_infer(const char* function, const rooftile_view* const* views, const double* options,
                               int output, rooftile_view* inferred) {
  return with_operands(function, views, 1, options, [&](const Op& op, const Call& c) {
    if (output < 0 || output >= op.signature.operand_count() ||
        op.signature.operands[output].role == Signature::Role::input)
      return Status::error("rooftile_infer: %s has no output at place %d", op.function, output);
    return infer(op.signature, c, output, *reinterpret_cast<View*>(inferred));
  });
}

int rooftile_function_at(int place, rooftile_function* function) {
  if (place < 0 || static_cast<std::size_t>(place) >= all_ops().size()) return 0;
  const Op& op = *all_ops()[static_cast<std::size_t>(place)];
  const Signature& s = op.signature;
  rooftile_function f{};
  f.name = op.function;
  f.backward = backward_of(op);
  f.has_workspace = op.workspace != nullptr;
  f.operands = s.operand_count();
  f.options = s.option_count();
  for (int o = 0; o < f.operands; ++o) f.operand[o] = operand_of(s, s.operands[o]);
  for (int k = 0; k < f.options; ++k) {
    const Signature::Option& it = s.options[k];
    f.option[k] = {it.name, it.words, static_cast<int>(it.kind), it.otherwise, it.least, it.most};
  }
  f.where = s.where;
  *function = f;
  return 1;
}
