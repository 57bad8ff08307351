#include "rooftile/core/queue.h"

#include <cstdio>
#include <cstdlib>

#include "rooftile/backend/cpu/cpu_count.h"
#include "rooftile/backend/cpu/fp_mode.h"
#include "rooftile/backend/cpu/isa.h"
#include "rooftile/backend/cpu/tuning.h"
#include "rooftile/runtime/queue_state.h"

namespace rooftile {
namespace {

void run_on_pool(void* state, int tasks, void (*task)(void*, int), void* context) {
  static_cast<Queue::State*>(state)->pool->run(tasks, task, context);
}

/// An executor's region runs as the one task of a pool of one, whose lock keeps calls on the queue apart. Its
/// threads are the user's: they may round otherwise or flush subnormals.
void run_on_executor(void* state, int tasks, void (*task)(void*, int), void* context) {
  struct Region {
    const Executor* executor;
    int tasks;
    void (*task)(void*, int);
    void* context;
  } region{&static_cast<Queue::State*>(state)->executor, tasks, task, context};
  static_cast<Queue::State*>(state)->pool->run(
      1,
      [](void* r, int) {
        const Region& it = *static_cast<Region*>(r);
        it.executor->parallel(
            it.executor->self, it.tasks,
            [](void* same, int index) {
              const cpu::FpMode mode;
              const Region& self = *static_cast<Region*>(same);
              self.task(self.context, index);
            },
            r);
      },
      &region);
}

Status check_threads(int threads, const char* function) {
  if (threads >= 0 && threads <= cpu::kMaxThreads) return {};
  return Status::error("%s: threads is %d, must be 0 (all that may be used) to %d", function, threads,
                       cpu::kMaxThreads);
}
Status open_pool(int threads, const char* function, Queue::State& state) {
  state.pool = std::unique_ptr<cpu::Pool>(new (std::nothrow) cpu::Pool(threads));
  if (state.pool) return {};
  return Status::error("%s: no memory for a pool of %d threads", function, threads);
}

const char* folder_of(const char* named) { return named ? named : std::getenv("ROOFTILE_PLUGINS"); }

Status open(const CpuOptions& options, Queue::State& state) {
  const cpu::IsaChoice choice = options.isa ? cpu::choose_isa(options.isa, cpu::cpu_features(), "isa")
                                            : cpu::choose_isa(std::getenv("ROOFTILE_CPU"));
  if (!choice.ok) return Status::error("Queue::cpu: %s", choice.reason);
  std::snprintf(state.isa, sizeof state.isa, "%s", cpu::name(choice.isa));
  std::snprintf(state.isa_reason, sizeof state.isa_reason, "%s", choice.reason);

  if (Status s = check_threads(options.threads, "Queue::cpu"); !s) return s;
  if (const Executor* e = options.executor;
      e && (!e->parallel || e->threads < 1 || e->threads > cpu::kMaxThreads))
    return Status::error("Queue::cpu: the executor has %s and %d threads, needs a function and 1 to %d",
                         e->parallel ? "a function" : "no function", e->threads, cpu::kMaxThreads);
  if (options.streaming_bytes < -1)
    return Status::error(
        "Queue::cpu: streaming_bytes is %lld, must be -1 (by this CPU's caches) or not negative",
        static_cast<long long>(options.streaming_bytes));

  char plugin[48];
  std::snprintf(plugin, sizeof plugin, "cpu-%s", state.isa);
  if (Status s = load_backend(folder_of(options.plugin_folder), plugin, state.backend); !s) return s;

  const int threads = options.threads ? options.threads : cpu::usable_cpus();
  if (Status s = open_pool(options.executor ? 1 : threads, "Queue::cpu", state); !s) return s;
  if (options.executor) state.executor = *options.executor;
  state.launch.threads = options.executor ? options.executor->threads : state.pool->threads();
  state.launch.executor = &state;
  state.launch.parallel = options.executor ? run_on_executor : run_on_pool;
  state.launch.streaming_bytes =
      options.streaming_bytes >= 0 ? options.streaming_bytes : cpu::tuning().streaming_bytes;
  const std::size_t bytes = kScratchBytes * static_cast<std::size_t>(state.launch.threads);
  state.scratch = static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{4096}, std::nothrow));
  if (!state.scratch)
    return Status::error("Queue::cpu: no memory for %zu bytes of scratch (%d threads)", bytes,
                         state.launch.threads);
  state.launch.scratch = state.scratch;
  return {};
}

