// What lanes of a warp do together. An operation is done when every lane that its mask names, and that has
// not ended, has come to it; the last one computes everyone's result, so that no lane can overwrite what
// another has yet to read.
#include <bit>

#include "rooftile/backend/emulated/controls.h"
#include "rooftile/backend/emulated/state.h"

namespace rooftile::emulated {
namespace {
using device::WarpOperation;

std::uint64_t combine(WarpOperation operation, std::uint64_t a, std::uint64_t b) {
  const auto x = static_cast<unsigned>(a), y = static_cast<unsigned>(b);
  switch (operation) {
    case WarpOperation::kAdd:
      return x + y;
    case WarpOperation::kMin:
      return x < y ? x : y;
    case WarpOperation::kMax:
      return x > y ? x : y;
    case WarpOperation::kMinSigned:
      return static_cast<int>(x) < static_cast<int>(y) ? x : y;
    case WarpOperation::kMaxSigned:
      return static_cast<int>(x) > static_cast<int>(y) ? x : y;
    case WarpOperation::kAnd:
      return x & y;
    case WarpOperation::kOr:
      return x | y;
    default:
      return x ^ y;
  }
}

void compute(WarpOperation operation, Thread* lanes, unsigned members) {
  const auto each = [&](auto body) {
    for (unsigned rest = members; rest != 0; rest &= rest - 1) body(lanes[std::countr_zero(rest)]);
  };
  switch (operation) {
    case WarpOperation::kSync:
      return;
    case WarpOperation::kCollective:
      return run_collective(lanes, members);
    case WarpOperation::kShuffle:
    case WarpOperation::kShuffleUp:
    case WarpOperation::kShuffleDown:
    case WarpOperation::kShuffleXor:
      // What a lane that takes no part holds is undefined; all ones is no number.
      return each([&](Thread& t) {
        t.result = members >> t.source_lane & 1 ? lanes[t.source_lane].value : ~std::uint64_t{0};
      });
    case WarpOperation::kBallot: {
      unsigned ballot = 0;
      each([&](Thread& t) { ballot |= (t.value != 0 ? 1u : 0u) << t.lane; });
      return each([&](Thread& t) { t.result = ballot; });
    }
    case WarpOperation::kMatch:
      return each([&](Thread& t) {
        t.result = 0;
        each([&](Thread& other) { t.result |= std::uint64_t{other.value == t.value} << other.lane; });
      });
    default: {
      std::uint64_t sum = lanes[std::countr_zero(members)].value;
      for (unsigned rest = members & (members - 1); rest != 0; rest &= rest - 1)
        sum = combine(operation, sum, lanes[std::countr_zero(rest)].value);
      return each([&](Thread& t) { t.result = sum; });
    }
  }
}

/// Lanes that exchange in different places: on a GPU each place would run alone, though it waits for all.
void tell_of_divergence(const Thread& one, unsigned members) {
  Thread* lanes = one.warp->lanes;
  Thread& first = lanes[std::countr_zero(members)];
  for (unsigned rest = members; rest != 0; rest &= rest - 1) {
    Thread& t = lanes[std::countr_zero(rest)];
    if (t.where.line == first.where.line) continue;
    observer->divergence(first, t, "lanes of a warp come to one exchange in different places");
    return;
  }
}

/// Whether the operation that `one` waits in is done; if so, all lanes in it but `here` become ready.
bool complete(Thread& one, Thread* here) {
  Warp& warp = *one.warp;
  const unsigned members = one.mask & warp.alive;
  if ((warp.waiting & members) != members) return false;
  for (unsigned rest = members; rest != 0; rest &= rest - 1) {
    const Thread& t = warp.lanes[std::countr_zero(rest)];
    if (t.mask == one.mask && t.operation == one.operation) continue;
    if (!here) return false;  // they are told of when nobody can go on
    fail(static_cast<int>(FindingKind::kDivergentBarrier), one.where,
         "lanes %u and %u of a warp meet in different operations or with different masks (%08x at %s:%u, "
         "%08x at %s:%u)",
         one.lane, t.lane, one.mask, one.where.file, one.where.line, t.mask, t.where.file, t.where.line);
  }
  compute(one.operation, warp.lanes, members);
  warp.waiting &= ~members;
  ClusterRunner& runner = *one.block->runner;
  ++runner.progress;
  if (observer) {
    if (one.operation != WarpOperation::kSync) tell_of_divergence(one, members);
    // A matrix instruction orders nothing: who reads what another lane wrote needs a barrier.
    if (one.operation != WarpOperation::kCollective) observer->warp_sync(one, members);
  }
  for (unsigned rest = members; rest != 0; rest &= rest - 1) {
    Thread& t = warp.lanes[std::countr_zero(rest)];
    if (&t != here) runner.make_ready(t);
  }
  return true;
}
}  // namespace

void check_warp(Warp& warp) {
  for (unsigned rest = warp.waiting; rest != 0; rest &= rest - 1) {
    Thread& t = warp.lanes[std::countr_zero(rest)];
    if ((warp.waiting >> t.lane & 1) != 0) complete(t, nullptr);
  }
}

namespace device {
unsigned lane() { return current->lane; }

std::uint64_t warp_operation(WarpOperation operation, unsigned mask, std::uint64_t value,
                             unsigned source_lane, Site where) {
  Thread& me = *current;
  if ((mask >> me.lane & 1) == 0)
    fail(static_cast<int>(FindingKind::kDivergentBarrier), where,
         "lane %u of a warp is not in the mask %08x of its own operation (%s:%u)", me.lane, mask, where.file,
         where.line);
  me.operation = operation;
  me.mask = mask;
  me.value = value;
  me.source_lane = source_lane;
  me.where = where;
  me.warp->waiting |= 1u << me.lane;
  if (!complete(me, &me)) wait(Wait::kWarp, where);
  if (operation != WarpOperation::kCollective) me.learnt = me.block->runner->progress;
  return me.result;
}
}  // namespace device
}  // namespace rooftile::emulated
