#include "rooftile/backend/cpu/pool.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cfenv>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <thread>
#include <type_traits>
#include <vector>

#include "rooftile/backend/cpu/fp_mode.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ROOFTILE_TEST_TSAN
#endif
#if __has_feature(address_sanitizer)
#define ROOFTILE_TEST_ASAN
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define ROOFTILE_TEST_TSAN
#endif
#if defined(__SANITIZE_ADDRESS__)
#define ROOFTILE_TEST_ASAN
#endif

#if defined(ROOFTILE_TEST_TSAN)
constexpr bool kTsan = true;
constexpr int kRegions = 5000;  // TSan's atomics cost some 20 times ours
#else
constexpr bool kTsan = false;
constexpr int kRegions = 100000;
#endif

#if !defined(ROOFTILE_TEST_TSAN) && !defined(ROOFTILE_TEST_ASAN)  // they bring operators of their own
#define ROOFTILE_TEST_COUNTS_ALLOCATIONS
namespace {
std::atomic<long> allocations{0};
}
// Not inlined: g++ would take malloc and delete for a mismatch.
__attribute__((noinline)) void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(size ? size : 1)) return p;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* p) noexcept { std::free(p); }
__attribute__((noinline)) void operator delete(void* p, std::size_t) noexcept { std::free(p); }
#endif

