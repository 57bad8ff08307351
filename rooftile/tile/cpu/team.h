#pragma once
// The CPU's team: one thread with its vector registers. It gives kernels their chunks, and decides how memory
// is reached; the arithmetic is the kernel's alone, so every way of access gives the same bits.
#include <cassert>
#include <cstddef>
#include <limits>

#include "rooftile/core/convert.h"
#include "rooftile/core/plugin.h"
#include "rooftile/tile/cpu/pixels.h"
#include "rooftile/tile/cpu/tile.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// `size` elements from `data` on, `stride` elements apart. `ahead`: elements from this row to one that this
/// thread will need soon; 0: none.
template <class T>
struct Row {
  T* data;
  std::int64_t size;
  std::int64_t stride = 1;
  std::int64_t ahead = 0;

  /// Up to `count` elements from `begin` on.
  ROOFTILE_TILE Row part(std::int64_t begin, std::int64_t count) const {
    return {data + begin * stride, size - begin < count ? size - begin : count, stride, ahead};
  }
};

/// How a call reaches memory.
enum class Access {
  cached,     ///< rows are dense; what is written is likely to be read soon
  streaming,  ///< rows are dense; the call moves more than the caches hold: prefetch, and store past them
  strided,    ///< elements may lie apart
};

/// An element of strided rows: f16 or bf16, the team knows which. Where each load and store is a call anyway,
/// one copy of a kernel serves both.
struct AnyHalf {
  std::uint16_t bits;
};

/// A thread's scratch, or what is left of it. Of a launch (rooftile/tile/cpu/launch.h), or kScratchBytes that
/// begin somewhere.
struct ThreadScratch {
  std::byte *begin, *end;
  std::int64_t* wanted = nullptr;  ///< CpuLaunch::scratch_wanted

  ROOFTILE_TILE ThreadScratch(std::byte* bytes, std::int64_t* missing = nullptr)
      : begin(bytes), end(bytes ? bytes + kScratchBytes : bytes), wanted(missing) {}
  /// Tells the launch by how much a request for `bytes` is too large. A call: nothing of the team escapes.
  __attribute__((noinline)) static void refuse(std::int64_t* wanted, std::int64_t missing) {
#if defined(ROOFTILE_ASSERTIONS)  // debug builds
    assert(!"team.scratch: more than a thread's 256 KiB; give such rows to a variant that holds none");
#endif
    if (wanted) __atomic_store_n(wanted, missing, __ATOMIC_RELAXED);
  }
};

/// The scratch of a call's `task`; of a kernel that has but one thread, its.
inline ThreadScratch scratch_of(const CpuLaunch& launch, int task = 0) {
  return {launch.scratch + kScratchBytes * static_cast<std::size_t>(task), launch.scratch_wanted};
}

/// The lanes of a step of `each`: all of them, or the row's last few.
template <bool kFull>
struct Chunk {
  std::int64_t first;  ///< index of its first element
  int live;            ///< lanes that are elements
};

template <class Real_, Access kAccess>
class CpuTeam {
 public:
  using Real = Real_;
  using Integer = IntegerOf<Real>;
  using Tile = tile::Tile<Real>;
  using Integers = tile::Tile<Integer>;
  static constexpr int kLanes = tile::kLanes<Real>;
  static constexpr bool kHoldsRows = false;  // what is held is read again, from the cache
  static constexpr Access kReads = kAccess;
  static constexpr bool kOverlapsRows = true;  // rows(): one is written while the next is read

  /// `scratch`: for the rows that scratch() gives out. `half`: what an AnyHalf is.
  ROOFTILE_TILE explicit CpuTeam(const ThreadScratch& scratch, DType half = DType::f16)
      : scratch_(scratch),
        half_(half),
        refused_(scratch.wanted && __atomic_load_n(scratch.wanted, __ATOMIC_RELAXED) != 0) {}

  /// What an AnyHalf is.
  ROOFTILE_TILE DType half() const { return half_; }

