#pragma once
// What a queue holds. Inside the library and its harness only.
#include <atomic>
#include <memory>
#include <new>
#include <vector>

#include "rooftile/backend/cpu/pool.h"
#include "rooftile/core/op.h"
#include "rooftile/core/plugin.h"
#include "rooftile/core/queue.h"

namespace rooftile {

/// A loaded plug-in: for each op (Op::slot) the entries of its variants, in the order of its list; no kernel
/// where the plug-in has none.
struct Backend {
  char folder[1024];
  char name[32];
  std::vector<PluginEntry> entries;
  const DeviceFunctions* device = nullptr;
};

/// The plug-ins of a static library, which holds those of the CPU; null ends them. Generated.
extern const PluginFunction built_in_plugins[];

/// Loads `<folder>/rooftile-<name>.so`, once; later calls find it again. Null folder: what is built in, else
/// the folder of librooftile.so.
Status load_backend(const char* folder, const char* name, const Backend*& backend);

struct Queue::State {
  std::atomic<int> references{1};
  Status status;
  const Backend* backend = nullptr;
  char isa[32] = "none";
  char isa_reason[200] = "";
  Device device = Device::cpu;
  CpuLaunch launch{};
  CudaLaunch cuda{};
  const void* kernel_launch = &launch;  // what kernels get: one of the two
  Executor executor;
  // With an executor, and of a device's queue: of one thread, for its lock. A call's launches follow each
  // other, since they share the scratch.
  std::unique_ptr<cpu::Pool> pool;
  std::byte* scratch = nullptr;
  Observer observer;
  Explanation explanation;

  /// The plug-in's entry of an op's variant.
  const PluginEntry& entry(const Op& op, std::size_t variant) const {
    return backend->entries[static_cast<std::size_t>(op.slot) + variant];
  }
  /// Its kernel; null where the plug-in has none for this device.
  Kernel kernel(const Op& op, std::size_t variant) const {
    const PluginEntry& it = entry(op, variant);
    const bool there =
        it.exactly ? it.least_architecture == cuda.architecture : it.least_architecture <= cuda.architecture;
    return there ? it.kernel : nullptr;
  }
  /// Whether the variant can run here: by a kernel, or by other functions.
  bool has(const Op& op, std::size_t variant) const {
    return op.variants[variant].compose || kernel(op, variant);
  }

  ~State() {
    ::operator delete[](scratch, std::align_val_t{4096}, std::nothrow);
    if (cuda.scratch) backend->device->close(cuda);
  }
};

}  // namespace rooftile
