// The scheduler: which thread of a cluster runs next. A thread runs until it waits; whoever ends its wait
// puts it into the ring of ready threads. A fiber whose thread has ended begins the next thread on the same
// stack, so that a kernel without barriers costs a call for each thread and no switch.
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "rooftile/backend/emulated/controls.h"
#include "rooftile/backend/emulated/state.h"

// What kernels see as constants (device/threads.h).
#define ROOFTILE_INDEX __thread __attribute__((tls_model("initial-exec")))
extern ROOFTILE_INDEX uint3 threadIdx, blockIdx, blockDim, gridDim;
ROOFTILE_INDEX uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace rooftile::emulated {
void report(ClusterRunner&, FindingKind, Site, const char* format, ...) __attribute__((format(printf, 4, 5)));
__thread Thread* current __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {
// Never inlined: a fiber may go on on another host thread in another launch, where these have other
// addresses.
[[gnu::noinline]] void set_current(Thread* t) {
  current = t;
  if (!t) return;
  threadIdx = t->index;
  blockIdx = t->block->index;
}
[[gnu::noinline]] Thread& get_current() { return *current; }

std::uint64_t draw(std::uint64_t& state) {  // xorshift64*
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545f4914f6cdd1dull;
}
std::uint64_t mix(std::uint64_t x) {  // splitmix64: neighbouring seeds give unlike orders
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return (x ^ x >> 31) | 1;
}
std::int64_t now_ms() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return std::int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1'000'000;
}

bool may_begin(const ClusterRunner& c) { return c.begun < c.order.size(); }

}  // namespace
std::uint64_t ClusterRunner::draw() { return emulated::draw(random) >> 16; }
namespace {

/// A ready thread that shall run next, or null: then one begins, if may_begin, or nobody can run.
Thread* next_ready(ClusterRunner& c) {
  if (c.ready_count == 0) return nullptr;
  if (c.random != 0) {
    if (may_begin(c) && (draw(c.random) >> 40 & 1) != 0) return nullptr;
    const std::size_t pick = (c.ready_first + (draw(c.random) >> 16) % c.ready_count) % c.ready.size();
    std::swap(c.ready[c.ready_first], c.ready[pick]);
  }
  Thread* t = c.ready[c.ready_first];
  if (++c.ready_first == c.ready.size()) c.ready_first = 0;
  --c.ready_count;
  // The stacks of a block exceed the L1 cache: a switch waits for the first line of the next one (7% of two
  // barriers).
  if (c.ready_count != 0) __builtin_prefetch(c.ready[c.ready_first]->fiber->stack_pointer);
  return t;
}

Fiber& take_fiber(ClusterRunner& c) {
  Fiber* f = c.free_fibers;
  c.free_fibers = f->next_free;
  return *f;
}
void put_fiber(ClusterRunner& c, Fiber& f) {
  f.next_free = c.free_fibers;
  c.free_fibers = &f;
}

void begin_thread(ClusterRunner& c, Fiber& fiber) {
  Thread& t = c.threads[c.order[c.begun++]];
  t.fiber = &fiber;
  t.ended = t.cluster_arrived = t.sums_pending = false;
  t.wait = Wait::kNothing;
  t.where = {};
  set_current(&t);
  if (observer) observer->begin_thread(t);
  c.launch->kernel(c.launch->arguments);
  if (!t.copies.empty() || !t.groups.empty()) finish_copies(t);
  finish_units(t);
  t.ended = true;
  if (observer) observer->end_thread(t);
  --c.live;
  ++c.progress;
  thread_ended(t);
}

void fiber_main(Fiber& fiber) {
  fiber_started();
  for (;;) {
    ClusterRunner& c = *static_cast<ClusterRunner*>(fiber.owner);
    begin_thread(c, fiber);
    if (Thread* t = next_ready(c)) {
      put_fiber(c, fiber);
      set_current(t);
      switch_fiber(fiber, *t->fiber);
    } else if (!may_begin(c)) {
      put_fiber(c, fiber);
      switch_fiber(fiber, c.host);
    }
    // Switched to again, a free fiber begins another thread.
  }
}

[[noreturn]] void abandon(ClusterRunner& c, Thread& me) {
  c.damaged = true;
  for (;;) switch_fiber(*me.fiber, c.host);
}

/// The asynchronous units work before anyone else does.
void let_units_work(ClusterRunner& c, Thread& me) {
  c.units_turn = true;
  switch_fiber(*me.fiber, c.host);
}

/// The current thread lets the next one run.
void reschedule(ClusterRunner& c, Thread& me) {
  if (c.launch->failed.load(std::memory_order_relaxed)) abandon(c, me);
  if (c.random != 0 && units_busy(c) && (c.draw() & 3) == 0) return let_units_work(c, me);
  if (Thread* t = next_ready(c)) {
    if (t == &me) return;
    set_current(t);
    switch_fiber(*me.fiber, *t->fiber);
  } else if (may_begin(c)) {
    switch_fiber(*me.fiber, take_fiber(c));
  } else {
    switch_fiber(*me.fiber, c.host);  // nobody can go on: run_cluster lets the units work, or says so
  }
}

void set_status(Launch& launch, const char* sentence) {
  const std::lock_guard lock(launch.mutex);
  if (!launch.failed) launch.status = Status::error("emulated: kernel %s: %s", launch.name, sentence);
  launch.failed = true;
}

const char* wait_name(Wait w) {
  switch (w) {
    case Wait::kBlock:
      return "__syncthreads";
    case Wait::kNamed:
      return "a named barrier";
    case Wait::kWarp:
      return "a warp's operation";
    case Wait::kCluster:
      return "the cluster's barrier";
    case Wait::kMbarrier:
      return "an mbarrier";
    case Wait::kWgmma:
      return "wgmma_wait";
    case Wait::kRegisters:
      return "setmaxnreg";
    case Wait::kNothing:
      break;
  }
  return "nothing";
}

struct Text {
  char text[1000] = "";
  std::size_t used = 0;
  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int n = std::vsnprintf(text + used, sizeof text - used, format, arguments);
    va_end(arguments);
    if (n > 0) used = std::min(used + static_cast<std::size_t>(n), sizeof text - 1);
  }
};

