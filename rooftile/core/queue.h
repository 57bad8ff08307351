#pragma once
#include <cstdint>

#include "rooftile/core/status.h"

namespace rooftile {

/// Threads of the caller's own: parallel(self, tasks, task, context) must run task(context, i) for each i
/// below `tasks`, at most `threads` of them at once, each exactly once, and return when all are done.
struct Executor {
  void* self = nullptr;
  int threads = 1;  ///< 1 to 1024
  void (*parallel)(void* self, int tasks, void (*task)(void* context, int index), void* context) = nullptr;
};

/// Of all options: a queue asked for with a value that is not told here keeps a sentence instead.
struct CpuOptions {
  int threads = 0;  ///< 0: the lesser of the CPUs this process may use and its cgroup's quota; up to 1024
  const char* isa =
      nullptr;  ///< "baseline", "avx2", "avx512"; null: $ROOFTILE_CPU, else the best this CPU has
  const Executor* executor = nullptr;   ///< null: a small pool of the queue's own
  const char* plugin_folder = nullptr;  ///< null: $ROOFTILE_PLUGINS, else the folder of librooftile.so
  std::int64_t streaming_bytes = -1;    ///< calls that move more bypass the caches; -1: by this CPU's caches
};

struct CudaOptions {
  void* stream = nullptr;               ///< a cudaStream_t of `device`; null: its default stream
  int device = -1;                      ///< a CUDA ordinal; -1: the calling thread's current device
  const char* plugin_folder = nullptr;  ///< as above
};

/// A GPU that is none: CUDA kernels on the CPU, for whoever has no GPU, and to look into them.
struct EmulatedOptions {
  int architecture = 90;   ///< 80, 86, 89 or 90: what kernels find, and how much shared memory
  int threads = 0;         ///< of the host, that blocks run on; as CpuOptions::threads
  std::uint64_t seed = 0;  ///< shuffles the order of a block's threads; 0: in order
  bool checked = false;    ///< finds races, reads of unwritten shared memory and more; far slower
  const char* plugin_folder = nullptr;  ///< as above
};

enum class Device : std::uint8_t { cpu, cuda, emulated };

/// Tells which variant a call took, and why. Called on the calling thread before the kernel runs.
struct Observer {
  void* context = nullptr;
  void (*notify)(void* context, const char* op, const char* variant, const char* reason) = nullptr;
};

/// Where kernels run: a device and an order. Calls on one queue run one after another; calls from several
/// host threads on one queue wait for each other, so give each thread its own where they should overlap.
/// Cheap to copy: copies name the same queue. Creating one allocates (threads, 256 KiB of scratch a thread)
/// and loads the machine's plug-in; later calls do neither. A queue that could not be made keeps the sentence
/// that says why, and every call on it returns that sentence.
/// After fork() the child may call on the CPU's and the emulated device's queues that it was forked with, and
/// make others: what another thread of the parent was computing meanwhile is half done there, nothing hangs.
/// Not so: forked while another thread was making its first queue, or from within an executor's task or an
/// observer (exec or _exit only); and a GPU's queue, which no child can use (CUDA's rule).
class Queue {
 public:
  static Queue cpu(const CpuOptions& options = {});
  /// An NVIDIA GPU of compute capability 8.0 or later. Calls return when they are launched on the stream, may
  /// be captured in a CUDA graph, and take pointers to that device's memory. Nothing is allocated and nothing
  /// waited for but by a kernel's first launch, which loads it. Calls on one queue share 64 KiB of scratch,
  /// so graphs captured from it replay one after another, not beside each other.
  static Queue cuda(const CudaOptions& options = {});
  /// Calls return when they are done and take pointers to the host's memory.
  static Queue emulated(const EmulatedOptions& options = {});

  Queue(const Queue& other) noexcept;
  Queue& operator=(const Queue& other) noexcept;
  ~Queue();

  /// Whether the queue can be used.
  Status status() const;
  Device device() const;
  /// Of a GPU: 90 for compute capability 9.0, and so on; 0: of a CPU.
  int architecture() const;
  int index() const;  ///< of CUDA: the GPU's number; otherwise -1
  /// The instruction set in use ("avx512"; of a GPU "sm_90") and the sentence that says why.
  const char* isa() const;
  const char* isa_reason() const;
  int threads() const;
  /// Calls that move more bytes than this bypass the caches.
  std::int64_t streaming_bytes() const;

  void set_observer(Observer observer);

  struct State;  // rooftile/runtime/queue_state.h
  State& state() const { return *state_; }

 private:
  explicit Queue(State* state) : state_(state) {}
  State* state_;
};

}  // namespace rooftile
