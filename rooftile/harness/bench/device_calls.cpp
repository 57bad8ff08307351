#include "rooftile/harness/bench/device_calls.h"

#include <algorithm>
#include <stdexcept>

#include "rooftile/harness/tensor.h"
#include "rooftile/runtime/queue_state.h"

namespace rooftile::harness {

void require(const Status& status) {
  if (!status) throw std::runtime_error(status.message());
}

const DeviceFunctions& functions_of(const Queue& queue) { return *queue.state().backend->device; }

DeviceBuffer::DeviceBuffer(const Queue& queue, std::size_t bytes) : queue_(queue), bytes_(bytes) {
  require(functions_of(queue_).allocate(queue_.state().cuda, bytes, &memory_));
}
DeviceBuffer::~DeviceBuffer() { (void)functions_of(queue_).release(queue_.state().cuda, memory_).ok(); }

DeviceOperands::DeviceOperands(const Queue& queue, const Spec& spec, const Case& c)
    : host_(spec, c), queue_(queue) {
  for (const Placed& p : host_.operands()) {
    const std::int64_t offset = p.operand.keeps_layout ? c.offset : 0;
    const std::size_t behind = static_cast<std::size_t>(offset) * width_of(p.operand.dtype);
    buffers_.push_back(std::make_unique<DeviceBuffer>(queue, std::max<std::size_t>(p.bytes + behind, 1)));
    View view = p.view;
    view.data = buffers_.back()->data() + behind;
    arguments_.add(p.operand.name, view);
  }
  upload();
  std::size_t bytes = 0;
  if (spec.workspace) require(spec.workspace(queue, c, arguments_, bytes));
  if (bytes) space_ = std::make_unique<DeviceBuffer>(queue, bytes);
}

void DeviceOperands::upload() {
  for (const Placed& p : host_.operands())
    require(functions_of(queue_).copy(queue_.state().cuda, arguments_.out(p.operand.name).mutable_data(),
                                      p.view.data, p.bytes));
}

std::uint64_t DeviceOperands::fetch() {
  for (const Placed& p : host_.operands())
    if (p.written())
      require(functions_of(queue_).copy(queue_.state().cuda, p.view.mutable_data(),
                                        arguments_.out(p.operand.name).data, p.bytes));
  return host_.hash();
}

std::string call_once(const Queue& queue, const Spec& spec, const Case& c, const std::string& variant,
                      const Arguments& arguments, Workspace workspace) {
  Queue observed = queue;
  std::string chosen;
  observed.set_observer({&chosen, [](void* context, const char*, const char* name, const char*) {
                           *static_cast<std::string*>(context) = name;
                         }});
  const Status status =
      spec.call(observed, c, arguments, variant.empty() ? nullptr : variant.c_str(), workspace);
  observed.set_observer({});
  require(status);
  return chosen;
}

Status DeviceCopy::run(void* self) {
  const DeviceCopy& it = *static_cast<DeviceCopy*>(self);
  return functions_of(it.queue).copy_on_device(it.queue.state().cuda, it.to, it.from, it.bytes);
}

Samples time_copy(const Queue& queue, std::byte* room, std::size_t bytes, const DeviceBuffer& flush,
                  int rounds, int warm_up, DeviceSensors* sensors) {
  DeviceCopy copy{queue, room + bytes / 2, room, bytes / 2};
  const Timed timed{DeviceCopy::run, &copy};
  std::vector<float> us(static_cast<std::size_t>(rounds + warm_up));
  require(functions_of(queue).time(queue.state().cuda, &timed, 1, rounds + warm_up, flush.data(),
                                   flush.bytes(), us.data(), sensors));
  return Samples({us.begin() + warm_up, us.end()});
}

}  // namespace rooftile::harness