  /// The kernel reads a row in one pass, while it writes the row before: coming rows are asked for in that
  /// pass, not in a second one.
  ROOFTILE_TILE void one_pass() { pass_ = 1; }

  /// The elements of a row that are worth a pass of their own before the one that computes: an eighth.
  ROOFTILE_TILE std::int64_t sample(std::int64_t size) const {
    const std::int64_t eighth = (size + 8 * kLanes - 1) / (8 * kLanes) * kLanes;
    return eighth < size ? eighth : size;
  }

  ROOFTILE_TILE Tile fill(Real value) const { return tile::fill<Real>(value); }

  /// The index of each lane's element in its row.
  template <bool kFull>
  ROOFTILE_TILE Integers iota(Chunk<kFull> chunk) const {
    constexpr int kWidth = kVecLanes<Real>;
    Integers r;
    ROOFTILE_EACH_VECTOR(r.v[i] =
                             lane_indices<Integer>(std::make_index_sequence<kWidth>()) + Integer(i * kWidth));
    return r + static_cast<Integer>(chunk.first);
  }

  /// Calls body(chunk) along `size` elements: full chunks first, then the tail, so the main loop has no mask.
  /// Elements that lie apart take longer to fetch than a mask: there, all chunks are treated as the tail is.
  template <class Body>
  ROOFTILE_TILE void each(std::int64_t size, Body&& body) const {
    if (refused_) return;
    std::int64_t first = 0;
    if constexpr (kAccess == Access::strided) {
      for (; first < size; first += kLanes)
        body(Chunk<false>{first, size - first < kLanes ? static_cast<int>(size - first) : kLanes});
      return;
    }
    for (; first + kLanes <= size; first += kLanes) {
      move(first);
      body(Chunk<true>{first, kLanes});
    }
    if (first < size) body(Chunk<false>{first, static_cast<int>(size - first)});
    ++pass_;
  }

  /// each(), which calls between() after every kPart elements that are not the last.
  static constexpr std::int64_t kPart = 32768;
  template <class Body, class Between>
  ROOFTILE_TILE void each_in_parts(std::int64_t size, Body&& body, Between&& between) const {
    if (refused_) return;
    std::int64_t first = 0;
    for (std::int64_t end = kPart;; end += kPart) {
      const std::int64_t stop = size < end ? size : end;
      if constexpr (kAccess == Access::strided) {
        for (; first < stop; first += kLanes)
          body(Chunk<false>{first, size - first < kLanes ? static_cast<int>(size - first) : kLanes});
      } else {
        for (; first + kLanes <= stop; first += kLanes) {
          move(first);
          body(Chunk<true>{first, kLanes});
        }
      }
      if (stop == size) break;
      between();
    }
    if (first < size) body(Chunk<false>{first, static_cast<int>(size - first)});
    ++pass_;
  }

  /// Calls step(i, reads, writes), i from `begin` to `end`: row i is to be read, unless it is `end`; row i -
  /// 1 is to be written, unless it was none. Both in one step: memory and arithmetic work at once. Where a
  /// step says false, it did nothing but find that row i - 1 needs more than steps do: i; else end + 1.
  template <class Step>
  ROOFTILE_TILE std::int64_t rows(std::int64_t begin, std::int64_t end, Step&& step) const {
    std::int64_t i = begin;
    if constexpr (std::is_void_v<decltype(step(i, true, true))>)
      for (; i <= end; ++i) step(i, i<end, i> begin);
    else
      while (i <= end && step(i, i<end, i> begin)) ++i;
    return i;
  }

  /// `value` in the lanes that are elements, `other` in the tail's empty ones.
  ROOFTILE_TILE Tile only(Chunk<true>, const Tile& value, Real) const { return value; }
  ROOFTILE_TILE Tile only(Chunk<false> chunk, const Tile& value, Real other) const {
    const Mask<Integer> live = iota(Chunk<false>{0, 0}) < static_cast<Integer>(chunk.live);
    return select(live, value, fill(other));
  }

