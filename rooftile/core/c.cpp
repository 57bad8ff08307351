#include "rooftile/c.h"

#include <cstddef>
#include <cstring>
#include <functional>
#include <new>
#include <string_view>

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
rooftile_status with_call(const rooftile_queue* queue, const char* function,
                          const rooftile_view* const* views, const double* options, Use use) {
  if (!queue) return told(Status::error("%s: the queue is NULL", function ? function : "rooftile_call"));
  const Op* op = function ? find(function) : nullptr;
  if (!op) return told(Status::error("rooftile_call: no function \"%s\"", function ? function : "NULL"));
  static const ConstView absent{};
  const ConstView* pointers[Signature::kMaxOperands];
  for (int o = 0; o < op->signature.operand_count(); ++o)
    pointers[o] = views[o] ? reinterpret_cast<const ConstView*>(views[o]) : &absent;
  return told(use(*op, Call{pointers, options}));
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
void rooftile_queue_free(rooftile_queue* queue) { delete queue; }

rooftile_status rooftile_call(const rooftile_queue* queue, const char* function,
                              const rooftile_view* const* views, const double* options, const char* variant,
                              rooftile_workspace workspace) {
  return with_call(queue, function, views, options, [&](const Op& op, Call c) {
    c.variant = variant;
    c.workspace = {workspace.pointer, workspace.bytes};
    return call(queue->queue, op, c);
  });
}

rooftile_status rooftile_workspace_of(const rooftile_queue* queue, const char* function,
                                      const rooftile_view* const* views, const double* options,
                                      std::size_t* bytes) {
  return with_call(queue, function, views, options,
                   [&](const Op& op, const Call& c) { return workspace_of(queue->queue, op, c, *bytes); });
}
