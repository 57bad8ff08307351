#include <algorithm>

#include "rooftile/backend/cuda/shared.h"
#include "rooftile/core/check.h"
#include "rooftile/ops/adamw_8bit/adamw_8bit.tile.h"

namespace rooftile {
namespace {
using namespace tile;

/// A warp has a block: eight elements to a lane, as AnyPack holds them. So largest values meet in shuffles.
constexpr int kThreads = 256, kWarps = kThreads / kWarp;
static_assert(kWarp * kListItems == kDynamicBlock);

struct Numbers {
  float m[256], v[256];
};
struct Tables {
  Numbers numbers, above;
};
/// What begins a call leaves for the launches behind it.
struct Begun {
  kernels::AdamwStep step;
  alignas(16) Tables tables;
};
static_assert(sizeof(Begun) <= kCudaScratchBytes);
constexpr Numbers numbers_of(bool above) {
  Numbers n{};
  for (int i = 0; i < 256; ++i) {
    n.m[i] = above ? kSignedMap.above[i] : kSignedMap.numbers[i];
    n.v[i] = above ? kUnsignedMap.above[i] : kUnsignedMap.numbers[i];
  }
  return n;
}
constexpr Numbers kNumbers = numbers_of(false), kAbove = numbers_of(true);

/// The maps come as parameters, since device code has no arrays of the host's; a launch's have no room beside
/// its tensors.
__global__ void begin_step(const __grid_constant__ AdamwNumbers numbers, const __grid_constant__ Numbers maps,
                           Begun* begun) {
  const int i = static_cast<int>(threadIdx.x);
  begun->tables.numbers.m[i] = maps.m[i];
  begun->tables.numbers.v[i] = maps.v[i];
  if (i == 0) begun->step = kernels::adamw_step(numbers);
}
__global__ void begin_thresholds(const __grid_constant__ Numbers above, Begun* begun) {
  const int i = static_cast<int>(threadIdx.x);
  begun->tables.above.m[i] = above.m[i];
  begun->tables.above.v[i] = above.v[i];
}

/// A tensor of any strides, with what FlatItem has.
struct StridedTensor {
  Rows<k8bitShaped> rows;
  void* data[k8bitLists];
  std::int64_t size;
  std::int64_t absmax_stride[2];
  DType dtypes[k8bitLists];

  ROOFTILE_TILE DType dtype(int list) const { return dtypes[list]; }
  ROOFTILE_TILE bool aligned() const { return false; }
  ROOFTILE_TILE std::int64_t offset(int list, std::int64_t index) const {
    const std::int64_t row = index / rows.columns;
    return offset_of(rows, list, row) + (index - row * rows.columns) * rows.column_stride[list];
  }
};
/// Where a block's largest mean is.
ROOFTILE_TILE std::int64_t absmax_at(const StridedTensor& t, int which, std::int64_t block) {
  return block * t.absmax_stride[which];
}
ROOFTILE_TILE std::int64_t absmax_at(const FlatItem<k8bitLists>&, int, std::int64_t block) { return block; }

ROOFTILE_TILE unsigned code_of(const float (&above)[256], float x) {
  int code = 0;
  ROOFTILE_UNROLL for (int step = 128; step > 0; step /= 2) code += x > above[code + step - 1] ? step : 0;
  return static_cast<unsigned>(code);
}

/// `eight` counts a tensor's blocks of 256 by eights.
template <class Item>
ROOFTILE_TILE void update(const Item& t, const Begun* begun, std::int64_t eight) {
  using Floats = AnyPack::Floats;
  ROOFTILE_SHARED(tables, Tables);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp;
  reinterpret_cast<float4*>(&tables)[thread] = reinterpret_cast<const float4*>(&begun->tables)[thread];
  static_assert(sizeof(Tables) == kThreads * sizeof(float4));
  const kernels::AdamwStep step = begun->step;
  __syncthreads();
  const std::int64_t block = eight * kWarps + thread / kWarp,
                     first = block * kDynamicBlock + lane * kListItems;
  if (block * kDynamicBlock >= t.size) return;
  const std::int64_t rest = t.size - first;
  const int live = rest >= kListItems ? kListItems : rest > 0 ? static_cast<int>(rest) : 0;
  const bool words = t.aligned() && live == kListItems, has_master = t.data[k8bitMaster] != nullptr;
  const int source = has_master ? k8bitMaster : k8bitParameter;

  const auto load = [&](int list) {
    Floats x{};
    const DType dtype = t.dtype(list);
    if (words) {
      AnyPack pack;
      pack.load(static_cast<const char*>(t.data[list]) + first * (dtype == DType::f32 ? 4 : 2), dtype);
      return pack.widened(dtype);
    }
    ROOFTILE_UNROLL for (int i = 0; i < kListItems; ++i) {
      if (i < live) x.v[i] = load_one(t.data[list], t.offset(list, first + i), dtype);
    }
    return x;
  };
  const auto store = [&](int list, const Floats& x) {
    const DType dtype = t.dtype(list);
    if (words) {
      AnyPack pack;
      pack.narrow_from(x, dtype);
      pack.store(static_cast<char*>(t.data[list]) + first * (dtype == DType::f32 ? 4 : 2), dtype);
      return;
    }
    ROOFTILE_UNROLL for (int i = 0; i < kListItems; ++i) {
      if (i < live) store_one(t.data[list], t.offset(list, first + i), dtype, x.v[i]);
    }
  };
  const auto load_mean = [&](int list, const float(&numbers)[256], float scale) {
    Floats x{};
    const auto* codes = static_cast<const std::uint8_t*>(t.data[list]);
    uint2 both{};
    if (words) both = *reinterpret_cast<const uint2*>(codes + first);
    ROOFTILE_UNROLL for (int i = 0; i < kListItems; ++i) {
      if (i >= live) continue;
      const unsigned code = words ? ((i < 4 ? both.x : both.y) >> i % 4 * 8) & 255u
                                  : unsigned{codes[t.offset(list, first + i)]};
      x.v[i] = numbers[code] * scale;
    }
    return x;
  };
  const auto store_mean = [&](int list, const float(&above)[256], const Floats& x, float most) {
    auto* codes = static_cast<std::uint8_t*>(t.data[list]);
    unsigned word[2] = {};
    ROOFTILE_UNROLL for (int i = 0; i < kListItems; ++i) {
      const unsigned code = code_of(above, most != 0 ? __fdiv_rn(x.v[i], most) : 0.0f);
      word[i / 4] |= code << i % 4 * 8;
      if (!words && i < live) codes[t.offset(list, first + i)] = static_cast<std::uint8_t>(code);
    }
    if (words) *reinterpret_cast<uint2*>(codes + first) = uint2{word[0], word[1]};
  };
  const auto largest = [&](const Floats& x) {
    float most = 0;
    ROOFTILE_UNROLL for (int i = 0; i < kListItems; ++i) most = fmaxf(most, fabsf(x.v[i]));
    for (int far = kWarp / 2; far > 0; far /= 2) most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, far));
    return most;
  };

