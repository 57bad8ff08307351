#include <algorithm>
#include <cmath>

#include "rooftile/ops/rope/rope.problem.h"
#include "rooftile/ops/rope/rope.tile.h"
#include "rooftile/tile/cpu/launch.h"

namespace rooftile {
namespace {
using namespace tile;

/// Pairs at a time, whose frequencies, cosines and sines are in a thread's scratch.
constexpr std::int64_t kPart = 4096;

/// Of the pairs from `first` on; neighbours' cosines and sines stand twice, the first sine with the other
/// sign.
struct Turns {
  std::int64_t first, count;
  float *frequency, *cosine, *sine;
};

void find_frequencies(const RopeProblem& p, const Turns& turns) {
  for (std::int64_t i = 0; i < turns.count; ++i) {
    const std::int64_t pair = turns.first + i;
    turns.frequency[i] = p.inv_freq ? p.inv_freq[pair * p.inv_freq_stride]
                                    : static_cast<float>(std::pow(p.base, -double(pair) / double(p.pairs)));
  }
}

void find_turns(const RopeProblem& p, double position, const Turns& turns) {
  const CpuTeam<double, Access::cached> team(nullptr);
  team.each(turns.count, [&](auto chunk) ROOFTILE_INLINE {
    tile::Tile<double> cosine, sine;
    kernels::rope_turn(team.load(Row<const float>{turns.frequency, turns.count}, chunk) * position, cosine,
                       sine);
    team.store(Row<float>{turns.cosine, turns.count}, chunk, cosine * p.cosine_factor);
    team.store(Row<float>{turns.sine, turns.count}, chunk, sine * p.sine_factor);
  });
  if (!p.interleaved) return;
  for (std::int64_t i = turns.count; i-- > 0;) {
    turns.cosine[2 * i] = turns.cosine[2 * i + 1] = turns.cosine[i];
    turns.sine[2 * i + 1] = turns.sine[i];
    turns.sine[2 * i] = -turns.sine[i];
  }
}

template <std::size_t... kLane>
ROOFTILE_TILE Vec<float> neighbours(const Vec<float>& v, std::index_sequence<kLane...>) {
  return __builtin_shufflevector(v, v, (kLane ^ 1)...);
}
ROOFTILE_TILE tile::Tile<float> neighbours(tile::Tile<float> t) {
  ROOFTILE_EACH_VECTOR(t.v[i] = neighbours(t.v[i], std::make_index_sequence<kVecLanes<float>>()));
  return t;
}

// [head]
/// One head of a token: all products of its pairs with the token's cosines and sines.
template <class Team, class T>
ROOFTILE_TILE void turn_head(Team team, bool interleaved, const Turns& turns, std::int64_t pairs,
                             const Row<const T>& x, const Row<T>& y) {
  // Scratch is there for whole tiles.
  const auto cosine = [&](auto chunk)
                          ROOFTILE_INLINE { return load_whole<float>(turns.cosine + chunk.first); };
  const auto sine = [&](auto chunk) ROOFTILE_INLINE { return load_whole<float>(turns.sine + chunk.first); };
  team.one_pass();
  if (interleaved) {
    const Row<const T> from = x.part(2 * turns.first, 2 * turns.count);
    const Row<T> to = y.part(2 * turns.first, 2 * turns.count);
    const auto both = team.hold(from, 0);
    team.each(from.size, [&](auto chunk) ROOFTILE_INLINE {
      const auto ab = both[chunk];
      team.store(to, chunk, fma(ab, cosine(chunk), neighbours(ab) * sine(chunk)));
    });
  } else {
    const Row<const T> first = x.part(turns.first, turns.count),
                       second = x.part(pairs + turns.first, turns.count);
    const Row<T> to = y.part(turns.first, turns.count), to_second = y.part(pairs + turns.first, turns.count);
    const auto as = team.hold(first, 0), bs = team.hold(second, 0);
    team.each(turns.count, [&](auto chunk) ROOFTILE_INLINE {
      const auto a = as[chunk], b = bs[chunk], c = cosine(chunk), s = sine(chunk);
      team.store(to, chunk, fma(a, c, -(b * s)));
      team.store(to_second, chunk, fma(b, c, a * s));
    });
  }
}
// [/head]

/// The dimensions that do not turn.
template <class Team, class T>
ROOFTILE_TILE void copy_rest(Team team, std::int64_t rotary, const Row<const T>& x, const Row<T>& y) {
  const Row<const T> from = x.part(rotary, x.size - rotary);
  const Row<T> to = y.part(rotary, x.size - rotary);
  const auto rest = team.hold(from, 0);
  team.each(from.size, [&](auto chunk) ROOFTILE_INLINE { team.store(to, chunk, rest[chunk]); });
}

template <Access kAccess, class T>
void turn_tokens(const RopeProblem& p, const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
  CpuTeam<float, Access::cached> room(scratch);
  const std::int64_t part = std::min(p.pairs, kPart);
  Turns turns{0, 0, room.scratch(part).data, room.scratch(2 * part).data, room.scratch(2 * part).data};
  const CpuTeam<float, kAccess> team(scratch, p.dtype);
  do {
    turns.count = std::min(p.pairs - turns.first, kPart);
    find_frequencies(p, turns);
    for (std::int64_t token = begin; token < end; ++token) {
      const std::int64_t b = token / p.length, s = token % p.length;
      find_turns(p, p.position(b, s), turns);
      for (const RopeHeads& heads : {p.q, p.k}) {
        const bool copies = turns.first == 0 && 2 * p.pairs < p.size && !heads.in_place();
        const T* x = static_cast<const T*>(heads.x) + b * heads.x_stride[0] + s * heads.x_stride[1];
        T* y = static_cast<T*>(heads.y) + b * heads.y_stride[0] + s * heads.y_stride[1];
        for (std::int64_t h = 0; h < heads.count; ++h, x += heads.x_stride[2], y += heads.y_stride[2]) {
          const Row<const T> from{x, p.size, heads.x_stride[3], kRowAheadBytes / std::int64_t(sizeof(T))};
          const Row<T> to{y, p.size, heads.y_stride[3]};
          turn_head(team, p.interleaved, turns, p.pairs, from, to);
          if (copies) copy_rest(team, 2 * p.pairs, from, to);
        }
      }
    }
    turns.first += turns.count;
  } while (turns.first < p.pairs);
  if (kAccess == Access::streaming) stream_fence();
}

void launch_rope(const CpuLaunch& launch, const RopeProblem& p) {
  bool dense = true;
  for (const RopeHeads& heads : {p.q, p.k})
    dense = dense && (heads.count == 0 || (heads.x_stride[3] == 1 && heads.y_stride[3] == 1));
  const std::int64_t bytes = p.tokens() * p.heads() * p.size * bits(p.dtype) / 8 * 2;
  with_access(dense, bytes > launch.streaming_bytes, [&]<Access kAccess>() {
    with_row_type<kAccess>(p.dtype, [&]<class T>() {
      for_programs(launch, p.tokens(), bytes,
                   [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                     turn_tokens<kAccess, T>(p, scratch, begin, end);
                   });
    });
  });
}

}  // namespace

ROOFTILE_CPU_KERNELS(rope) = {
    entry<launch_rope>("rope", "tile"),
    entry<launch_rope>("rope_backward", "tile"),
    {},
};

}  // namespace rooftile
