#pragma once
// How a thread of a GPU reaches its N elements of a row: neighbours in 16-byte words where they are aligned;
// else in the aligned words that hold them, shifted, and one by one at the ends and where elements lie apart;
// or elements 32 apart, so that a warp reads neighbours together.
#include <cstddef>

#include "rooftile/tile/cuda/row_shape.h"
#include "rooftile/tile/cuda/tile.h"

namespace rooftile::tile {
inline namespace cuda {

/// How the lanes of a thread lie in memory. Which lane an element is, and so the order of a sum, may depend
/// on its row's length alone: `interleaved` has other lanes than the rest, and reductions that come to the
/// same bits.
enum class Access : std::uint8_t {
  full,         ///< 16-byte words, as many as a team can hold: no lane is empty
  aligned,      ///< 16-byte words; some threads may have none
  any,          ///< neighbours that begin anywhere, or lie apart
  strided,      ///< lie apart: a quarter of the code
  singly,       ///< neighbours that begin anywhere, one by one, all on their way at once
  interleaved,  ///< begin anywhere, side by side: a warp reads 32 neighbours, then the next 32
  staged_2,  ///< neighbours in shared memory (rooftile/tile/cuda/staging.h), rows in whole pieces of 2 bytes
  staged_4,  ///< of 4
  staged_8,  ///< of 8
};
/// Whether lanes are whole 16-byte words of memory.
constexpr bool in_words(Access access) { return access <= Access::aligned; }
constexpr bool may_be_strided(Access access) { return access == Access::any || access == Access::strided; }
/// Of a staged row, in bytes; 0: not staged.
constexpr int piece_of(Access access) {
  return access == Access::staged_2 ? 2 : access == Access::staged_4 ? 4 : access == Access::staged_8 ? 8 : 0;
}
/// Whether lane i of a thread is an element, where `live` follow from its first one on.
template <Access kAccess>
ROOFTILE_TILE bool lane_lives(int i, std::int64_t live) {
  if (kAccess == Access::full) return true;
  if (in_words(kAccess)) return live > 0;
  return (kAccess == Access::interleaved ? i * kWarp : i) < live;
}
/// The same of elements of type T, of which those of a piece live together.
template <Access kAccess, class T>
ROOFTILE_TILE bool element_lives(int i, std::int64_t live) {
  constexpr int kPerPiece = piece_of(kAccess) > 0 ? piece_of(kAccess) / int(sizeof(T)) : 1;
  return lane_lives<kAccess>(i / kPerPiece * kPerPiece, live);
}
/// One step of `each`: this thread's lanes are the elements `first`, `first` + 1, … (interleaved: `first` +
/// 32, …) as far as the row goes.
struct Chunk {
  int index;  // known to the compiler in an unrolled pass, and so a choice of registers
  std::int64_t first;
  std::int64_t live;  // elements from `first` to the row's end; 0 or less: none
};

/// `size` elements from `data` on, `stride` elements apart. `begin` and `end`: memory around the row that may
/// be read, too, since it belongs to the same tensor and nobody writes it; null: the row alone.
template <class T>
struct Row {
  T* data;
  std::int64_t size;
  std::int64_t stride = 1;
  std::int64_t ahead = 0;      // elements to the row that comes to its stage next; 0: none does
  std::int64_t elsewhere = 0;  // elements of the row that other blocks of a cluster have
  const void* begin = nullptr;
  const void* end = nullptr;
  int stage = 0;  // of those in which a team's rows arrive

  /// Up to `count` elements from `first` on.
  ROOFTILE_TILE
  Row part(std::int64_t first, std::int64_t count) const {
    return {data + first * stride, size - first < count ? size - first : count, stride, ahead, 0, begin, end};
  }
};

/// Neighbouring elements as memory holds them, in whole 16-byte words. Words and no array of elements: of
/// 16-bit ones the compiler would take each apart and put it together again.
template <class T, int N>
struct Pack {
  static_assert(N * sizeof(T) % 16 == 0, "rooftile::tile: a thread's elements are whole 16-byte words");
  static constexpr int kWords = N * int(sizeof(T)) / 16;
  unsigned piece[4 * kWords];

  ROOFTILE_TILE
  uint4 word(int i) const { return {piece[4 * i], piece[4 * i + 1], piece[4 * i + 2], piece[4 * i + 3]}; }
  ROOFTILE_TILE
  void set_word(int i, uint4 w) {  // by value: to the checked build one access, as on a GPU
    piece[4 * i] = w.x, piece[4 * i + 1] = w.y, piece[4 * i + 2] = w.z, piece[4 * i + 3] = w.w;
  }
  ROOFTILE_TILE
  T get(int i) const {
    T value;
    if constexpr (sizeof(T) == 8) {
      const unsigned both[2] = {piece[2 * i], piece[2 * i + 1]};
      memcpy(&value, both, 8);
    } else {
      constexpr int kPerPiece = 4 / int(sizeof(T));
      const unsigned bits = piece[i / kPerPiece] >> (i % kPerPiece * 8 * int(sizeof(T)));
      memcpy(&value, &bits, sizeof(T));
    }
    return value;
  }
  ROOFTILE_TILE
  void set(int i, T value) {
    if constexpr (sizeof(T) == 8) {
      unsigned both[2];
      memcpy(both, &value, 8);
      piece[2 * i] = both[0];
      piece[2 * i + 1] = both[1];
    } else {
      constexpr int kPerPiece = 4 / int(sizeof(T)), kBits = 8 * int(sizeof(T));
      unsigned bits = 0;
      memcpy(&bits, &value, sizeof(T));
      const int at = i % kPerPiece * kBits;
      piece[i / kPerPiece] = at == 0 ? bits : piece[i / kPerPiece] | bits << at;  // in ascending order
    }
  }
};

/// Sixteen bytes that begin `shift` bytes behind the first of two neighbouring words.
ROOFTILE_TILE
uint4 shifted(const uint4& low, const uint4& high, unsigned shift) {
  unsigned w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  ROOFTILE_UNROLL for (int i = 0; i < 6; ++i) w[i] = shift & 8 ? w[i + 2] : w[i];
  ROOFTILE_UNROLL for (int i = 0; i < 5; ++i) w[i] = shift & 4 ? w[i + 1] : w[i];
  const unsigned bits = (shift & 3) * 8;
  return {__funnelshift_r(w[0], w[1], bits), __funnelshift_r(w[1], w[2], bits),
          __funnelshift_r(w[2], w[3], bits), __funnelshift_r(w[3], w[4], bits)};
}

/// One word of a pack, element by element: a short loop that shifts them in from the last to the first, so
/// that no register needs an index. `live` may be anything; the rest are `other`.
template <class T>
ROOFTILE_TILE uint4 gather_word(const T* from, std::int64_t stride, std::int64_t live, T other) {
  constexpr int kBits = 8 * int(sizeof(T));
  uint4 w{0, 0, 0, 0};
  ROOFTILE_UNROLL_BY(1) for (int i = 16 / int(sizeof(T)) - 1; i >= 0; --i) {
    const T t = i < live ? from[i * stride] : other;
    if constexpr (kBits == 64) {
      w.z = w.x, w.w = w.y;
      memcpy(&w.x, &t, 8);
    } else {
      w.w = kBits == 32 ? w.z : __funnelshift_l(w.z, w.w, kBits);
      w.z = kBits == 32 ? w.y : __funnelshift_l(w.y, w.z, kBits);
      w.y = kBits == 32 ? w.x : __funnelshift_l(w.x, w.y, kBits);
      unsigned low = 0;
      memcpy(&low, &t, sizeof t);
      w.x = kBits == 32 ? low : (w.x << (kBits % 32)) | low;
    }
  }
  return w;
}
/// The way back, for the first `live` elements.
template <class T>
ROOFTILE_TILE void scatter_word(uint4 w, T* to, std::int64_t stride, std::int64_t live) {
  constexpr int kBits = 8 * int(sizeof(T)), kElements = 16 / int(sizeof(T));
  ROOFTILE_UNROLL_BY(1) for (int i = 0; i < kElements && i < live; ++i) {
    T t;
    memcpy(&t, &w, sizeof t);
    to[i * stride] = t;
    if constexpr (kBits == 64) {
      w.x = w.z, w.y = w.w;
    } else {
      w.x = kBits == 32 ? w.y : __funnelshift_r(w.x, w.y, kBits);
      w.y = kBits == 32 ? w.z : __funnelshift_r(w.y, w.z, kBits);
      w.z = kBits == 32 ? w.w : __funnelshift_r(w.z, w.w, kBits);
      w.w = kBits == 32 ? 0 : w.w >> (kBits % 32);
    }
  }
}

/// As instructions for global memory, which the compiler cannot tell from other memory behind a pointer in a
/// struct. No policies of eviction: __ldcs and __stcs made softmax 6% slower (f32 65536x1024, H200: 133 µs,
/// 142); loads with L2::evict_first make layer_norm slower (f32 8192x4096: 71 µs, 74), L1::no_allocate as
/// much, and with L2::256B they are no faster.
template <class T>
ROOFTILE_TILE T* global(T* pointer) {
#if !defined(ROOFTILE_EMULATED)
  __builtin_assume(__isGlobal(pointer));
#endif
  return pointer;
}
/// `kConstant`: nobody writes it while the kernel runs, so that it may be read before what was asked for
/// first.
template <bool kConstant, class T>
ROOFTILE_TILE T read(const T* from) {
  if constexpr (kConstant)
    return __ldg(from);
  else
    return *global(from);
}
template <class T>
ROOFTILE_TILE void write(T* to, T value) {
  *global(to) = value;
}
/// The unsigned integer of an element's width.
template <class T>
using BitsOf = std::conditional_t<
    sizeof(T) == 1, std::uint8_t,
    std::conditional_t<sizeof(T) == 2, std::uint16_t,
                       std::conditional_t<sizeof(T) == 4, std::uint32_t, unsigned long long>>>;

/// A pack as pieces of kBytes.
template <class T, int N, int kBytes>
struct StagedPieces {
  using Bits =
      std::conditional_t<kBytes == 8, uint2, std::conditional_t<kBytes == 4, unsigned, std::uint16_t>>;
  static constexpr int kPerPiece = kBytes / int(sizeof(T)), kCount = N / kPerPiece;
  static_assert(kPerPiece > 0 && (kBytes > 2 || sizeof(T) == 2));
  ROOFTILE_TILE
  static Bits get(const Pack<T, N>& pack, int i) {
    if constexpr (kBytes == 8)
      return {pack.piece[2 * i], pack.piece[2 * i + 1]};
    else if constexpr (kBytes == 4)
      return pack.piece[i];
    else
      return static_cast<std::uint16_t>(pack.piece[i / 2] >> i % 2 * 16);
  }
  ROOFTILE_TILE
  static void set(Pack<T, N>& pack, int i, Bits bits) {
    if constexpr (kBytes == 8)
      pack.piece[2 * i] = bits.x, pack.piece[2 * i + 1] = bits.y;
    else if constexpr (kBytes == 4)
      pack.piece[i] = bits;
    else  // in ascending order
      pack.piece[i / 2] = i % 2 == 0 ? bits : pack.piece[i / 2] | unsigned{bits} << 16;
  }
};

/// `live` of N elements from `first` on; the rest are `other`.
template <Access kAccess, int N, bool kConstant = false, class T>
ROOFTILE_TILE Pack<T, N> load_pack(const Row<const T>& row, std::int64_t first, std::int64_t live, T other) {
  using P = Pack<T, N>;
  P pack;
  const T* from = row.data + first * (may_be_strided(kAccess) ? row.stride : 1);
  if constexpr (in_words(kAccess)) {
    const auto* words = reinterpret_cast<const uint4*>(from);
    if (kAccess == Access::full || live > 0) {
      ROOFTILE_UNROLL for (int w = 0; w < P::kWords; ++w) pack.set_word(w, read<kConstant>(words + w));
    } else {
      ROOFTILE_UNROLL for (int i = 0; i < N; ++i) pack.set(i, other);
    }
  } else if constexpr (kAccess == Access::singly) {
    const auto* elements = reinterpret_cast<const BitsOf<T>*>(from);
    BitsOf<T> bits[N];
    memcpy(&bits[0], &other, sizeof other);
    ROOFTILE_UNROLL for (int i = N - 1; i >= 0; --i) {
      bits[i] = bits[0];
      if (i < live) bits[i] = read<kConstant>(elements + i);
    }
    ROOFTILE_UNROLL for (int i = 0; i < N; ++i) {
      T t;
      memcpy(&t, &bits[i], sizeof t);
      pack.set(i, t);
    }
  } else if constexpr (kAccess == Access::interleaved) {
    const auto* elements = reinterpret_cast<const BitsOf<T>*>(from);
    const auto load = [&](int i) {
      const BitsOf<T> bits = read<kConstant>(elements + i * kWarp);
      T t;
      memcpy(&t, &bits, sizeof t);
      return t;
    };
    ROOFTILE_UNROLL for (int i = 0; i < N; ++i) {
      T t = other;
      if (i * kWarp < live) t = load(i);
      pack.set(i, t);
    }
  } else if constexpr (piece_of(kAccess) > 0) {
    using Pieces = StagedPieces<T, N, piece_of(kAccess)>;
    const auto* pieces = reinterpret_cast<const typename Pieces::Bits*>(from);
    P rest;
    ROOFTILE_UNROLL for (int i = 0; i < N; ++i) rest.set(i, other);
    ROOFTILE_UNROLL for (int i = 0; i < Pieces::kCount; ++i) {
      auto piece = Pieces::get(rest, i);
      if (i * Pieces::kPerPiece < live) piece = pieces[i];
      Pieces::set(pack, i, piece);
    }
  } else {
    if constexpr (kAccess == Access::any) {
      const auto address = reinterpret_cast<std::uintptr_t>(from);
      const auto shift = static_cast<unsigned>(address % 16);
      const auto* words = reinterpret_cast<const uint4*>(address - shift);
      const void* begin = row.begin ? row.begin : row.data;
      const void* end = row.begin ? row.end : row.data + row.size;
      if (live >= N && row.stride == 1 && words >= begin && words + P::kWords + (shift != 0) <= end) {
        uint4 low = words[0];
        ROOFTILE_UNROLL for (int i = 0; i < P::kWords; ++i) {
          const uint4 high = shift != 0 || i + 1 < P::kWords ? words[i + 1] : low;
          pack.set_word(i, shift == 0 ? low : shifted(low, high, shift));
          low = high;
        }
        return pack;
      }
    }
    constexpr int kPerPiece = N / P::kWords;
    ROOFTILE_UNROLL for (int i = 0; i < P::kWords; ++i) pack.set_word(
        i, gather_word(from + i * kPerPiece * row.stride, row.stride, live - i * kPerPiece, other));
  }
  return pack;
}

/// The first `bytes` of a word to memory that begins at a multiple of an element and ends at one of 16.
template <int kElementBytes>
ROOFTILE_TILE void store_head(std::byte* to, uint4 w, unsigned bytes) {
  if (kElementBytes <= 1 && bytes & 1) {
    *reinterpret_cast<std::uint8_t*>(to++) = static_cast<std::uint8_t>(w.x);
    w = shifted(w, {0, 0, 0, 0}, 1);
  }
  if (kElementBytes <= 2 && bytes & 2) {
    *reinterpret_cast<std::uint16_t*>(to) = static_cast<std::uint16_t>(w.x);
    to += 2;
    w = shifted(w, {0, 0, 0, 0}, 2);
  }
  if (kElementBytes <= 4 && bytes & 4) {
    *reinterpret_cast<unsigned*>(to) = w.x;
    to += 4;
    w.x = w.y, w.y = w.z;
  }
  if (bytes & 8) *reinterpret_cast<uint2*>(to) = {w.x, w.y};
}
/// The same for memory that begins at a multiple of 16.
template <int kElementBytes>
ROOFTILE_TILE void store_tail(std::byte* to, uint4 w, unsigned bytes) {
  if (bytes & 8) {
    *reinterpret_cast<uint2*>(to) = {w.x, w.y};
    to += 8;
    w.x = w.z, w.y = w.w;
  }
  if (kElementBytes <= 4 && bytes & 4) {
    *reinterpret_cast<unsigned*>(to) = w.x;
    to += 4;
    w.x = w.y;
  }
  if (kElementBytes <= 2 && bytes & 2) {
    *reinterpret_cast<std::uint16_t*>(to) = static_cast<std::uint16_t>(w.x);
    to += 2;
    w.x >>= 16;
  }
  if (kElementBytes <= 1 && bytes & 1) *reinterpret_cast<std::uint8_t*>(to) = static_cast<std::uint8_t>(w.x);
}

/// Writes the first `live` of a strided thread's N elements. Of a tile, not of a pack: two elements in one
/// register would have to be taken apart again (softmax bf16 16384x4095, H200: 85.1 µs, so 81.9).
template <class T, int N, class Lane>
ROOFTILE_TILE void store_strided(T* to, std::int64_t live, const Lane& lane) {
  ROOFTILE_EACH_LANE(N) {
    const T element = lane(i);
    BitsOf<T> bits;
    memcpy(&bits, &element, sizeof element);
    if (i * kWarp < live) write(reinterpret_cast<BitsOf<T>*>(to) + i * kWarp, bits);
  }
}

/// Writes the first `live` of this thread's N elements. All threads of a warp call it together: `place` and
/// `lanes` tell which of how many threads this one is among those of the warp that write one row.
template <Access kAccess, int N, class T>
ROOFTILE_TILE void store_pack(const Row<T>& row, std::int64_t first, std::int64_t live,
                              const Pack<T, N>& pack, int place, int lanes) {
  using P = Pack<T, N>;
  if constexpr (in_words(kAccess)) {
    if (kAccess == Access::full || live > 0) {
      auto* to = reinterpret_cast<uint4*>(row.data + first);
      ROOFTILE_UNROLL for (int w = 0; w < P::kWords; ++w) write(to + w, pack.word(w));
    }
  } else if constexpr (kAccess == Access::singly) {
    auto* to = reinterpret_cast<BitsOf<T>*>(row.data + first);
    ROOFTILE_UNROLL for (int i = 0; i < N; ++i) {
      const T t = pack.get(i);
      BitsOf<T> bits;
      memcpy(&bits, &t, sizeof t);
      if (i < live) write(to + i, bits);
    }
  } else if constexpr (kAccess == Access::interleaved) {
    store_strided<T, N>(row.data + first, live, [&](int i) { return pack.get(i); });
  } else if constexpr (piece_of(kAccess) > 0) {
    using Pieces = StagedPieces<T, N, piece_of(kAccess)>;
    auto* pieces = reinterpret_cast<typename Pieces::Bits*>(row.data + first);
    ROOFTILE_UNROLL for (int i = 0; i < Pieces::kCount; ++i) {
      if (i * Pieces::kPerPiece < live) pieces[i] = Pieces::get(pack, i);
    }
  } else {
    T* to = live > 0 ? row.data + first * row.stride : nullptr;
    if constexpr (P::kWords > 1 || kAccess == Access::strided) {
      constexpr int kPerPiece = N / P::kWords;
      if (!to) return;
      ROOFTILE_UNROLL for (int i = 0; i < P::kWords; ++i)
          scatter_word(pack.word(i), to + i * kPerPiece * row.stride, row.stride, live - i * kPerPiece);
    } else {
      // An aligned word of memory takes the last elements of the thread before and the first of this one,
      // which writes it, if it knows all of them. What remains at the ends goes in pieces.
      const auto shift = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(to) % 16);
      const uint4 mine = pack.word(0);
      const uint4 before{__shfl_up_sync(0xffffffffu, mine.x, 1), __shfl_up_sync(0xffffffffu, mine.y, 1),
                         __shfl_up_sync(0xffffffffu, mine.z, 1), __shfl_up_sync(0xffffffffu, mine.w, 1)};
      auto* bytes = reinterpret_cast<std::byte*>(to);
      if (row.stride != 1 || live < N) {
        scatter_word(mine, to, row.stride, live);
      } else if (shift == 0) {
        *reinterpret_cast<uint4*>(to) = mine;
      } else {
        // By a name: the checked build does not see a call's result go to memory.
        const uint4 word = shifted(before, mine, 16 - shift);
        if (place > 0)
          *reinterpret_cast<uint4*>(bytes - shift) = word;
        else
          store_head<sizeof(T)>(bytes, mine, 16 - shift);
        const bool next_writes = place + 1 < lanes && live >= 2 * N;
        if (!next_writes)
          store_tail<sizeof(T)>(bytes + 16 - shift, shifted(mine, {0, 0, 0, 0}, 16 - shift), shift);
      }
    }
  }
}

/// The same pointer, but nvcc does not know that all threads of a warp have it. What is read there stays in a
/// register until it is needed; a number that all have goes to a uniform register at once, which waits for
/// it.
template <class T>
ROOFTILE_TILE T* per_thread(T* pointer) {
  return pointer + __shfl_sync(0xffffffffu, 0, 0);
}
/// The same pack, but the compiler does not know that: what it computes of it it computes here, and does not
/// keep in registers, where floats take twice the room.
template <class T, int N>
ROOFTILE_TILE Pack<T, N> unseen(Pack<T, N> pack) {
#if !defined(ROOFTILE_EMULATED)
  ROOFTILE_UNROLL for (unsigned& piece : pack.piece) asm volatile("" : "+r"(piece));
#endif
  return pack;
}

/// The largest and the smallest of 16-bit elements, lane by lane, two compared at once.
template <class T, int N>
struct PairMaxima {
  Pack<T, N> highest, lowest;

