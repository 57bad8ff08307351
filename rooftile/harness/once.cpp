#include "rooftile/harness/once.h"

#include <stdexcept>
#include <vector>

#include "rooftile/core/queue_state.h"
#include "rooftile/harness/bench_data.h"

namespace rooftile::harness {
namespace {

void require(const Status& status) {
  if (!status) throw std::runtime_error(status.message());
}

/// Blocks of a device's memory, given back together.
class Blocks {
 public:
  explicit Blocks(const Queue::State& state) : state_(state) {}
  ~Blocks() {
    for (void* block : blocks_) (void)state_.backend->device->release(state_.cuda, block).ok();
  }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  std::byte* add(std::size_t bytes) {
    void* block = nullptr;
    require(state_.backend->device->allocate(state_.cuda, bytes, &block));
    blocks_.push_back(block);
    return static_cast<std::byte*>(block);
  }

 private:
  const Queue::State& state_;
  std::vector<void*> blocks_;
};

}  // namespace

std::string run_once(const Queue& queue, const Spec& spec, const Case& c, const std::string& variant) {
  require(queue.status());
  const Queue::State& state = queue.state();
  const DeviceFunctions* device = state.backend->device;
  if (!device) throw std::runtime_error("a call for a profiler needs a GPU's queue");
  const BenchData host(spec, c);
  Blocks blocks(state);
  Arguments arguments;
  for (const Placed& p : host.operands()) {
    const std::size_t behind = static_cast<std::size_t>(bytes_of(p.operand.dtype, c.offset));
    View view = p.view;
    view.data = blocks.add(p.bytes + behind) + behind;
    require(device->copy(state.cuda, view.mutable_data(), p.view.data, p.bytes));
    arguments.add(p.operand.name, view);
  }
  Workspace workspace;
  if (spec.workspace) require(spec.workspace(queue, c, arguments, workspace.bytes));
  if (workspace.bytes) workspace.pointer = blocks.add(workspace.bytes);
  std::string chosen;
  Queue observed = queue;
  observed.set_observer({&chosen, [](void* context, const char*, const char* name, const char*) {
                           *static_cast<std::string*>(context) = name;
                         }});
  const Status called =
      spec.call(observed, c, arguments, variant.empty() ? nullptr : variant.c_str(), workspace);
  observed.set_observer({});
  require(called);
  require(device->synchronize(state.cuda));
  return chosen;
}

}  // namespace rooftile::harness
