#pragma once
// What a kernel for Hopper (sm_90a) is made of, all of it with a twin for the emulated device:
//   ptx.h            mbarriers, fences, clusters, named barriers, bulk copies
//   matrices.h       store_matrix (stmatrix)
//   tensor_map.h     maps of tensors, made by the host
//   tensor_copies.h  copies of boxes, by the copy engine
//   wgmma.h          products by the tensor cores
// and here the registers that warpgroups give each other, one thread of a warp, a place in a ring of slots,
// and results on their way to a box.
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "rooftile/backend/cuda/ptx.h"
#include "rooftile/backend/cuda/tensor_copies.h"
#include "rooftile/backend/cuda/tensor_map.h"
#include "rooftile/backend/cuda/unroll.h"
#include "rooftile/backend/cuda/wgmma.h"

#if defined(ROOFTILE_HAS_SM90)
namespace rooftile::cuda {

/// True in one lane of a warp whose 32 lanes all come here.
ROOFTILE_PTX bool elect_one(ROOFTILE_PTX_HERE_ONLY) {
#if defined(ROOFTILE_EMULATED)
  return emulated::device::elect_one(where);
#else
  std::uint32_t elected;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}"
               : "=r"(elected)::"memory");
  return elected != 0;
#endif
}

/// Two results of a product as a pair of 16 bits, `low` first; to nearest, ties to even. T: bf16 or f16.
template <class T>
ROOFTILE_PTX unsigned pack(float low, float high ROOFTILE_PTX_HERE) {
#if defined(ROOFTILE_EMULATED)
  return emulated::device::pack(std::is_same_v<T, bf16>, low, high, where);
#else
  unsigned pair;
  if constexpr (std::is_same_v<T, bf16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#endif
}

/// A place in a ring of slots; `phase`: the parity of this round.
template <int kSlots>
struct Ring {
  int slot = 0;
  unsigned phase = 0;

  ROOFTILE_PTX void next() {
    if (++slot < kSlots) return;
    slot = 0;
    phase ^= 1;
  }
};

/// A warp's 16 rows by 64 columns of a product, as 16 bits to where the copy engine stores them from: word c
/// of row r at c ^ (r % 8). result(i): the i-th of this thread's 32 (wgmma.h), final. Before the store:
/// fence_proxy_async and __syncwarp.
template <class T, class F>
ROOFTILE_PTX void stage_results(std::byte* to, F&& result) {
  const int lane = static_cast<int>(threadIdx.x) % 32, row = lane % 16;
  ROOFTILE_UNROLL for (int c = 0; c < 8; c += 2) {
    unsigned words[4];
    ROOFTILE_UNROLL for (int w = 0; w < 4; ++w) words[w] =
        pack<T>(result(c * 4 + w * 2), result(c * 4 + w * 2 + 1));
    store_matrix(to + row * 128 + ((c + lane / 16) ^ (row % 8)) * 16, words);
  }
}

#if defined(ROOFTILE_HAS_HOPPER)
/// A warpgroup gives registers back, so that its threads have N (24 to 256, a multiple of 8) each; all four
/// warps of it. The kernel is compiled for as many as __launch_bounds__ leave.
template <int N>
ROOFTILE_PTX void give_registers(ROOFTILE_PTX_HERE_ONLY) {
  static_assert(N % 8 == 0 && N >= 24 && N <= 256);
#if defined(ROOFTILE_EMULATED)
  emulated::device::set_max_registers(N, false, where);
#else
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
#endif
}
/// A warpgroup takes registers, once others have given them.
template <int N>
ROOFTILE_PTX void take_registers(ROOFTILE_PTX_HERE_ONLY) {
  static_assert(N % 8 == 0 && N >= 24 && N <= 256);
#if defined(ROOFTILE_EMULATED)
  emulated::device::set_max_registers(N, true, where);
#else
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
#endif
}
#endif  // ROOFTILE_HAS_HOPPER

}  // namespace rooftile::cuda
#endif  // ROOFTILE_HAS_SM90
