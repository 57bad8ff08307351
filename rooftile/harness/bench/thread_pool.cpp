#include "rooftile/harness/bench/thread_pool.h"

#include <sched.h>

#include <algorithm>

#include "rooftile/harness/bench/timing.h"

namespace rooftile::harness {
namespace {

inline void relax() {
#if defined(__x86_64__)
  asm volatile("pause");
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Spins until done() holds. Yields once it took long: with fewer cores than threads, the thread that we wait
/// for may need this very core.
template <class Done>
void spin_until(Done done) {
  for (int i = 0; !done(); ++i) {
    if (i < 2000) {
      relax();
    } else {
      sched_yield();
    }
  }
}

// About 50 us at 40 cycles a pause: back-to-back runs find the workers awake, and an idle pool is quiet.
constexpr int kSpinsBeforeSleep = 4000;

}  // namespace

ThreadPool::ThreadPool(int threads) {
  cpu_set_t allowed;
  const int here = sched_getcpu();
  if (threads > 1 && here >= 0 && sched_getaffinity(0, sizeof allowed, &allowed) == 0 &&
      CPU_ISSET(here, &allowed) && CPU_COUNT(&allowed) >= threads) {
    home_ = here;
    for (int step = 1; static_cast<int>(worker_cpus_.size()) < threads - 1; ++step) {
      const int cpu = (here + step) % CPU_SETSIZE;
      if (CPU_ISSET(cpu, &allowed)) worker_cpus_.push_back(cpu);
    }
  }
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::leave_workers_cpus() const {
  if (home_ < 0) return;
  const int here = sched_getcpu();
  if (std::find(worker_cpus_.begin(), worker_cpus_.end(), here) == worker_cpus_.end()) return;
  cpu_set_t allowed, home;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  CPU_ZERO(&home);
  CPU_SET(home_, &home);
  if (sched_setaffinity(0, sizeof home, &home) == 0) sched_setaffinity(0, sizeof allowed, &allowed);
}

void ThreadPool::run(const std::function<void(int)>& body) { (void)time(body); }

double ThreadPool::time(const std::function<void(int)>& body) {
  const int others = static_cast<int>(workers_.size());
  if (others > 0) {
    leave_workers_cpus();
    body_ = &body;
    ready_.store(0, std::memory_order_relaxed);
    go_.store(false, std::memory_order_relaxed);
    left_.store(others, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
    spin_until([&] { return ready_.load(std::memory_order_acquire) == others; });
  }
  const std::int64_t start = now_ns();
  go_.store(true, std::memory_order_release);
  body(0);
  spin_until([&] { return left_.load(std::memory_order_acquire) == 0; });
  return static_cast<double>(now_ns() - start) * 1e-9;
}

void ThreadPool::work(int index) {
  if (home_ >= 0) {
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(worker_cpus_[static_cast<std::size_t>(index - 1)], &own);
    sched_setaffinity(0, sizeof own, &own);  // a wish; measuring goes on without
  }
  unsigned seen = 0;
  for (;;) {
    for (int i = 0; generation_.load(std::memory_order_acquire) == seen; ++i) {
      if (i < kSpinsBeforeSleep) {
        relax();
      } else {
        generation_.wait(seen, std::memory_order_acquire);
      }
    }
    seen = generation_.load(std::memory_order_acquire);
    if (stop_) return;
    ready_.fetch_add(1, std::memory_order_acq_rel);
    spin_until([&] { return go_.load(std::memory_order_acquire); });
    (*body_)(index);
    left_.fetch_sub(1, std::memory_order_acq_rel);
  }
}

}  // namespace rooftile::harness
