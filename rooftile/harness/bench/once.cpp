#include "rooftile/harness/bench/once.h"

#include <stdexcept>

#include "rooftile/harness/bench/device_calls.h"
#include "rooftile/runtime/queue_state.h"

namespace rooftile::harness {

std::string run_once(const Queue& queue, const Spec& spec, const Case& c, const std::string& variant) {
  require(queue.status());
  if (!queue.state().backend->device) throw std::runtime_error("a call for a profiler needs a GPU's queue");
  const DeviceOperands operands(queue, spec, c);
  const std::string chosen = call_once(queue, spec, c, variant, operands.arguments(), operands.workspace());
  require(functions_of(queue).synchronize(queue.state().cuda));
  return chosen;
}

}  // namespace rooftile::harness
