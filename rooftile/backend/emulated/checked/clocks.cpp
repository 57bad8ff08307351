#include "rooftile/backend/emulated/checked/clocks.h"

#include <algorithm>
#include <bit>

namespace rooftile::emulated {
namespace {
template <class Times>
void raise(Times& to, const Times& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = std::max(to[i], from[i]);
}
}  // namespace

void Clocks::begin_cluster(const ClusterRunner& runner) {
  ++cluster_;
  ranks_ = runner.blocks.size();
  per_block_ = runner.launch->threads_per_block;
  threads_.resize(runner.threads.size());
  for (Clock& c : threads_) {
    c.time = 1;
    c.near = {};
    c.far.reset();
    c.fenced = false;
  }
  block_serial_ = fenced_serial_ = {};
  serial_ = 1;
  cluster_serial_ = 0;
  objects_.clear();
  acquired_.clear();
  last_a_.reset(), last_b_.reset(), last_joined_.reset();
}

Clocks::Known Clocks::joined(const Known& a, const Known& b) {
  if (!a || a == b) return b;
  if (!b) return a;
  if (a != last_a_ || b != last_b_) {
    auto both = std::make_shared<Times>(*a);
    raise(*both, *b);
    last_a_ = a, last_b_ = b, last_joined_ = std::move(both);
  }
  return last_joined_;
}

Clocks::Times& Clocks::object(const void* key) {
  std::shared_ptr<Times>& times = objects_[key];
  if (!times)
    times = std::make_shared<Times>(threads_.size() + ranks_);
  else if (times.use_count() > 1)
    times = std::make_shared<Times>(*times);
  return *times;
}

bool Clocks::ordered(const Stamp& then, const Thread& me) const {
  if (then.cluster != cluster_) return then.cluster < first_cluster_ || ordered_by_atomics(then);
  if (then.thread == me.in_cluster) return true;
  const std::size_t rank = then.thread / per_block_;
  if (then.serial < (rank == me.block->rank ? block_serial_[rank] : cluster_serial_)) return true;
  const Clock& c = threads_[me.in_cluster];
  const std::size_t number = then.thread % per_block_;
  if (rank == me.block->rank && number / kWarpSize == me.number / kWarpSize &&
      c.near[number % kWarpSize] >= then.time)
    return true;
  if (!c.far) return false;
  const Times& far = *c.far;
  return far[then.thread] >= then.time || then.serial < far[threads_.size() + rank];
}

bool Clocks::ordered_by_atomics(const Stamp& then) const {
  const auto found = releases_.find(then.cluster);
  if (found == releases_.end()) return false;
  const std::size_t rank = then.thread / per_block_, number = then.thread % per_block_;
  return std::any_of(found->second.begin(), found->second.end(), [&](const Release& r) {
    const bool covers = then.serial < (rank == r.rank ? r.serial : r.cluster_serial) ||
                        (then.thread == r.thread && then.time <= r.time) ||
                        (rank == r.rank && number / kWarpSize == r.thread % per_block_ / kWarpSize &&
                         then.time <= r.near[number % kWarpSize]);
    if (!covers) return false;
    const auto known = acquired_.find(r.location);
    return known != acquired_.end() && known->second >= r.moment;
  });
}

void Clocks::block_barrier(const Block& block) {
  block_serial_[block.rank] = ++serial_;
  Clock* first = &threads_[block.rank * per_block_];
  for (std::size_t i = 0; i < per_block_; ++i)
    if (first[i].fenced) fenced_serial_[block.rank] = serial_;
  if (ranks_ == 1) return;
  // What one thread knows of other blocks of the cluster, all know now.
  Known all;
  for (std::size_t i = 0; i < per_block_; ++i) all = joined(all, first[i].far);
  for (std::size_t i = 0; i < per_block_; ++i) first[i].far = all;
}

void Clocks::cluster_barrier(const ClusterRunner& runner) {
  cluster_serial_ = ++serial_;
  for (const Block& block : runner.blocks) {
    block_serial_[block.rank] = serial_;
    for (std::size_t i = 0; i < per_block_; ++i)
      if (threads_[block.rank * per_block_ + i].fenced) fenced_serial_[block.rank] = serial_;
  }
}

void Clocks::warp_sync(const Thread& any, unsigned lanes) {
  Clock* warp = &threads_[any.in_cluster - any.lane];
  std::array<std::uint32_t, kWarpSize> near{};
  Known far;
  for (unsigned rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    raise(near, warp[lane].near);
    near[static_cast<std::size_t>(lane)] = std::max(near[static_cast<std::size_t>(lane)], warp[lane].time);
    far = joined(far, warp[lane].far);
  }
  for (unsigned rest = lanes; rest != 0; rest &= rest - 1) {
    Clock& c = warp[std::countr_zero(rest)];
    raise(c.near, near);
    c.far = far;
    ++c.time;
  }
}

void Clocks::merge_into(Times& times, const Thread& t) const {
  const Clock& c = threads_[t.in_cluster];
  const std::size_t first = t.in_cluster - t.lane;
  for (std::size_t lane = 0; lane < kWarpSize && first + lane < threads_.size(); ++lane)
    times[first + lane] = std::max(times[first + lane], c.near[lane]);
  if (c.far) raise(times, *c.far);
  auto& serial = times[threads_.size() + t.block->rank];
  serial = std::max(serial, block_serial_[t.block->rank]);
}

void Clocks::release(const Thread& t, const void* key) {
  Times& times = object(key);
  merge_into(times, t);
  Clock& c = threads_[t.in_cluster];
  times[t.in_cluster] = std::max(times[t.in_cluster], c.time++);
}

void Clocks::acquire(const Thread& t, const void* key) {
  const auto found = objects_.find(key);
  if (found == objects_.end()) return;
  Known& far = threads_[t.in_cluster].far;
  far = joined(far, found->second);
}

void Clocks::fence(const Thread& t) {
  Clock& c = threads_[t.in_cluster];
  c.fenced = true;
  c.fence_time = c.time++;
  c.fence_serial = block_serial_[t.block->rank];
  c.fence_near = c.near;
}

void Clocks::atomic(const Thread& t, const void* at, bool reads, bool wrote, bool ordered) {
  Clock& c = threads_[t.in_cluster];
  if (ordered && wrote) fence(t);
  // CUDA's own samples read after the atomic with a barrier but no second fence: reading is learning, then.
  if (reads) {
    acquire(t, at);
    if (const auto found = locations_.find(at); found != locations_.end()) {
      for (const auto& [location, moment] : found->second) {
        auto& known = acquired_[location];
        known = std::max(known, moment);
      }
      acquired_[at] = moment_;
    }
  }
  const std::uint32_t serial = std::max(c.fenced ? c.fence_serial : 0, fenced_serial_[t.block->rank]);
  if (!wrote || (!c.fenced && serial == 0)) return;
  Times& times = object(at);
  merge_into(times, t);
  if (c.fenced) times[t.in_cluster] = std::max(times[t.in_cluster], c.fence_time);
  auto& location = locations_[at];
  for (const auto& [other, moment] : acquired_) {
    auto& known = location[other];
    known = std::max(known, moment);
  }
  ++moment_;
  acquired_[at] = moment_;
  releases_[cluster_].push_back({moment_, at, t.block->rank, serial, cluster_serial_, t.in_cluster,
                                 c.fenced ? c.fence_time : 0,
                                 c.fenced ? c.fence_near : std::array<std::uint32_t, kWarpSize>{}});
}

}  // namespace rooftile::emulated
