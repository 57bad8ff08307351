#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "rooftile/core/status.h"

namespace rooftile {

namespace emulated {
struct TraceLine;  // rooftile/backend/emulated/trace.h
struct TraceTotals;
}  // namespace emulated

/// What librooftile.so and a plug-in agree on. Both are built from one source tree; the number guards against
/// mixing trees.
inline constexpr int kPluginVersion = 8;

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
  /// Receives the bytes of a request for scratch that did not fit; 0 before. Null: nobody asks.
  std::int64_t* scratch_wanted = nullptr;
};

inline constexpr std::size_t kCudaScratchBytes = 64 * 1024;
inline constexpr std::size_t kCudaCounters = 32;

/// What a kernel's CUDA launch gets, on a GPU or on the emulated device.
struct CudaLaunch {
  void* stream;      ///< a cudaStream_t; null on the emulated device
  int device;        ///< the CUDA ordinal
  int architecture;  ///< 90: compute capability 9.0; kernels choose by it and by lengths, never by what
                     ///< follows
  int multiprocessors;
  int threads;         ///< of the host, that blocks of the emulated device run on
  void* scratch;       ///< kCudaScratchBytes of the device's memory, for partial results of one call
  std::uint64_t seed;  ///< emulated device: shuffles the threads' order; 0: in order
  /// kCudaCounters numbers of the device's memory, after the scratch, that are 0 when a kernel begins: one
  /// that counts leaves them so. Null: there are none.
  unsigned* counters = nullptr;
};

/// A kernel's launch: `launch` is a CpuLaunch or a CudaLaunch.
using Kernel = Status (*)(const void* launch, const void* problem);

struct PluginEntry {
  const char* function;  ///< Op::function
  const char* variant;
  Kernel kernel;
  int least_architecture = 0;  ///< CUDA: on older GPUs the variant is not there
  bool exactly = false;        ///< and on newer ones neither: sm_90a's instructions are Hopper's alone
};

/// Something to be timed.
struct Timed {
  Status (*call)(void* context);
  void* context;
};
/// What a device tells of itself.
struct DeviceSensors {
  int clock_mhz = 0;  ///< of the multiprocessors
  double power_w = 0;
  bool throttled = false;  ///< by power or temperature
  int readings = 0;  ///< clock and power are the means of so many, throttled is one that was; 0: unknown
};

/// What the driver, the runtime and the management library tell of a GPU; 0
/// where one does not.
struct DeviceDescription {
  char name[256], bus[32], driver_name[64];
  int device, devices;  ///< the CUDA ordinal, and how many there are
  int major, minor;     ///< compute capability
  int driver, runtime;  ///< 13000: CUDA 13.0; the driver's is the newest that it supports
  int multiprocessors, clock_khz, memory_clock_khz, bus_bits;
  std::size_t memory_bytes, free_bytes, l2_bytes;
  std::size_t shared_block, shared_block_most, shared_multiprocessor;  ///< bytes; most: when asked for
  int registers_block, registers_multiprocessor, threads_block, threads_multiprocessor, blocks_multiprocessor;
  int ecc, copy_engines, clusters;  ///< clusters: whether blocks can be launched in some
  double power_limit_w, temperature_c;
  int clock_now_mhz, memory_clock_now_mhz, most_clock_mhz;

  /// What the memory's clock and width come to, both edges of the clock; 0 where they are not told.
  double rated_gbs() const { return 2. * memory_clock_khz * 1e3 * bus_bits / 8 / 1e9; }
};