  ROOFTILE_TILE PairMaxima() {
    ROOFTILE_UNROLL for (int i = 0; i < N / 2; ++i) {
      highest.piece[i] = lowest_pair<T>();
      lowest.piece[i] = lowest_pair<T>() ^ 0x80008000u;
    }
  }
  /// Of a chunk's elements those that live: others' would count as far below the largest.
  template <Access kAccess>
  ROOFTILE_TILE void add(const Pack<T, N>& pack, std::int64_t live) {
    if (in_words(kAccess) && !lane_lives<kAccess>(0, live)) return;
    ROOFTILE_UNROLL for (int i = 0; i < N / 2; ++i) {
      const unsigned there = (element_lives<kAccess, T>(2 * i, live) ? 0xffffu : 0) |
                             (element_lives<kAccess, T>(2 * i + 1, live) ? 0xffff0000u : 0);
      const auto pair = [&](unsigned none) {
        return in_words(kAccess) ? pack.piece[i] : (pack.piece[i] & there) | (none & ~there);
      };
      highest.piece[i] = larger_pair<T>(highest.piece[i], pair(lowest_pair<T>()));
      lowest.piece[i] = smaller_pair<T>(lowest.piece[i], pair(lowest_pair<T>() ^ 0x80008000u));
    }
  }
  /// Piece by piece: of packs as a whole, the choice would go through memory.
  ROOFTILE_TILE Pack<T, N> either(bool lower) const {
    Pack<T, N> r;
    ROOFTILE_UNROLL for (int i = 0; i < N / 2; ++i) r.piece[i] = lower ? lowest.piece[i] : highest.piece[i];
    return r;
  }
};

/// A pack's elements as lanes, and back, two of 16 bits at a time.
template <class S, class T, int N>
ROOFTILE_TILE Tile<S, N> widened(const Pack<T, N>& pack) {
  Tile<S, N> r;
  if constexpr (std::is_same_v<S, float> && (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)) {
    ROOFTILE_UNROLL for (int i = 0; i < N / 2; ++i) {
      if constexpr (std::is_same_v<T, bf16>) {
        r.v[2 * i] = __uint_as_float(pack.piece[i] << 16);
        r.v[2 * i + 1] = __uint_as_float(pack.piece[i] & 0xffff0000u);
      } else {
        __half2 halves;
        const unsigned bits = pack.piece[i];
        memcpy(&halves, &bits, 4);
        const float2 both = __half22float2(halves);
        r.v[2 * i] = both.x;
        r.v[2 * i + 1] = both.y;
      }
    }
  } else {
    ROOFTILE_EACH_LANE(N) r.v[i] = widen<S>(pack.get(i));
  }
  return r;
}
template <class T, class S, int N>
ROOFTILE_TILE Pack<T, N> narrowed(const Tile<S, N>& t) {
  Pack<T, N> pack;
  if constexpr (std::is_same_v<S, float> && (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)) {
    ROOFTILE_UNROLL for (int i = 0; i < N / 2; ++i) {
      if constexpr (std::is_same_v<T, bf16>) {
        const __nv_bfloat162 both = __floats2bfloat162_rn(t.v[2 * i], t.v[2 * i + 1]);
        memcpy(&pack.piece[i], &both, 4);
      } else {
        const __half2 both = __floats2half2_rn(t.v[2 * i], t.v[2 * i + 1]);
        memcpy(&pack.piece[i], &both, 4);
      }
    }
  } else {
    ROOFTILE_EACH_LANE(N) pack.set(i, narrow<T>(t.v[i]));
  }
  return pack;
}

}  // namespace cuda
}  // namespace rooftile::tile
