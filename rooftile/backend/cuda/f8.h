#pragma once
// Rounding to 8 bits, and back, by the hardware (sm_89 on). It has no twin: where it is absent, and on the
// emulated device, kernels compute the same codes from bits (rooftile/ops/quantize/quantize.tile.h).
#include "rooftile/backend/cuda/ptx.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define ROOFTILE_HAS_F8_CODES 1
namespace rooftile::cuda {
/// Two numbers as codes of 8 bits, the first in the low ones: to nearest, finite beyond the largest.
#define ROOFTILE_F8_PAIR(name, type)                                                       \
  ROOFTILE_PTX unsigned name(float low, float high) {                                      \
    std::uint16_t pair;                                                                    \
    asm("cvt.rn.satfinite." type "x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low)); \
    return pair;                                                                           \
  }
ROOFTILE_F8_PAIR(f8e4m3_pair, "e4m3")
ROOFTILE_F8_PAIR(f8e5m2_pair, "e5m2")
#undef ROOFTILE_F8_PAIR
/// And back: two codes of f8e4m3 as halves, which hold each exactly.
ROOFTILE_PTX unsigned halves_of_f8e4m3(std::uint16_t pair) {
  unsigned halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(pair));
  return halves;
}
}  // namespace rooftile::cuda
#endif
