#include <algorithm>

#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/rope/rope.problem.h"
#include "rooftile/ops/rope/rope.tile.h"
#include "rooftile/tile/cuda/elements.h"

namespace rooftile {
namespace {
using namespace tile;

constexpr int kThreads = 256;
/// Cosines and sines of a block: of all its tokens, and as many pairs at a time.
constexpr int kMaxTurns = 1024, kMaxTokens = 64;
/// 16-byte vectors of a thread, twice as many read as written before it ends.
constexpr int kItemsPerThread = 4;

/// How a launch is cut.
struct Cut {
  int tokens;  ///< of a block
  int pairs;   ///< at a time
};

/// Where a token's queries and keys begin, and go.
struct Places {
  std::int64_t x[2], y[2];
};

/// Two rows of kItems products: halves that belong together, or pairs of neighbours.
template <int kItems>
ROOFTILE_TILE void turn_items(bool interleaved, const float* cosine, const float* sine,
                              Tile<float, kItems>& u, Tile<float, kItems>& v) {
  const auto turn = [](float& a, float& b, float c, float s) {
    const float first = fused(a, c, -(b * s));
    b = fused(b, c, a * s);
    a = first;
  };
  if (kItems == 1 || !interleaved) {
    ROOFTILE_UNROLL for (int i = 0; i < kItems; ++i) turn(u.v[i], v.v[i], cosine[i], sine[i]);
    return;
  }
  if constexpr (kItems > 1) ROOFTILE_UNROLL for (int i = 0; i < kItems; i += 2) {
      turn(u.v[i], u.v[i + 1], cosine[i / 2], sine[i / 2]);
      turn(v.v[i], v.v[i + 1], cosine[(kItems + i) / 2], sine[(kItems + i) / 2]);
    }
}

// [kernel]
/// A block has a few tokens: it finds their cosines and sines, a thread for each, and then turns all heads.
/// kWords: every head is whole 16-byte vectors, of which a thread takes two at a time.
template <class T, bool kWords>
__global__ void __launch_bounds__(kThreads) turn(const __grid_constant__ RopeProblem p, const Cut cut) {
  ROOFTILE_SHARED(frequencies, float[kMaxTurns]);
  ROOFTILE_SHARED(cosines, float[kMaxTurns]);
  ROOFTILE_SHARED(sines, float[kMaxTurns]);
  ROOFTILE_SHARED(positions, double[kMaxTokens]);
  ROOFTILE_SHARED(places, Places[kMaxTokens]);
  constexpr int kItems = kWords ? 16 / int(sizeof(T)) : 1;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t first_token = std::int64_t{blockIdx.x} * cut.tokens, rest = p.tokens() - first_token;
  const int tokens = rest < cut.tokens ? static_cast<int>(rest) : cut.tokens;
  if (thread < tokens) {
    const std::int64_t token = first_token + thread, b = token / p.length, s = token - b * p.length;
    positions[thread] = p.position(b, s);
    places[thread] = {{b * p.q.x_stride[0] + s * p.q.x_stride[1], b * p.k.x_stride[0] + s * p.k.x_stride[1]},
                      {b * p.q.y_stride[0] + s * p.q.y_stride[1], b * p.k.y_stride[0] + s * p.k.y_stride[1]}};
  }
  const auto heads = static_cast<unsigned>(p.q.count + p.k.count), of_q = static_cast<unsigned>(p.q.count);
  /// Calls f(x, y, heads, token) for item `index` of `each` in a head, which it makes an index there.
  const auto with_head = [&](unsigned& index, unsigned each, auto f) {
    unsigned head = index / each;
    index -= head * each;
    const unsigned token = head / heads;
    head -= token * heads;
    const int which = head < of_q ? 0 : 1;
    const RopeHeads& its = which == 0 ? p.q : p.k;
    if (which == 1) head -= of_q;
    f(static_cast<const T*>(its.x) + places[token].x[which] + head * its.x_stride[2],
      static_cast<T*>(its.y) + places[token].y[which] + head * its.y_stride[2], its, token);
  };

  for (std::int64_t first = 0; first < p.pairs; first += cut.pairs) {
    const int pairs = p.pairs - first < cut.pairs ? static_cast<int>(p.pairs - first) : cut.pairs;
    for (int i = thread; i < pairs; i += kThreads)
      frequencies[i] = p.inv_freq ? p.inv_freq[(first + i) * p.inv_freq_stride]
                                  : static_cast<float>(::pow(p.base, -double(first + i) / double(p.pairs)));
    __syncthreads();  // frequencies, and at first places
    for (int i = thread; i < pairs * tokens; i += kThreads) {
      const int token = i / pairs;
      Tile<double, 1> cosine, sine;
      kernels::rope_turn(Tile<double, 1>{{positions[token] * frequencies[i - token * pairs]}}, cosine, sine);
      cosines[i] = static_cast<float>(cosine.v[0] * p.cosine_factor);
      sines[i] = static_cast<float>(sine.v[0] * p.sine_factor);
    }
    __syncthreads();
    const auto each = static_cast<unsigned>(pairs / kItems),
               items = each * heads * static_cast<unsigned>(tokens);
    for (unsigned item = static_cast<unsigned>(thread); item < items; item += kThreads) {
      unsigned at = item;
      with_head(at, each, [&](const T* x, T* y, const RopeHeads& its, unsigned token) {
        const int pair = static_cast<int>(at) * kItems;
        const std::int64_t u_at = p.interleaved ? 2 * (first + pair) : first + pair,
                           v_at = p.interleaved ? u_at + kItems : u_at + p.pairs;
        const int turns = static_cast<int>(token) * pairs + pair;
        Tile<float, kItems> u, v;
        if constexpr (kWords) {
          Pack<T, kItems> from_u, from_v;
          from_u.set_word(0, *reinterpret_cast<const uint4*>(x + u_at));
          from_v.set_word(0, *reinterpret_cast<const uint4*>(x + v_at));
          ROOFTILE_UNROLL for (int i = 0; i < kItems; ++i) {
            u.v[i] = widen<float>(from_u.get(i));
            v.v[i] = widen<float>(from_v.get(i));
          }
        } else {
          u.v[0] = widen<float>(x[u_at * its.x_stride[3]]);
          v.v[0] = widen<float>(x[v_at * its.x_stride[3]]);
        }
        turn_items<kItems>(p.interleaved, &cosines[turns], &sines[turns], u, v);
        if constexpr (kWords) {
          *reinterpret_cast<uint4*>(y + u_at) = narrowed<T>(u).word(0);
          *reinterpret_cast<uint4*>(y + v_at) = narrowed<T>(v).word(0);
        } else {
          y[u_at * its.y_stride[3]] = narrow<T>(u.v[0]);
          y[v_at * its.y_stride[3]] = narrow<T>(v.v[0]);
        }
      });
    }
    __syncthreads();  // the next part's frequencies take their place
  }
  if (p.pairs == 0) __syncthreads();  // places
  // What does not turn.
  const std::int64_t size = p.size - 2 * p.pairs;
  for (std::int64_t begin = 0; begin < size; begin += kMaxTurns) {
    const auto each = static_cast<unsigned>(size - begin < kMaxTurns ? size - begin : kMaxTurns);
    const unsigned items = each / kItems * heads * static_cast<unsigned>(tokens);
    for (unsigned item = static_cast<unsigned>(thread); item < items; item += kThreads) {
      unsigned at = item;
      with_head(at, each / kItems, [&](const T* x, T* y, const RopeHeads& its, unsigned) {
        if (its.in_place()) return;
        const std::int64_t element = 2 * p.pairs + begin + std::int64_t{at} * kItems;
        if constexpr (kWords)
          *reinterpret_cast<uint4*>(y + element) = *reinterpret_cast<const uint4*>(x + element);
        else
          y[element * its.y_stride[3]] = x[element * its.x_stride[3]];
      });
    }
  }
}
// [/kernel]

/// Whether every head is whole 16-byte vectors, and so are its halves and what is copied.
bool in_words(const RopeProblem& p, std::int64_t items) {
  if (p.pairs % items != 0 || p.size % items != 0) return false;
  for (const RopeHeads* heads : {&p.q, &p.k}) {
    if (heads->count == 0) continue;
    if (reinterpret_cast<std::uintptr_t>(heads->x) % 16 != 0 ||
        reinterpret_cast<std::uintptr_t>(heads->y) % 16 != 0)
      return false;
    for (const std::int64_t* stride : {heads->x_stride, heads->y_stride})
      if (stride[3] != 1 || stride[0] % items != 0 || stride[1] % items != 0 || stride[2] % items != 0)
        return false;
  }
  return true;
}

Status launch_rope(const CudaLaunch& launch, const RopeProblem& p) {
  const std::int64_t tokens = p.tokens(), heads = p.heads();
  if (tokens == 0 || heads == 0 || p.size == 0) return {};
  constexpr std::int64_t kMaxItems = std::int64_t{1} << 30;  // of a block, which counts them in 32 bits
  if (heads > kMaxItems / kMaxTurns)
    return Status::error("rope: %lld heads are more than the %lld of a block", static_cast<long long>(heads),
                         static_cast<long long>(kMaxItems / kMaxTurns));
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() -> Status {
    const bool words = in_words(p, 16 / int(sizeof(T)));
    const std::int64_t items = words ? 16 / int(sizeof(T)) : 1;
    Cut cut{1, static_cast<int>(std::min<std::int64_t>(std::max<std::int64_t>(p.pairs, 1), kMaxTurns))};
    // As many tokens as give each thread something to do, while every multiprocessor has blocks.
    const std::int64_t each = std::max<std::int64_t>(1, heads * p.size / (2 * items));
    const std::int64_t wanted = std::min<std::int64_t>(kThreads * kItemsPerThread / each,
                                                       tokens / (std::int64_t{8} * launch.multiprocessors));
    cut.tokens = static_cast<int>(
        std::clamp<std::int64_t>(wanted, 1, std::min<std::int64_t>(kMaxTokens, kMaxTurns / cut.pairs)));
    const std::int64_t blocks = (tokens + cut.tokens - 1) / cut.tokens;
    if (blocks > kMaxBlocks)
      return Status::error("rope: %lld tokens take more blocks than the %lld of a launch",
                           static_cast<long long>(tokens), static_cast<long long>(kMaxBlocks));
    return rooftile::cuda::launch(launch, "rope", {static_cast<unsigned>(blocks), kThreads},
                                  words ? turn<T, true> : turn<T, false>, p, cut);
  });
}

}  // namespace

ROOFTILE_CUDA_KERNELS(rope) = {
    entry<launch_rope>("rope", "tile"),
    entry<launch_rope>("rope_backward", "tile"),
    {},
};

}  // namespace rooftile
