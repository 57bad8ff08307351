#include "rooftile/harness/check/device_memory.h"

#include <cstdint>
#include <map>

#include "rooftile/runtime/queue_state.h"

namespace rooftile::harness {
namespace {

constexpr std::size_t kBoundary = 256;

struct Arena {
  void* memory = nullptr;
  std::size_t bytes = 0;
};

/// At least `bytes` on the queue's device; what was there before is lost. Never given back: the process ends.
Status arena_of(const Queue& queue, std::size_t bytes, std::byte*& memory) {
  static std::map<int, Arena> arenas;
  const Queue::State& state = queue.state();
  Arena& arena = arenas[state.cuda.device];
  if (arena.bytes < bytes) {
    const DeviceFunctions& device = *state.backend->device;
    if (arena.memory) {
      if (Status s = device.release(state.cuda, arena.memory); !s) return s;
    }
    arena = {};
    const std::size_t wanted = bytes + bytes / 2;
    if (Status s = device.allocate(state.cuda, wanted, &arena.memory); !s) return s;
    arena.bytes = wanted;
  }
  memory = static_cast<std::byte*>(arena.memory);
  return {};
}

}  // namespace

void DeviceMemory::add(void* host, std::size_t bytes) {
  blocks_.push_back({static_cast<std::byte*>(host), bytes, nullptr});
}

Status DeviceMemory::to_device(const Queue& queue) {
  queue_ = &queue;
  std::size_t total = 0;
  const auto off = [](const Block& b) { return reinterpret_cast<std::uintptr_t>(b.host) % kBoundary; };
  for (const Block& b : blocks_) total += (b.bytes + off(b) + 2 * kBoundary - 1) / kBoundary * kBoundary;
  std::byte* at = nullptr;
  if (Status s = arena_of(queue, total, at); !s) return s;
  const Queue::State& state = queue.state();
  for (Block& b : blocks_) {
    b.device = at + off(b);
    at += (b.bytes + off(b) + 2 * kBoundary - 1) / kBoundary * kBoundary;
    if (Status s = state.backend->device->copy(state.cuda, b.device, b.host, b.bytes); !s) return s;
  }
  return {};
}

Status DeviceMemory::from_device() const {
  const Queue::State& state = queue_->state();
  for (const Block& b : blocks_)
    if (Status s = state.backend->device->copy(state.cuda, b.host, b.device, b.bytes); !s) return s;
  return {};
}

void* DeviceMemory::on_device(const void* host) const {
  const auto* p = static_cast<const std::byte*>(host);
  for (const Block& b : blocks_)
    if (b.device && p >= b.host && p <= b.host + b.bytes) return b.device + (p - b.host);
  return const_cast<void*>(host);
}

}  // namespace rooftile::harness
