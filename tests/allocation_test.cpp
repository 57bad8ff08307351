// No call of the library allocates once its queue exists; and a queue that cannot get memory says so.
// Every allocation of the program passes the functions below: C++'s operators end in malloc.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "rooftile/ops/softmax/softmax.h"

// Sanitizers bring allocators of their own.
#if defined(__GLIBC__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#if defined(__has_feature)
#if !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer)
#define ROOFTILE_TEST_COUNTS
#endif
#else
#define ROOFTILE_TEST_COUNTS
#endif
#endif

#if defined(ROOFTILE_TEST_COUNTS)
namespace {
std::atomic<long> allocations{0};  // on all threads
std::atomic<long> granted{-1};     // this many more succeed; -1: all
bool refused() {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (granted.load(std::memory_order_relaxed) < 0) return false;
  if (granted.fetch_sub(1, std::memory_order_relaxed) > 0) return false;
  granted = 0;
  errno = ENOMEM;  // glibc's own callers look at it
  return true;
}
}  // namespace

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t size) { return refused() ? nullptr : __libc_malloc(size); }
void* calloc(std::size_t count, std::size_t size) { return refused() ? nullptr : __libc_calloc(count, size); }
void* realloc(void* p, std::size_t size) { return refused() ? nullptr : __libc_realloc(p, size); }
void* memalign(std::size_t alignment, std::size_t size) {
  return refused() ? nullptr : __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) { return memalign(alignment, size); }
int posix_memalign(void** p, std::size_t alignment, std::size_t size) {
  *p = memalign(alignment, size);
  return *p ? 0 : ENOMEM;
}
}

