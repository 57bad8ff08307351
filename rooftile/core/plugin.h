#pragma once
#include <cstddef>
#include <cstdint>

namespace rooftile {

/// What librooftile.so and a plug-in agree on. Both are built from one source tree; the number guards against
/// mixing trees.
inline constexpr int kPluginVersion = 1;

/// Scratch of one thread, on which `scratch()` rows live; longer rows take the online form.
inline constexpr std::size_t kScratchBytes = 256 * 1024;

/// What a kernel's CPU launch gets: threads, scratch, and where the caches end. Plain data and one function,
/// so that a plug-in needs no symbol of the library.
struct CpuLaunch {
  int threads;
  std::int64_t streaming_bytes;
  std::byte* scratch;  ///< kScratchBytes for each thread, one after another, 64-byte aligned
  void* executor;
  void (*parallel)(void* executor, int tasks, void (*task)(void* context, int index), void* context);
};

using CpuKernel = void (*)(const CpuLaunch& launch, const void* problem);

struct PluginEntry {
  const char* function;  ///< Op::function
  const char* variant;
  CpuKernel kernel;
};

struct Plugin {
  int version;
  const char* backend;  ///< "cpu-avx512"
  int count;
  const PluginEntry* entries;
};

/// The one symbol of a plug-in: `extern "C" const Plugin* rooftile_plugin()`.
inline constexpr const char* kPluginSymbol = "rooftile_plugin";
using PluginFunction = const Plugin* (*)();

/// An op folder's CPU launch file lists its kernels by
///   ROOFTILE_CPU_KERNELS(softmax) = {entry<launch_tile>("softmax", "tile"), ...};
/// The build writes the plug-in's table from the folders' names. Each array ends in an empty entry.
#define ROOFTILE_CPU_KERNELS(folder) extern const ::rooftile::PluginEntry folder##_cpu_kernels[]

namespace detail {
template <class P>
P launch_problem_of(void (*)(const CpuLaunch&, const P&));
template <auto Launch>
void launch_erased(const CpuLaunch& launch, const void* problem) {
  using Problem = decltype(launch_problem_of(Launch));
  Launch(launch, *static_cast<const Problem*>(problem));
}
}  // namespace detail

template <auto Launch>
constexpr PluginEntry entry(const char* function, const char* variant) {
  return {function, variant, &detail::launch_erased<Launch>};
}

}  // namespace rooftile