  float* m_absmax = static_cast<float*>(t.data[k8bitMAbsmax]) + absmax_at(t, 0, block);
  float* v_absmax = static_cast<float*>(t.data[k8bitVAbsmax]) + absmax_at(t, 1, block);
  const auto y = kernels::adamw_8bit_element(
      step,
      kernels::Adamw8bitElement<Floats>{load(source), load_mean(k8bitM, tables.numbers.m, *m_absmax),
                                        load_mean(k8bitV, tables.numbers.v, *v_absmax)},
      load(k8bitGradient));
  store(k8bitParameter, y.p);
  if (has_master) store(k8bitMaster, y.p);
  const float most_m = largest(y.m), most_v = largest(y.v);
  store_mean(k8bitM, tables.above.m, y.m, most_m);
  store_mean(k8bitV, tables.above.v, y.v, most_v);
  if (lane == 0) {
    *m_absmax = most_m;
    *v_absmax = most_v;
  }
}

__global__ void __launch_bounds__(kThreads)
    update_flats(const __grid_constant__ FlatItems<k8bitLists> items, const Begun* begun) {
  if (begun->step.skips) return;
  const FlatItem<k8bitLists>& item = items.of_block(blockIdx.x);
  update(item, begun, std::int64_t{blockIdx.x} - item.first_block);
}
__global__ void __launch_bounds__(kThreads)
    update_strided(const __grid_constant__ StridedTensor item, const Begun* begun) {
  if (!begun->step.skips) update(item, begun, blockIdx.x);
}

Status launch_adamw_8bit(const CudaLaunch& where, const Adamw8bitProblem& p) {
  using rooftile::cuda::launch;
  const char* const name = "adamw_8bit";
  auto* const begun = static_cast<Begun*>(where.scratch);
  ROOFTILE_TRY(launch(where, name, {1, 256}, begin_step, p.numbers, kNumbers, begun));
  ROOFTILE_TRY(launch(where, name, {1, 256}, begin_thresholds, kAbove, begun));
  FlatLaunch<k8bitLists> flats;
  const auto flush = [&]() -> Status {
    if (flats.items.count == 0) return {};
    const Status s = launch(where, name, {static_cast<unsigned>(flats.blocks), kThreads}, update_flats,
                            flats.items, begun);
    flats.clear();
    return s;
  };
  for (std::int64_t i = 0; i < p.count(); ++i) {
    const Adamw8bitItem t = p.item(i);
    if (t.size() == 0) continue;
    const std::int64_t blocks = (t.blocks() + kWarps - 1) / kWarps;
    if (blocks > kMaxBlocks) return too_many_blocks(name, t.size());
    if (!t.contiguous()) {
      StridedTensor one{t.rows, {}, t.size(), {t.absmax_stride[0], t.absmax_stride[1]}, {}};
      std::copy_n(t.data, k8bitLists, one.data);
      std::copy_n(t.dtype, k8bitLists, one.dtypes);
      ROOFTILE_TRY(
          launch(where, name, {static_cast<unsigned>(blocks), kThreads}, update_strided, one, begun));
      continue;
    }
    if (!flats.takes(blocks)) ROOFTILE_TRY(flush());
    flats.add(t.data, t.dtype, t.size(), blocks);
  }
  return flush();
}

}  // namespace

ROOFTILE_CUDA_KERNELS(adamw_8bit) = {entry<launch_adamw_8bit>("adamw_8bit", "tile"), {}};

}  // namespace rooftile
