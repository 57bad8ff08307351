#include <cstring>
#include <utility>

#include "rooftile/backend/cpu/fp_mode.h"
#include "rooftile/core/op.h"
#include "rooftile/runtime/queue_state.h"

namespace rooftile {
namespace {

Status not_part(const Queue::State& state, const Op& op, std::size_t v) {
  const PluginEntry& entry = state.entry(op, v);
  if (entry.kernel)
    return Status::error("%s: variant \"%s\" needs an sm_%d GPU, this one is %s", op.function,
                         op.variants[v].name, entry.least_architecture, state.isa);
  return Status::error("%s: variant \"%s\" is not part of plug-in %s", op.function, op.variants[v].name,
                       state.backend->name);
}

Status explain(const Queue::State& state, const Op& op, const void* problem) {
  bool chosen = false;
  for (std::size_t v = 0; v < op.variants.size(); ++v) {
    const Variant& variant = op.variants[v];
    const bool available = state.has(op, v);
    const Status status = variant.accept(problem);
    const bool takes = available && status.ok() && variant.role == Role::standard && !chosen;
    chosen = chosen || takes;
    state.explanation.answer(state.explanation.context, op, variant, available, takes, status);
  }
  return {};
}

/// Within a composed variant on this thread: an observer hears of what was called, not of its parts.
thread_local bool composing = false;

Status compose(const Queue& queue, const Variant& variant, const void* problem) {
  const bool outer = std::exchange(composing, true);
  const Status status = variant.compose(queue, problem);
  composing = outer;
  return status;
}

Status run(const Queue& queue, const Op& op, std::size_t v, const void* problem, const char* reason) {
  const Queue::State& state = queue.state();
  const Variant& variant = op.variants[v];
  if (!state.has(op, v)) return not_part(state, op, v);
  if (state.observer.notify && !composing)
    state.observer.notify(state.observer.context, op.function, variant.name, reason);
  if (variant.compose) return compose(queue, variant, problem);
  const Kernel kernel = state.kernel(op, v);
  const cpu::FpMode mode;
  if (state.device == Device::cpu) {  // its pool has a lock
    CpuLaunch launch = state.launch;
    std::int64_t wanted = 0;
    launch.scratch_wanted = &wanted;
    const Status status = kernel(&launch, problem);
    if (wanted == 0) return status;
    return Status::error(
        "%s: variant \"%s\" asked for %lld more bytes of scratch than the %zu of a thread hold; its result "
        "is "
        "worthless, call another variant",
        op.function, variant.name, static_cast<long long>(wanted), kScratchBytes);
  }
  // As one task of the pool: its lock, unlike a mutex, is free in a child that was forked during a call.
  struct Call {
    Kernel kernel;
    const void *launch, *problem;
    Status status;
  } call{kernel, state.kernel_launch, problem, {}};
  state.pool->run(
      1,
      [](void* context, int) {
        Call& it = *static_cast<Call*>(context);
        it.status = it.kernel(it.launch, it.problem);
      },
      &call);
  return call.status;
}

}  // namespace

Status dispatch(const Queue& queue, const Op& op, const void* problem, const char* name) {
  const Queue::State& state = queue.state();
  if (!state.status) return state.status;
  if (state.explanation.answer) return explain(state, op, problem);

  if (name) {
    for (std::size_t v = 0; v < op.variants.size(); ++v) {
      if (std::strcmp(op.variants[v].name, name) != 0) continue;
      if (Status s = op.variants[v].accept(problem); !s) return s;
      return run(queue, op, v, problem, "asked for by name");
    }
    return Status::error("%s: no variant \"%s\"; `rooftile list %s` names those there are", op.function, name,
                         op.function);
  }
  Status last;
  for (std::size_t v = 0; v < op.variants.size(); ++v) {
    if (op.variants[v].role != Role::standard) continue;
    const Status s = state.has(op, v) ? op.variants[v].accept(problem) : not_part(state, op, v);
    if (s.ok()) return run(queue, op, v, problem, "the first in the list that accepts");
    last = s;
  }
  return last.ok() ? Status::error("%s: has no variant to choose", op.function) : last;
}

void set_explanation(const Queue& queue, Explanation explanation) { queue.state().explanation = explanation; }

}  // namespace rooftile
