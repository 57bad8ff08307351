#pragma once
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace rooftile::harness {

/// A few threads that start a piece of work together, for measuring the machine itself. The harness has its
/// own so that what it says of the machine does not depend on the library's pool. The calling thread is
/// thread 0; the others spin briefly for the next call and then sleep. One caller at a time.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Runs body(i) for every thread i, returns when all are done.
  void run(const std::function<void(int)>& body);

  /// As `run`; gives the seconds from the moment that all threads stand ready to the moment that all are
  /// done, so that waking a sleeping thread is not counted.
  double time(const std::function<void(int)>& body);

 private:
  void work(int index);
  void leave_workers_cpus() const;

  std::vector<std::thread> workers_;
  int home_ = -1;                 // the caller's CPU; -1: too few CPUs, nothing is bound
  std::vector<int> worker_cpus_;  // of worker 1, 2, …
  const std::function<void(int)>* body_ = nullptr;
  std::atomic<unsigned> generation_{0};  // bumped for each run; workers wait for it to change
  std::atomic<int> ready_{0};            // workers that stand at the start line
  std::atomic<bool> go_{false};
  std::atomic<int> left_{0};  // workers that are not done yet
  bool stop_ = false;         // guarded by generation_
};

}  // namespace rooftile::harness
