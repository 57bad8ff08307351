#pragma once
// NVIDIA GPUs' team: 1 to 1024 threads of a block, or those of a cluster's blocks, each with N lanes of every
// chunk. The chunks of a warp lie side by side, and in each its threads, so that a warp's element
// (chunk · 32 + thread) · N + i is thread's lane i; or, where rows are strided (rooftile/tile/cuda/memory.h),
// the same N · 32 elements, lane by lane. Names and meanings are those of rooftile/tile/cpu/team.h. What a
// kernel holds lies in registers, if the row is at most kChunks chunks long.
//
// A team with stages works through rows while the next ones arrive (rooftile/tile/cuda/ring.h).
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/tile/cuda/block_reduction.h"
#include "rooftile/tile/cuda/columns.h"
#include "rooftile/tile/cuda/memory.h"
#include "rooftile/tile/cuda/pixels.h"
#include "rooftile/tile/cuda/ring.h"

namespace rooftile::tile {
inline namespace cuda {

inline constexpr float kInfinity = __builtin_huge_valf();

/// N: lanes of a thread. kChunks: how many a row has at most; 0: any number, and what is held is read again.
/// kStages: operands of which the next row is on its way; kVectors: such as are in stages behind theirs,
/// whole words.
template <class Real_, int N, int kChunks, Access kAccess, Scope kScope_ = Scope::any, int kStages_ = 0,
          int kVectors_ = 0>
class CudaTeam {
  static_assert(kStages_ == 0 || in_words(kAccess) || kAccess == Access::interleaved);
  static_assert(kVectors_ == 0 || in_words(kAccess));

 public:
  using Real = Real_;
  using Integer = IntegerOf<Real>;
  using Tile = tile::Tile<Real, N>;
  using Integers = tile::Tile<Integer, N>;
  static constexpr bool kHoldsRows = kChunks > 0, kOverlapsRows = false;
  static constexpr int kLanes = N, kElements = N * kChunks;
  static constexpr Access kReads = kAccess;
  static constexpr Scope kScope = kScope_;
  static constexpr int kStages = kStages_, kVectors = kVectors_;
  /// Whether other teams may have warps of its block.
  static constexpr bool kSharesBlock = kScope == Scope::warps;
  static constexpr bool kStreams = kStages > 0, kStaged = piece_of(kAccess) > 0;
  /// Whether a thread should hold the next row, too, since nothing else brings it.
  static constexpr bool kHoldsNext = kAccess == Access::singly;
  using Ring = tile::Ring<kAccess, kChunks, kStages + kVectors>;

  /// `threads`: 1, 2, 4, 8, 16 or 32 neighbours of a warp, or all of a block, then a multiple of 32;
  /// `cluster`: blocks whose threads are one team, each with a part of the row. `rounds`: kept by the
  /// program's caller; copies of a team share it.
  ROOFTILE_TILE
  CudaTeam(int threads, Rounds& rounds, int cluster = 1)
      : threads_(threads),
        thread_(static_cast<int>(threadIdx.x)),
        cluster_(kScope < Scope::cluster ? 1 : cluster),
        rank_(in_cluster() ? rank_in_cluster() : 0),
        rounds_(rounds) {
    if (kScope == Scope::warp || (kScope == Scope::any && threads <= kWarp))
      thread_ &= threads - 1;
    else if constexpr (kSharesBlock)
      thread_ %= threads;
    if constexpr (Ring::kWarpBytes > 0) ring_.open();
    if (in_cluster()) {
      Across::scratch_memory(), Joined::scratch_memory();  // of all threads, as Arrivals
      Arrivals::open(thread_);
    }
  }

  ROOFTILE_TILE void one_pass() {}
  /// This team, or without any element, for what all teams of a warp come to.
  ROOFTILE_TILE CudaTeam of_row(bool there) const {
    CudaTeam team = *this;
    if (!there) team.thread_ += 1 << 20;
    return team;
  }
  /// The elements of a row that are worth a pass of their own before the one that computes.
  ROOFTILE_TILE
  std::int64_t sample(std::int64_t size) const {
    if (kHoldsRows) return size;
    const std::int64_t step = std::int64_t{threads_} * N;
    const std::int64_t eighth = (size + 8 * step - 1) / (8 * step) * step;
    return eighth < size ? eighth : size;
  }

  /// Of the whole row, of which a cluster's block sees a part.
  template <class T>
  ROOFTILE_TILE std::int64_t length(const Row<T>& row) const {
    return row.size + row.elsewhere;
  }

  ROOFTILE_TILE Tile fill(Real value) const { return operand<Tile>(value); }
  using Accumulator = tile::Accumulator<Tile>;
  ROOFTILE_TILE Accumulator accumulator() const { return Accumulator{}; }
  ROOFTILE_TILE
  Integers iota(const Chunk& chunk) const {
    Integers r;
    ROOFTILE_EACH_LANE(N)
    r.v[i] = static_cast<Integer>(chunk.first) + (kAccess == Access::interleaved ? i * kWarp : i);
    return r;
  }

  /// Calls body(chunk) along `size` elements, the same for all teams of a warp. Threads without elements take
  /// every step, too: branches would keep the loads of one step from those of the next.
  template <class Body>
  ROOFTILE_TILE void each(std::int64_t size, Body&& body) const {
    if constexpr (kStaged) {
      // All rows have one length, so all threads know which chunks are whole: no lane of them needs a
      // condition. The last registers have the rest.
      const int length = static_cast<int>(size), step = chunk_step(), mine = first_of_chunk();
      int rest = 0;
      ROOFTILE_UNROLL for (int c = 0; c + 1 < kChunks; ++c) {
        if (rest + step > length) break;
        body(Chunk{c, rest + mine, N});
        rest += step;
      }
      if (rest < length) body(Chunk{kChunks - 1, rest + mine, length - (rest + mine)});
    } else if constexpr (kHoldsRows) {
      constexpr bool kBreaks = kAccess >= Access::any && kAccess != Access::interleaved;
      const int length = static_cast<int>(size), step = chunk_step(), mine = first_of_chunk();
      // Most strided warps have no empty lane: they need no condition for each. All lanes of a warp go one
      // way. With fewer elements and column sums both ways take longer than one (layer_norm_backward, f32
      // 16384x4095, H200: 289 µs, without 237), but not where rows come from stages.
      if (kAccess == Access::interleaved && (N * kChunks >= 32 || kStreams) &&
          (kChunks - 1) * step + mine - thread_ % kWarp + N * kWarp <= length) {
        ROOFTILE_UNROLL for (int c = 0; c < kChunks; ++c) body(Chunk{c, c * step + mine, N * kWarp});
        return;
      }
      ROOFTILE_UNROLL for (int c = 0; c < kChunks; ++c) {
        const int first = c * step + mine;
        if (kBreaks && c * step >= length) break;
        body(Chunk{c, first, length - first});
      }
    } else {
      const std::int64_t mine = thread_ * N, step = std::int64_t{threads_} * N;
      std::int64_t first = 0;
      // Of rows that lie anyhow, one step's loads have branches that the next one's would wait for.
      ROOFTILE_UNROLL_BY((may_be_strided(kAccess) ? 1 : 4))
      for (; first + step <= size; first += step) body(Chunk{0, first + mine, 2 * N});
      if (first < size) body(Chunk{0, first + mine, size - (first + mine)});
    }
  }
  /// Calls step(i, reads, writes): row i is to be read, row i - 1 to be written. A thread of a GPU has other
  /// warps to fill its waits, so one comes after the other.
  template <class Step>
  ROOFTILE_TILE void rows(std::int64_t begin, std::int64_t end, Step&& step) const {
    using Number = std::conditional_t<kStaged, int, std::int64_t>;  // a block has few
    for (auto i = static_cast<Number>(begin); i < static_cast<Number>(end); ++i) {
      step(i, std::true_type{}, std::false_type{});
      step(i + 1, std::false_type{}, std::true_type{});
    }
  }

  ROOFTILE_TILE
  Tile only(const Chunk& chunk, const Tile& value, Real other) const {
    constexpr int kPerPiece = kStaged ? piece_of(kAccess) * N / 16 : 1;  // lanes that live together
    Tile r = value;
    ROOFTILE_EACH_LANE(N)
    r.v[i] = lane_lives<kAccess>(i / kPerPiece * kPerPiece, chunk.live) ? value.v[i] : other;
    return r;
  }

  template <class T>
  ROOFTILE_TILE static Tile load(const Row<const T>& x, const Chunk& chunk, Real other = 0) {
    return widened<Real>(load_pack<kAccess, N>(x, chunk.first, chunk.live, narrow<T>(other)));
  }
  template <class T>
  ROOFTILE_TILE Integers load_integers(const Row<const T>& x, const Chunk& chunk) const {
    return widened<Integer>(load_pack<kAccess, N>(x, chunk.first, chunk.live, T{}));
  }
  template <class T, class S>
  ROOFTILE_TILE void store(const Row<T>& y, const Chunk& chunk, const tile::Tile<S, N>& value) const {
    if constexpr (kAccess == Access::interleaved)
      store_strided<T, N>(y.data + chunk.first, chunk.live, [&](int i) { return narrow<T>(value.v[i]); });
    else
      store_pack<kAccess>(y, chunk.first, chunk.live, narrowed<T>(value), thread_ % 32,
                          threads_ < 32 ? threads_ : 32);
  }
  /// y = x, bit by bit; all loads on their way at once.
  template <class T>
  ROOFTILE_TILE void copy(const Row<const T>& x, const Row<T>& y) const {
    static_assert(kHoldsRows, "rooftile::tile::copy: for rows that are held");
    Pack<T, N> packs[kChunks];
    each(x.size, [&](const Chunk& chunk) {
      packs[chunk.index] = load_pack<kAccess, N>(x, chunk.first, chunk.live, T{});
    });
    each(x.size, [&](const Chunk& chunk) {
      store_pack<kAccess>(y, chunk.first, chunk.live, packs[chunk.index], thread_ % 32,
                          threads_ < 32 ? threads_ : 32);
    });
  }
  /// Two numbers that belong to the row, each where it goes or nowhere. Of more than a warp two threads write
  /// (layer_norm bf16 8192x4096, H200: by one 39.7 µs, so 39.3).
  template <class T>
  ROOFTILE_TILE void store_scalars(T* to, Real value, T* second_to, Real second) const {
    constexpr bool kTwo = kScope != Scope::warp && kScope != Scope::any;
    T* const mine = kTwo && thread_ != 0 ? second_to : to;
    const Real number = kTwo && thread_ != 0 ? second : value;
    if (rank_ == 0 && thread_ < 1 + kTwo && mine) *mine = narrow<T>(number);
    if (!kTwo && rank_ == 0 && thread_ == 0 && second_to) *second_to = narrow<T>(second);
  }
  template <int kPlanes>
  ROOFTILE_TILE void load_planes(const Row<const std::uint8_t>& x, const Chunk& chunk,
                                 Integers (&planes)[kPlanes]) const {
    ROOFTILE_EACH_LANE(N) {
      for (int c = 0; c < kPlanes; ++c)
        planes[c].v[i] = i < chunk.live ? x.data[(chunk.first + i) * x.stride + c] : Integer{0};
    }
  }
  template <class T>
  ROOFTILE_TILE Tile round_to(const Tile& t) const {
    return widened<Real>(narrowed<T>(t));
  }
  ROOFTILE_TILE Real sum(const Accumulator& t) const { return reduce({t}, Real(0), AddUp{}).v[0]; }
  ROOFTILE_TILE Real product(const Accumulator& t) const { return reduce({t}, Real(1), Multiply{}).v[0]; }
  /// sum() where its warp's other teams may have fewer rows, and be elsewhere.
  ROOFTILE_TILE Real sum_of_team(const Accumulator& t) const {
    if ((kScope == Scope::warp || kScope == Scope::any) && threads_ < kWarp)
      return across_team(folded<kAccess>(t.tile, AddUp{}), threads_, AddUp{});
    return sum(t);
  }
  /// Both at once, at the price of one.
  ROOFTILE_TILE Sums<Real> sums(const Accumulator& a, const Accumulator& b) const {
    const auto r = reduce({a, b}, Real(0), AddUp{});
    return {r.v[0], r.v[1]};
  }
  /// Whether this block has a part of the row alone.
  ROOFTILE_TILE bool has_part() const { return in_cluster(); }
  /// Σ over that part, or the row.
  ROOFTILE_TILE Real part_sum(const Accumulator& t) const { return part_reduce({t}).v[0]; }
  ROOFTILE_TILE Sums<Real> part_sums(const Accumulator& a, const Accumulator& b) const {
    const auto r = part_reduce({a, b});
    return {r.v[0], r.v[1]};
  }
  /// Σ over that part as a number and what it was rounded by, if the warps' sums were not.
  ROOFTILE_TILE Sums<Real> part_sum_in_two(const Accumulator& t) const {
    const auto mine = in_part({t}, AddUp{});
    if (is_whole()) return {mine.v[0], 0};
    return in_block<InBlock>(mine).sum_in_two();
  }
  using Moments = tile::Moments<Real>;
  /// A row's, of those of its blocks' parts, which reduce once for them. `count`: a part's elements;
  /// `each_one`: 1 / the row's.
  ROOFTILE_TILE
  Moments joined(const Moments& part, [[maybe_unused]] std::int64_t count,
                 [[maybe_unused]] Real each_one) const {
#if defined(ROOFTILE_HAS_SM90)
    if constexpr (sizeof(Real) == 4)
      if (in_cluster()) {
        const tile::Tile<Real, 4> mine{{part.shift, part.rest, part.squares, static_cast<Real>(count)}};
        return of_parts(Joined::of_cluster(mine, thread_, 1, cluster_, rank_, rounds_.cluster++), each_one);
      }
#endif
    return part;
  }
  ROOFTILE_TILE Real part_max(const Tile& t) const { return in_part({t}, Larger{}).v[0]; }  // this warp's
  ROOFTILE_TILE Real max(const Accumulator& t) const { return reduce({t}, -Real(kInfinity), Larger{}).v[0]; }
  ROOFTILE_TILE Real min(const Accumulator& t) const { return reduce({t}, Real(kInfinity), Smaller{}).v[0]; }

  /// A row that is read more than once: as memory holds it, in registers, all loads on their way at once.
  template <class T>
  struct Held {
    Row<const T> row;
    Real other;
    Pack<T, N> packs[kHoldsRows ? kChunks : 1];
    ROOFTILE_TILE
    Tile operator[](const Chunk& chunk) const {
      if constexpr (kStreams && sizeof(T) < sizeof(Real))
        return widened<Real>(unseen(packs[chunk.index]));
      else if constexpr (kHoldsRows)
        return widened<Real>(packs[chunk.index]);
      else
        return load(row, chunk, other);
    }
    /// Other elements in its place, rounded as memory would.
    ROOFTILE_TILE
    void set(const Chunk& chunk, const Tile& value) {
      static_assert(kHoldsRows, "rooftile::tile::set: what is read again is in memory");
      packs[chunk.index] = narrowed<T>(value);
    }
  };
  template <class T>
  ROOFTILE_TILE Held<T> hold(const Row<const T>& row, Real other) const {
    Held<T> held{row, other, {}};
    if constexpr (kStreams) {
      // Of the groups that are on their way, one for each stage and each vector, this row's is the oldest.
      rooftile::cuda::cp_async_wait<kStages + kVectors - 1>();
      Ring::sync();
      if constexpr (Ring::kShares) {  // zeros arrive, too
        ROOFTILE_UNROLL for (int c = 0; c < kChunks; ++c) held.packs[c] = arrived(row, Chunk{c, 0, 0}, other);
      } else {
        each(row.size, [&](const Chunk& chunk) { held.packs[chunk.index] = arrived(row, chunk, other); });
      }
      Ring::sync();
      // Of a dense tensor there is this row before the next one.
      if (row.ahead != 0)
        ring_.fetch(row, row.data + row.ahead, row.begin != nullptr, thread_, first_of_chunk(), chunk_step());
      rooftile::cuda::cp_async_commit();
      if (row.stage == kStages - 1) ask_no_vectors();
    } else if constexpr (kHoldsRows)
      each(row.size, [&](const Chunk& chunk) {
        held.packs[chunk.index] = load_pack<kAccess, N>(row, chunk.first, chunk.live, narrow<T>(other));
      });
    return held;
  }

  /// Lets one of the first rows come to its stage, in the stages' order; hold() does it for later ones.
  template <class T>
  ROOFTILE_TILE void ask(const Row<const T>& row) const {
    if constexpr (kStreams) {
      ring_.fetch(row, row.data, row.data != row.begin && row.begin, thread_, first_of_chunk(), chunk_step());
      rooftile::cuda::cp_async_commit();
    }
  }
  /// Counts for vectors where none are asked for behind a row's loads.
  ROOFTILE_TILE void ask_no_vectors() const {
    ROOFTILE_UNROLL for (int v = 0; v < kVectors; ++v) rooftile::cuda::cp_async_commit();
  }
  /// Lets a vector come to a stage that keeps it; of a team of one row, through the first cache for others.
  template <class T>
  ROOFTILE_TILE void ask_kept(const Row<const T>& row) const {
    static_assert(N * sizeof(T) == 16, "rooftile::tile::ask_kept: a chunk is one word of a thread");
    each(row.size, [&](const Chunk& chunk) {
      if (!lane_lives<kAccess>(0, chunk.live)) return;
      if constexpr (kStreams)
        rooftile::cuda::cp_async_16(ring_.place(row.stage, chunk.index), row.data + chunk.first);
      else
        rooftile::cuda::cp_async_16_cached(ring_.place(row.stage, chunk.index), row.data + chunk.first);
    });
    rooftile::cuda::cp_async_commit();
  }
  /// Waits for them: where rows stream, the first one was held, and the next one is on its way.
  ROOFTILE_TILE void wait_kept() const { rooftile::cuda::cp_async_wait<kStreams ? kStages + kVectors : 0>(); }
  /// Fills such a stage with one number.
  template <class T>
  ROOFTILE_TILE void keep(const Row<const T>& row, Real value) const {
    Pack<T, N> pack;
    ROOFTILE_EACH_LANE(N) pack.set(i, narrow<T>(value));
    each(row.size, [&](const Chunk& chunk) { *ring_.place(row.stage, chunk.index) = pack.word(0); });
    rooftile::cuda::cp_async_commit();
  }
  /// This thread's elements of a chunk in a stage, which are there.
  template <class T>
  ROOFTILE_TILE Pack<T, N> arrived(const Row<const T>& row, const Chunk& chunk, Real other) const {
    return ring_.template arrived<N>(row, chunk, narrow<T>(other));
  }

  /// The largest of scale.unit · x over this warp's part of a held row, which takes no barrier, and whether
  /// this thread has elements so far below it that exponentials of the difference may be subnormal. The unit
  /// comes last: where it is negative the smallest element becomes the largest.
  struct RowMax {
    Real value;
    bool deep;
  };
  template <class T>
  ROOFTILE_TILE RowMax row_max(const Held<T>& x, std::int64_t size, const SplitScale& scale) const {
    static_assert(kHoldsRows, "rooftile::tile::row_max: for rows that are held");
    const bool down = scale.unit < 0;
    Tile high, low;
    if constexpr (sizeof(T) == 2) {
      PairMaxima<T, N> maxima;
      each(size, [&](const Chunk& chunk) { maxima.template add<kAccess>(x.packs[chunk.index], chunk.live); });
      high = widened<Real>(maxima.either(down)) * scale.unit;
      low = widened<Real>(maxima.either(!down)) * scale.unit;
    } else {
      Tile most = fill(-Real(kInfinity)), least = fill(Real(kInfinity));
      each(size, [&](const Chunk& chunk) {
        const Tile t = x[chunk];
        most = tile::max(most, only(chunk, t, -Real(kInfinity)));
        least = tile::min(least, only(chunk, t, Real(kInfinity)));
      });
      ROOFTILE_EACH_LANE(N) {
        high.v[i] = (down ? least.v[i] : most.v[i]) * scale.unit;
        low.v[i] = (down ? most.v[i] : least.v[i]) * scale.unit;
      }
    }
    const Real most = in_part({high}, Larger{}).v[0];
    const Real value = !is_whole() && most == -Real(kInfinity) ? Real(0) : most;
    Real least = low.v[0];
    ROOFTILE_UNROLL for (int i = 1; i < N; ++i) least = smaller(least, low.v[i]);
    return {value, scale.more != 1 || !((least - value) * scale.rest > kDeep)};
  }
  /// Of a row whose parts have maxima of their own: its maximum, Σ of the exponentials from there, and what
  /// an exponential from this thread's maximum is from there.
  struct Total {
    Real row_max, sum, factor;
  };
  /// `sums`: of this thread's exponentials. The warps reduce once, with both numbers.
  ROOFTILE_TILE
  Total total(const RowMax& row_max, const Tile& sums, const SplitScale& scale) const {
    const Real sum = in_part({sums}, AddUp{}).v[0];
    if (is_whole()) return {row_max.value, sum, 1};
    // A part that is -inf throughout has no exponential above 0, others have one that is 1.
    const Real mine = sum == 0 ? -Real(kInfinity) : row_max.value;
    const auto partials = partials_of(tile::Tile<Real, 2>{{mine, sum}});
    const Real most = partials.over(-Real(kInfinity), partials.template numbers<1>(), Larger{}).v[0];
    const auto factor = [&](Real from) { return exp_below(One{{from - most}}, scale).v[0]; };
    const auto scaled = [&](int i) { return One{{partials.at(1, i) * factor(partials.at(0, i))}}; };
    return {most, partials.over(Real(0), scaled, AddUp{}).v[0], factor(mine)};
  }
  /// What its empty lanes must hold.
  ROOFTILE_TILE static Real below_all(const SplitScale& scale) {
    return scale.unit < 0 ? Real(kInfinity) : -Real(kInfinity);
  }

  /// The same of an operand that reads itself: load_pack<kAccess, N>(chunk) is its method.
  template <class Operand>
  requires requires { typename Operand::Element; }
  ROOFTILE_TILE auto hold(const Operand& operand, Real) const {
    static_assert(!kHoldsRows, "rooftile::tile::hold: a gathered row is not held in registers");
    return HeldOperand<Real, N, Operand>{operand};
  }
  ROOFTILE_TILE HeldPixels<kAccess, N> hold(const Pixels& row) const { return {row}; }

  /// A computed row, in registers.
  struct Scratch {
    mutable Tile tiles[kHoldsRows ? kChunks : 1];
    ROOFTILE_TILE
    Tile& operator[](const Chunk& chunk) const {
      static_assert(kHoldsRows, "rooftile::tile::scratch: rows of any length have none");
      return tiles[chunk.index];
    }
  };
  ROOFTILE_TILE Scratch scratch(std::int64_t) const { return {}; }

  using Columns = ColumnSums<CudaTeam, kChunks, kAccess>;
  ROOFTILE_TILE Columns columns(const Row<Real>& sums) const { return {*this, sums, {}}; }

 private:
  friend struct Again;
  ROOFTILE_TILE bool in_cluster() const {
    return kScope == Scope::cluster || (kScope == Scope::any && cluster_ > 1);
  }
  using Across = BlockReduction<Real, 2, (kScope < Scope::cluster) ? kMaxWarps : kMaxPartials>;
  using InBlock = BlockReduction<Real, 2, kMaxWarps>;
  using Joined = BlockReduction<Real, 4, kMaxCluster>;
  using One = tile::Tile<Real, 1>;
  /// Elements from a chunk of a warp, or of a shorter team, to its next: what a warp asks for at once lies
  /// side by side (softmax 8192x4096, H200: f32 69.6 µs, so 69.1, bf16 38.5 and 38.2).
  ROOFTILE_TILE int chunk_step() const {
    if (kScope == Scope::warp) return threads_ * N;
    return kScope == Scope::any && threads_ < kWarp ? threads_ * N : kWarp * N;
  }
  /// A strided warp has the same elements as one of neighbours, on other threads.
  ROOFTILE_TILE
  int first_of_chunk() const {
    const auto thread = static_cast<unsigned>(thread_), warp = kScope == Scope::warp ? 0 : thread / kWarp;
    const unsigned lane = thread - warp * kWarp;
    return static_cast<int>(warp * (kWarp * N * kChunks) + lane * (kAccess == Access::interleaved ? 1 : N));
  }
  /// Whether this warp's part of the row is all of it.
  ROOFTILE_TILE
  bool is_whole() const {
    return kScope == Scope::warp || (kScope == Scope::any && threads_ <= kWarp && !in_cluster());
  }

  /// The upper half of the lanes folded onto the lower, and so on; then across the warp, or the team if it is
  /// shorter.
  template <int K, class Operation>
  ROOFTILE_TILE tile::Tile<Real, K> in_part(const Accumulator (&all)[K], Operation operation) const {
    tile::Tile<Real, K> r;
    ROOFTILE_UNROLL for (int i = 0; i < K; ++i) r.v[i] = folded<kAccess>(all[i].tile, operation);
    if ((kScope == Scope::warp || kScope == Scope::any) && threads_ < kWarp) {
      across(r, threads_, operation);
    } else if constexpr (kAccess == Access::interleaved) {
      // The order of the neighbours' threads: element e is theirs as thread e / N.
      ROOFTILE_UNROLL for (int far = N / 2; far > 0; far /= 2) step(r, far, operation);
      ROOFTILE_UNROLL for (int far = kWarp / 2; far >= N; far /= 2) step(r, far, operation);
    } else {
      across(r, kWarp, operation);
    }
    return r;
  }
  /// The block's part of a team, or of its teams this one, at a barrier of its own: 0 is __syncthreads', and
  /// a team has two warps at least.
  template <class Reduction, int K>
  ROOFTILE_TILE auto in_block(const tile::Tile<Real, K>& mine) const {
    const int first = kSharesBlock ? (static_cast<int>(threadIdx.x) - thread_) / kWarp : 0;
    return Reduction::of_warps(mine, thread_, first, threads_ / kWarp, rounds_.block++, [&] {
      if constexpr (kSharesBlock)
        rooftile::cuda::named_barrier_sync(1 + first / 2, threads_);
      else
        __syncthreads();
    });
  }
  template <int K>
  ROOFTILE_TILE auto partials_of(const tile::Tile<Real, K>& mine) const {
#if defined(ROOFTILE_HAS_SM90)
    if constexpr (sizeof(Real) == 4)
      if (in_cluster())
        return Across::of_cluster(mine, thread_, threads_ / kWarp, cluster_, rank_, rounds_.cluster++);
#endif
    return in_block<Across>(mine);
  }
  template <int K, class Operation>
  ROOFTILE_TILE tile::Tile<Real, K> reduce(const Accumulator (&all)[K], Real neutral,
                                           Operation operation) const {
    const auto part = in_part(all, operation);
    if (is_whole()) return part;
    const auto partials = partials_of(part);
    return partials.over(neutral, partials.template numbers<K>(), operation);
  }
  template <int K>
  ROOFTILE_TILE tile::Tile<Real, K> part_reduce(const Accumulator (&all)[K]) const {
    if (!in_cluster()) return reduce(all, Real(0), AddUp{});
    const auto partials = in_block<InBlock>(in_part(all, AddUp{}));
    return partials.over(Real(0), partials.template numbers<K>(), AddUp{});
  }
  // Four, without a gap before the reference: a copy of three came out of nvcc 13.0 with the second one's
  // value in the third (softmax, sm_90a).
  int threads_, thread_, cluster_, rank_;
  Rounds& rounds_;
  Ring ring_;
};

}  // namespace cuda
}  // namespace rooftile::tile
