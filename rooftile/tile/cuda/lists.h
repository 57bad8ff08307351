#pragma once
// Lists of tensors, on a GPU: one launch serves as many contiguous tensors as a kernel's parameters hold; a
// strided one has a launch of its own.
#include "rooftile/tile/cuda/elements.h"

namespace rooftile::tile {
inline namespace cuda {

/// A contiguous tensor of each list.
template <int kLists>
struct FlatItem {
  void* data[kLists];
  std::int64_t size;
  unsigned first_block;
  unsigned types;  ///< four bits each; from kAligned on: all begin at whole 16-byte vectors

  static constexpr unsigned kAligned = 1u << 31;
  static_assert(kLists < 8);

  ROOFTILE_TILE DType dtype(int list) const { return static_cast<DType>(types >> 4 * list & 15); }
  ROOFTILE_TILE bool aligned() const { return (types & kAligned) != 0; }
  ROOFTILE_TILE std::int64_t offset(int, std::int64_t index) const { return index; }
};
/// As many as a kernel's parameters of 4 KiB hold: 60 of six operands.
template <int kLists>
struct FlatItems {
  static constexpr int kMax = 3840 / int{sizeof(FlatItem<kLists>)};
  FlatItem<kLists> at[kMax];
  int count;

  /// The last one that begins at this block or before.
  ROOFTILE_TILE const FlatItem<kLists>& of_block(unsigned block) const {
    int low = 0, high = count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (at[middle].first_block <= block)
        low = middle;
      else
        high = middle;
    }
    return at[low];
  }
};
/// One of any strides.
template <int kLists>
struct StridedItem {
  Rows<kLists> rows;
  void* data[kLists];
  std::int64_t size;
  DType dtypes[kLists];

  ROOFTILE_TILE DType dtype(int list) const { return dtypes[list]; }
  ROOFTILE_TILE bool aligned() const { return false; }
  ROOFTILE_TILE std::int64_t offset(int list, std::int64_t index) const {
    const std::int64_t row = index / rows.columns;
    return offset_of(rows, list, row) + (index - row * rows.columns) * rows.column_stride[list];
  }
};

/// Collects contiguous items for a launch.
template <int kLists>
struct FlatLaunch {
  FlatItems<kLists> items{};
  std::int64_t blocks = 0;

  bool takes(std::int64_t its_blocks) const {
    return items.count < FlatItems<kLists>::kMax && blocks + its_blocks <= kMaxBlocks;
  }
  void add(void* const (&data)[kLists], const DType (&dtype)[kLists], std::int64_t size,
           std::int64_t its_blocks) {
    FlatItem<kLists>& item = items.at[items.count++];
    item = {{}, size, static_cast<unsigned>(blocks), FlatItem<kLists>::kAligned};
    for (int o = 0; o < kLists; ++o) {
      item.data[o] = data[o];
      item.types |= static_cast<unsigned>(dtype[o]) << 4 * o;
      if (reinterpret_cast<std::uintptr_t>(data[o]) % 16 != 0) item.types &= ~FlatItem<kLists>::kAligned;
    }
    blocks += its_blocks;
  }
  void clear() {
    items.count = 0;
    blocks = 0;
  }
};

/// A thread has eight elements: of f32 two 16-byte vectors of each operand in flight, of 16 bits one.
inline constexpr int kListItems = 8, kListThreads = 256;
inline constexpr std::int64_t kListPerBlock = kListItems * kListThreads;

/// Eight elements of a dtype that is known at run time: all threads take the same branch, and one kernel
/// serves all combinations.
struct AnyPack {
  unsigned piece[kListItems];
  using Floats = Tile<float, kListItems>;

