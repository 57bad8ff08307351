// Queues: how they are made and refused, and that nothing about them shows in a result's bits.
#include "rooftile/core/queue.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rooftile/backend/cpu/isa.h"
#include "rooftile/ops/softmax/softmax.h"
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#if defined(__SANITIZE_THREAD__)
#define ROOFTILE_TEST_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ROOFTILE_TEST_TSAN
#endif
#endif

namespace rooftile {
namespace {

using Values = std::vector<float>;

/// Normal numbers, and such whose exponentials are subnormal.
Values values(std::int64_t count, unsigned seed) {
  Values x(static_cast<std::size_t>(count));
  unsigned state = seed * 2654435761u + 1;
  for (float& v : x) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(state >> 8) * 0x1p-22f - 2;
    if (state % 7 == 0) v -= 95;
  }
  return x;
}

Values softmax_of(const Queue& queue, const Values& x, std::int64_t rows, const char* variant = nullptr) {
  Values y(x.size(), -1);
  const std::int64_t columns = static_cast<std::int64_t>(x.size()) / rows;
  const Status s =
      softmax(queue, view(x.data(), {rows, columns}), view(y.data(), {rows, columns}), {.variant = variant});
  EXPECT_TRUE(s) << s.message();
  return y;
}

bool same_bits(const Values& a, const Values& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

Queue queue_of(int threads, std::int64_t streaming_bytes = -1) {
  Queue q = Queue::cpu({.threads = threads, .streaming_bytes = streaming_bytes});
  EXPECT_TRUE(q.status()) << q.status().message();
  return q;
}

/// Small enough for one task, and enough for seven.
constexpr std::int64_t kSmall = 3 * 100, kLarge = 211 * 500;

/// An environment variable for as long as a test runs.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before, had_ = true;
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Environment() { had_ ? setenv(name_, before_.c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::string before_;
  bool had_ = false;
};

TEST(Queue, BadOptionsAreOneSentenceThatEveryCallReturns) {
  const Environment none("ROOFTILE_CPU", nullptr), no_folder("ROOFTILE_PLUGINS", nullptr);
  Executor no_function;
  Executor no_threads{nullptr, 0, [](void*, int, void (*)(void*, int), void*) {}};
  Executor many_threads{nullptr, 1025, [](void*, int, void (*)(void*, int), void*) {}};
  const std::string long_folder(5000, 'x');
  const std::pair<CpuOptions, const char*> bad[] = {
      {{.threads = -1}, "Queue::cpu: threads is -1, must be 0 (all that may be used) to 1024"},
      {{.threads = 1025}, "Queue::cpu: threads is 1025, must be 0 (all that may be used) to 1024"},
      {{.threads = INT_MAX}, "Queue::cpu: threads is 2147483647, must be 0 (all that may be used) to 1024"},
      {{.streaming_bytes = -2},
       "Queue::cpu: streaming_bytes is -2, must be -1 (by this CPU's caches) or not negative"},
      {{.isa = "sse9"}, "Queue::cpu: isa=sse9: unknown; known are baseline, avx2, avx512"},
      {{.executor = &no_function},
       "Queue::cpu: the executor has no function and 1 threads, needs a function and 1 to 1024"},
      {{.executor = &no_threads},
       "Queue::cpu: the executor has a function and 0 threads, needs a function and 1 to 1024"},
      {{.executor = &many_threads},
       "Queue::cpu: the executor has a function and 1025 threads, needs a function and 1 to 1024"},
      {{.isa = "baseline", .plugin_folder = "/nowhere"},
       "/nowhere/rooftile-cpu-baseline.so: no such plug-in; build or reinstall rooftile, or name the folder "
       "of its "
       "plug-ins by ROOFTILE_PLUGINS, or choose another by ROOFTILE_CPU"},
      {{.plugin_folder = long_folder.c_str()}, "rooftile: the plug-in folder's path is too long: xxx"},
  };
  for (const auto& [options, sentence] : bad) {
    const Queue queue = Queue::cpu(options);
    EXPECT_FALSE(queue.status());
    EXPECT_EQ(std::string(queue.status().message()).substr(0, std::strlen(sentence)), sentence);
    const Queue copy = queue;
    float x[4] = {}, y[4] = {7, 7, 7, 7};
    for (const Queue* q : {&queue, &copy}) {
      EXPECT_STREQ(softmax(*q, view(x, {4}), view(y, {4})).message(), queue.status().message());
      EXPECT_STREQ(softmax_backward(*q, view(x, {4}), view(x, {4}), view(y, {4})).message(),
                   queue.status().message());
    }
    EXPECT_EQ(y[0], 7);
  }
}

TEST(Queue, OptionsAtTheirLimitsAreTaken) {
  Executor executor{nullptr, 1024, [](void*, int tasks, void (*task)(void*, int), void* context) {
                      for (int t = 0; t < tasks; ++t) task(context, t);
                    }};
  const Queue queue = Queue::cpu({.executor = &executor, .streaming_bytes = 0});
  ASSERT_TRUE(queue.status()) << queue.status().message();
  EXPECT_EQ(queue.threads(), 1024);
  EXPECT_TRUE(
      same_bits(softmax_of(queue, values(kLarge, 1), 211), softmax_of(queue_of(1), values(kLarge, 1), 211)));
  EXPECT_STREQ(Queue::cuda({.device = -2}).status().message(),
               "Queue::cuda: device is -2, must be -1 (the thread's current one) or a GPU's number");
}

TEST(Queue, TheIsaIsChosenByOptionThenEnvironmentThenCpu) {
  {
    const Environment unknown("ROOFTILE_CPU", "6502");
    EXPECT_STREQ(Queue::cpu().status().message(),
                 "Queue::cpu: ROOFTILE_CPU=6502: unknown; known are baseline, avx2, avx512");
    const Queue q = Queue::cpu({.isa = "avx2"});  // the option goes first
    EXPECT_EQ(std::string(q.status().message()).find("6502"), std::string::npos);
  }
  for (const char* isa : {"baseline", "avx2", "avx512"}) {
    cpu::Isa parsed{};
    ASSERT_TRUE(cpu::parse(isa, parsed));
    const Environment asks("ROOFTILE_CPU", isa);
    const Queue q = Queue::cpu();
    if (!cpu::supported(parsed)) {
      EXPECT_EQ(q.status().message(),
                std::string("Queue::cpu: ROOFTILE_CPU=") + isa + ": " + cpu::missing(parsed));
      continue;
    }
    EXPECT_STREQ(q.isa(), isa);
    EXPECT_EQ(q.isa_reason(), std::string(isa) + ": chosen by ROOFTILE_CPU");
    if (q.status()) (void)softmax_of(q, values(kSmall, 1), 3);  // where its plug-in was built
  }
  for (const char* value : {static_cast<const char*>(nullptr), ""}) {
    const Environment none("ROOFTILE_CPU", value);
    EXPECT_STREQ(Queue::cpu().isa(), cpu::name(cpu::best_isa()));
  }
}

TEST(Queue, ThreadsStreamingAndAlignmentDoNotShow) {
  for (const std::int64_t size : {kSmall, kLarge}) {
    const std::int64_t rows = size == kSmall ? 3 : 211;
    const Values x = values(size, 2), expected = softmax_of(queue_of(1), x, rows);
    for (const int threads : {1, 2, 3, 7})
      for (const std::int64_t streaming : {std::int64_t{0}, std::int64_t{1} << 40}) {
        const Queue queue = queue_of(threads, streaming);
        EXPECT_EQ(queue.threads(), threads);
        EXPECT_EQ(queue.streaming_bytes(), streaming);
        EXPECT_TRUE(same_bits(softmax_of(queue, x, rows), expected)) << threads << " threads, " << streaming;
        EXPECT_TRUE(same_bits(softmax_of(queue, x, rows), expected)) << "again";
      }
  }
  const Values x = values(200, 3), expected = softmax_of(queue_of(1), x, 2);
  for (std::size_t offset = 0; offset < 16; ++offset) {
    alignas(64) float in[256], out[256];
    std::memcpy(in + offset, x.data(), 200 * sizeof(float));
    for (const std::int64_t streaming : {std::int64_t{0}, std::int64_t{1} << 40}) {
      ASSERT_TRUE(softmax(queue_of(1, streaming), view(in + offset, {2, 100}),
                          view(out + (offset * 7) % 16, {2, 100})));
      EXPECT_EQ(std::memcmp(out + (offset * 7) % 16, expected.data(), 200 * sizeof(float)), 0) << offset;
    }
  }
}

TEST(Queue, CopiesNameTheSameQueue) {
  const Values x = values(kLarge, 4);
  Queue first = queue_of(2);
  const Values expected = softmax_of(first, x, 211);
  Queue second = first;
  Queue third = queue_of(1);
  third = second;
  Queue& self = third;
  third = self;
  EXPECT_EQ(&first.state(), &third.state());
  Queue moved = std::move(first);
  EXPECT_TRUE(same_bits(softmax_of(moved, x, 211), expected));
  EXPECT_TRUE(same_bits(softmax_of(first, x, 211), expected)) << "a queue moved from stays a queue";
  second = queue_of(3);
  EXPECT_TRUE(same_bits(softmax_of(third, x, 211), expected));
  std::vector<Queue> many(20, third);
  many.clear();
  { const Queue last = third; }
  EXPECT_TRUE(same_bits(softmax_of(third, x, 211), expected));
}

/// Several host threads, each with its own input; whose queue, `queue_for(thread)` says.
template <class QueueFor>
int wrong_results(std::int64_t size, std::int64_t rows, const char* variant, QueueFor queue_for) {
#if defined(ROOFTILE_TEST_TSAN)
  constexpr int kThreads = 4, kCalls = 50;
#else
  constexpr int kThreads = 4, kCalls = 400;
#endif
  std::vector<Values> inputs, expected;
  const Queue alone = queue_of(1);
  for (unsigned t = 0; t < kThreads; ++t) {
    inputs.push_back(values(size, 10 + t));
    expected.push_back(softmax_of(alone, inputs.back(), rows, variant));
  }
  std::atomic<int> wrong{0}, ready{0};
  std::vector<std::thread> hosts;
  for (std::size_t t = 0; t < kThreads; ++t)
    hosts.emplace_back([&, t] {
      const Queue queue = queue_for(t);
      for (++ready; ready < kThreads;) std::this_thread::yield();
      for (int call = 0; call < (size == kSmall ? kCalls : kCalls / 8); ++call)
        wrong += !same_bits(softmax_of(queue, inputs[t], rows, variant), expected[t]);
    });
  for (std::thread& host : hosts) host.join();
  return wrong;
}

TEST(Queue, HostThreadsShareOne) {
  for (const int threads : {1, 2, 7}) {
    const Queue shared = queue_of(threads);
    const auto the_one = [&](std::size_t) { return shared; };
    EXPECT_EQ(wrong_results(kSmall, 3, nullptr, the_one), 0) << threads << " threads, one task";
    EXPECT_EQ(wrong_results(20000, 1, nullptr, the_one), 0) << threads << " threads, one long row";
    EXPECT_EQ(wrong_results(kLarge, 211, nullptr, the_one), 0) << threads << " threads, all of them";
  }
}

TEST(Queue, HostThreadsHaveTheirOwn) {
  const Queue queues[] = {queue_of(1), queue_of(2), queue_of(2), queue_of(3)};
  const auto own = [&](std::size_t t) { return queues[t]; };
  EXPECT_EQ(wrong_results(kSmall, 3, nullptr, own), 0);
  EXPECT_EQ(wrong_results(kLarge, 211, nullptr, own), 0);
  EXPECT_EQ(wrong_results(kLarge, 211, "online", [](std::size_t) { return queue_of(2); }), 0);
}

/// A user's threads: fresh ones for each region, the last task first, and in a mode of floating point of
/// their own.
struct Threads {
  std::atomic<int> regions{0}, tasks{0};
  static void parallel(void* self, int tasks, void (*task)(void*, int), void* context) {
    Threads& it = *static_cast<Threads*>(self);
    ++it.regions;
    std::vector<std::thread> threads;
    for (int i = tasks - 1; i >= 0; --i)
      threads.emplace_back([&it, task, context, i] {
        std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
        _mm_setcsr(_mm_getcsr() | 0x8040);  // FTZ, DAZ
#endif
        ++it.tasks;
        task(context, i);
      });
    for (std::thread& thread : threads) thread.join();
  }
};

TEST(Queue, AnExecutorGivesTheSameBits) {
  for (const int threads : {1, 2, 5}) {
    Threads user;
    Queue queue = queue_of(1);
    {
      const Executor executor{&user, threads,
                              &Threads::parallel};  // copied: need not outlive the queue's making
      queue = Queue::cpu({.executor = &executor});
    }
    ASSERT_TRUE(queue.status()) << queue.status().message();
    EXPECT_EQ(queue.threads(), threads);
    for (const std::int64_t rows : {std::int64_t{3}, std::int64_t{211}}) {
      const Values x = values(rows == 3 ? kSmall : kLarge, 5);
      EXPECT_TRUE(same_bits(softmax_of(queue, x, rows), softmax_of(queue_of(1), x, rows)))
          << threads << " threads";
    }
    EXPECT_EQ(user.regions, 2);
    EXPECT_EQ(user.tasks, 1 + threads);
    EXPECT_EQ(wrong_results(kSmall, 3, nullptr, [&](std::size_t) { return queue; }), 0);
  }
}

TEST(Queue, TheCallersModeOfFloatingPointIsKeptAndDoesNotShow) {
  const Values x = values(kLarge, 6);
  for (const int threads : {1, 3}) {
    // Made in a mode that its threads inherit.
    std::fesetround(FE_UPWARD);
    const Queue queue = queue_of(threads);
    std::fesetround(FE_TONEAREST);
    const Values expected = softmax_of(queue_of(1), x, 211);
    EXPECT_TRUE(same_bits(softmax_of(queue, x, 211), expected));
    int subnormal = 0;
    for (const float y : expected) subnormal += y > 0 && y < 0x1p-126f;
    EXPECT_GT(subnormal, 100) << "what flushing would lose";
    for (const int rounding : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
      Values y(x.size());
#if defined(__x86_64__)
      for (const unsigned flush : {0u, 0x8000u, 0x0040u, 0x8040u}) {
        const unsigned before = _mm_getcsr();
        std::fesetround(rounding);
        _mm_setcsr(_mm_getcsr() | flush);
        const unsigned set = _mm_getcsr();
        const Status s = softmax(queue, view(x.data(), {211, 500}), view(y.data(), {211, 500}));
        const unsigned after = _mm_getcsr();
        std::fesetround(FE_TONEAREST);
        _mm_setcsr(before);
        ASSERT_TRUE(s);
        EXPECT_EQ(after & ~0x3fu, set & ~0x3fu) << "but for the sticky flags";
        EXPECT_TRUE(same_bits(y, expected)) << "rounding " << rounding << " flush " << flush;
      }
#else
      std::fesetround(rounding);
      const Status s = softmax(queue, view(x.data(), {211, 500}), view(y.data(), {211, 500}));
      const int after = std::fegetround();
      std::fesetround(FE_TONEAREST);
      ASSERT_TRUE(s);
      EXPECT_EQ(after, rounding);
      EXPECT_TRUE(same_bits(y, expected)) << "rounding " << rounding;
#endif
    }
  }
}

#if !defined(ROOFTILE_TEST_TSAN)  // which knows no threads after a fork
TEST(Queue, WorksInAForkedChild) {
  for (const int threads : {1, 2, 7}) {
    const Queue queue = queue_of(threads);
    const Values x = values(kLarge, 7), small = values(kSmall, 8);
    const Values expected = softmax_of(queue, x, 211), expected_small = softmax_of(queue, small, 3);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);  // a hang ends here
      bool right = same_bits(softmax_of(queue, small, 3), expected_small);
      for (int call = 0; call < 20; ++call) right = right && same_bits(softmax_of(queue, x, 211), expected);
      const Queue own = Queue::cpu({.threads = 2});
      right = right && same_bits(softmax_of(own, x, 211), expected);
      _exit(right ? 0 : 1);
    }
    EXPECT_TRUE(same_bits(softmax_of(queue, x, 211), expected)) << "the parent goes on";
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << threads << " threads: status " << status;
  }
}
#endif

}  // namespace
}  // namespace rooftile
