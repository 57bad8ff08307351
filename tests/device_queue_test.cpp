// Queues of GPUs and of the emulated device, as a caller sees them.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "rooftile/core/op.h"
#include "rooftile/harness/bench/bench_gpu.h"
#include "rooftile/harness/check/runner.h"
#include "rooftile/rooftile.h"
#include "tests/mixed_calls.h"

namespace rooftile {
namespace {

/// By the build's word, not by trying: a device that fails must not pass for one that is absent.
constexpr bool kEmulatedIsBuilt = ROOFTILE_TEST_EMULATED;

std::vector<float> softmax_of(const Queue& queue, const std::vector<float>& x, std::int64_t columns) {
  std::vector<float> y(x.size(), NAN);
  const auto rows = static_cast<std::int64_t>(x.size()) / columns;
  const Status s = softmax(queue, view(x.data(), {rows, columns}), view(y.data(), {rows, columns}));
  EXPECT_TRUE(s) << s.message();
  return y;
}
std::vector<float> numbers(std::size_t count) {
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<float>(i * 7919 % 1013) / 100 - 5;
  return x;
}

TEST(DeviceQueue, TellsWhatItIs) {
  EXPECT_EQ(Queue::cpu({.threads = 1}).device(), Device::cpu);
  EXPECT_EQ(Queue::cpu({.threads = 1}).architecture(), 0);
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  const Queue queue = Queue::emulated({.architecture = 86, .threads = 2});
  EXPECT_EQ(queue.device(), Device::emulated);
  EXPECT_STREQ(queue.isa(), "sm_86");
  EXPECT_EQ(queue.architecture(), 86);
  EXPECT_STREQ(queue.isa_reason(), "emulated by 2 host threads");
  EXPECT_EQ(queue.threads(), 2);
}

/// Children forked while another thread is in a call, which each use that thread's queue and make one.
void fork_during_calls(const EmulatedOptions& options) {
  const Queue queue = Queue::emulated(options);
  ASSERT_TRUE(queue.status()) << queue.status().message();
  const std::vector<float> x = numbers(20000), expected = softmax_of(queue, x, 100);
  std::atomic<bool> stop{false};
  std::atomic<int> calls{0};
  std::thread other([&] {
    while (!stop) {
      softmax_of(queue, x, 100);
      ++calls;
    }
  });
  while (calls == 0) std::this_thread::yield();
  for (int i = 0; i < 5; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);  // a hang ends here
      _exit(softmax_of(queue, x, 100) == expected && softmax_of(Queue::emulated(options), x, 100) == expected
                ? 0
                : 1);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  }
  stop = true;
  other.join();
}

TEST(DeviceQueue, WorksInAChildForkedDuringACall) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  fork_during_calls({.threads = 2});
  if (ROOFTILE_TEST_CHECKED) fork_during_calls({.threads = 2, .checked = true});
}

TEST(DeviceQueue, ComputesAsTheCpuDoes) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  for (std::int64_t columns : {1, 30, 256, 1000, 4096, 9001, 40000}) {
    const std::vector<float> x = numbers(static_cast<std::size_t>(3 * columns));
    const std::vector<float> cpu = softmax_of(Queue::cpu({.threads = 1}), x, columns);
    for (int architecture : {80, 86, 90}) {  // the last one has clusters
      const std::vector<float> gpu = softmax_of(Queue::emulated({.architecture = architecture}), x, columns);
      for (std::size_t i = 0; i < x.size(); ++i)
        ASSERT_NEAR(gpu[i], cpu[i], 1e-5f * cpu[i])
            << columns << " columns, element " << i << ", architecture " << architecture;
    }
  }
}

TEST(DeviceQueue, HasTheSameBitsInAnyOrderOfThreads) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  const std::vector<float> x = numbers(5 * 3000);
  const std::vector<float> first = softmax_of(Queue::emulated({.threads = 1}), x, 3000);
  for (std::uint64_t seed = 1; seed < 6; ++seed) {
    const std::vector<float> again = softmax_of(Queue::emulated({.threads = 3, .seed = seed}), x, 3000);
    EXPECT_EQ(std::memcmp(first.data(), again.data(), first.size() * sizeof(float)), 0) << "seed " << seed;
  }
}

