#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "rooftile/core/queue.h"
#include "rooftile/core/status.h"

namespace rooftile {

struct CpuLaunch;  // rooftile/core/plugin.h

/// Who may choose a variant.
enum class Role : std::uint8_t {
  standard,  ///< the library, when it is the first in the list that accepts
  named,     ///< only a caller that names it: another order of additions, say
  rung,      ///< only by name: a step of the CPU's ladder
  oracle,    ///< only by name: the definition, slow and plain
  gpu_rung,  ///< only by name: a step of the GPU's ladder, which no CPU plug-in has
};

/// One way to compute an op.
struct Variant {
  const char* name;
  const char* idea;  ///< one line: what it does that the rung before does not
  Role role;
  Status (*accept)(const void* problem);  ///< ok, or the sentence that says why not
  /// Calls other functions on the queue, whatever its device: no plug-in has a kernel of it. Null: a kernel.
  Status (*compose)(const Queue&, const void* problem) = nullptr;
};

struct Signature;  // rooftile/core/signature.h
struct Call;

/// One op in one direction: its name and its variants, fastest first, then the CPU's rungs downwards, then
/// the GPU's, the oracle last.
struct Op {
  const char* name;  ///< "softmax"
  /// "forward" or "backward": of one name, the backward is the gradient of the forward. Each of its inputs is
  /// an operand of the forward by its name, or d<output>; its outputs are d<input>.
  const char* direction;
  const char* function;  ///< "softmax_backward": the public function, and the name that plug-ins register
  std::span<const Variant> variants;
  const Signature& signature;  ///< what the function takes
  /// Makes the problem of a call that was validated by the signature, and dispatches it.
  Status (*launch)(const Queue&, const Op&, const Call&);
  /// The bytes of workspace that such a call needs; null: none.
  std::size_t (*workspace)(const Queue&, const Call&) = nullptr;
  mutable int slot =
      0;  ///< where its variants begin in a backend's table; set when the first backend is loaded
};

namespace detail {
template <class P>
P problem_of(Status (*)(const P&));
template <class P>
P problem_of(Status (*)(const Queue&, const P&));
}  // namespace detail

/// Wraps `Status accept(const Problem&)` for the list: accepts<accept_tile>.
template <auto Accept>
Status accepts(const void* problem) {
  using Problem = decltype(detail::problem_of(Accept));
  return Accept(*static_cast<const Problem*>(problem));
}

/// Wraps `Status compose(const Queue&, const Problem&)` for the list: composes<by_chunks>.
template <auto Compose>
Status composes(const Queue& queue, const void* problem) {
  using Problem = decltype(detail::problem_of(Compose));
  return Compose(queue, *static_cast<const Problem*>(problem));
}

/// Runs `problem` on the queue: the variant named, or the first standard one that accepts. To be called by an
/// op after it validated its arguments.
Status dispatch(const Queue& queue, const Op& op, const void* problem, const char* variant);

/// Every op of the library, in the order of their folders' names; generated.
std::span<const Op* const> all_ops();

/// What each variant answers, without running anything: set on a queue, it makes dispatch call `answer` for
/// every variant and return success. Behind `rooftile why`.
struct Explanation {
  void* context = nullptr;
  void (*answer)(void* context, const Op& op, const Variant& variant, bool available, bool chosen,
                 const Status& status) = nullptr;
};
void set_explanation(const Queue& queue, Explanation explanation);

}  // namespace rooftile
