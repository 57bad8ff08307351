// The public API on a GPU as programs use it: captured in a CUDA graph, from several threads, on several
// streams. Needs librooftile.so, its plug-ins and a GPU; skipped with a sentence where there is none.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/mixed_calls.h"

namespace rooftile {
namespace {

using mixed::Values;
using mixed::Work;

constexpr std::int64_t kRows = 61, kColumns = 4096;

/// Memory that host and device see, so that a test reads as on a CPU.
const bool kManaged = [] {
  mixed::memory = {[](std::size_t bytes) {
                     void* data = nullptr;
                     return cudaMallocManaged(&data, bytes) == cudaSuccess ? data : nullptr;
                   },
                   [](void* data) { cudaFree(data); }};
  return true;
}();

#define ASSERT_CUDA(call)                                         \
  do {                                                            \
    const cudaError_t error_ = (call);                            \
    ASSERT_EQ(error_, cudaSuccess) << cudaGetErrorString(error_); \
  } while (false)

/// Why there is nothing to run on, by the runtime's word: a queue that fails must not pass for an absent GPU.
std::string no_gpu() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess) return cudaGetErrorString(error);
  return devices > 0 ? "" : "there is no GPU";
}

#define SKIP_WITHOUT_GPU() \
  if (const std::string why = no_gpu(); !why.empty()) GTEST_SKIP() << why

struct Stream {
  cudaStream_t stream = nullptr;
  Stream() { cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking); }
  ~Stream() { cudaStreamDestroy(stream); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
};

/// The same work, call by call, on a stream of its own.
std::vector<char> expected(int seed) {
  const Stream stream;
  const Queue queue = Queue::cuda({.stream = stream.stream});
  const Work work(kRows, kColumns);
  if (!work.there()) return {};
  work.fill(seed);
  const Status s = work.run(queue);
  EXPECT_TRUE(s) << s.message();
  EXPECT_EQ(cudaStreamSynchronize(stream.stream), cudaSuccess);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(std::isfinite(work.dots.data()[i])) << "dot " << i;
  return work.bits();
}

/// And on the CPU, whose sums have another order.
void expect_as_on_cpu(const Work& work, int seed) {
  const Work cpu(kRows, kColumns);
  cpu.fill(seed);
  const Status s = cpu.run(Queue::cpu());
  ASSERT_TRUE(s) << s.message();
  for (std::size_t v = 0; v < work.results().size(); ++v) {
    const float* ours = work.results()[v]->data();
    const float* theirs = cpu.results()[v]->data();
    for (std::int64_t i = 0; i < cpu.results()[v]->count(); ++i)
      ASSERT_NEAR(ours[i], theirs[i], 2e-5f * (1 + std::fabs(theirs[i])))
          << "result " << v << ", element " << i;
  }
}

TEST(CudaGraph, OfTwentyCallsReplaysWithTheRightResults) {
  SKIP_WITHOUT_GPU();
  const Stream stream;
  const Queue queue = Queue::cuda({.stream = stream.stream});
  const Work work(kRows, kColumns);
  ASSERT_TRUE(work.there());
  work.fill(0);
  const Status before = work.run(queue);  // a device's first launch may allocate
  ASSERT_TRUE(before) << before.message();
  ASSERT_CUDA(cudaStreamSynchronize(stream.stream));

  cudaGraph_t graph = nullptr;
  cudaGraphExec_t instance = nullptr;
  ASSERT_CUDA(cudaStreamBeginCapture(stream.stream, cudaStreamCaptureModeGlobal));
  const Status captured = work.run(queue);
  ASSERT_CUDA(cudaStreamEndCapture(stream.stream, &graph));
  ASSERT_TRUE(captured) << captured.message();
  std::size_t nodes = 0;
  ASSERT_CUDA(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_GE(nodes, static_cast<std::size_t>(Work::kCalls));
  ASSERT_CUDA(cudaGraphInstantiate(&instance, graph, 0));
  for (int replay = 1; replay <= 3; ++replay) {
    work.poison();
    work.fill(replay);
    ASSERT_CUDA(cudaGraphLaunch(instance, stream.stream));
    ASSERT_CUDA(cudaStreamSynchronize(stream.stream));
    EXPECT_TRUE(work.bits() == expected(replay)) << "replay " << replay;
    expect_as_on_cpu(work, replay);
  }
  cudaGraphExecDestroy(instance);
  cudaGraphDestroy(graph);
}

TEST(CudaThreads, TwoOnTwoStreamsAgreeBitwiseWithOne) {
  SKIP_WITHOUT_GPU();
  const std::vector<char> one[2] = {expected(11), expected(12)};
  std::vector<char> got[2];
  std::thread threads[2];
  for (int t = 0; t < 2; ++t)
    threads[t] = std::thread([&, t] {
      const Stream stream;
      const Queue queue = Queue::cuda({.stream = stream.stream});
      const Work work(kRows, kColumns);
      if (!work.there()) return;
      for (int i = 0; i < 10; ++i) {
        work.fill(11 + t);
        const Status s = work.run(queue);
        EXPECT_TRUE(s) << s.message();
        EXPECT_EQ(cudaStreamSynchronize(stream.stream), cudaSuccess);
        const std::vector<char> now = work.bits();
        EXPECT_TRUE(i == 0 || now == got[t]) << "thread " << t << ", run " << i;
        got[t] = now;
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < 2; ++t) EXPECT_TRUE(got[t] == one[t]) << "thread " << t;
}

TEST(CudaQueues, SeveralAtOnceKeepTheirStreamsApart) {
  SKIP_WITHOUT_GPU();
  constexpr int kQueues = 4;
  const auto at = [](int q) { return static_cast<std::size_t>(q); };
  const Stream streams[kQueues];
  std::vector<std::unique_ptr<Work>> work;
  std::vector<Queue> queues;
  for (const Stream& stream : streams) queues.push_back(Queue::cuda({.stream = stream.stream}));
  for (int q = 0; q < kQueues; ++q) {
    work.push_back(std::make_unique<Work>(kRows, kColumns));
    ASSERT_TRUE(work.back()->there());
    work.back()->fill(20 + q);
  }
  for (int q = 0; q < kQueues; ++q) {  // none waits for another
    const Status s = work[at(q)]->run(queues[at(q)]);
    ASSERT_TRUE(s) << s.message();
  }
  ASSERT_CUDA(cudaDeviceSynchronize());
  for (int q = 0; q < kQueues; ++q) EXPECT_TRUE(work[at(q)]->bits() == expected(20 + q)) << "queue " << q;
}

TEST(CudaQueues, LeaveTheCurrentDeviceAsItWas) {
  SKIP_WITHOUT_GPU();
  int devices = 0;
  ASSERT_CUDA(cudaGetDeviceCount(&devices));
  const std::vector<char> first = expected(30);
  for (int device = 0; device < devices; ++device) {
    const Queue queue = Queue::cuda({.device = device});
    const Work work(kRows, kColumns);
    work.fill(30);
    const Status s = work.run(queue);
    ASSERT_TRUE(s) << s.message();
    int current = -1;
    ASSERT_CUDA(cudaGetDevice(&current));
    EXPECT_EQ(current, 0) << "after calls on device " << device;
    ASSERT_CUDA(cudaSetDevice(device));
    ASSERT_CUDA(cudaDeviceSynchronize());
    ASSERT_CUDA(cudaSetDevice(0));
    EXPECT_TRUE(work.bits() == first) << "device " << device << " gives other bits than device 0";
  }
}

}  // namespace
}  // namespace rooftile