bool waits_alike(const Thread& a, const Thread& b) {
  return a.ended == b.ended &&
         (a.ended || (a.wait == b.wait && a.where.line == b.where.line && a.where.file == b.where.file));
}

/// Says who waits where in all blocks that have waiting threads, and ends the launch.
void report_deadlock(ClusterRunner& c) {
  Text text;
  Thread *first = nullptr, *second = nullptr;
  for (Block& block : c.blocks) {
    if (block.alive == 0) continue;
    const unsigned count = c.launch->threads_per_block;
    text.add("%s block (%u, %u, %u): ", text.used == 0 ? "deadlock in" : "; in", block.index.x, block.index.y,
             block.index.z);
    std::vector<Thread*> told;
    for (unsigned i = 0; i < count; ++i) {
      Thread& t = block.threads[i];
      if (std::any_of(told.begin(), told.end(), [&](Thread* other) { return waits_alike(t, *other); }))
        continue;
      text.add(told.empty() ? "" : "; ");
      told.push_back(&t);
      if (!t.ended && !first)
        first = &t;
      else if (!second)
        second = &t;
      unsigned alike = 0, last = i;
      for (unsigned j = i; j < count; ++j)
        if (waits_alike(block.threads[j], t)) ++alike, last = j;
      if (alike == 1)
        text.add("thread %u ", i);
      else
        text.add("threads %u%s%u ", i, last - i + 1 == alike ? " to " : " … ", last);
      if (t.ended) {
        text.add("ended");
        continue;
      }
      char more[300];
      describe_wait(t, more, sizeof more);
      text.add("wait%s at %s (%s:%u)%s", alike == 1 ? "s" : "", wait_name(t.wait), base_name(t.where.file),
               t.where.line, more);
    }
  }
  set_status(*c.launch, text.text);
  if (observer && first) {
    const bool differ = second && !second->ended;
    observer->failure(
        first, static_cast<int>(second ? FindingKind::kDivergentBarrier : FindingKind::kDeadlock),
        first->where, differ ? second->where : Site{}, second ? int(second->number) : -1, text.text);
  }
  c.damaged = true;
}

}  // namespace

