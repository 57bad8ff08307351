#pragma once
// Matrices in a warp's registers (sm_80 on): all 32 lanes together. Each instruction has a twin for the
// emulated device.
//
// A matrix of 8 rows of 16 bytes is one register of each lane: lane 4r + c holds word c of row r, which is
// elements 2c and 2c + 1 of 16 bits, element c of 32, or bytes 4c to 4c + 3.
#include <cstddef>
#include <cstdint>

#include "rooftile/backend/cuda/instruction.h"

namespace rooftile::cuda {

/// N (1, 2, 4) matrices from shared memory: lane 8m + r gives the address of row r of matrix m, aligned to
/// 16; of further lanes any aligned address in shared memory. `kTransposed`: of 16-bit elements, lane 4r + c
/// gets elements r of rows 2c and 2c + 1.
template <bool kTransposed = false, int N>
ROOFTILE_PTX void load_matrix(unsigned (&registers)[N], const void* row ROOFTILE_PTX_HERE) {
  static_assert(N == 1 || N == 2 || N == 4);
#if defined(ROOFTILE_EMULATED)
  unsigned words[4] = {};
  if (emulated::device::lane() < 8 * N) {
    const uint4 word = *static_cast<const uint4*>(row);
    words[0] = word.x, words[1] = word.y, words[2] = word.z, words[3] = word.w;
  }
  emulated::device::exchange_rows(words, registers, N, kTransposed, false, where);
#else
  const std::uint32_t from = detail::shared_address(row);
  if constexpr (N == 4 && kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
                 : "r"(from)
                 : "memory");
  else if constexpr (N == 4)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
                 : "r"(from)
                 : "memory");
  else if constexpr (N == 2 && kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(registers[0]), "=r"(registers[1])
                 : "r"(from)
                 : "memory");
  else if constexpr (N == 2)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(registers[0]), "=r"(registers[1])
                 : "r"(from)
                 : "memory");
  else if constexpr (kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(registers[0])
                 : "r"(from)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(registers[0])
                 : "r"(from)
                 : "memory");
#endif
}
#if defined(ROOFTILE_HAS_SM90)
/// The way back, from registers to rows (sm_90 on).
template <bool kTransposed = false, int N>
ROOFTILE_PTX void store_matrix(void* row, const unsigned (&registers)[N] ROOFTILE_PTX_HERE) {
  static_assert(N == 2 || N == 4);
#if defined(ROOFTILE_EMULATED)
  unsigned words[4] = {}, held[N];
  for (int i = 0; i < N; ++i) held[i] = registers[i];
  emulated::device::exchange_rows(words, held, N, kTransposed, true, where);
  if (emulated::device::lane() < 8 * N) {
    *static_cast<uint4*>(row) = {words[0], words[1], words[2], words[3]};
    emulated::device::shared_written(row, 16, where);
  }
#else
  const std::uint32_t to = detail::shared_address(row);
  if constexpr (N == 4 && kTransposed)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(registers[0]), "r"(registers[1]), "r"(registers[2]), "r"(registers[3])
                 : "memory");
  else if constexpr (N == 4)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(registers[0]), "r"(registers[1]), "r"(registers[2]), "r"(registers[3])
                 : "memory");
  else if constexpr (kTransposed)
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(to),
                 "r"(registers[0]), "r"(registers[1])
                 : "memory");
  else
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(to), "r"(registers[0]),
                 "r"(registers[1])
                 : "memory");
#endif
}
#endif

/// d += a·b for a tile of 16x8 results, fp32, and 32 bytes of K: 16 elements, of tf32 8.
/// a: matrices of rows 0 and 8 of the first 16 bytes, then of the second; b, whose rows are the product's
/// columns: of the first and the second 16 bytes; d: lane 4g + c holds columns 2c and 2c + 1 of row g, then
/// of row g + 8.
#if defined(ROOFTILE_EMULATED)
#define ROOFTILE_MMA(name, instruction, kind)                                                            \
  ROOFTILE_PTX void name(float(&d)[4], const unsigned(&a)[4], const unsigned(&b)[2] ROOFTILE_PTX_HERE) { \
    emulated::device::multiply_fragments(emulated::device::MatrixType::kind, d, a, b, where);            \
  }
#else
#define ROOFTILE_MMA(name, instruction, kind)                                                              \
  ROOFTILE_PTX void name(float(&d)[4], const unsigned(&a)[4], const unsigned(&b)[2]) {                     \
    asm("mma.sync.aligned." instruction " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                   \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                               \
  }
#endif
ROOFTILE_MMA(mma_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", kBf16)
ROOFTILE_MMA(mma_f16, "m16n8k16.row.col.f32.f16.f16.f32", kF16)
ROOFTILE_MMA(mma_tf32, "m16n8k8.row.col.f32.tf32.tf32.f32", kTf32)
#undef ROOFTILE_MMA
/// The same of signed bytes, 32 of K, in integers: exact modulo 2^32.
ROOFTILE_PTX void mma_s8(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2] ROOFTILE_PTX_HERE) {
#if defined(ROOFTILE_EMULATED)
  emulated::device::multiply_bytes(d, a, b, where);
#else
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

}  // namespace rooftile::cuda