/// What a GPU plug-in can do beside kernels: for Queue::cuda, and for the harness. Each Status names the call
/// that failed.
struct DeviceFunctions {
  /// Fills in what the device tells; -1 for `launch.device`: the current one. `description`: of the device,
  /// for people. A sentence where there is no driver or device, or one too old for this build.
  Status (*open)(CudaLaunch& launch, char* description, std::size_t size);
  void (*close)(const CudaLaunch&);
  Status (*allocate)(const CudaLaunch&, std::size_t bytes, void** memory);
  Status (*release)(const CudaLaunch&, void* memory);
  /// Host or device memory on either side; returns when it is done.
  Status (*copy)(const CudaLaunch&, void* to, const void* from, std::size_t bytes);
  Status (*synchronize)(const CudaLaunch&);
  /// From device to device, on the stream.
  Status (*copy_on_device)(const CudaLaunch&, void* to, const void* from, std::size_t bytes);
  /// Calls each of `count` in turn, `rounds` times, `flush_bytes` at `flush` overwritten before each call.
  /// `us[round * count + i]`: microseconds of the device from call i's begin to its end. All calls are queued
  /// ahead. `sensors` (null: not wanted): what was read while they ran is added to it.
  Status (*time)(const CudaLaunch&, const Timed* timed, int count, int rounds, void* flush,
                 std::size_t flush_bytes, float* us, DeviceSensors* sensors);
  /// What the checked build found wrong since it was last asked: the first finding's sentence; else ok.
  Status (*findings)(const CudaLaunch&);
  Status (*describe)(const CudaLaunch&, DeviceDescription&);
  /// Of an empty kernel, medians: what a launch costs the host when they follow each other, what it costs the
  /// device, and how long it takes until the host knows that it is done.
  Status (*launch_cost)(const CudaLaunch&, double& host_us, double& device_us, double& round_trip_us);
  /// The checked emulated device counts what kernels ask of memory from the first to the second call, which
  /// tells each line of source. A sentence elsewhere.
  Status (*trace_begin)(const CudaLaunch&);
  Status (*trace_end)(const CudaLaunch&, void* context,
                      void (*tell)(void* context, const emulated::TraceLine& line),
                      emulated::TraceTotals& totals);
  /// Launches `count` kernels that do nothing, one after another on the stream, by the runtime's own way, and
  /// returns without waiting: what a launch costs the least.
  Status (*launch_empty)(const CudaLaunch&, int count);
};

struct Plugin {
  int version;
  const char* backend;  ///< "cpu-avx512"
  int count;
  const PluginEntry* entries;
  const DeviceFunctions* device = nullptr;  ///< null: a CPU's
};

/// The one symbol of a plug-in: `extern "C" const Plugin* rooftile_plugin()`.
inline constexpr const char* kPluginSymbol = "rooftile_plugin";
using PluginFunction = const Plugin* (*)();

/// An op folder's launch files list their kernels by
///   ROOFTILE_CPU_KERNELS(softmax) = {entry<launch_tile>("softmax", "tile"), ...};
/// The build writes the plug-in's table from the folders' names. Each array ends in an empty entry.
#define ROOFTILE_CPU_KERNELS(folder) extern const ::rooftile::PluginEntry folder##_cpu_kernels[]

#define ROOFTILE_CUDA_KERNELS(folder) extern const ::rooftile::PluginEntry folder##_cuda_kernels[]

namespace detail {
template <class R, class L, class P>
P launch_problem_of(R (*)(const L&, const P&));
template <class R, class L, class P>
L launch_of(R (*)(const L&, const P&));
template <auto Launch>
Status launch_erased(const void* launch, const void* problem) {
  using Problem = decltype(launch_problem_of(Launch));
  const auto& where = *static_cast<const decltype(launch_of(Launch))*>(launch);
  if constexpr (std::is_void_v<decltype(Launch(where, *static_cast<const Problem*>(problem)))>) {
    Launch(where, *static_cast<const Problem*>(problem));
    return {};
  } else {
    return Launch(where, *static_cast<const Problem*>(problem));
  }
}
}  // namespace detail

template <auto Launch>
constexpr PluginEntry entry(const char* function, const char* variant, int least_architecture = 0,
                            bool exactly = false) {
  return {function, variant, &detail::launch_erased<Launch>, least_architecture, exactly};
}

}  // namespace rooftile
