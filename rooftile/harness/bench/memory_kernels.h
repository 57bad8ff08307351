#pragma once
#include <cstddef>
#include <span>

namespace rooftile::harness {

enum class Traffic { kRead, kWrite, kCopy };
constexpr const char* name(Traffic traffic) {
  return traffic == Traffic::kRead ? "read" : traffic == Traffic::kWrite ? "write" : "copy";
}

/// What writes write. Not zero: on a Zen 5 server zeros went to memory twice as fast as anything else (72-89
/// against 34-41 GB/s), and no kernel's result is all zeros.
inline constexpr unsigned char kFill = 0x5A;

/// One way to move memory as fast as it goes. Reads ignore `dst`, writes ignore `src`. Any
/// size, any alignment, nothing outside the ranges is read or written. `run` is one thread's work; its
/// non-temporal stores are fenced before it returns.
struct MemoryKernel {
  const char* name;  ///< e.g. "avx512 stream x8 ahead 2048"
  Traffic traffic;
  bool streams;  ///< stores past the caches
  void (*run)(void* dst, const void* src, std::size_t bytes);
};

/// Every kernel of a kind that this CPU can run; the portable ones come first and are always there.
std::span<const MemoryKernel> memory_kernels(Traffic traffic);

/// Bytes that a run over `bytes` moves: a copy's count as read and as written.
constexpr std::size_t moved_bytes(Traffic traffic, std::size_t bytes) {
  return traffic == Traffic::kCopy ? 2 * bytes : bytes;
}

}  // namespace rooftile::harness
