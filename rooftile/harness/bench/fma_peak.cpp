#include "rooftile/harness/bench/fma_peak.h"

#include <vector>

namespace rooftile::harness {
namespace {

#if defined(__x86_64__)

// Inline assembly, so that neither flags nor compilers change what is measured. Accumulators run towards a
// fixed point (x = 0.5 x + 1), so they stay normal numbers whatever the number of rounds.
//
// Chains: 2 units of latency 4 (5 on Haswell) need 8 (10) fma chains; 12 and 24 leave room. "fma+add" keeps
// separate adders busy as well (2 on recent AMD cores): such a CPU does up to 1.5 times its fma peak, and a
// time is impossible only above that.

#define ROOFTILE_X0_5(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define ROOFTILE_X6_11(X) X(6) X(7) X(8) X(9) X(10) X(11)
#define ROOFTILE_X12_17(X) X(12) X(13) X(14) X(15) X(16) X(17)
#define ROOFTILE_X18_23(X) X(18) X(19) X(20) X(21) X(22) X(23)
#define ROOFTILE_X0_11(X) ROOFTILE_X0_5(X) ROOFTILE_X6_11(X)
#define ROOFTILE_X0_23(X) ROOFTILE_X0_11(X) ROOFTILE_X12_17(X) ROOFTILE_X18_23(X)

#define ROOFTILE_CLOBBER_LOW                                                                                 \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", \
      "xmm13", "xmm14", "xmm15", "cc"
#define ROOFTILE_CLOBBER_HIGH                                                                        \
  "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", \
      "xmm27", "xmm28", "xmm29", "xmm30", "xmm31"

#define ROOFTILE_LOOP(body) "1:\n" body "subq $1, %[rounds]\njnz 1b\n"

const float kHalfF = 0.5F, kOneF = 1.0F;
const double kHalfD = 0.5, kOneD = 1.0;

// -- AVX-512: accumulators zmm0-23; zmm29 = 0, zmm30 = 0.5, zmm31 = 1
// ------------------------------------------

#define ROOFTILE_ZERO512(n) "vpxord %%zmm" #n ", %%zmm" #n ", %%zmm" #n "\n"
#define ROOFTILE_FMA512_F32(n) "vfmadd213ps %%zmm31, %%zmm30, %%zmm" #n "\n"
#define ROOFTILE_FMA512_F64(n) "vfmadd213pd %%zmm31, %%zmm30, %%zmm" #n "\n"
#define ROOFTILE_ADD512_F32(n) "vaddps %%zmm29, %%zmm" #n ", %%zmm" #n "\n"
#define ROOFTILE_ADD512_F64(n) "vaddpd %%zmm29, %%zmm" #n ", %%zmm" #n "\n"
#define ROOFTILE_DOT512_BF16(n) "vdpbf16ps %%zmm29, %%zmm30, %%zmm" #n "\n"
#define ROOFTILE_PEAK512(function, target_isa, splat, half, one, body)                          \
  __attribute__((target(target_isa))) void function(std::int64_t rounds) {                      \
    asm volatile(ROOFTILE_X0_23(ROOFTILE_ZERO512) ROOFTILE_ZERO512(29) splat                    \
                 " %[h], %%zmm30\n" splat " %[o], %%zmm31\n" ROOFTILE_LOOP(body) "vzeroupper\n" \
                 : [rounds] "+r"(rounds)                                                        \
                 : [h] "m"(half), [o] "m"(one)                                                  \
                 : ROOFTILE_CLOBBER_LOW, ROOFTILE_CLOBBER_HIGH);                                \
  }
ROOFTILE_PEAK512(fma_avx512_f32, "avx512f", "vbroadcastss", kHalfF, kOneF,
                 ROOFTILE_X0_23(ROOFTILE_FMA512_F32))
ROOFTILE_PEAK512(fma_avx512_f64, "avx512f", "vbroadcastsd", kHalfD, kOneD,
                 ROOFTILE_X0_23(ROOFTILE_FMA512_F64))
ROOFTILE_PEAK512(mix_avx512_f32, "avx512f", "vbroadcastss", kHalfF, kOneF,
                 ROOFTILE_X0_5(ROOFTILE_FMA512_F32) ROOFTILE_X12_17(ROOFTILE_ADD512_F32)
                     ROOFTILE_X6_11(ROOFTILE_FMA512_F32) ROOFTILE_X18_23(ROOFTILE_ADD512_F32))
ROOFTILE_PEAK512(mix_avx512_f64, "avx512f", "vbroadcastsd", kHalfD, kOneD,
                 ROOFTILE_X0_5(ROOFTILE_FMA512_F64) ROOFTILE_X12_17(ROOFTILE_ADD512_F64)
                     ROOFTILE_X6_11(ROOFTILE_FMA512_F64) ROOFTILE_X18_23(ROOFTILE_ADD512_F64))
ROOFTILE_PEAK512(dot_avx512_bf16, "avx512f,avx512bf16", "vbroadcastss", kHalfF, kOneF,
                 ROOFTILE_X0_23(ROOFTILE_DOT512_BF16))

// -- AVX2: accumulators ymm0-13; ymm14 = 0.5, ymm15 = 1
// --------------------------------------------

#define ROOFTILE_ZERO256(n) "vxorps %%ymm" #n ", %%ymm" #n ", %%ymm" #n "\n"
#define ROOFTILE_FMA256_F32(n) "vfmadd213ps %%ymm15, %%ymm14, %%ymm" #n "\n"
#define ROOFTILE_FMA256_F64(n) "vfmadd213pd %%ymm15, %%ymm14, %%ymm" #n "\n"
#define ROOFTILE_ADD256_F32(n) "vaddps %%ymm15, %%ymm" #n ", %%ymm" #n "\n"
#define ROOFTILE_ADD256_F64(n) "vaddpd %%ymm15, %%ymm" #n ", %%ymm" #n "\n"
#define ROOFTILE_PEAK256(function, splat, half, one, body)                                        \
  __attribute__((target("avx2,fma"))) void function(std::int64_t rounds) {                        \
    asm volatile(ROOFTILE_X0_11(ROOFTILE_ZERO256) ROOFTILE_ZERO256(12) ROOFTILE_ZERO256(13) splat \
                 " %[h], %%ymm14\n" splat " %[o], %%ymm15\n" ROOFTILE_LOOP(body) "vzeroupper\n"   \
                 : [rounds] "+r"(rounds)                                                          \
                 : [h] "m"(half), [o] "m"(one)                                                    \
                 : ROOFTILE_CLOBBER_LOW);                                                         \
  }
// 9 fma chains and 5 of adds (latency 2 or 3): all that 16 registers hold. Adding 1 stops at 2^24.
#define ROOFTILE_MIX256(F, A) F(0) A(9) F(1) F(2) A(10) F(3) F(4) A(11) F(5) A(12) F(6) F(7) A(13) F(8)
ROOFTILE_PEAK256(fma_avx2_f32, "vbroadcastss", kHalfF, kOneF, ROOFTILE_X0_11(ROOFTILE_FMA256_F32))
ROOFTILE_PEAK256(fma_avx2_f64, "vbroadcastsd", kHalfD, kOneD, ROOFTILE_X0_11(ROOFTILE_FMA256_F64))
ROOFTILE_PEAK256(mix_avx2_f32, "vbroadcastss", kHalfF, kOneF,
                 ROOFTILE_MIX256(ROOFTILE_FMA256_F32, ROOFTILE_ADD256_F32))
ROOFTILE_PEAK256(mix_avx2_f64, "vbroadcastsd", kHalfD, kOneD,
                 ROOFTILE_MIX256(ROOFTILE_FMA256_F64, ROOFTILE_ADD256_F64))

// -- baseline: products in xmm0-6 (of zeros), sums in xmm7-13; xmm14 = 0, xmm15 = 1
// -----------------------------

#define ROOFTILE_MULADD(M, A) M(0) A(7) M(1) A(8) M(2) A(9) M(3) A(10) M(4) A(11) M(5) A(12) M(6) A(13)
#define ROOFTILE_ZERO128(n) "xorps %%xmm" #n ", %%xmm" #n "\n"
#define ROOFTILE_MUL_F32(n) "mulps %%xmm15, %%xmm" #n "\n"
#define ROOFTILE_MUL_F64(n) "mulpd %%xmm15, %%xmm" #n "\n"
#define ROOFTILE_ADD_F32(n) "addps %%xmm14, %%xmm" #n "\n"
#define ROOFTILE_ADD_F64(n) "addpd %%xmm14, %%xmm" #n "\n"
#define ROOFTILE_PEAK128(function, splat, one, body)                                      \
  void function(std::int64_t rounds) {                                                    \
    asm volatile(ROOFTILE_MULADD(ROOFTILE_ZERO128, ROOFTILE_ZERO128) ROOFTILE_ZERO128(14) \
                     splat ROOFTILE_LOOP(body)                                            \
                 : [rounds] "+r"(rounds)                                                  \
                 : [o] "m"(one)                                                           \
                 : ROOFTILE_CLOBBER_LOW);                                                 \
  }
ROOFTILE_PEAK128(muladd_sse_f32, "movss %[o], %%xmm15\nshufps $0, %%xmm15, %%xmm15\n", kOneF,
                 ROOFTILE_MULADD(ROOFTILE_MUL_F32, ROOFTILE_ADD_F32))
ROOFTILE_PEAK128(muladd_sse_f64, "movsd %[o], %%xmm15\nunpcklpd %%xmm15, %%xmm15\n", kOneD,
                 ROOFTILE_MULADD(ROOFTILE_MUL_F64, ROOFTILE_ADD_F64))

std::vector<PeakLoop> find_loops() {
  __builtin_cpu_init();
  std::vector<PeakLoop> loops = {
      {"mul+add", "f32", "baseline", 14 * 4, muladd_sse_f32},
      {"mul+add", "f64", "baseline", 14 * 2, muladd_sse_f64},
  };
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    loops.push_back({"fma", "f32", "avx2", 12 * 8 * 2, fma_avx2_f32});
    loops.push_back({"fma", "f64", "avx2", 12 * 4 * 2, fma_avx2_f64});
    loops.push_back({"fma+add", "f32", "avx2", 9 * 8 * 2 + 5 * 8, mix_avx2_f32});
    loops.push_back({"fma+add", "f64", "avx2", 9 * 4 * 2 + 5 * 4, mix_avx2_f64});
  }
  if (__builtin_cpu_supports("avx512f")) {
    loops.push_back({"fma", "f32", "avx512", 24 * 16 * 2, fma_avx512_f32});
    loops.push_back({"fma", "f64", "avx512", 24 * 8 * 2, fma_avx512_f64});
    loops.push_back({"fma+add", "f32", "avx512", 12 * 16 * 2 + 12 * 16, mix_avx512_f32});
    loops.push_back({"fma+add", "f64", "avx512", 12 * 8 * 2 + 12 * 8, mix_avx512_f64});
    if (__builtin_cpu_supports("avx512bf16")) {
      loops.push_back({"dot", "bf16", "avx512", 24 * 16 * 4, dot_avx512_bf16});
    }
  }
  return loops;
}

#else

// Any other machine: what the compiler makes of 16-byte vectors. A lower bound of the peak, not the peak.
template <class T>
void muladd_portable(std::int64_t rounds) {
  typedef T Vector __attribute__((vector_size(16)));
  Vector x[8] = {};
  const T scale = static_cast<T>(0.5), shift = 1;
  for (; rounds > 0; --rounds) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) x[i] = x[i] * scale + shift;
  }
  volatile T sink = 0;
  for (int i = 0; i < 8; ++i) sink = sink + x[i][0];
}

std::vector<PeakLoop> find_loops() {
  return {{"mul+add", "f32", "baseline", 8 * 4 * 2, muladd_portable<float>},
          {"mul+add", "f64", "baseline", 8 * 2 * 2, muladd_portable<double>}};
}

#endif

}  // namespace

std::span<const PeakLoop> peak_loops() {
  static const std::vector<PeakLoop> loops = find_loops();
  return loops;
}

}  // namespace rooftile::harness