void wait(Wait why, Site where) {
  Thread& me = *current;
  me.wait = why;
  me.where = where;
  reschedule(*me.block->runner, me);
  me.wait = Wait::kNothing;
}

void yield() {
  Thread& me = get_current();
  ClusterRunner& c = *me.block->runner;
  Launch& launch = *c.launch;
  if (launch.failed.load(std::memory_order_relaxed)) abandon(c, me);
  if (++c.yields % 1024 == 0) {
    const std::int64_t now = now_ms();
    if (c.progress != c.progress_seen || c.quiet_since == 0) {
      c.progress_seen = c.progress;
      c.quiet_since = now;
    } else if (now - c.quiet_since > launch.options.patience_ms) {
      bool lowest = true;
      for (int i = 0; i < launch.runners; ++i) lowest &= launch.running[i].load() >= c.cluster;
      if (lowest)
        fail(static_cast<int>(FindingKind::kDeadlock), me.where,
             "thread %u of block (%u, %u, %u) polls memory that nobody changes (for %d ms): a kernel may "
             "wait only for "
             "blocks of its cluster or of lower index",
             me.number, me.block->index.x, me.block->index.y, me.block->index.z, launch.options.patience_ms);
    }
    if (launch.runners > 1) sched_yield();
  }
  c.make_ready(me);
  // Who polls is always ready: the units would never have their turn.
  if (c.yields % 64 == 0 && units_busy(c)) return let_units_work(c, me);
  reschedule(c, me);
}

void report(ClusterRunner& c, FindingKind kind, Site where, const char* format, ...) {
  char text[1000];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  set_status(*c.launch, text);
  if (observer) observer->failure(current, static_cast<int>(kind), where, where, -1, text);
}

void fail(int kind, Site where, const char* format, ...) {
  char text[1000];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  Thread& me = get_current();
  set_status(*me.block->runner->launch, text);
  if (observer) observer->failure(&me, kind, where, where, -1, text);
  abandon(*me.block->runner, me);
}

void fail_plainly(const char* format, ...) {
  char text[1000];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  Thread& me = get_current();
  set_status(*me.block->runner->launch, text);
  abandon(*me.block->runner, me);
}

ClusterRunner::~ClusterRunner() {
  for (const auto& [memory, count] : stacks) unmap_stacks(memory, count, kStackBytes);
  if (arenas) munmap(arenas, arenas_bytes);
}

Status ClusterRunner::prepare(Launch& l) {
  launch = &l;
  const unsigned size = l.geometry.cluster, count = l.threads_per_block, all = size * count;
  const dim3& b = l.geometry.block;
  if (damaged || blocks.size() != size || threads.size() != all || shape.x != b.x || shape.y != b.y ||
      shape.z != b.z) {
    blocks = std::vector<Block>(size);
    threads = std::vector<Thread>(all);
    ready.assign(all, nullptr);
    order.resize(all);
    shape = b;
    for (unsigned rank = 0; rank < size; ++rank) {
      Block& block = blocks[rank];
      block.runner = this;
      block.rank = rank;
      block.threads = &threads[rank * count];
      block.waiting.reserve(count);
      block.warps.resize((count + kWarpSize - 1) / kWarpSize);
      for (unsigned w = 0; w < block.warps.size(); ++w) block.warps[w].lanes = block.threads + w * kWarpSize;
      for (unsigned i = 0; i < count; ++i) {
        Thread& t = block.threads[i];
        t.index = {i % b.x, i / b.x % b.y, i / (b.x * b.y)};
        t.block = &block;
        t.warp = &block.warps[i / kWarpSize];
        t.number = i;
        t.lane = i % kWarpSize;
        t.in_cluster = rank * count + i;
      }
    }
  }
  if (fibers.size() < all) {
    const std::size_t more = all - fibers.size();
    std::byte* memory = map_stacks(more, kStackBytes);
    if (!memory) return Status::error("emulated: no memory for the stacks of %zu threads", more);
    stacks.emplace_back(memory, more);
    for (std::size_t i = 0; i < more; ++i) {
      fibers.push_back(std::make_unique<Fiber>());
      fibers.back()->stack = memory + i * (kStackBytes + kGuardPage) + kGuardPage;
      fibers.back()->stack_bytes = kStackBytes;
    }
    damaged = true;  // so that all are prepared, below
  }
  if (damaged) {
    free_fibers = nullptr;
    for (std::size_t i = fibers.size(); i-- > 0;) {
      fibers[i]->owner = this;
      emulated::prepare(*fibers[i], &fiber_main, static_cast<unsigned>(i));
      put_fiber(*this, *fibers[i]);
    }
    damaged = false;
  }
  const std::size_t bytes = 2 * arena_margin() + size * arena_stride();
  if (arenas_bytes < bytes) {
    if (arenas) munmap(arenas, arenas_bytes);
    arenas_bytes = 0;
    void* memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    arenas = memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
    if (!arenas) return Status::error("emulated: no memory for the shared memory of %u blocks", size);
    arenas_bytes = bytes;
  }
  for (unsigned rank = 0; rank < size; ++rank)
    blocks[rank].arena = arenas + arena_margin() + rank * arena_stride();
  blockDim = l.geometry.block;
  gridDim = l.geometry.grid;
  return {};
}

