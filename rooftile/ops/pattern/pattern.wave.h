#pragma once
// From a place and a time to a colour, the same bits on every machine: integers, and f32 products and sums
// that are not fused.
//
// An angle is a fraction of a turn, in 2^-64ths, as a 64-bit integer: whole turns fall off its upper end, so
// the reduction is exact and costs nothing. The time's share is made once per call on the host
// (pattern.time.h), a pixel adds .01 / 2π of a turn. The upper 32 bits go to the polynomial.
#include <cstdint>

#if defined(__CUDACC__) || defined(ROOFTILE_EMULATED)
#define ROOFTILE_WAVE __host__ __device__ inline
#else
#define ROOFTILE_WAVE inline __attribute__((always_inline))
#endif

namespace rooftile::wave {

/// .01 / 2π in 2^-64ths of a turn, rounded: 2^32 pixels away, a phase is off by 2^-33 turns.
inline constexpr std::uint64_t kStep = 0x684dc4c179c52c;

ROOFTILE_WAVE std::uint32_t phase(std::uint64_t start, std::int64_t place) {
  return static_cast<std::uint32_t>((start + static_cast<std::uint64_t>(place) * kStep) >> 32);
}

/// ½·sin(π/2·v) = v·P(v²) for |v| <= 1, within 0.03·2^-24: a minimax fit. With it the sum below never leaves
/// 0 … 1 (tests/pattern_test.cpp tries every 1021st phase).
inline constexpr float kSine[5] = {0.7853981256484985f, -0.32298168540000916f, 0.03984424099326134f,
                                   -0.0023361139465123415f, 7.541028026025742e-05f};

/// Beyond a quarter turn either way the sine comes back: the phase of the same sine within -¼ … ¼ turn.
ROOFTILE_WAVE std::int32_t folded(std::uint32_t phase) {
  return static_cast<std::int32_t>((phase + 0x40000000u) >> 31 ? 0x80000000u - phase : phase);
}

// [wave]
/// ½ + ½·sin of a phase in 2^-32nds of a turn.
ROOFTILE_WAVE float value(std::uint32_t phase) {
  const float v = static_cast<float>(folded(phase)) * 0x1p-30f, u = v * v;
  const float p = (((kSine[4] * u + kSine[3]) * u + kSine[2]) * u + kSine[1]) * u + kSine[0];
  return 0.5f + v * p;
}
// [/wave]

}  // namespace rooftile::wave
