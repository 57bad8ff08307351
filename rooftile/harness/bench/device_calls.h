#pragma once
// What the harness does on a queue's device: memory, a case's operands in it, and copies to compare with.
#include <memory>
#include <vector>

#include "rooftile/core/plugin.h"
#include "rooftile/harness/bench/bench_data.h"
#include "rooftile/harness/bench/timing.h"

namespace rooftile::harness {

/// A status's sentence as an exception.
void require(const Status& status);

/// Of a device's queue.
const DeviceFunctions& functions_of(const Queue& queue);

/// Memory on a queue's device.
class DeviceBuffer {
 public:
  DeviceBuffer(const Queue& queue, std::size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(memory_); }
  std::size_t bytes() const { return bytes_; }

 private:
  const Queue queue_;
  void* memory_ = nullptr;
  std::size_t bytes_;
};

/// A case's operands on the device, filled as the host's are; those that keep its layout `Case::offset`
/// elements behind a boundary.
class DeviceOperands {
 public:
  DeviceOperands(const Queue& queue, const Spec& spec, const Case& c);

  BenchData& host() { return host_; }
  const Arguments& arguments() const { return arguments_; }
  Workspace workspace() const { return space_ ? Workspace{space_->data(), space_->bytes()} : Workspace{}; }

  void upload();
  std::uint64_t fetch();  ///< what calls wrote, into the host's memory; its hash

 private:
  BenchData host_;
  const Queue queue_;
  std::vector<std::unique_ptr<DeviceBuffer>> buffers_;
  Arguments arguments_;
  std::unique_ptr<DeviceBuffer> space_;
};

/// Makes one call and returns the variant that ran; throws std::runtime_error with a sentence where it is
/// refused. Empty `variant`: the library chooses.
std::string call_once(const Queue& queue, const Spec& spec, const Case& c, const std::string& variant,
                      const Arguments& arguments, Workspace workspace);

/// A copy on the device, to be timed.
struct DeviceCopy {
  const Queue& queue;
  void *to, *from;
  std::size_t bytes;
  static Status run(void* self);
};

/// Times a copy from the first to the second half of `bytes` at `room`, each time after `flush` was
/// overwritten. The first `warm_up` rounds do not count. `sensors` may be null.
Samples time_copy(const Queue& queue, std::byte* room, std::size_t bytes, const DeviceBuffer& flush,
                  int rounds, int warm_up, DeviceSensors* sensors = nullptr);

}  // namespace rooftile::harness
