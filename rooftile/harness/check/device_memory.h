#pragma once
// Host memory's copy on a GPU.
#include <cstddef>
#include <memory>
#include <vector>

#include "rooftile/core/queue.h"
#include "rooftile/core/status.h"

namespace rooftile::harness {

/// Whether a queue's kernels cannot reach the host's memory.
inline bool has_own_memory(const Queue& queue) { return queue.device() == Device::cuda; }

/// Blocks of host memory, each with a copy on a queue's device. A copy lies as far from a 256-byte boundary
/// as its original lies from one. The device's memory is one allocation for each device, kept and grown.
class DeviceMemory {
 public:
  /// Adds a block; all are copied by to_device().
  void add(void* host, std::size_t bytes);
  void clear() { blocks_.clear(); }
  Status to_device(const Queue& queue);
  Status from_device() const;
  /// Where a host address within a block is on the device; addresses in no block come back as they are.
  void* on_device(const void* host) const;

 private:
  struct Block {
    std::byte* host;
    std::size_t bytes;
    std::byte* device;
  };
  std::vector<Block> blocks_;
  const Queue* queue_ = nullptr;
};

}  // namespace rooftile::harness
