// Barriers of a block and of a cluster.
#include <utility>

#include "rooftile/backend/emulated/controls.h"
#include "rooftile/backend/emulated/state.h"

namespace rooftile::emulated {
namespace {

void tell_of_divergence(Block& block) {
  Thread& first = *block.waiting.front();
  for (Thread* t : block.waiting)
    if (t->where.line != first.where.line) {
      observer->divergence(first, *t, "threads of a block come to __syncthreads in different places");
      return;
    }
  if (block.waiting.size() == block.runner->launch->threads_per_block) return;
  for (unsigned i = 0; i < block.runner->launch->threads_per_block; ++i)
    if (block.threads[i].ended) {
      observer->divergence(first, block.threads[i],
                           "a thread ended, and others of its block wait at __syncthreads");
      return;
    }
}

/// Whether the block's barrier is complete; if so, all who wait but `here` become ready.
bool complete_block(Block& block, Thread* here) {
  if (block.alive == 0 || block.waiting.size() != block.alive) return false;
  if (observer) {
    tell_of_divergence(block);
    observer->block_barrier(block);
  }
  for (Thread* t : block.waiting) {
    t->vote = block.vote;
    if (t != here) block.runner->make_ready(*t);
  }
  block.waiting.clear();
  block.vote = {0, false, true};
  ++block.runner->progress;
  return true;
}

bool complete_cluster(ClusterRunner& runner, Thread* here) {
  if (runner.live == 0 || runner.cluster_arrived != runner.live) return false;
  runner.cluster_arrived = 0;
  ++runner.progress;
  if (observer) observer->cluster_barrier(runner);
  for (Thread& t : runner.threads) {
    if (t.ended) continue;
    t.cluster_arrived = false;
    if (&t != here && t.wait == Wait::kCluster) runner.make_ready(t);
  }
  return true;
}
}  // namespace

void thread_ended(Thread& t) {
  Block& block = *t.block;
  --block.alive;
  t.warp->alive &= ~(1u << t.lane);
  if (t.warp->waiting != 0) check_warp(*t.warp);
  if (!block.waiting.empty()) complete_block(block, nullptr);
  ClusterRunner& runner = *block.runner;
  if (t.cluster_arrived) --runner.cluster_arrived;
  if (runner.cluster_arrived != 0) complete_cluster(runner, nullptr);
}

namespace device {

BlockVote block_barrier(bool predicate, Site where) {
  Thread& me = *current;
  Block& block = *me.block;
  me.where = where;
  block.waiting.push_back(&me);
  block.vote.count += predicate ? 1 : 0;
  block.vote.any |= predicate;
  block.vote.all &= predicate;
  if (!complete_block(block, &me)) wait(Wait::kBlock, where);
  me.learnt = block.runner->progress;
  return me.vote;
}

bool named_barrier(unsigned id, unsigned threads, bool waits, bool predicate, Site where) {
  Thread& me = *current;
  Block& block = *me.block;
  if (id >= kNamedBarriers || threads == 0 || threads % kWarpSize != 0 || threads > kMaxThreads)
    fail(static_cast<int>(FindingKind::kTrap), where,
         "named barrier %u of %u threads (%s:%u): barriers are 0 to 15, their threads a multiple of 32", id,
         threads, where.file, where.line);
  NamedBarrier& barrier = block.named[id];
  if (barrier.arrived != 0 && barrier.expected != threads)
    fail(static_cast<int>(FindingKind::kDivergentBarrier), where,
         "named barrier %u is awaited by %u threads and, at %s:%u, by %u", id, barrier.expected, where.file,
         where.line, threads);
  barrier.expected = threads;
  barrier.any |= predicate;
  me.where = where;
  if (observer) observer->release(me, &barrier);
  if (++barrier.arrived < threads) {
    if (!waits) return false;
    barrier.waiting.push_back(&me);
    wait(Wait::kNamed, where);
    me.learnt = block.runner->progress;
    return me.vote.any;
  }
  ++block.runner->progress;
  for (Thread* t : barrier.waiting) {
    if (observer) observer->acquire(*t, &barrier);
    t->vote.any = barrier.any;
    block.runner->make_ready(*t);
  }
  if (observer) {
    if (waits) observer->acquire(me, &barrier);
    observer->forget(&barrier);
  }
  if (waits) me.learnt = block.runner->progress;
  barrier.waiting.clear();
  barrier.arrived = 0;
  return std::exchange(barrier.any, false);
}

void cluster_arrive(Site where) {
  Thread& me = *current;
  ClusterRunner& runner = *me.block->runner;
  if (me.cluster_arrived)
    fail(static_cast<int>(FindingKind::kDivergentBarrier), where,
         "thread %u arrives at the cluster's barrier twice without waiting (%s:%u)", me.number, where.file,
         where.line);
  me.cluster_arrived = true;
  ++runner.cluster_arrived;
  complete_cluster(runner, &me);
}
void cluster_wait(Site where) {
  if (current->cluster_arrived) wait(Wait::kCluster, where);
  current->learnt = current->block->runner->progress;
}
unsigned cluster_rank() { return current->block->rank; }
unsigned cluster_size() { return static_cast<unsigned>(current->block->runner->blocks.size()); }

void pause() { yield(); }
void trap(Site where) {
  fail(static_cast<int>(FindingKind::kTrap), where, "__trap in thread %u (%s:%u)", current->number,
       where.file, where.line);
}
std::uint64_t clock() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return ++current->block->runner->progress;
#endif
}
}  // namespace device
}  // namespace rooftile::emulated
