#pragma once
// How a team's chunks are read and written: dense or strided, whole or in part, through the caches or past
// them.
#include <cstring>

#include "rooftile/tile/cpu/team.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// Lanes of vector `i` that are elements, when `live` lanes of the tile are.
template <class S>
ROOFTILE_TILE int live_in_vector(int live, int i) {
  const int rest = live - i * kVecLanes<S>;
  return rest < 0 ? 0 : rest > kVecLanes<S> ? kVecLanes<S> : rest;
}

template <class S, class T>
ROOFTILE_TILE Tile<S> load_whole(const T* p) {
  Tile<S> r;
  if constexpr (std::is_same_v<T, bf16> && kVectorBytes == 64) {
    widen_pair(p, r.v[0], r.v[1]);
    widen_pair(p + 32, r.v[2], r.v[3]);
  } else {
    ROOFTILE_EACH_VECTOR(widen(p + i * kVecLanes<S>, r.v[i]));
  }
  return r;
}
template <class S, class T>
ROOFTILE_TILE void store_whole(T* p, const Tile<S>& t) {
  if constexpr (sizeof(T) == 1) {
    store_unaligned(p, narrow_all(t.v));
  } else if constexpr (std::is_same_v<T, bf16> && kVectorBytes == 64) {
    store_unaligned(p, narrow_pair(t.v[0], t.v[1]));
    store_unaligned(p + 32, narrow_pair(t.v[2], t.v[3]));
  } else {
    ROOFTILE_EACH_VECTOR(store_unaligned(p + i * kVecLanes<S>, narrow(t.v[i], p)));
  }
}

// A row's last elements without masks, and elements that lie apart, go through a small buffer: as calls,
// since a kernel has a dozen such places, and inlined they take a sixth of the time to compile. Bytes are
// moved, as all other loads and stores here do: copy's words are of any dtype and begin at any byte.
template <class S, class T>
__attribute__((noinline)) Tile<S> gather_part(const T* p, std::int64_t stride, int live, S other) {
  alignas(64) T elements[kLanes<S>] = {};
  for (int k = 0; k < live; ++k) std::memcpy(&elements[k], p + k * stride, sizeof(T));
  alignas(64) S lanes[kLanes<S>];
  store_whole(lanes, load_whole<S>(elements));
  for (int k = live; k < kLanes<S>; ++k) lanes[k] = other;
  return load_whole<S>(lanes);
}
template <class S, class T>
__attribute__((noinline)) void scatter_part(T* p, std::int64_t stride, int live, const Tile<S>& t) {
  alignas(64) T elements[kLanes<S>];
  store_whole(elements, t);
  for (int k = 0; k < live; ++k) std::memcpy(p + k * stride, &elements[k], sizeof(T));
}

template <class S, class T>
ROOFTILE_TILE Tile<S> load_part(const T* p, int live, S other) {
  if constexpr (kHasMaskedLoads) {
    Tile<S> r;
    ROOFTILE_EACH_VECTOR(widen_tail(p + i * kVecLanes<S>, live_in_vector<S>(live, i), other, r.v[i]));
    return r;
  } else {
    return gather_part<S>(p, 1, live, other);
  }
}
template <class S, class T>
ROOFTILE_TILE void store_part(T* p, int live, const Tile<S>& t) {
  if constexpr (kHasMaskedLoads) {
    ROOFTILE_EACH_VECTOR(put_tail(p + i * kVecLanes<S>, live_in_vector<S>(live, i), t.v[i]));
  } else {
    scatter_part(p, 1, live, t);
  }
}