  template <class T, bool kFull>
  ROOFTILE_TILE Tile load(Row<const T> x, Chunk<kFull> chunk, Real other = 0) const {
    return load_as<Real>(x, chunk, other, half_);
  }
  /// The same into integers of the lanes' width.
  template <class T, bool kFull>
  ROOFTILE_TILE Integers load_integers(Row<const T> x, Chunk<kFull> chunk) const {
    return load_as<Integer>(x, chunk, Integer{0}, half_);
  }
  template <class T, class S, bool kFull>
  ROOFTILE_TILE void store(Row<T> y, Chunk<kFull> chunk, const tile::Tile<S>& value) const;

  /// Two numbers that belong to the row, each where it goes or nowhere.
  template <class T>
  ROOFTILE_TILE void store_scalars(T* to, Real value, T* second_to, Real second) const {
    if (to) *to = static_cast<T>(value);
    if (second_to) *second_to = static_cast<T>(second);
  }

  /// `kPlanes` interleaved channels, element by element: red, green and blue of each pixel. x counts pixels;
  /// its stride is from pixel to pixel.
  template <int kPlanes, bool kFull>
  ROOFTILE_TILE void load_planes(Row<const std::uint8_t> x, Chunk<kFull> chunk,
                                 Integers (&planes)[kPlanes]) const;

  /// The tile as memory of type T would hold it.
  template <class T>
  ROOFTILE_TILE Tile round_to(const Tile& t) const;

  /// What a pass over a row adds up: `sums[chunk] += …`. A GPU's team may need more than one tile for it.
  struct Accumulator {
    Tile tile;
    template <bool kFull>
    ROOFTILE_TILE Tile& operator[](Chunk<kFull>) {
      return tile;
    }
    ROOFTILE_TILE operator const Tile&() const { return tile; }

    /// A lane's rounding errors grow with its terms (2^22 random numbers, baseline: 4.2e-4 of their sum). So
    /// the sum of each part of a long row is put aside, with what that addition rounds off.
    struct Aside {
      Tile sum{}, lost{};
    };
    ROOFTILE_TILE void put_aside(Aside& to) {
      const Tile whole = to.sum + tile, added = whole - to.sum;
      to.lost += (to.sum - (whole - added)) + (tile - added);
      to.sum = whole;
      tile = tile::fill<Real>(0);
    }
    ROOFTILE_TILE void bring_back(const Aside& from) {
      const Tile whole = from.sum + tile;  // of an infinite one nothing is known that was lost
      tile = select(from.lost == from.lost, from.sum + (tile + from.lost), whole);
    }
  };
  ROOFTILE_TILE Accumulator accumulator() const { return {fill(0)}; }
  ROOFTILE_TILE Real sum(const Tile& t) const { return reduce_sum(t); }
  ROOFTILE_TILE Real product(const Tile& t) const { return reduce_product(t); }
  /// Both at once, which on a GPU costs one.
  struct Sums {
    Real first, second;
  };
  ROOFTILE_TILE Sums sums(const Tile& a, const Tile& b) const { return {reduce_sum(a), reduce_sum(b)}; }
  ROOFTILE_TILE Real max(const Tile& t) const { return reduce_max(t); }
  ROOFTILE_TILE Real min(const Tile& t) const { return reduce_min(t); }

  /// A row that is read more than once. On a CPU the cache holds it, so each use loads again.
  template <class T>
  struct Held {
    Row<const T> row;
    Real other;
    DType half;
    template <bool kFull>
    ROOFTILE_TILE Tile operator[](Chunk<kFull> chunk) const {
      return load_as<Real>(row, chunk, other, half);
    }
  };
  template <class T>
  ROOFTILE_TILE Held<T> hold(Row<const T> row, Real other) {
    if constexpr (kAccess == Access::streaming) {
      if (streams_ < kStreams && row.ahead != 0)
        stream_[streams_++] = {reinterpret_cast<const char*>(row.data), row.ahead * std::int64_t(sizeof(T)),
                               int(sizeof(T))};
    }
    return {row, other, half_};
  }