/// Their sums' order shows in the last bits. Of more than 8192 elements a warp does the work of four where a
/// row begins at a boundary.
TEST(DeviceQueue, RowsFarFromZeroHaveTheSameBitsAtAnyAlignment) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  const Queue queue = Queue::emulated({.threads = 1});
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.5f);
  const auto at = [](std::vector<float>& v, int offset) {  // so many elements behind a 16-byte boundary
    const auto past = reinterpret_cast<std::uintptr_t>(v.data()) / sizeof(float) % 4;
    return v.data() + (4 - past) % 4 + offset;
  };
  for (int turn = 0; turn < 60; ++turn) {
    const std::int64_t columns = std::array{8192, 8200, 8704, 12000}[static_cast<std::size_t>(turn) % 4];
    std::vector<float> x(static_cast<std::size_t>(columns) + 8), moved(x), y(x), moved_y(x);
    for (std::int64_t i = 0; i < columns; ++i)
      at(moved, 1)[i] = at(x, 0)[i] = 1900 + (i % 1024 < 128 && i / 4 % 8 == 0 ? 50.f : 0.f) + normal(random);
    for (const auto& [from, to] : {std::pair{at(x, 0), at(y, 0)}, {at(moved, 1), at(moved_y, 1)}})
      ASSERT_TRUE(layer_norm(queue, {.x = view(static_cast<const float*>(from), {1, columns})},
                             {.y = view(to, {1, columns})}));
    ASSERT_EQ(std::memcmp(at(y, 0), at(moved_y, 1), static_cast<std::size_t>(columns) * sizeof(float)), 0)
        << "turn " << turn << ", " << columns << " columns";
  }
}

/// Teams that share a block add their sums there; elsewhere the kernel that adds the blocks does, in the same
/// order.
TEST(DeviceQueue, GradientsHaveTheSameBitsAtAnyAlignment) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  const Queue queue = Queue::emulated({.threads = 2});
  constexpr std::int64_t kRows = 4111, kColumns = 520, kAll = kRows * kColumns;
  std::vector<float> x = numbers(kAll + 4), dy = numbers(kAll + 4), dx(kAll), mean(kRows), rstd(kRows, 1);
  const auto gradients = [&](int offset) {
    float *moved_x = x.data() + offset, *moved_dy = dy.data() + offset;
    if (offset > 0) {
      std::memmove(moved_x, x.data(), kAll * sizeof(float));
      std::memmove(moved_dy, dy.data(), kAll * sizeof(float));
    }
    std::vector<float> both(2 * kColumns);
    const LayerNormBackwardInputs in{.x = view(static_cast<const float*>(moved_x), {kRows, kColumns}),
                                     .dy = view(static_cast<const float*>(moved_dy), {kRows, kColumns}),
                                     .mean = view(static_cast<const float*>(mean.data()), {kRows}),
                                     .rstd = view(static_cast<const float*>(rstd.data()), {kRows})};
    const LayerNormBackwardOutputs out{.dx = view(dx.data(), {kRows, kColumns}),
                                       .dweight = view(both.data(), {kColumns}),
                                       .dbias = view(both.data() + kColumns, {kColumns})};
    std::size_t bytes = 0;
    EXPECT_TRUE(layer_norm_backward_workspace(queue, in, out, bytes));
    std::vector<float> memory(bytes / sizeof(float) + 16);
    const auto past = reinterpret_cast<std::uintptr_t>(memory.data()) % 64 / sizeof(float);
    const Status s = layer_norm_backward(queue, in, out, {}, {memory.data() + (16 - past) % 16, bytes});
    EXPECT_TRUE(s) << s.message();
    return both;
  };
  const std::vector<float> expected = gradients(0), moved = gradients(1);
  EXPECT_EQ(std::memcmp(expected.data(), moved.data(), expected.size() * sizeof(float)), 0);
}

TEST(DeviceQueue, TakesCallsFromSeveralThreads) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  const Queue queue = Queue::emulated({.threads = 2});
  const std::vector<float> x = numbers(4 * 600), expected = softmax_of(queue, x, 600);
  std::vector<std::vector<float>> got(3);
  std::vector<std::thread> threads;
  for (std::vector<float>& y : got)
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) y = softmax_of(queue, x, 600);
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& y : got)
    EXPECT_EQ(std::memcmp(expected.data(), y.data(), y.size() * sizeof(float)), 0);
}