// The same for strided rows, of which some may be dense.
template <class S, class T>
__attribute__((noinline)) Tile<S> load_apart(const T* p, std::int64_t stride, int live, S other, DType half) {
  if constexpr (std::is_same_v<T, AnyHalf>) {
    if (half == DType::bf16)
      return load_apart<S>(reinterpret_cast<const bf16*>(p), stride, live, other, half);
    return load_apart<S>(reinterpret_cast<const f16*>(p), stride, live, other, half);
  } else {
    if (stride == 1 && live == kLanes<S>) return load_whole<S>(p);
    return gather_part<S>(p, stride, live, other);
  }
}
template <class S, class T>
__attribute__((noinline)) void store_apart(T* p, std::int64_t stride, int live, const Tile<S>& t,
                                           DType half) {
  if constexpr (std::is_same_v<T, AnyHalf>) {
    if (half == DType::bf16) return store_apart(reinterpret_cast<bf16*>(p), stride, live, t, half);
    store_apart(reinterpret_cast<f16*>(p), stride, live, t, half);
  } else {
    if (stride == 1 && live == kLanes<S>) return store_whole(p, t);
    scatter_part(p, stride, live, t);
  }
}

template <class Real, Access kAccess>
template <class S, class T, bool kFull>
ROOFTILE_TILE Tile<S> CpuTeam<Real, kAccess>::load_as(Row<const T> x, Chunk<kFull> chunk, S other,
                                                      DType half) {
  if constexpr (kAccess == Access::strided) {
    return load_apart<S>(x.data + chunk.first * x.stride, x.stride, chunk.live, other, half);
  } else if constexpr (kFull) {
    return load_whole<S>(x.data + chunk.first);
  } else {
    return load_part<S>(x.data + chunk.first, chunk.live, other);
  }
}

/// Past the caches where `p` allows it.
template <class S, class T>
ROOFTILE_TILE void store_streaming(T* p, const Tile<S>& value) {
  if constexpr (kHasStreaming) {
    constexpr std::size_t kStoreBytes = kVecLanes<S> * sizeof(T) * (sizeof(T) == 1 ? kVectors : 1);
    if (reinterpret_cast<std::uintptr_t>(p) % kStoreBytes == 0) {
      if constexpr (sizeof(T) == 1) {
        stream(p, narrow_all(value.v));
      } else {
        ROOFTILE_EACH_VECTOR(stream(p + i * kVecLanes<S>, narrow(value.v[i], p)));
      }
      return;
    }
  }
  store_whole(p, value);
}

template <class Real, Access kAccess>
template <class T, class S, bool kFull>
ROOFTILE_TILE void CpuTeam<Real, kAccess>::store(Row<T> y, Chunk<kFull> chunk,
                                                 const tile::Tile<S>& value) const {
  if constexpr (kAccess == Access::strided) {
    store_apart(y.data + chunk.first * y.stride, y.stride, chunk.live, value, half_);
  } else if constexpr (!kFull) {
    store_part(y.data + chunk.first, chunk.live, value);
  } else if constexpr (kAccess == Access::streaming) {
    store_streaming(y.data + chunk.first, value);
  } else {
    store_whole(y.data + chunk.first, value);
  }
}

template <class Real, Access kAccess>
template <class T>
ROOFTILE_TILE Tile<Real> CpuTeam<Real, kAccess>::round_to(const Tile& t) const {
  if constexpr (std::is_same_v<T, Real>) {
    return t;
  } else if constexpr (std::is_same_v<T, AnyHalf>) {
    return half_ == DType::bf16 ? round_to<bf16>(t) : round_to<f16>(t);
  } else {
    T elements[kLanes];  // stays in registers
    store_whole(elements, t);
    return load_whole<Real>(elements);
  }
}

template <class Real, Access kAccess>
template <int kPlanes, bool kFull>
ROOFTILE_TILE void CpuTeam<Real, kAccess>::load_planes(Row<const std::uint8_t> x, Chunk<kFull> chunk,
                                                       Integers (&planes)[kPlanes]) const {
  static_assert(kPlanes == 3 && kLanes == kPixelLanes,
                "rooftile::tile::load_planes: three planes of float's width");
  const PixelTile pixels = load_pixels<kFull>({x.data, x.size, x.stride}, chunk.first, chunk.live);
  planes[0] = plane<0>(pixels);
  planes[1] = plane<1>(pixels);
  planes[2] = plane<2>(pixels);
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