  ROOFTILE_TILE Floats widened(DType dtype) const {
    Floats x;
    ROOFTILE_UNROLL for (int i = 0; i < kListItems; ++i) {
      const auto half = static_cast<std::uint16_t>(piece[i / 2] >> i % 2 * 16);
      x.v[i] = dtype == DType::f32    ? __uint_as_float(piece[i])
               : dtype == DType::bf16 ? widen<float>(bf16{half})
                                      : widen<float>(f16{half});
    }
    return x;
  }
  ROOFTILE_TILE void narrow_from(const Floats& x, DType dtype) {
    if (dtype == DType::f32) {
      ROOFTILE_UNROLL for (int i = 0; i < kListItems; ++i) piece[i] = __float_as_uint(x.v[i]);
      return;
    }
    ROOFTILE_UNROLL for (int i = 0; i < kListItems; i += 2) {
      const auto bits = [&](float f) -> unsigned {
        return dtype == DType::bf16 ? narrow<bf16>(f).bits : narrow<f16>(f).bits;
      };
      piece[i / 2] = bits(x.v[i]) | bits(x.v[i + 1]) << 16;
    }
  }
  ROOFTILE_TILE void load(const void* from, DType dtype) {
    const auto* words = static_cast<const uint4*>(from);
    const auto take = [&](int w) {
      const uint4 word = read<false>(words + w);
      piece[4 * w] = word.x, piece[4 * w + 1] = word.y, piece[4 * w + 2] = word.z, piece[4 * w + 3] = word.w;
    };
    take(0);
    if (dtype == DType::f32) take(1);
  }
  ROOFTILE_TILE void store(void* to, DType dtype) const {
    auto* words = static_cast<uint4*>(to);
    write(words, uint4{piece[0], piece[1], piece[2], piece[3]});
    if (dtype == DType::f32) write(words + 1, uint4{piece[4], piece[5], piece[6], piece[7]});
  }
};

ROOFTILE_TILE float load_one(const void* data, std::int64_t at, DType dtype) {
  if (dtype == DType::f32) return static_cast<const float*>(data)[at];
  if (dtype == DType::bf16) return widen<float>(static_cast<const bf16*>(data)[at]);
  return widen<float>(static_cast<const f16*>(data)[at]);
}
ROOFTILE_TILE void store_one(void* data, std::int64_t at, DType dtype, float value) {
  if (dtype == DType::f32)
    static_cast<float*>(data)[at] = value;
  else if (dtype == DType::bf16)
    static_cast<bf16*>(data)[at] = narrow<bf16>(value);
  else
    static_cast<f16*>(data)[at] = narrow<f16>(value);
}

template <class Program>
__global__ void begin_lists(const __grid_constant__ typename Program::Numbers numbers,
                            typename Program::Shared* shared) {
  *shared = Program::begin(numbers);
}

/// Other threads may write the same at the same time.
template <class Program, int kItems>
ROOFTILE_TILE void report(const typename Program::Shared& shared, const Tile<float, kItems>& x) {
  if constexpr (kFinds<Program>) {
    bool finite = true;
    ROOFTILE_UNROLL for (int i = 0; i < kItems; ++i) finite = finite && x.v[i] - x.v[i] == 0;
    if (!finite) atomicExch(shared.found, 1.0f);
  }
}

/// One block's elements: whole vectors, or those that are kListThreads apart, one by one.
template <class Program, class Item>
ROOFTILE_TILE void update_block(const Item& t, const typename Program::Shared& shared, std::int64_t block) {
  constexpr int kValues = Program::kValues, kLast = kListsOf<Program> - 1;
  const int thread = static_cast<int>(threadIdx.x);
  const bool has_master = Program::kMaster && t.data[kLast];
  unsigned has = 0;
  ROOFTILE_UNROLL for (int v = 0; v < kValues; ++v) has |= t.data[v] ? 1u << v : 0;
  const int source = has_master ? kLast : 0;
  if (t.aligned() && t.size - block * kListPerBlock >= kListPerBlock) {
    const std::int64_t first = block * kListPerBlock + thread * kListItems;
    const auto at = [&](int o) {
      return static_cast<char*>(t.data[o]) + first * (t.dtype(o) == DType::f32 ? 4 : 2);
    };
    AnyPack packs[kValues];
    ROOFTILE_UNROLL for (int v = 0; v < kValues; ++v) {
      const int o = v == 0 ? source : v;
      if (has >> v & 1) packs[v].load(at(o), t.dtype(o));
    }
    AnyPack::Floats x[kValues]{};
    ROOFTILE_UNROLL for (int v = 0; v < kValues; ++v) {
      if (has >> v & 1) x[v] = packs[v].widened(t.dtype(v == 0 ? source : v));
    }
    report<Program>(shared, x[0]);
    Program::element(shared, has, x);
    const auto put = [&](int o, const AnyPack::Floats& value) {
      AnyPack pack;
      pack.narrow_from(value, t.dtype(o));
      pack.store(at(o), t.dtype(o));
    };
    ROOFTILE_UNROLL for (int v = 0; v < kValues; ++v) {
      if (writes_list<Program>(v) && (has >> v & 1)) put(v, x[v]);
    }
    if (has_master) put(kLast, x[0]);
    return;
  }
  using One = Tile<float, 1>;
  ROOFTILE_UNROLL_BY(1) for (int i = 0; i < kListItems; ++i) {
    const std::int64_t index = block * kListPerBlock + i * kListThreads + thread;
    if (index >= t.size) break;
    One x[kValues]{};
    ROOFTILE_UNROLL for (int v = 0; v < kValues; ++v) {
      const int o = v == 0 ? source : v;
      if (has >> v & 1) x[v].v[0] = load_one(t.data[o], t.offset(o, index), t.dtype(o));
    }
    report<Program>(shared, x[0]);
    Program::element(shared, has, x);
    ROOFTILE_UNROLL for (int v = 0; v < kValues; ++v) {
      if (writes_list<Program>(v) && (has >> v & 1))
        store_one(t.data[v], t.offset(v, index), t.dtype(v), x[v].v[0]);
    }
    if (has_master) store_one(t.data[kLast], t.offset(kLast, index), DType::f32, x[0].v[0]);
  }
}

template <class Program>
__global__ void __launch_bounds__(kListThreads)
    update_flats(const __grid_constant__ FlatItems<kListsOf<Program>> items,
                 const typename Program::Shared* shared) {
  const typename Program::Shared s = *shared;
  if (s.skips) return;
  const auto& item = items.of_block(blockIdx.x);
  update_block<Program>(item, s, std::int64_t{blockIdx.x} - item.first_block);
}
template <class Program>
__global__ void __launch_bounds__(kListThreads)
    update_strided(const __grid_constant__ StridedItem<kListsOf<Program>> item,
                   const typename Program::Shared* shared) {
  const typename Program::Shared s = *shared;
  if (!s.skips) update_block<Program>(item, s, blockIdx.x);
}

inline Status too_many_blocks(const char* name, std::int64_t size) {
  return Status::error("%s: %lld elements take more blocks than the %lld of a launch", name,
                       static_cast<long long>(size), static_cast<long long>(kMaxBlocks));
}

template <class Program>
Status begin_only(const CudaLaunch& launch, const char* name, const typename Program::Numbers& numbers) {
  return rooftile::cuda::launch(launch, name, {1, 1}, begin_lists<Program>, numbers,
                                static_cast<typename Program::Shared*>(launch.scratch));
}

template <class Program>
Status for_lists(const CudaLaunch& launch, const char* name, const ListsProblemOf<Program>& p) {
  using Shared = typename Program::Shared;
  constexpr int kLists = kListsOf<Program>;
  auto* shared = static_cast<Shared*>(launch.scratch);
  if (Status s = begin_only<Program>(launch, name, p.numbers); !s) return s;
  FlatLaunch<kLists> flats;
  const auto flush = [&]() -> Status {
    if (flats.items.count == 0) return {};
    const Status s = rooftile::cuda::launch(launch, name, {static_cast<unsigned>(flats.blocks), kListThreads},
                                            update_flats<Program>, flats.items, shared);
    flats.clear();
    return s;
  };
  for (std::int64_t i = 0; i < p.count(); ++i) {
    const ListItem<kLists> t = p.item(i);
    if (t.size() == 0) continue;
    const std::int64_t blocks = (t.size() + kListPerBlock - 1) / kListPerBlock;
    if (blocks > kMaxBlocks) return too_many_blocks(name, t.size());
    if (!t.contiguous()) {
      StridedItem<kLists> one{t.rows, {}, t.size(), {}};
      std::copy_n(t.data, kLists, one.data);
      std::copy_n(t.dtype, kLists, one.dtypes);
      if (Status s = rooftile::cuda::launch(launch, name, {static_cast<unsigned>(blocks), kListThreads},
                                            update_strided<Program>, one, shared);
          !s)
        return s;
      continue;
    }
    if (!flats.takes(blocks))
      if (Status s = flush(); !s) return s;
    flats.add(t.data, t.dtype, t.size(), blocks);
  }
  return flush();
}

}  // namespace cuda
}  // namespace rooftile::tile
