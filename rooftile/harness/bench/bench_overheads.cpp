// What a call costs beside its kernel, and a parallel region beside its work.
#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "rooftile/harness/bench/bench_row.h"
#include "rooftile/harness/signature_spec.h"
#include "rooftile/runtime/queue_state.h"

namespace rooftile::harness {
namespace {

using nlohmann::json;

constexpr int kSamples = 201, kMaxCalls = 200;
// ns: of a sample, and of all. Where something else has the cores, one handshake may take a scheduler's 4 ms.
constexpr double kSample = 50'000;
constexpr std::int64_t kDeadline = 150'000'000;

/// One call's time in ns, of many samples of many calls.
template <class Call>
Samples time_calls(Call call) {
  const auto time = [&](int calls) {
    const std::int64_t start = now_ns();
    for (int k = 0; k < calls; ++k) call();
    return (static_cast<double>(now_ns() - start) - clock_floor_ns()) / calls;
  };
  const std::int64_t end = now_ns() + kDeadline;
  double once = 1e9;
  for (int i = 0; i < 5 && now_ns() < end; ++i) once = std::min(once, time(1));
  const int calls = std::clamp(static_cast<int>(kSample / std::max(once, 1.0)), 1, kMaxCalls);
  Samples ns;
  for (int i = 0; i < kSamples && (i < 3 || now_ns() < end); ++i) {
    call();
    ns.add(time(calls));
  }
  return ns;
}

/// Stands in for a kernel: keeps what it was called with, and how long that kernel takes when called
/// directly.
struct Probe {
  Kernel kernel = nullptr;
  Samples ns;
};
thread_local Probe* probe = nullptr;
Status probe_kernel(const void* launch, const void* problem) {
  probe->ns = time_calls([&] { (void)probe->kernel(launch, problem).ok(); });
  return {};
}

json call_overhead(const Queue& queue) {
  constexpr std::int64_t kColumns = 16;
  // Apart: a whole tile's masked load of x would wait for the last call's store to y, were that right behind
  // it.
  alignas(64) std::array<float, 1024> memory{};
  float* const x = memory.data();
  float* const y = memory.data() + 512 + kColumns;
  for (std::int64_t i = 0; i < kColumns; ++i) x[i] = 0.25f * static_cast<float>(i) - 2;
  const Op* op = find_op("softmax");
  if (!op) return nullptr;  // a build without it
  const std::vector<ConstView> views = {view(x, {1, kColumns}), view(y, {1, kColumns})};
  const auto call = [&] { return call_with_defaults(queue, *op, views); };
  if (!call()) return nullptr;
  Queue::State& state = queue.state();
  const Backend* const backend = state.backend;
  Probe here;
  Backend probing = *backend;
  here.kernel = backend->entries[static_cast<std::size_t>(op->slot)].kernel;
  probing.entries[static_cast<std::size_t>(op->slot)].kernel = probe_kernel;
  probe = &here;
  state.backend = &probing;
  const bool probed = call().ok();
  state.backend = backend;
  probe = nullptr;
  if (!probed || here.ns.size() == 0) return nullptr;
  const Samples whole = time_calls([&] { (void)call().ok(); });
  return {{"name", "call"},
          {"what", "softmax of 1x16 f32 through the public function, less its kernel called directly"},
          {"threads", queue.threads()},
          {"isa", queue.isa()},
          {"ns", whole.median() - here.ns.median()},
          {"whole_ns", whole.median()},
          {"kernel_ns", here.ns.median()},
          {"n", whole.size()}};
}

/// The least that two threads can do to say "go" and "done": one store each, in cache lines of their own.
Samples bare_handshake() {
  struct alignas(128) Word {
    std::atomic<std::uint32_t> value{0};
  };
  Word go, done;
  constexpr std::uint32_t kEnd = 0xffffffff;
  std::thread other([&] {
    for (std::uint32_t round = 1;; ++round) {
      std::uint32_t seen;
      while ((seen = go.value.load(std::memory_order_acquire)) != round && seen != kEnd) {
      }
      if (seen == kEnd) return;
      done.value.store(round, std::memory_order_release);
    }
  });
  std::uint32_t round = 0;
  Samples ns = time_calls([&] {
    go.value.store(++round, std::memory_order_release);
    while (done.value.load(std::memory_order_acquire) != round) {
    }
  });
  go.value.store(kEnd, std::memory_order_release);
  other.join();
  return ns;
}

json region(const Queue& queue) {
  const CpuLaunch& launch = queue.state().launch;
  const Samples ns = time_calls([&] {
    launch.parallel(
        launch.executor, launch.threads, [](void*, int) {}, nullptr);
  });
  json line = {{"name", "region"},          {"what", "an empty parallel region over warm threads"},
               {"threads", launch.threads}, {"isa", queue.isa()},
               {"ns", ns.median()},         {"p5_ns", ns.p5()},
               {"p95_ns", ns.p95()},        {"n", ns.size()}};
  if (launch.threads > 1) line["handshake_ns"] = bare_handshake().median();
  return line;
}

}  // namespace

json measure_overheads(const Queue& one, const Queue& all) {
  json list = json::array();
  if (json line = call_overhead(one); !line.is_null()) list.push_back(std::move(line));
  list.push_back(region(all));
  return list;
}

}  // namespace rooftile::harness
