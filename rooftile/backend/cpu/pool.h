#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace rooftile::cpu {
inline constexpr int kMaxThreads = 1024;

/// A fixed team of threads for fork and join. Between regions the workers spin for some 30 µs, so that the
/// next one costs a handshake, then sleep; they take no signals. Any number of host threads may call run():
/// one region runs at a time. After fork() the child's first region starts workers of its own (a fork from
/// *inside* a task must end in exec or _exit).
class Pool {
 public:
  using Task = void (*)(void* context, int index);
  using CreateThread = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

  /// `threads` counts the caller: Pool(2) starts one worker. Where the system grants fewer, threads() tells.
  /// `create` stands in for pthread_create in tests.
  explicit Pool(int threads, CreateThread create = &pthread_create) noexcept;
  ~Pool();

  /// Threads there are, the caller included; at least 1. May sink in a forked child, at its first region.
  int threads() const { return threads_.load(std::memory_order_relaxed); }

  /// Calls task(context, i) for each i in [0, tasks); returns when all are done. Task i runs on thread i: 0
  /// on the caller, where those from threads() on follow. Each starts in the default floating-point mode,
  /// whatever the caller's is. Inside a task, of this pool or another, all run in place, one by one.
  void run(int tasks, Task task, void* context) noexcept;

 private:
  using Word = std::atomic<std::uint32_t>;
  struct Slot {
    alignas(128) Word go{0};  // written by the caller: counts this worker's regions
    Word caller_asleep{0};    // 128 bytes apart: x86 prefetches cache lines in pairs
    Task task = nullptr;      // null: end
    void* context = nullptr;
    int caller_cpu = -1;  // where the region began
    Pool* pool = nullptr;
    pthread_t thread{};
    alignas(128) Word done{0};  // written by the worker: the last region it finished
    Word asleep{0};
  };
  static void* work(void* slot);
  void start_workers();
  void start_tasks(int end, Task task, void* context);
  void wait_for_go(Slot& slot, std::uint32_t region);
  void wait_for_done(Slot& slot);
  const int wanted_;
  const CreateThread create_;
  bool fits_;                      // a core for each thread
  std::uint32_t generation_;       // of the process, when the workers were started
  std::unique_ptr<Slot[]> slots_;  // the first stays unused
  std::atomic<int> threads_{1};
  alignas(128) Word lock_{0};  // generation * 2 + held; apart from what workers read at each region
  Word sleepers_{0};           // workers asleep; written by them, seldom
};
}  // namespace rooftile::cpu