/// A dot is two launches, and what passes between them lies in memory that is the queue's.
TEST(DeviceQueue, KeepsTheLaunchesOfCallsFromSeveralThreadsApart) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  const Queue queue = Queue::emulated({.threads = 1});
  constexpr std::int64_t kCount = 50000;
  const std::vector<float> x = numbers(kCount);
  const std::vector<float> ones(kCount, 1), twos(kCount, 2);
  const std::vector<float>* others[] = {&ones, &twos, &x};
  std::thread threads[3];
  for (int t = 0; t < 3; ++t)
    threads[t] = std::thread([&, t] {
      const auto dot_now = [&] {
        double result = NAN;
        const Status s =
            dot(queue, view(x.data(), {kCount}), view(others[t]->data(), {kCount}), scalar_view(&result));
        EXPECT_TRUE(s) << s.message();
        return result;
      };
      double expected = 0;
      for (std::size_t i = 0; i < x.size(); ++i) expected += double(x[i]) * double((*others[t])[i]);
      for (int i = 0; i < 30; ++i)
        EXPECT_NEAR(dot_now(), expected, 1e-6 * std::fabs(expected)) << "thread " << t;
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(DeviceQueue, TwoThreadsOnTwoQueuesAgreeBitwiseWithOne) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  std::vector<char> one[2], got[2];
  const auto work_of = [](int seed) {
    const Queue queue = Queue::emulated({.threads = 2});
    const mixed::Work work(20, 2500);
    work.fill(seed);
    const Status s = work.run(queue);
    EXPECT_TRUE(s) << s.message();
    return work.bits();
  };
  for (int t = 0; t < 2; ++t) one[t] = work_of(t);
  EXPECT_FALSE(one[0] == one[1]) << "other inputs must give other results";
  std::thread threads[2];
  for (int t = 0; t < 2; ++t)
    threads[t] = std::thread([&, t] {
      for (int i = 0; i < 6; ++i) {
        got[t] = work_of(t);
        EXPECT_TRUE(got[t] == one[t]) << "thread " << t << ", run " << i;
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(DeviceQueue, RefusesWithASentence) {
  const auto message = [](const Queue& queue) { return std::string(queue.status().message()); };
  EXPECT_EQ(message(Queue::emulated({.architecture = 75})),
            "Queue::emulated: architecture is 75, must be 80, 86, 89 or 90");
  EXPECT_EQ(message(Queue::emulated({.threads = -1})),
            "Queue::emulated: threads is -1, must be 0 (all that may be used) to 1024");
  const std::string missing = message(Queue::cuda({.plugin_folder = "/nowhere"}));
  EXPECT_EQ(missing.rfind("/nowhere/rooftile-cuda.so: no such plug-in", 0), 0u) << missing;
  const Queue broken = Queue::emulated({.plugin_folder = "/nowhere"});
  float x = 1, y = 0;
  const Status s = softmax(broken, view(&x, {1}), view(&y, {1}));
  EXPECT_STREQ(s.message(), broken.status().message());
}

TEST(DeviceQueue, RefusesVariantsThatAGpuDoesNotHave) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  const float x[4] = {1, 2, 3, 4};
  float y[4];
  const Status s =
      softmax(Queue::emulated(), view(x, {1, 4}), view(y, {1, 4}), {.variant = "04_accumulators"});
  EXPECT_STREQ(s.message(), "softmax: variant \"04_accumulators\" is not part of plug-in emulated");
}

TEST(DeviceQueue, RefusesDtypesThatCpusAloneTake) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  const double x[4] = {1, 2, 3, 4};
  double y[4];
  EXPECT_STREQ(relu(Queue::emulated(), view(x, {1, 4}), view(y, {1, 4})).message(),
               "relu: x is 1x4 f64, which CPUs alone take; on a GPU it must be one of f32, f16, bf16");
  EXPECT_TRUE(relu(Queue::cpu(), view(x, {1, 4}), view(y, {1, 4})));
  EXPECT_STREQ(softmax(Queue::emulated(), view(x, {1, 4}), view(y, {1, 4})).message(),
               "softmax: x is 1x4 f64, which CPUs alone take; on a GPU it must be one of f32, f16, bf16");
  EXPECT_TRUE(softmax(Queue::cpu(), view(x, {1, 4}), view(y, {1, 4})));
}

TEST(GpuLadder, IsInTheGpusPluginsAndInNoOther) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  const Queue cpu = Queue::cpu({.threads = 1}), gpu = Queue::emulated({.threads = 1});
  int rungs = 0;
  for (const Op* op : all_ops())
    for (std::size_t v = 0; v < op->variants.size(); ++v) {
      const Variant& variant = op->variants[v];
      if (variant.role != Role::rung && variant.role != Role::gpu_rung) continue;
      const bool is_gpus = variant.role == Role::gpu_rung;
      rungs += is_gpus;
      EXPECT_EQ(harness::has_variant(gpu, *op, v), is_gpus) << op->function << " " << variant.name;
      EXPECT_EQ(harness::has_variant(cpu, *op, v), !is_gpus) << op->function << " " << variant.name;
    }
  EXPECT_GE(rungs, 15);
}
TEST(GpuLadder, IsMeasuredUpwardsAndEndsWithTheLibrary) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  harness::BenchOptions options;
  options.functions = {"add"};
  options.dtypes = {DType::bf16, DType::f32};  // rungs take f32
  options.shapes = {{4096}};
  options.scope = harness::Scope::full;
  const auto record = harness::bench_gpu(options, Queue::emulated({.threads = 1}));
  EXPECT_TRUE(record.at("errors").empty()) << record.at("errors");
  std::vector<std::string> ladder;
  for (const auto& row : record.at("results")) {
    EXPECT_EQ(row.contains("rung"), row.at("group") == "ladder");
    if (!row.contains("rung")) continue;
    ladder.push_back(row.at("variant"));
    EXPECT_EQ(row.at("rung"), ladder.size());
    EXPECT_EQ(row.at("dtype"), "f32");
    EXPECT_NE(row.at("title"), "");
  }
  EXPECT_EQ(ladder, (std::vector<std::string>{"01_one_element", "02_grid_stride", "03_vector_loads",
                                              "04_in_flight", "tile"}));
}

}  // namespace
}  // namespace rooftile