namespace rooftile {
namespace {

/// Allocations while `body` runs.
template <class Body>
long during(Body body) {
  const long before = allocations.load();
  body();
  return allocations.load() - before;
}

TEST(Allocation, IsCounted) {
  EXPECT_EQ(during([] { ::operator delete(::operator new(4)); }), 1);
  EXPECT_EQ(
      during([] { ::operator delete (::operator new (64, std::align_val_t{64}), std::align_val_t{64}); }), 1);
  EXPECT_EQ(during([] { std::vector<int>(1000); }), 1);
  EXPECT_EQ(during([] { std::free(std::calloc(3, 5)); }), 1);
  EXPECT_GT(during([] { (void)Queue::cpu({.threads = 2}); }), 2);
}

/// Layouts of a 6 x 130 tensor in a buffer of 4000 elements.
template <class T>
std::vector<std::pair<const char*, View>> layouts(T* p) {
  return {{"dense", view(p, {6, 130})},
          {"offset", view(p + 1, {6, 130})},
          {"padded", view(p, {6, 130}, {137, 1})},
          {"strided", view(p, {6, 130}, {300, 2})},
          {"reversed", view(p + 1000, {6, 130}, {-130, -1})},
          {"transposed", view(p, {6, 130}, {1, 6})},
          {"four dimensions", view(p, {2, 3, 1, 130}, {400, 131, 1, 1})},
          {"one row", view(p, {1000})},
          {"one element", view(p, {1})},
          {"empty", view(p, {5, 0})},
          {"none", view(p, {0, 5})}};
}

template <class T>
void expect_no_allocation(const Queue& queue, const char* dtype) {
  std::vector<T> a(4000), b(4000), c(4000);
  const auto xs = layouts(a.data()), ys = layouts(b.data()), zs = layouts(c.data());
  for (std::size_t l = 0; l < xs.size(); ++l)
    for (const char* variant : {static_cast<const char*>(nullptr), "online", "tile"})
      for (const bool log : {false, true}) {
        const SoftmaxOptions options{.scale = .5f, .log = log, .variant = variant};
        bool ran = false, ran_back = false;
        EXPECT_EQ(during([&] { ran = softmax(queue, xs[l].second, ys[l].second, options).ok(); }), 0)
            << dtype << " " << xs[l].first;
        EXPECT_EQ(during([&] { ran = ran && softmax(queue, ys[l].second, ys[l].second, options).ok(); }), 0)
            << "in place";
        const SoftmaxOptions standard{.log = log};
        EXPECT_EQ(during([&] {
                    ran_back =
                        softmax_backward(queue, xs[l].second, ys[l].second, zs[l].second, standard).ok();
                  }),
                  0)
            << dtype << " " << xs[l].first;
        EXPECT_TRUE(ran && ran_back) << dtype << " " << xs[l].first;
      }
}

TEST(Allocation, NoneInACallOfAnyLayout) {
  for (const int threads : {1, 2, 5})
    for (const std::int64_t streaming : {std::int64_t{0}, std::int64_t{1} << 40}) {
      const Queue queue = Queue::cpu({.threads = threads, .streaming_bytes = streaming});
      ASSERT_TRUE(queue.status()) << queue.status().message();
      expect_no_allocation<float>(queue, "f32");
      expect_no_allocation<f16>(queue, "f16");
      expect_no_allocation<bf16>(queue, "bf16");
      // Enough for all threads, broadcast, and longer than what is held.
      std::vector<float> x(400 * 1000), y(400 * 1000);
      EXPECT_EQ(during([&] {
                  (void)softmax(queue, view(x.data(), {400, 1000}), view(y.data(), {400, 1000}));
                  (void)softmax(queue, view(x.data(), {400, 1000}, {0, 1}), view(y.data(), {400, 1000}));
                  (void)softmax(queue, view(x.data(), {4, 100000}), view(y.data(), {4, 100000}));
                }),
                0);
    }
}

TEST(Allocation, NoneInACallThatIsRefused) {
  const Queue queue = Queue::cpu({.threads = 2}), bad = Queue::cpu({.threads = -1});
  float x[64] = {}, y[64] = {};
  const View a = view(x, {2, 3}), b = view(y, {2, 3});
  int refused_calls = 0;
  EXPECT_EQ(during([&] {
              const auto call = [&](const Queue& q, const ConstView& in, const View& out,
                                    const char* variant = nullptr) {
                refused_calls += !softmax(q, in, out, {.variant = variant});
                refused_calls += !softmax_backward(q, in, in, out, {.variant = variant});
              };
              call(bad, a, b);
              call(queue, {}, b);
              call(queue, a, view(y, {2, 4}));
              call(queue, a, view(reinterpret_cast<double*>(y), {2, 3}));
              call(queue, a, view(reinterpret_cast<f16*>(y), {2, 3}));
              call(queue, view(static_cast<float*>(nullptr), {2, 3}), b);
              call(queue, a, view(y, {2, 3}, {0, 1}));
              call(queue, a, view(x + 1, {2, 3}));
              call(queue, view(x, {-2, 3}), view(y, {-2, 3}));
              call(queue, a, b, "none");
              call(queue, scalar_view(x), scalar_view(y));
            }),
            0);
  EXPECT_EQ(refused_calls, 22);
}

TEST(Allocation, AQueueWithoutMemorySaysSo) {
  const std::string libraries = std::filesystem::path(ROOFTILE_TEST_LIBRARIES).string();
  int refusals = 0, made = 0;
  // With the plug-in loaded by an earlier queue, then by a path not seen before, so that it is loaded anew.
  for (const bool anew : {false, true})
    for (long most = 0; most < 100; ++most) {
      std::string folder = libraries;
      for (long i = 0; anew && i <= most; ++i) folder += "/.";
      bool ok = true;
      Status status, called;
      float x[4] = {}, y[4] = {};
      granted = most;
      {
        const Queue queue = Queue::cpu({.threads = 3, .plugin_folder = anew ? folder.c_str() : nullptr});
        status = queue.status();
        called = softmax(queue, view(x, {4}), view(y, {4}));
        ok = called.ok() == status.ok() && std::strcmp(status.message(), called.message()) == 0;
      }
      granted = -1;
      EXPECT_TRUE(ok) << most << ": " << status.message() << "; " << called.message();
      EXPECT_NE(status.ok(), std::strlen(status.message()) > 10);
      refusals += !status;
      made += status.ok();
    }
  EXPECT_GT(refusals, 3);
  EXPECT_GT(made, 50);
  EXPECT_TRUE(Queue::cpu({.threads = 2}).status());
}

}  // namespace
}  // namespace rooftile
#else
TEST(Allocation, IsCounted) { GTEST_SKIP() << "this build's allocator cannot be counted"; }
#endif
