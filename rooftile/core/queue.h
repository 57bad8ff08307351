#pragma once
#include <cstdint>

#include "rooftile/core/status.h"

namespace rooftile {

/// Threads of the caller's own: parallel(self, tasks, task, context) must run task(context, i) for each i
/// below `tasks`, at most `threads` of them at once, each exactly once, and return when all are done.
struct Executor {
  void* self = nullptr;
  int threads = 1;
  void (*parallel)(void* self, int tasks, void (*task)(void* context, int index), void* context) = nullptr;
};

struct CpuOptions {
  int threads = 0;  ///< 0: the lesser of the CPUs this process may use and its cgroup's quota
  const char* isa =
      nullptr;  ///< "baseline", "avx2", "avx512"; null: $ROOFTILE_CPU, else the best this CPU has
  const Executor* executor = nullptr;   ///< null: a small pool of the queue's own
  const char* plugin_folder = nullptr;  ///< null: $ROOFTILE_PLUGINS, else the folder of librooftile.so
  std::int64_t streaming_bytes = -1;    ///< calls that move more bypass the caches; -1: by this CPU's caches
};

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
class Queue {
 public:
  static Queue cpu(const CpuOptions& options = {});

  Queue(const Queue& other) noexcept;
  Queue& operator=(const Queue& other) noexcept;
  ~Queue();

  /// Whether the queue can be used.
  Status status() const;
  /// The instruction set in use and the sentence that says why.
  const char* isa() const;
  const char* isa_reason() const;
  int threads() const;
  /// Calls that move more bytes than this bypass the caches.
  std::int64_t streaming_bytes() const;

  void set_observer(Observer observer);

  struct State;  // rooftile/core/queue_state.h
  State& state() const { return *state_; }

 private:
  explicit Queue(State* state) : state_(state) {}
  State* state_;
};

}  // namespace rooftile
