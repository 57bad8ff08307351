#include "rooftile/core/queue.h"

#include <cstdio>
#include <cstdlib>

#include "rooftile/backend/cpu/cpu_count.h"
#include "rooftile/backend/cpu/fp_mode.h"
#include "rooftile/backend/cpu/isa.h"
#include "rooftile/backend/cpu/tuning.h"
#include "rooftile/core/queue_state.h"

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

Status open(const CpuOptions& options, Queue::State& state) {
  const cpu::IsaChoice choice = options.isa
                                    ? cpu::choose_isa(options.isa, cpu::cpu_features(), "CpuOptions::isa")
                                    : cpu::choose_isa(std::getenv("ROOFTILE_CPU"));
  if (!choice.ok) return Status::error("Queue::cpu: %s", choice.reason);
  std::snprintf(state.isa, sizeof state.isa, "%s", cpu::name(choice.isa));
  std::snprintf(state.isa_reason, sizeof state.isa_reason, "%s", choice.reason);

  if (options.threads < 0 || options.threads > 4096)
    return Status::error("Queue::cpu: threads is %d, must be 0 (all that may be used) to 4096",
                         options.threads);
  if (options.executor && (!options.executor->parallel || options.executor->threads < 1))
    return Status::error("Queue::cpu: the executor has %s and %d threads, needs a function and at least 1",
                         options.executor->parallel ? "a function" : "no function",
                         options.executor->threads);

  char plugin[48];
  std::snprintf(plugin, sizeof plugin, "cpu-%s", state.isa);
  const char* folder = options.plugin_folder ? options.plugin_folder : std::getenv("ROOFTILE_PLUGINS");
  if (Status s = load_backend(folder, plugin, state.backend); !s) return s;

  const int threads = options.threads ? options.threads : cpu::usable_cpus();
  state.pool = std::unique_ptr<cpu::Pool>(new (std::nothrow) cpu::Pool(options.executor ? 1 : threads));
  if (!state.pool) return Status::error("Queue::cpu: no memory for a pool of %d threads", threads);
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

/// Stands in where not even a queue's state could be had.
Queue::State& out_of_memory() {
  static Queue::State state;
  static const bool once = [] {
    state.status = Status::error("Queue::cpu: no memory for a queue");
    return true;
  }();
  (void)once;
  return state;
}

}  // namespace

Queue Queue::cpu(const CpuOptions& options) {
  State* state = new (std::nothrow) State;
  if (!state) {
    out_of_memory().references.fetch_add(1, std::memory_order_relaxed);
    return Queue(&out_of_memory());
  }
  state->status = open(options, *state);
  return Queue(state);
}

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
const char* Queue::isa() const { return state_->isa; }
const char* Queue::isa_reason() const { return state_->isa_reason; }
int Queue::threads() const { return state_->launch.threads; }
std::int64_t Queue::streaming_bytes() const { return state_->launch.streaming_bytes; }
void Queue::set_observer(Observer observer) { state_->observer = observer; }

}  // namespace rooftile
