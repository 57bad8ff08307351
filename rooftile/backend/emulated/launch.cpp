// A launch: checks the geometry, takes a runner from the pool for each host thread, and hands out clusters in
// order.
#include <pthread.h>

#include <algorithm>
#include <new>
#include <system_error>
#include <thread>

#include "rooftile/backend/cpu/fp_mode.h"
#include "rooftile/backend/emulated/controls.h"
#include "rooftile/backend/emulated/state.h"

namespace rooftile::emulated {
namespace {

/// Runners that no launch uses. Their stacks stay mapped: a launch then maps nothing.
class Pool {
 public:
  ~Pool() {
    while (ClusterRunner* c = first_) {
      first_ = c->next;
      delete c;
    }
  }
  ClusterRunner* take() {
    const std::lock_guard lock(mutex_);
    ClusterRunner* c = first_;
    if (c) first_ = c->next;
    return c ? c : new ClusterRunner;
  }
  void put(ClusterRunner* c) {
    const std::lock_guard lock(mutex_);
    c->next = first_;
    first_ = c;
  }
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
  ClusterRunner* first_ = nullptr;
};
Pool pool;
std::mutex one_at_a_time;  // the checked build's observer follows one launch
std::atomic<std::uint64_t> seed_for_all{0};
std::atomic<int> architecture_for_all{0};

// A child that was forked while another thread was in a launch finds both free, and what they guard whole.
void guard_forks() {
  [[maybe_unused]] static const int registered = pthread_atfork(
      [] {
        one_at_a_time.lock();
        pool.lock();
      },
      [] {
        pool.unlock();
        one_at_a_time.unlock();
      },
      [] {
        pool.unlock();
        one_at_a_time.unlock();
      });
}

void work(Launch& launch, int number) {
  const cpu::FpMode mode;
  ClusterRunner* runner = nullptr;
  try {
    runner = pool.take();
    runner->number = number;
    if (Status s = runner->prepare(launch); !s) {
      const std::lock_guard lock(launch.mutex);
      if (!launch.failed) launch.status = s;
      launch.failed = true;
    }
    while (!launch.failed) {
      const unsigned cluster = launch.next_cluster.fetch_add(1);
      if (cluster >= launch.clusters) break;
      launch.running[static_cast<std::size_t>(number)] = cluster;
      runner->run_cluster(cluster);
    }
  } catch (const std::bad_alloc&) {
    const std::lock_guard lock(launch.mutex);
    if (!launch.failed) launch.status = Status::error("emulated: kernel %s: out of memory", launch.name);
    launch.failed = true;
  }
  launch.running[static_cast<std::size_t>(number)] = ~0u;
  if (runner) pool.put(runner);
}

Status check(const Geometry& g, int architecture, const char* name) {
  const auto threads = std::uint64_t{g.block.x} * g.block.y * g.block.z;
  const std::size_t limit = shared_limit(architecture);
  if (limit == 0)
    return Status::error(
        "emulated: kernel %s: there is no sm_%d here; there are sm_70, 75, 80, 86, 87, 89, 90, 100, 120",
        name, architecture);
  if (threads == 0 || threads > kMaxThreads || g.block.z > 64)
    return Status::error(
        "emulated: kernel %s: a block of %ux%ux%u threads; it has 1 to 1024, at most 64 of them in z", name,
        g.block.x, g.block.y, g.block.z);
  const auto blocks = std::uint64_t{g.grid.x} * g.grid.y * g.grid.z;
  if (blocks == 0 || g.grid.x > 0x7fffffffu || g.grid.y > 65535 || g.grid.z > 65535 || blocks > 0xfffffff0u)
    return Status::error(
        "emulated: kernel %s: a grid of %ux%ux%u blocks; each is at least 1, x at most 2147483647, y and z "
        "65535, and there are at most 4294967280 here",
        name, g.grid.x, g.grid.y, g.grid.z);
  if (g.dynamic_shared > limit)
    return Status::error(
        "emulated: kernel %s: %zu bytes of dynamic shared memory; a block of sm_%d has at most %zu", name,
        g.dynamic_shared, architecture, limit);
  if (g.cluster < 1 || g.cluster > kMaxCluster || (g.cluster > 1 && architecture < 90) ||
      g.grid.x % g.cluster != 0)
    return Status::error(
        "emulated: kernel %s: clusters of %u blocks in a grid of %u in x on sm_%d; they have 1 to 16 from "
        "sm_90 "
        "on, and divide the grid",
        name, g.cluster, g.grid.x, architecture);
  return {};
}

}  // namespace

std::size_t shared_limit(int architecture) {  // opt-in bytes for each block, from the CUDA programming guide
  switch (architecture) {
    case 70:
      return 96 << 10;
    case 75:
      return 64 << 10;
    case 80:
    case 87:
      return 163 << 10;
    case 86:
    case 89:
    case 120:
      return 99 << 10;
    case 90:
    case 100:
      return 227 << 10;
    default:
      return 0;
  }
}

Status run(const Geometry& geometry, const Options& options, void (*kernel)(const void*),
           const void* arguments, const char* kernel_name) {
  Launch launch;
  launch.geometry = geometry;
  launch.options = options;
  if (const int wanted = architecture_for_all.load()) launch.options.architecture = wanted;
  launch.kernel = kernel;
  launch.arguments = arguments;
  launch.name = kernel_name ? kernel_name : "kernel";
  launch.seed = options.seed ? options.seed : seed_for_all.load();
  launch.shared_limit = shared_limit(launch.options.architecture);
  if (Status s = check(geometry, launch.options.architecture, launch.name); !s) return s;
  if (current) return Status::error("emulated: kernel %s: launched from within a kernel", launch.name);
  guard_forks();
  const dim3 &g = geometry.grid, &b = geometry.block;
  launch.threads_per_block = b.x * b.y * b.z;
  launch.clusters = static_cast<unsigned>(std::uint64_t{g.x} * g.y * g.z / geometry.cluster);
  launch.running[0] = ~0u;

  if (observer) {
    const std::lock_guard lock(one_at_a_time);
    observer->begin_launch(launch.name, g.x * g.y * g.z);
    work(launch, 0);
    observer->end_launch();
    return launch.status;
  }
  // A host thread costs 30 µs to start and a CUDA thread 10 ns to 100 ns to run: small grids stay where they
  // are.
  constexpr std::uint64_t kThreadsWorthAHost = 16'384;
  const auto all = std::uint64_t{launch.clusters} * geometry.cluster * launch.threads_per_block;
  const auto most =
      std::min<std::uint64_t>({std::uint64_t(std::max(options.threads, 1)), launch.running.size(),
                               launch.clusters, all / kThreadsWorthAHost});
  launch.runners = static_cast<int>(std::max<std::uint64_t>(most, 1));
  for (int i = 1; i < launch.runners; ++i) launch.running[static_cast<std::size_t>(i)] = ~0u;
  std::vector<std::thread> helpers;
  try {
    for (int i = 1; i < launch.runners; ++i) helpers.emplace_back([&launch, i] { work(launch, i); });
  } catch (const std::system_error&) {  // fewer hands, the same work
  }
  work(launch, 0);
  for (std::thread& helper : helpers) helper.join();
  return launch.status;
}

namespace steering {
void set_seed(std::uint64_t seed) { seed_for_all = seed; }
void set_architecture(int architecture) { architecture_for_all = architecture; }
}  // namespace steering

}  // namespace rooftile::emulated