namespace rooftile::cpu {
namespace {

using Clock = std::chrono::steady_clock;

/// Runs a lambda taking the task's index.
template <class Body>
void run(Pool& pool, int tasks, Body&& body) {
  pool.run(
      tasks, [](void* context, int index) { (*static_cast<std::remove_reference_t<Body>*>(context))(index); },
      &body);
}

void spin_for(std::chrono::nanoseconds time) {
  for (const auto end = Clock::now() + time; Clock::now() < end;) {
  }
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Runs `body` in a forked child and returns its exit status; -1 where it hung or was killed.
template <class Body>
int in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a hang ends here
    _exit(body());
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

class PoolOf : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, PoolOf, testing::Values(1, 2, 3, 7));

TEST_P(PoolOf, HasItsThreads) {
  Pool pool(GetParam());
  EXPECT_EQ(pool.threads(), GetParam());
}

TEST_P(PoolOf, RunsEachTaskOnceInEveryRegion) {
  const int threads = GetParam();
  Pool pool(threads);
  // Plain ints: each region must see the writes of the one before, whichever thread made them.
  std::vector<int> counts(static_cast<std::size_t>(threads) * 32);
  for (int region = 0; region < kRegions; ++region) {
    const int tasks = 1 + region % threads;
    int wrong = 0;
    run(pool, tasks, [&](int i) { counts[static_cast<std::size_t>(i) * 32] += 1; });
    for (int i = 0; i < threads; ++i) {
      const int full = region / threads, rest = region % threads + 1;
      const int runs_so_far = full * (threads - i) + std::max(0, rest - i);
      wrong += counts[static_cast<std::size_t>(i) * 32] != runs_so_far;
    }
    ASSERT_EQ(wrong, 0) << "after region " << region << " of " << tasks << " tasks";
  }
}

TEST_P(PoolOf, KeepsEachTaskOnItsThread) {
  const int threads = GetParam();
  Pool pool(threads);
  std::vector<pthread_t> first(threads), again(threads);
  run(pool, threads, [&](int i) { first[i] = pthread_self(); });
  EXPECT_TRUE(pthread_equal(first[0], pthread_self()));
  for (int i = 0; i < threads; ++i)
    for (int j = 0; j < i; ++j) EXPECT_FALSE(pthread_equal(first[i], first[j])) << i << " and " << j;
  for (int region = 0; region < 100; ++region) {
    run(pool, threads, [&](int i) { again[i] = pthread_self(); });
    for (int i = 0; i < threads; ++i) EXPECT_TRUE(pthread_equal(first[i], again[i])) << i;
  }
}

TEST_P(PoolOf, RunsTasksBeyondItsThreadsAndNone) {
  Pool pool(GetParam());
  std::vector<std::atomic<int>> counts(20);
  run(pool, 20, [&](int i) { counts[i]++; });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(counts[i], 1) << i;
  run(pool, 0, [&](int) { ADD_FAILURE() << "a task of an empty region ran"; });
  run(pool, -1, [&](int) { ADD_FAILURE() << "a task of an empty region ran"; });
}

// Pauses about as long as the workers spin before they sleep: where a wake-up would get lost.
TEST_P(PoolOf, LosesNoWakeUp) {
  const int threads = GetParam();
  Pool pool(threads);
  std::vector<int> counts(threads);
  const int regions = kRegions / 40;
  for (int region = 0; region < regions; ++region) {
    spin_for(std::chrono::nanoseconds(region * 7919 % 60000));
    run(pool, threads, [&](int i) {
      counts[i]++;
      if (i == threads - 1) spin_for(std::chrono::nanoseconds(region * 104729 % 60000));  // the caller sleeps
    });
  }
  EXPECT_EQ(counts, std::vector<int>(threads, regions));
}

TEST_P(PoolOf, SleepsWhenIdle) {
  Pool pool(GetParam());
  for (int region = 0; region < 100; ++region) run(pool, GetParam(), [](int) {});
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(cpu_seconds() - before, 0.05) << "CPU seconds in 0.2 s of idling";
}

TEST_P(PoolOf, CallerSleepsWhileItWaits) {
  if (GetParam() == 1) GTEST_SKIP() << "a pool of one waits for nobody";
  Pool pool(GetParam());
  const double before = cpu_seconds();
  run(pool, 2, [](int i) {
    if (i == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  });
  EXPECT_LT(cpu_seconds() - before, 0.05) << "CPU seconds in a region that waits 0.2 s";
}

TEST_P(PoolOf, RunsNestedRegionsInPlace) {
  const int threads = GetParam();
  Pool pool(threads), other(2);
  std::vector<int> same(threads), inner(threads);
  for (int region = 0; region < 100; ++region)
    run(pool, threads, [&](int i) {
      const pthread_t here = pthread_self();
      for (Pool* nested : {&pool, &other})
        run(*nested, 5, [&](int) {
          inner[i]++;
          same[i] += pthread_equal(here, pthread_self()) != 0;
        });
    });
  EXPECT_EQ(inner, std::vector<int>(threads, 1000));
  EXPECT_EQ(same, inner);
  // And afterwards regions are parallel again.
  std::vector<pthread_t> ids(threads);
  run(pool, threads, [&](int i) { ids[i] = pthread_self(); });
  if (threads > 1) {
    EXPECT_FALSE(pthread_equal(ids[0], ids[1]));
  }
}

TEST_P(PoolOf, ServesFourHostThreads) {
  Pool pool(GetParam());
  std::atomic<int> inside{0}, overlaps{0}, wrong{0};
  std::vector<std::thread> hosts;
  for (int host = 0; host < 4; ++host)
    hosts.emplace_back([&] {
      for (int region = 0; region < kRegions / 50; ++region) {
        std::vector<int> counts(GetParam());
        run(pool, GetParam(), [&](int i) {
          if (GetParam() > 1 && i == 0) overlaps += inside++ != 0;
          counts[i]++;
          if (GetParam() > 1 && i == 0) inside--;
        });
        for (int count : counts) wrong += count != 1;
      }
    });
  for (std::thread& host : hosts) host.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(overlaps, 0) << "regions of two host threads ran at once";
}

TEST_P(PoolOf, ComesAndGoes) {
  int ran = 0;
  for (int i = 0; i < 200; ++i) {
    Pool pool(GetParam());
    if (i % 3 == 1)
      run(pool, GetParam(), [&](int task) {
        if (task == 0) ran++;
      });
    if (i % 3 == 2) std::this_thread::sleep_for(std::chrono::microseconds(i));  // some asleep, some not yet
  }
  EXPECT_EQ(ran, 67);
}

#if defined(ROOFTILE_TEST_COUNTS_ALLOCATIONS)
TEST_P(PoolOf, AllocatesNothingInARegion) {
  Pool pool(GetParam());
  run(pool, GetParam(), [](int) {});
  const long before = allocations;
  for (int region = 0; region < 1000; ++region) run(pool, GetParam(), [](int) {});
  EXPECT_EQ(allocations - before, 0);
}
#endif

TEST_P(PoolOf, WorksInAForkedChild) {
  if (kTsan) GTEST_SKIP() << "TSan cannot start threads in a child of a process with threads";
  const int threads = GetParam();
  auto pool = std::make_unique<Pool>(threads);
  const auto parallel = [&] {
    std::vector<pthread_t> ids(threads);
    std::vector<int> counts(threads);
    for (int region = 0; region < 200; ++region)
      run(*pool, threads, [&](int i) {
        counts[i]++;
        ids[i] = pthread_self();
      });
    if (pool->threads() != threads || counts != std::vector<int>(threads, 200)) return 1;
    return threads > 1 && pthread_equal(ids[0], ids[1]) ? 2 : 0;
  };
  ASSERT_EQ(parallel(), 0);
  EXPECT_EQ(in_child(parallel), 0) << "at once, the parent's workers spinning";
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(in_child(parallel), 0) << "the parent's workers asleep";
  EXPECT_EQ(in_child([&] {
              const int first = parallel();
              pool.reset();
              return first;
            }),
            0)
      << "and the destructor, of workers the child started";
  EXPECT_EQ(in_child([&] { return parallel() + in_child(parallel); }), 0) << "a grandchild";
  EXPECT_EQ(parallel(), 0) << "the parent's pool, after all that";
}

TEST_P(PoolOf, EndsInAForkedChildWithoutWaitingForTheParentsWorkers) {
  auto pool = std::make_unique<Pool>(GetParam());
  run(*pool, GetParam(), [](int) {});
  EXPECT_EQ(in_child([&] {
              pool.reset();
              return 0;
            }),
            0);
  int ran = 0;
  run(*pool, 1, [&](int) { ran++; });
  EXPECT_EQ(ran, 1);
}

// The lock is held, and its holder does not exist in the child. It forks when each worker has run: ASan's
// allocator keeps its locks over a fork, and a thread that starts allocates.
TEST_P(PoolOf, WorksInAChildForkedDuringARegion) {
  if (kTsan) GTEST_SKIP() << "TSan cannot start threads in a child of a process with threads";
  const int threads = GetParam();
  Pool pool(threads);
  std::atomic<bool> stop{false};
  std::atomic<int> running{0};
  std::thread host([&] {
    run(pool, threads, [&](int i) {
      running++;
      while (i == 0 && !stop) std::this_thread::yield();
    });
  });
  while (running != threads) std::this_thread::yield();
  EXPECT_EQ(in_child([&] {
              std::vector<int> counts(threads);
              for (int region = 0; region < 100; ++region) run(pool, threads, [&](int i) { counts[i]++; });
              return counts == std::vector<int>(threads, 100) ? 0 : 1;
            }),
            0);
  stop = true;
  host.join();
}

int refuse(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) { return EAGAIN; }

std::atomic<int> left{0};
int grant_some(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  return left-- > 0 ? pthread_create(thread, attributes, start, argument) : EAGAIN;
}

TEST(Pool, TakesTheThreadsItCanGet) {
  for (int granted : {0, 1, 3}) {
    left = granted;
    Pool pool(7, granted ? &grant_some : &refuse);
    EXPECT_EQ(pool.threads(), 1 + granted);
    std::vector<std::atomic<int>> counts(7);
    for (int region = 0; region < 100; ++region) run(pool, 7, [&](int i) { counts[i]++; });
    for (int i = 0; i < 7; ++i) EXPECT_EQ(counts[i], 100) << "task " << i << ", " << granted << " granted";
  }
}

TEST(Pool, IsOneThreadAtLeast) {
  EXPECT_EQ(Pool(0).threads(), 1);
  EXPECT_EQ(Pool(-5).threads(), 1);
  // Far beyond reason: fewer, and no memory taken for the rest.
  EXPECT_LE(Pool(std::numeric_limits<int>::max(), &refuse).threads(), 1);
}

TEST(Pool, LeavesSignalsToTheHost) {
  Pool pool(2);
  sigset_t masks[2], after;
  run(pool, 2, [&](int i) { pthread_sigmask(SIG_SETMASK, nullptr, &masks[i]); });
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&masks[0], SIGINT), 0);
  EXPECT_EQ(sigismember(&masks[1], SIGINT), 1);
  EXPECT_EQ(sigismember(&masks[1], SIGSEGV), 0);  // its own faults reach the host's handler
  EXPECT_EQ(sigismember(&after, SIGINT), 0);
}

/// 1 + half a unit in the last place, or a little more: tells the rounding mode.
float rounded() {
  volatile float one = 1, little = 0x1p-30f;
  return one + little;
}

float halved_least_normal() {
  volatile float least = std::numeric_limits<float>::min(), half = 0.5f;
  return least * half;
}

bool is_default() { return rounded() == 1.0f && halved_least_normal() > 0; }

TEST(FpMode, RoundsToNearestAndGivesTheCallersModeBack) {
  std::fesetround(FE_UPWARD);
  EXPECT_GT(rounded(), 1.0f);
  {
    const FpMode mode;
    EXPECT_EQ(rounded(), 1.0f);
  }
  EXPECT_GT(rounded(), 1.0f);
  std::fesetround(FE_TONEAREST);
}

#if defined(__x86_64__)
constexpr unsigned kControl = 0xffc0, kFtzDaz = 0x8040, kUnmaskDivide = 0x0200;

TEST(FpMode, HonoursSubnormalsMasksTrapsAndKeepsFlags) {
  const unsigned before = _mm_getcsr();
  const unsigned callers = (before & ~kUnmaskDivide & ~0x3fu) | kFtzDaz;
  _mm_setcsr(callers);
  EXPECT_EQ(halved_least_normal(), 0);
  _mm_setcsr(callers);
  float subnormal = 0;
  volatile float quotient = 0, one = 1, zero = 0;
  unsigned inside = 0, after = 0;
  {
    const FpMode mode;
    inside = _mm_getcsr();
    subnormal = halved_least_normal();
    quotient = one / zero;  // would trap
  }
  after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_GT(subnormal, 0);
  EXPECT_EQ(quotient, std::numeric_limits<float>::infinity());
  EXPECT_EQ(inside & kControl, 0x1f80u);
  EXPECT_EQ(after & kControl, callers & kControl);
  EXPECT_EQ(after & 0x3f, 0x04u) << "the division by zero, and nothing else, raised its flag";
}

TEST(Pool, RunsTasksInTheDefaultModeWhateverTheCallersIs) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | kFtzDaz);
  std::fesetround(FE_UPWARD);
  const unsigned callers = _mm_getcsr() & kControl;
  Pool pool(3);  // its workers inherit the mode
  bool first[3], second[3];
  run(pool, 3, [&](int i) {
    first[i] = is_default();
    _mm_setcsr(_mm_getcsr() | kFtzDaz);  // a task that leaves a mess
  });
  run(pool, 3, [&](int i) { second[i] = is_default(); });
  bool alone = false;
  run(pool, 1, [&](int) { alone = is_default(); });
  const unsigned after = _mm_getcsr() & kControl;
  std::fesetround(FE_TONEAREST);
  _mm_setcsr(before);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(first[i]) << i;
    EXPECT_TRUE(second[i]) << i;
  }
  EXPECT_TRUE(alone);
  EXPECT_EQ(after, callers);
}
#endif

}  // namespace
}  // namespace rooftile::cpu
