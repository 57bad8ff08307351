#include "rooftile/backend/cpu/pool.h"

#include <sched.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <new>
#include <utility>

#include "rooftile/backend/cpu/cpu_count.h"
#include "rooftile/backend/cpu/fp_mode.h"

namespace rooftile::cpu {
namespace {
// How long a worker that has nothing to do waits before it sleeps, and a caller for its workers. Less than
// the time that a wake-up takes (60 µs on a virtual machine whose core has gone idle), and caller and worker
// would take turns at sleeping: 64 µs for each softmax of 16x512 on two threads instead of 2 (Zen 4). After
// kQuietNs they yield in between: the one waited for may have been put on this very core. Where threads
// outnumber cores, spinning keeps the thread one waits for from running.
constexpr std::int64_t kQuietNs = 5'000, kSpinNs = 50'000, kCallerSpinNs = 10 * kSpinNs;
constexpr int kYields = 20;
// Forks since the first process. A pool of another generation has no workers, a lock of another no holder.
std::atomic<std::uint32_t> process_generation{0};
thread_local bool inside_task = false;

std::int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // `yield` does nothing on most cores; this takes about as long as a pause
#endif
}

template <class Done>
bool poll(bool spin, std::int64_t ns, Done done) {  // whether it came true after a little waiting
  constexpr int kPauses = 64;                       // between looks at the clock: a pause takes 10 to 45 ns
  std::int64_t end = 0;
  for (int i = 1; spin || i <= kYields; ++i) {
    if (done()) return true;
    if (!spin) {
      sched_yield();
      continue;
    }
    pause();
    if (i % kPauses != 0) continue;
    const std::int64_t now = now_ns();
    if (end == 0) end = now + ns;
    if (now >= end) break;
    if (now >= end - ns + kQuietNs) sched_yield();
  }
  return done();
}

/// Moves this thread to another core than `cpu`, where there is one: a scheduler that wakes a worker on its
/// caller's core leaves both there for milliseconds (25 µs for a copy of 512 KiB by two threads, apart 3.6;
/// Zen 4).
void leave(int cpu) {
  cpu_set_t all, others;
  if (sched_getaffinity(0, sizeof all, &all) != 0 || cpu < 0 || cpu >= CPU_SETSIZE) return;
  others = all;
  CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return;
  sched_setaffinity(0, sizeof all, &all);  // a move, not a binding
}

void call(Pool::Task task, void* context, int index) {
  const FpMode mode;
  const bool outer = std::exchange(inside_task, true);
  task(context, index);
  inside_task = outer;
}
}  // namespace

Pool::Pool(int threads, CreateThread create) noexcept
    : wanted_(std::clamp(threads, 1, kMaxThreads)),
      create_(create),
      slots_(new (std::nothrow) Slot[wanted_]) {
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { process_generation.fetch_add(1); });
  fits_ = wanted_ <= usable_cpus();
  start_workers();
}

Pool::~Pool() {
  if (generation_ != process_generation.load()) return;  // forked: the workers are the parent's
  start_tasks(threads(), nullptr, nullptr);
  for (int i = 1; i < threads(); ++i) pthread_join(slots_[i].thread, nullptr);
}

void Pool::start_workers() {
  generation_ = process_generation.load();
  sleepers_ = 0;
  // Workers inherit it. What a thread does to itself stays open: blocked, no handler of the caller's would
  // see it.
  sigset_t all, before;
  sigfillset(&all);
  for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&all, own);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int started = 1;
  for (; slots_ && started < wanted_; ++started) {
    Slot& slot = slots_[started];
    slot.go = slot.done = slot.asleep = slot.caller_asleep = 0;
    slot.pool = this;
    if (create_(&slot.thread, nullptr, &Pool::work, &slot) != 0) break;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  threads_ = started;
}

void* Pool::work(void* argument) {
  Slot& slot = *static_cast<Slot*>(argument);
  for (std::uint32_t region = 1;; ++region) {
    slot.pool->wait_for_go(slot, region);
    if (!slot.task) return nullptr;
    if (slot.pool->fits_ && slot.caller_cpu == sched_getcpu()) leave(slot.caller_cpu);
    call(slot.task, slot.context, static_cast<int>(&slot - slot.pool->slots_.get()));
    slot.done.store(region);
    if (slot.caller_asleep.load()) slot.done.notify_one();
  }
}

void Pool::run(int tasks, Task task, void* context) noexcept {
  if (inside_task) {
    for (int i = 0; i < tasks; ++i) call(task, context, i);
    return;
  }
  const std::uint32_t held = process_generation.load(std::memory_order_relaxed) * 2 + 1;
  const auto lock = [&] {
    std::uint32_t seen = lock_.load(std::memory_order_relaxed);
    return seen != held && lock_.compare_exchange_strong(seen, held, std::memory_order_acquire);
  };
  while (!poll(fits_, kSpinNs, lock)) lock_.wait(held, std::memory_order_relaxed);
  // One task takes the lock, too: what it works on (a queue's scratch) is the pool's for the region.
  if (tasks > 1 && generation_ != held / 2) start_workers();
  const int end = std::min(tasks, threads());
  if (end > 1) start_tasks(end, task, context);
  if (tasks > 0) call(task, context, 0);
  for (int i = std::max(end, 1); i < tasks; ++i) call(task, context, i);
  for (int i = 1; i < end; ++i) wait_for_done(slots_[i]);
  lock_.store(generation_ * 2);
  lock_.notify_one();
}

// Before it sleeps, a worker raises `asleep`, adds to sleepers_, looks at `go`; the caller changes `go`, adds
// nothing to sleepers_, looks at `asleep`. Of two read-modify-writes of one variable the later sees what came
// before the earlier: no wake-up is lost, at one locked instruction for all and no fence (TSan knows none).
void Pool::start_tasks(int end, Task task, void* context) {
  const int cpu = sched_getcpu();
  for (int i = 1; i < end; ++i) {
    Slot& slot = slots_[i];
    slot.caller_cpu = cpu;
    slot.task = task;
    slot.context = context;
    slot.go.store(slot.go.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  if (sleepers_.fetch_add(0, std::memory_order_acq_rel) == 0) return;
  for (int i = 1; i < end; ++i)
    if (slots_[i].asleep.load(std::memory_order_relaxed)) slots_[i].go.notify_one();
}

void Pool::wait_for_go(Slot& slot, std::uint32_t region) {
  const auto came = [&] { return slot.go.load(std::memory_order_acquire) == region; };
  if (poll(fits_, kSpinNs, came)) return;
  slot.asleep.store(1, std::memory_order_relaxed);
  sleepers_.fetch_add(1, std::memory_order_acq_rel);
  while (!came()) slot.go.wait(region - 1, std::memory_order_acquire);
  slot.asleep.store(0, std::memory_order_relaxed);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void Pool::wait_for_done(Slot& slot) {
  const std::uint32_t region = slot.go.load(std::memory_order_relaxed);
  if (poll(fits_, kCallerSpinNs, [&] { return slot.done.load(std::memory_order_acquire) == region; })) return;
  slot.caller_asleep.store(1);
  while (slot.done.load() != region) slot.done.wait(region - 1);
  slot.caller_asleep.store(0, std::memory_order_relaxed);
}

}  // namespace rooftile::cpu
