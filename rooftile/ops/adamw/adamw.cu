#include "rooftile/ops/adamw/adamw.tile.h"
#include "rooftile/tile/cuda/elements.h"

namespace rooftile {
namespace {
using namespace tile;
using kernels::AdamwElement;
using kernels::AdamwStep;
using T = AdamwTensor;

/// A thread has eight elements: of f32 two 16-byte words of each operand in flight, of 16 bits one.
constexpr int kItems = 8, kThreads = 256;
constexpr std::int64_t kPerBlock = kItems * kThreads;
using Floats = tile::Tile<float, kItems>;

/// Eight elements of a dtype that is known at run time: all threads take the same branch, and one kernel
/// serves all 54 combinations.
struct AnyPack {
  unsigned piece[kItems];

  ROOFTILE_TILE Floats widened(DType dtype) const {
    Floats x;
    ROOFTILE_UNROLL for (int i = 0; i < kItems; ++i) {
      const auto half = static_cast<std::uint16_t>(piece[i / 2] >> i % 2 * 16);
      x.v[i] = dtype == DType::f32    ? __uint_as_float(piece[i])
               : dtype == DType::bf16 ? widen<float>(bf16{half})
                                      : widen<float>(f16{half});
    }
    return x;
  }
  ROOFTILE_TILE void narrow_from(const Floats& x, DType dtype) {
    if (dtype == DType::f32) {
      ROOFTILE_UNROLL for (int i = 0; i < kItems; ++i) piece[i] = __float_as_uint(x.v[i]);
      return;
    }
    ROOFTILE_UNROLL for (int i = 0; i < kItems; i += 2) {
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

/// A contiguous tensor of a launch.
struct Flat {
  void* data[T::kOperands];
  std::int64_t size;
  unsigned first_block;
  DType dtype[3];  // of the parameter, the gradient, the states
  bool aligned;

  ROOFTILE_TILE std::int64_t offset(int, std::int64_t index) const { return index; }
};
/// As many as a kernel's parameters of 4 KiB hold.
constexpr int kFlats = 60;
struct Flats {
  Flat at[kFlats];
  int count;
};
static_assert(sizeof(Flats) <= 4000, "adamw: a launch's tensors are kernel parameters");

/// One of any strides.
struct Strided {
  Rows<T::kOperands> rows;
  void* data[T::kOperands];
  std::int64_t size;
  DType dtype[3];
  static constexpr bool aligned = false;

  ROOFTILE_TILE std::int64_t offset(int o, std::int64_t index) const {
    const std::int64_t row = index / rows.columns;
    return offset_of(rows, o, row) + (index - row * rows.columns) * rows.column_stride[o];
  }
};

__global__ void begin_step(const __grid_constant__ AdamwNumbers numbers, AdamwStep* step) {
  *step = kernels::adamw_step(numbers);
}

/// One block's elements: whole words, or those that are kThreads apart, one by one.
template <class Tensor>
ROOFTILE_TILE void update(const Tensor& t, const AdamwStep& s, std::int64_t block) {
  const int thread = static_cast<int>(threadIdx.x);
  const bool amsgrad = t.data[T::kMaxV], has_master = t.data[T::kMaster];
  const DType state = t.dtype[2], source = has_master ? DType::f32 : t.dtype[0];
  const int p = has_master ? T::kMaster : T::kParameter;
  if (t.aligned && t.size - block * kPerBlock >= kPerBlock) {
    const std::int64_t first = block * kPerBlock + thread * kItems;
    const auto at = [&](int o, DType dtype) {
      return static_cast<char*>(t.data[o]) + first * (dtype == DType::f32 ? 4 : 2);
    };
    AnyPack packs[5];
    packs[0].load(at(p, source), source);
    packs[1].load(at(T::kGradient, t.dtype[1]), t.dtype[1]);
    packs[2].load(at(T::kM, state), state);
    packs[3].load(at(T::kV, state), state);
    if (amsgrad) packs[4].load(at(T::kMaxV, state), state);
    AdamwElement<Floats> x{packs[0].widened(source), packs[2].widened(state), packs[3].widened(state), {}};
    if (amsgrad) x.max_v = packs[4].widened(state);
    x = kernels::adamw_element(s, amsgrad, x, packs[1].widened(t.dtype[1]));
    const auto put = [&](int o, DType dtype, const Floats& value) {
      AnyPack pack;
      pack.narrow_from(value, dtype);
      pack.store(at(o, dtype), dtype);
    };
    put(T::kParameter, t.dtype[0], x.p);
    if (has_master) put(T::kMaster, DType::f32, x.p);
    put(T::kM, state, x.m);
    put(T::kV, state, x.v);
    if (amsgrad) put(T::kMaxV, state, x.max_v);
    return;
  }
  using One = tile::Tile<float, 1>;
  ROOFTILE_UNROLL_BY(1) for (int i = 0; i < kItems; ++i) {
    const std::int64_t index = block * kPerBlock + i * kThreads + thread;
    if (index >= t.size) break;
    const auto take = [&](int o, DType dtype) {
      One x;
      x.v[0] = load_one(t.data[o], t.offset(o, index), dtype);
      return x;
    };
    const auto put = [&](int o, DType dtype, const One& value) {
      store_one(t.data[o], t.offset(o, index), dtype, value.v[0]);
    };
    AdamwElement<One> x{take(p, source), take(T::kM, state), take(T::kV, state), {}};
    if (amsgrad) x.max_v = take(T::kMaxV, state);
    x = kernels::adamw_element(s, amsgrad, x, take(T::kGradient, t.dtype[1]));
    put(T::kParameter, t.dtype[0], x.p);
    if (has_master) put(T::kMaster, DType::f32, x.p);
    put(T::kM, state, x.m);
    put(T::kV, state, x.v);
    if (amsgrad) put(T::kMaxV, state, x.max_v);
  }
}

__global__ void __launch_bounds__(kThreads)
    update_flats(const __grid_constant__ Flats flats, const AdamwStep* step) {
  const AdamwStep s = *step;
  if (s.skips) return;
  int low = 0, high = flats.count;  // the last tensor that begins at this block or before
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (flats.at[middle].first_block <= blockIdx.x)
      low = middle;
    else
      high = middle;
  }
  update(flats.at[low], s, std::int64_t{blockIdx.x} - flats.at[low].first_block);
}
__global__ void __launch_bounds__(kThreads)
    update_strided(const __grid_constant__ Strided t, const AdamwStep* step) {
  const AdamwStep s = *step;
  if (!s.skips) update(t, s, blockIdx.x);
}

template <class Tensor>
void fill(Tensor& to, const AdamwTensor& t) {
  for (int o = 0; o < T::kOperands; ++o) to.data[o] = t.data[o];
  to.size = t.size();
  to.dtype[0] = t.dtype[T::kParameter];
  to.dtype[1] = t.dtype[T::kGradient];
  to.dtype[2] = t.dtype[T::kM];
}

Status launch_tile(const CudaLaunch& launch, const AdamwProblem& p) {
  auto* step = static_cast<AdamwStep*>(launch.scratch);
  if (Status s = rooftile::cuda::launch(launch, "adamw", {1, 1}, begin_step, p.numbers, step); !s) return s;
  Flats flats{};
  std::int64_t blocks = 0;
  const auto flush = [&]() -> Status {
    if (flats.count == 0) return {};
    const Status s = rooftile::cuda::launch(launch, "adamw", {static_cast<unsigned>(blocks), kThreads},
                                            update_flats, flats, step);
    flats.count = 0;
    blocks = 0;
    return s;
  };
  for (std::int64_t i = 0; i < p.count(); ++i) {
    const AdamwTensor t = p.tensor(i);
    if (t.size() == 0) continue;
    const std::int64_t its = (t.size() + kPerBlock - 1) / kPerBlock;
    if (its > kMaxBlocks)
      return Status::error("adamw: %lld elements take more blocks than the %lld of a launch",
                           static_cast<long long>(t.size()), static_cast<long long>(kMaxBlocks));
    if (!t.contiguous()) {
      Strided one{t.rows, {}, 0, {}};
      fill(one, t);
      if (Status s = rooftile::cuda::launch(launch, "adamw", {static_cast<unsigned>(its), kThreads},
                                            update_strided, one, step);
          !s)
        return s;
      continue;
    }
    if (flats.count == kFlats || blocks + its > kMaxBlocks)
      if (Status s = flush(); !s) return s;
    Flat& flat = flats.at[flats.count++];
    fill(flat, t);
    flat.first_block = static_cast<unsigned>(blocks);
    flat.aligned = true;
    for (int o = 0; o < T::kOperands; ++o)
      flat.aligned = flat.aligned && reinterpret_cast<std::uintptr_t>(t.data[o]) % 16 == 0;
    blocks += its;
  }
  return flush();
}

}  // namespace

ROOFTILE_CUDA_KERNELS(adamw) = {entry<launch_tile>("adamw", "tile"), {}};

}  // namespace rooftile