/// Loads the plug-in and asks it for the device that `state.cuda` names.
Status open_device(const char* plugin, const char* folder, Queue::State& state) {
  if (Status s = open_pool(1, "rooftile::Queue", state); !s) return s;
  if (Status s = load_backend(folder_of(folder), plugin, state.backend); !s) return s;
  if (!state.backend->device) return Status::error("rooftile-%s.so: is a plug-in without a device", plugin);
  state.kernel_launch = &state.cuda;
  if (Status s = state.backend->device->open(state.cuda, state.isa_reason, sizeof state.isa_reason); !s)
    return s;
  std::snprintf(state.isa, sizeof state.isa, "sm_%d", state.cuda.architecture);
  return {};
}

Status open(const CudaOptions& options, Queue::State& state) {
  state.device = Device::cuda;
  state.cuda.stream = options.stream;
  state.cuda.device = options.device;
  if (options.device < -1)
    return Status::error("Queue::cuda: device is %d, must be -1 (the thread's current one) or a GPU's number",
                         options.device);
  return open_device("cuda", options.plugin_folder, state);
}

Status open(const EmulatedOptions& options, Queue::State& state) {
  state.device = Device::emulated;
  if (Status s = check_threads(options.threads, "Queue::emulated"); !s) return s;
  const int architecture = options.architecture;
  if (architecture != 80 && architecture != 86 && architecture != 89 && architecture != 90)
    return Status::error("Queue::emulated: architecture is %d, must be 80, 86, 89 or 90", architecture);
  state.cuda.architecture = architecture;
  state.cuda.threads = options.threads ? options.threads : cpu::usable_cpus();
  state.cuda.seed = options.seed;
  return open_device(options.checked ? "emulated-checked" : "emulated", options.plugin_folder, state);
}

/// Stands in where not even a queue's state could be had.
Queue::State& out_of_memory() {
  static Queue::State state;
  static const bool once = [] {
    state.status = Status::error("rooftile::Queue: no memory for a queue");
    return true;
  }();
  (void)once;
  return state;
}

template <class Options>
Queue::State* make(const Options& options) {
  Queue::State* state = new (std::nothrow) Queue::State;
  if (!state) {
    out_of_memory().references.fetch_add(1, std::memory_order_relaxed);
    return &out_of_memory();
  }
  state->status = open(options, *state);
  return state;
}

}  // namespace

Queue Queue::cpu(const CpuOptions& options) { return Queue(make(options)); }
Queue Queue::cuda(const CudaOptions& options) { return Queue(make(options)); }
Queue Queue::emulated(const EmulatedOptions& options) { return Queue(make(options)); }

Queue::Queue(const Queue& other) noexcept : state_(other.state_) {
  state_->references.fetch_add(1, std::memory_order_relaxed);
}
Queue& Queue::operator=(const Queue& other) noexcept {
  if (state_ != other.state_) {
    this->~Queue();
    new (this) Queue(other);
  }
  return *this;
}
Queue::~Queue() {
  if (state_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete state_;
}

Status Queue::status() const { return state_->status; }
Device Queue::device() const { return state_->device; }
const char* Queue::isa() const { return state_->isa; }
const char* Queue::isa_reason() const { return state_->isa_reason; }
int Queue::threads() const {
  return state_->device == Device::cpu ? state_->launch.threads : state_->cuda.threads;
}
int Queue::architecture() const { return state_->device == Device::cpu ? 0 : state_->cuda.architecture; }
int Queue::index() const { return state_->device == Device::cuda ? state_->cuda.device : -1; }
std::int64_t Queue::streaming_bytes() const { return state_->launch.streaming_bytes; }
void Queue::set_observer(Observer observer) { state_->observer = observer; }

}  // namespace rooftile
