#pragma once
// NVIDIA GPUs' team: a stub, so that every kernel compiles for both machines from its first day. One warp,
// one lane to a thread, one element at a time from memory; nothing launches it: launches, teams of other
// sizes, 16-byte accesses and rows held in registers come with the CUDA backend. Names and meanings are those
// of rooftile/tile/cpu/team.h.
#include <cstddef>

#include "rooftile/tile/cuda/tile.h"

namespace rooftile::tile {
inline namespace cuda {

inline constexpr float kInfinity = __builtin_huge_valf();

/// `size` elements from `data` on, `stride` elements apart.
template <class T>
struct Row {
  T* data;
  std::int64_t size;
  std::int64_t stride = 1;
  std::int64_t ahead = 0;

  /// Up to `count` elements from `begin` on.
  ROOFTILE_TILE
  Row part(std::int64_t begin, std::int64_t count) const {
    return {data + begin * stride, size - begin < count ? size - begin : count, stride, ahead};
  }
};

/// `size` pixels from `data` on, `stride` bytes apart, their channels `channel` bytes apart.
struct Pixels {
  const std::uint8_t* data;
  std::int64_t size;
  std::int64_t stride = 3;
  std::int64_t channel = 1;
  std::int64_t ahead = 0;

  ROOFTILE_TILE
  Pixels part(std::int64_t begin, std::int64_t count) const {
    return {data + begin * stride, size - begin < count ? size - begin : count, stride, channel, ahead};
  }
};
struct PixelTile {
  std::int32_t channel[3];
};
template <int kChannel>
ROOFTILE_TILE Tile<std::int32_t> plane(const PixelTile& pixel) {
  static_assert(0 <= kChannel && kChannel < 3, "rooftile::tile::plane: a pixel has channels 0, 1 and 2");
  return {pixel.channel[kChannel]};
}
/// a · channel 0 + b · channel 1 + c · channel 2, exactly.
ROOFTILE_TILE
Tile<std::int32_t> weigh(const PixelTile& pixel, int a, int b, int c) {
  return {a * pixel.channel[0] + b * pixel.channel[1] + c * pixel.channel[2]};
}
ROOFTILE_TILE
Tile<std::int32_t> multiply_short(Tile<std::int32_t> a, int b) { return {a.v * b}; }

/// The lanes of a step of `each`: all of them, or the row's last few.
template <bool kFull>
struct Chunk {
  std::int64_t first;
  int live;
};

template <class Real_>
class CudaTeam {
 public:
  using Real = Real_;
  using Integer = IntegerOf<Real>;
  using Tile = tile::Tile<Real>;
  using Integers = tile::Tile<Integer>;
  static constexpr int kLanes = 32;

  /// `scratch`: for the rows that scratch() gives out.
  ROOFTILE_TILE
  explicit CudaTeam(std::byte* scratch) : scratch_(scratch) {}

  ROOFTILE_TILE
  void walk_once() {}

  ROOFTILE_TILE
  Tile fill(Real value) const { return {value}; }
  template <bool kFull>
  ROOFTILE_TILE Integers iota(Chunk<kFull> chunk) const {
    return {static_cast<Integer>(chunk.first) + lane()};
  }

  /// Every thread takes every step, also those whose lane is no element: a body may reduce.
  template <class Body>
  ROOFTILE_TILE void each(std::int64_t size, Body&& body) const {
    std::int64_t first = 0;
    for (; first + kLanes <= size; first += kLanes) body(Chunk<true>{first, kLanes});
    if (first < size) body(Chunk<false>{first, static_cast<int>(size - first)});
  }
  template <bool kFull>
  ROOFTILE_TILE Tile only(Chunk<kFull> chunk, Tile value, Real other) const {
    return lane() < chunk.live ? value : fill(other);
  }

  template <class T, bool kFull>
  ROOFTILE_TILE Tile load(Row<const T> x, Chunk<kFull> chunk, Real other = 0) const {
    return lane() < chunk.live ? fill(widen<Real>(x.data[(chunk.first + lane()) * x.stride])) : fill(other);
  }
  template <class T, bool kFull>
  ROOFTILE_TILE Integers load_integers(Row<const T> x, Chunk<kFull> chunk) const {
    return {lane() < chunk.live ? widen<Integer>(x.data[(chunk.first + lane()) * x.stride]) : Integer{0}};
  }
  template <class T, class S, bool kFull>
  ROOFTILE_TILE void store(Row<T> y, Chunk<kFull> chunk, const tile::Tile<S>& value) const {
    if (lane() < chunk.live) y.data[(chunk.first + lane()) * y.stride] = narrow<T>(value.v);
  }
  template <int kPlanes, bool kFull>
  ROOFTILE_TILE void load_planes(Row<const std::uint8_t> x, Chunk<kFull> chunk,
                                 Integers (&planes)[kPlanes]) const {
    for (int c = 0; c < kPlanes; ++c)
      planes[c] = {lane() < chunk.live ? x.data[(chunk.first + lane()) * x.stride + c] : Integer{0}};
  }
  template <class T>
  ROOFTILE_TILE Tile round_to(const Tile& t) const {
    return {widen<Real>(narrow<T>(t.v))};
  }

  ROOFTILE_TILE
  Real sum(Tile t) const {
    return reduce(t, [](Tile a, Tile b) { return a + b; });
  }
  ROOFTILE_TILE
  Real max(Tile t) const {
    return reduce(t, [](Tile a, Tile b) { return tile::max(a, b); });
  }
  ROOFTILE_TILE
  Real min(Tile t) const {
    return reduce(t, [](Tile a, Tile b) { return tile::min(a, b); });
  }

  template <class T>
  struct Held {
    CudaTeam team;
    Row<const T> row;
    Real other;
    template <bool kFull>
    ROOFTILE_TILE Tile operator[](Chunk<kFull> chunk) const {
      return team.load(row, chunk, other);
    }
  };
  template <class T>
  ROOFTILE_TILE Held<T> hold(Row<const T> row, Real other) {
    return {*this, row, other};
  }
  struct HeldPixels {
    Pixels row;
    template <bool kFull>
    ROOFTILE_TILE PixelTile operator[](Chunk<kFull> chunk) const {
      PixelTile pixel{};
      if (lane() < chunk.live)
        for (int c = 0; c < 3; ++c)
          pixel.channel[c] = row.data[(chunk.first + lane()) * row.stride + c * row.channel];
      return pixel;
    }
  };
  ROOFTILE_TILE
  HeldPixels hold(const Pixels& row) const { return {row}; }

  /// A computed row. Each thread reads only what it wrote, so no barrier is needed.
  struct Scratch {
    Real* data;
    struct Place {
      using Lane = Real;
      Real* p;
      ROOFTILE_TILE
      operator Tile() const { return {*p}; }
      ROOFTILE_TILE
      Tile operator=(const Tile& t) const {
        *p = t.v;
        return t;
      }
    };
    template <bool kFull>
    ROOFTILE_TILE Place operator[](Chunk<kFull> chunk) const {
      return {data + chunk.first + lane()};
    }
  };
  ROOFTILE_TILE
  Scratch scratch(std::int64_t size) {
    Scratch s{reinterpret_cast<Real*>(scratch_)};
    scratch_ += (size + kLanes - 1) / kLanes * kLanes * std::int64_t(sizeof(Real));
    return s;
  }

  /// Column accumulators: sums over a fixed block of rows, one for each column.
  struct Columns {
    CudaTeam team;
    Row<Real> sums;
    bool first;
    template <bool kFull>
    ROOFTILE_TILE void add(Chunk<kFull> chunk, Tile t) const {
      if (!first) t = team.load(Row<const Real>{sums.data, sums.size}, chunk) + t;
      team.store(sums, chunk, t);
    }
    template <bool kFull>
    ROOFTILE_TILE void add_product(Chunk<kFull> chunk, const Tile& a, const Tile& b) const {
      const Tile t = first ? a * b : fma(a, b, team.load(Row<const Real>{sums.data, sums.size}, chunk));
      team.store(sums, chunk, t);
    }
  };
  ROOFTILE_TILE
  Columns columns(Row<Real> sums, bool first) const { return {*this, sums, first}; }

 private:
  ROOFTILE_TILE
  static int lane() { return static_cast<int>(threadIdx.x % kLanes); }

  /// The upper half of the lanes folded onto the lower, and so on: the CPU's tree. All threads get lane 0's
  /// result.
  template <class Operation>
  ROOFTILE_TILE static Real reduce(Tile t, Operation operation) {
    for (int half = kLanes / 2; half > 0; half /= 2)
      t = operation(t, Tile{__shfl_down_sync(0xffffffffu, t.v, half)});
    return __shfl_sync(0xffffffffu, t.v, 0);
  }

  std::byte* scratch_;
};

}  // namespace cuda
}  // namespace rooftile::tile