  /// Of the whole row; a team of a GPU may see a part of it.
  template <class T>
  ROOFTILE_TILE std::int64_t length(const Row<T>& row) const {
    return row.size;
  }
  /// The largest of scale.unit · x over a held row, whose empty lanes are `below_all(scale)`; `deep` is a
  /// GPU's. The sign is one for the row: no element is multiplied.
  struct RowMax {
    Real value;
    static constexpr bool deep = false;
  };
  template <class T>
  ROOFTILE_TILE RowMax row_max(const Held<T>& x, std::int64_t size, const SplitScale& scale) const {
    Tile maxima = fill(below_all(scale));
    if (scale.unit < 0) {
      each(size, [&](auto chunk) ROOFTILE_INLINE { maxima = tile::min(maxima, x[chunk]); });
      return {min(maxima) * scale.unit};
    }
    each(size, [&](auto chunk) ROOFTILE_INLINE { maxima = tile::max(maxima, x[chunk]); });
    return {max(maxima) * scale.unit};
  }
  /// Σ of the exponentials from there. On a GPU a warp's maximum may not be the row's: `factor` brings its
  /// exponentials to it.
  struct Total {
    Real row_max, sum, factor;
  };
  ROOFTILE_TILE Total total(const RowMax& row_max, const Tile& sums, const SplitScale&) const {
    return {row_max.value, sum(sums), 1};
  }
  static constexpr Real below_all(const SplitScale& scale) { return scale.unit < 0 ? kInfinity : -kInfinity; }

  /// A row of pixels that is read once, in order. Its lines are asked for ahead in the cache, too: that costs
  /// nothing there (3.9 ns for 64 pixels), and a picture that is small and cold gains a fifth (7.6 ns, 6.2).
  struct HeldPixels {
    Pixels row;
    template <bool kFull>
    ROOFTILE_TILE PixelTile operator[](Chunk<kFull> chunk) const {
      static_assert(kLanes == kPixelLanes, "rooftile::tile::hold: pixels need a team of float lanes");
      if constexpr (kAccess != Access::strided && kFull) {
        const std::uint8_t* soon = row.data + (chunk.first + row.ahead) * row.stride;
        if (row.ahead != 0)
          for (std::int64_t b = 0; b < kLanes * row.stride; b += 64) __builtin_prefetch(soon + b, 0, 3);
      }
      return load_pixels<kFull>(row, chunk.first, chunk.live);
    }
  };
  ROOFTILE_TILE HeldPixels hold(const Pixels& row) const { return {row}; }

  /// A computed row, in this thread's part of the cache. Reads of lanes past the end give what was written
  /// there.
  struct Scratch {
    Real* data;
    struct Place {
      using Lane = Real;
      Real* p;
      ROOFTILE_TILE operator Tile() const {
        Tile t;
        ROOFTILE_EACH_VECTOR(t.v[i] = load_unaligned<Vec<Real>>(p + i * kVecLanes<Real>));
        return t;
      }
      ROOFTILE_TILE const Tile& operator=(const Tile& t) const {
        ROOFTILE_EACH_VECTOR(store_unaligned(p + i * kVecLanes<Real>, t.v[i]));
        return t;
      }
    };
    template <bool kFull>
    ROOFTILE_TILE Place operator[](Chunk<kFull> chunk) const {
      return {data + chunk.first};
    }
  };
  /// Room for `size` elements and the tail's empty lanes. A kernel's scratch rows together fit kScratchBytes:
  /// after a request that does not, each() does nothing, and the call is refused.
  ROOFTILE_TILE Scratch scratch(std::int64_t size) {
    Scratch s{reinterpret_cast<Real*>(scratch_.begin)};
    const std::int64_t bytes = (size + kLanes - 1) / kLanes * kLanes * std::int64_t(sizeof(Real));
    const std::int64_t missing = bytes - (scratch_.end - scratch_.begin);
    if (missing > 0) [[unlikely]] {
      ThreadScratch::refuse(scratch_.wanted, missing);
      refused_ = true;
    } else {
      scratch_.begin += bytes;
    }
    return s;
  }
  /// What scratch() has not given out.
  ROOFTILE_TILE ThreadScratch rest() const { return scratch_; }