void ClusterRunner::run_cluster(unsigned which) {
  cluster = which;
  const dim3& grid = launch->geometry.grid;
  const unsigned across = grid.x / launch->geometry.cluster, count = launch->threads_per_block;
  live = static_cast<unsigned>(threads.size());
  mbarriers.clear();
  cluster_arrived = 0;
  ready_first = ready_count = 0;
  begun = 0;
  quiet_since = 0;
  random = launch->seed == 0 ? 0 : mix(launch->seed ^ mix(which));
  for (unsigned i = 0; i < order.size(); ++i) order[i] = i;
  if (random != 0)
    for (unsigned i = static_cast<unsigned>(order.size()); i > 1; --i)
      std::swap(order[i - 1], order[draw() % i]);
  for (Block& block : blocks) {
    block.index = {which % across * launch->geometry.cluster + block.rank, which / across % grid.y,
                   which / across / grid.y};
    block.linear = block.index.x + grid.x * (block.index.y + grid.y * block.index.z);
    block.alive = count;
    block.vote = {0, false, true};
    block.waiting.clear();
    for (unsigned w = 0; w < block.warps.size(); ++w) {
      const unsigned lanes = std::min(kWarpSize, count - w * kWarpSize);
      block.warps[w].alive = lanes == kWarpSize ? ~0u : (1u << lanes) - 1;
      block.warps[w].waiting = 0;
    }
    for (NamedBarrier& barrier : block.named)
      if (barrier.expected != 0) barrier = {};
    start_arena(block);
  }
  start_units(*this);
  units_turn = false;
  if (observer) observer->begin_cluster(*this);
  for (;;) {  // threads run among themselves, and come back here when the units shall work
    if (std::exchange(units_turn, false)) run_units(*this);
    if (launch->failed) break;
    if (Thread* t = next_ready(*this)) {
      set_current(t);
      switch_fiber(host, *t->fiber);
    } else if (may_begin(*this)) {
      switch_fiber(host, take_fiber(*this));
    } else if (!run_units(*this)) {
      break;
    }
  }
  if (live == 0 && !launch->failed) check_units(*this);
  set_current(nullptr);
  if (live > 0 && !launch->failed)
    report_deadlock(*this);
  else if (live > 0)
    damaged = true;
  if (live == 0)
    for (const Block& block : blocks)
      if (const SharedArray* array = damaged_guard(block)) {
        char text[300];
        std::snprintf(
            text, sizeof text, "block (%u, %u, %u) wrote past the end of its shared array %s (%zu bytes%s%s)",
            block.index.x, block.index.y, block.index.z, array->site ? array->site->name : "(dynamic)",
            array->bytes, array->site ? ", declared in " : "", array->site ? array->site->file : "");
        set_status(*launch, text);
        break;
      }
  if (observer) observer->end_cluster(*this);
}

}  // namespace rooftile::emulated