  /// Column accumulators: sums over a fixed block of rows, one for each column, in a row of the workspace
  /// that stays in the cache. The `first` row of the block begins the sums; after the last comes write().
  struct Columns {
    Row<Real> sums;
    template <bool kFull>
    ROOFTILE_TILE void add(Chunk<kFull> chunk, const Tile& t, bool first) const {
      const CpuTeam<Real, Access::cached> memory(nullptr);
      // Each branch stores by itself: a tile that comes from one of two places would be passed through
      // memory.
      if (first) {
        memory.store(sums, chunk, t);
      } else {
        memory.store(sums, chunk, memory.load(Row<const Real>{sums.data, sums.size}, chunk) + t);
      }
    }
    /// Adds a · b, fused.
    template <bool kFull>
    ROOFTILE_TILE void add_product(Chunk<kFull> chunk, const Tile& a, const Tile& b, bool first) const {
      const CpuTeam<Real, Access::cached> memory(nullptr);
      if (first) {
        memory.store(sums, chunk, a * b);
      } else {
        memory.store(sums, chunk, fma(a, b, memory.load(Row<const Real>{sums.data, sums.size}, chunk)));
      }
    }
    ROOFTILE_TILE void write() const {}
  };
  ROOFTILE_TILE Columns columns(Row<Real> sums) const { return {sums}; }

 private:
  template <class S, class T, bool kFull>
  ROOFTILE_TILE static tile::Tile<S> load_as(Row<const T> x, Chunk<kFull> chunk, S other, DType half);

  /// Memory's work beside a chunk's arithmetic. Coming rows are asked for into the second cache, where many
  /// more lines can be on their way than into the first (softmax of 4096 columns from memory, Zen 4: 0.36 of
  /// a copy where they are asked for into the first, 0.53), in a pass other than the first, which is short.
  /// This row's own come from there to the first, shortly before their use (layer_norm: 0.61 without, 0.75).
  ROOFTILE_TILE void move(std::int64_t first) const {
    if constexpr (kAccess == Access::streaming) {
      for (int s = 0; s < streams_; ++s) {
        const int bytes = kLanes * stream_[s].element_bytes;
        const char* here = stream_[s].data + first * stream_[s].element_bytes;
        for (int b = 0; b < bytes; b += 64) __builtin_prefetch(here + kNearBytes + b, 0, 3);
        if (pass_ > 0)
          for (int b = 0; b < bytes; b += 64) __builtin_prefetch(here + stream_[s].ahead + b, 0, 2);
      }
    }
  }

  static constexpr int kNearBytes = 2048;
  static constexpr int kStreams = 3;
  struct Stream {
    const char* data;
    std::int64_t ahead;
    int element_bytes;
  };
  ThreadScratch scratch_;
  DType half_;
  bool refused_;          // a request for scratch did not fit: rows stay as they are
  mutable int pass_ = 0;  // passes over the row so far
  int streams_ = 0;
  Stream stream_[kStreams];
};

/// The largest element of a held row; on a GPU of a warp's part of it.
template <class Team, class T>
ROOFTILE_TILE float part_max(const Team& team, const Row<const T>&, const auto& held, std::int64_t size) {
  auto most = team.fill(-kInfinity);
  team.each(size,
            [&](auto chunk) ROOFTILE_INLINE { most = max(most, team.only(chunk, held[chunk], -kInfinity)); });
  return team.max(most);
}
/// One element, by its index in the row.
template <class Team, class T>
ROOFTILE_TILE typename Team::Real element(const Team& team, const Row<const T>& x, std::int64_t index) {
  const T value = x.data[index * x.stride];
  if constexpr (std::is_same_v<T, AnyHalf>)
    return team.half() == DType::f16 ? to_float(f16{value.bits}) : to_float(bf16{value.bits});
  else if constexpr (std::is_arithmetic_v<T>)
    return static_cast<typename Team::Real>(value);
  else
    return to_float(value);
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile

#include "rooftile/tile/cpu/access.h"
