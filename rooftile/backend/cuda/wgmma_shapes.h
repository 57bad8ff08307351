#pragma once
// wgmma's instructions, by N: each has N / 2 results in a thread, and an instruction's operands are told one
// by one. wgmma.h has the functions to call. GPUs only.
#include <cstdint>
#include <type_traits>

#include "rooftile/core/dtype.h"

namespace rooftile::cuda::detail {

// Of so many results: their numbers within the instruction, and the operands.
#define R4 "%0, %1, %2, %3"
#define R8 R4 ", %4, %5, %6, %7"
#define R12 R8 ", %8, %9, %10, %11"
#define R16 R12 ", %12, %13, %14, %15"
#define R20 R16 ", %16, %17, %18, %19"
#define R24 R20 ", %20, %21, %22, %23"
#define R28 R24 ", %24, %25, %26, %27"
#define R32 R28 ", %28, %29, %30, %31"
#define R36 R32 ", %32, %33, %34, %35"
#define R40 R36 ", %36, %37, %38, %39"
#define R44 R40 ", %40, %41, %42, %43"
#define R48 R44 ", %44, %45, %46, %47"
#define R52 R48 ", %48, %49, %50, %51"
#define R56 R52 ", %52, %53, %54, %55"
#define R60 R56 ", %56, %57, %58, %59"
#define R64 R60 ", %60, %61, %62, %63"
#define R68 R64 ", %64, %65, %66, %67"
#define R72 R68 ", %68, %69, %70, %71"
#define R76 R72 ", %72, %73, %74, %75"
#define R80 R76 ", %76, %77, %78, %79"
#define R84 R80 ", %80, %81, %82, %83"
#define R88 R84 ", %84, %85, %86, %87"
#define R92 R88 ", %88, %89, %90, %91"
#define R96 R92 ", %92, %93, %94, %95"
#define R100 R96 ", %96, %97, %98, %99"
#define R104 R100 ", %100, %101, %102, %103"
#define R108 R104 ", %104, %105, %106, %107"
#define R112 R108 ", %108, %109, %110, %111"
#define R116 R112 ", %112, %113, %114, %115"
#define R120 R116 ", %116, %117, %118, %119"
#define R124 R120 ", %120, %121, %122, %123"
#define R128 R124 ", %124, %125, %126, %127"
#define Q(i) C(d[i]), C(d[i + 1]), C(d[i + 2]), C(d[i + 3])
#define S4 Q(0)
#define S8 S4, Q(4)
#define S12 S8, Q(8)
#define S16 S12, Q(12)
#define S20 S16, Q(16)
#define S24 S20, Q(20)
#define S28 S24, Q(24)
#define S32 S28, Q(28)
#define S36 S32, Q(32)
#define S40 S36, Q(36)
#define S44 S40, Q(40)
#define S48 S44, Q(44)
#define S52 S48, Q(48)
#define S56 S52, Q(52)
#define S60 S56, Q(56)
#define S64 S60, Q(60)
#define S68 S64, Q(64)
#define S72 S68, Q(68)
#define S76 S72, Q(72)
#define S80 S76, Q(76)
#define S84 S80, Q(80)
#define S88 S84, Q(84)
#define S92 S88, Q(88)
#define S96 S92, Q(92)
#define S100 S96, Q(96)
#define S104 S100, Q(100)
#define S108 S104, Q(104)
#define S112 S108, Q(108)
#define S116 S112, Q(112)
#define S120 S116, Q(116)
#define S124 S120, Q(120)
#define S128 S124, Q(124)

// i0 and on: the numbers of the operands after the results.
#define ROOFTILE_WGMMA_OF(type, n, r, i0, i1, i2, i3, i4, i5, i6, results, operands)                        \
  if constexpr (kLeft == Left::kShared)                                                                     \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i2 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n      \
                 "k16.f32." type "." type " {" results "}, %" #i0 ", %" #i1 ", p, 1, 1, %" #i3 ", %" #i4    \
                 ";\n}"                                                                                     \
                 : operands                                                                                 \
                 : "l"(a), "l"(b), "r"(add), "n"(kA), "n"(kB));                                             \
  else                                                                                                      \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i5 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n      \
                 "k16.f32." type "." type " {" results "}, {%" #i0 ", %" #i1 ", %" #i2 ", %" #i3 "}, %" #i4 \
                 ", p, 1, 1, %" #i6 ";\n}"                                                                  \
                 : operands                                                                                 \
                 : "r"(registers[0]), "r"(registers[1]), "r"(registers[2]), "r"(registers[3]), "l"(b),      \
                   "r"(add), "n"(kB))
// Of elements that are K-major always: the instruction has no word on that.
#define ROOFTILE_WGMMA_K_MAJOR(n, kind, signs, i0, i1, i2, results, operands)                             \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i2 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n kind \
               " {" results "}, %" #i0 ", %" #i1 ", p" signs ";\n}"                                       \
               : operands                                                                                 \
               : "l"(a), "l"(b), "r"(add))
#define ROOFTILE_WGMMA(n, r, i0, i1, i2, i3, i4, i5, i6)                                         \
  template <>                                                                                    \
  struct Wgmma<n> {                                                                              \
    template <class T, Left kLeft, int kA, int kB>                                               \
    static __device__ __forceinline__ void multiply(float (&d)[r], const unsigned* registers,    \
                                                    std::uint64_t a, std::uint64_t b, int add) { \
      if constexpr (std::is_same_v<T, bf16>) {                                                   \
        ROOFTILE_WGMMA_OF("bf16", n, r, i0, i1, i2, i3, i4, i5, i6, R##r, S##r);                 \
      } else if constexpr (std::is_same_v<T, tf32>) {                                            \
        ROOFTILE_WGMMA_K_MAJOR(n, "k8.f32.tf32.tf32", ", 1, 1", i0, i1, i2, R##r, S##r);         \
      } else {                                                                                   \
        ROOFTILE_WGMMA_OF("f16", n, r, i0, i1, i2, i3, i4, i5, i6, R##r, S##r);                  \
      }                                                                                          \
    }                                                                                            \
  };

enum class Left { kShared, kRegisters };
template <int N>
struct Wgmma;
#define C(x) "+f"(x)
ROOFTILE_WGMMA(8, 4, 4, 5, 6, 7, 8, 9, 10)
ROOFTILE_WGMMA(16, 8, 8, 9, 10, 11, 12, 13, 14)
ROOFTILE_WGMMA(24, 12, 12, 13, 14, 15, 16, 17, 18)
ROOFTILE_WGMMA(32, 16, 16, 17, 18, 19, 20, 21, 22)
ROOFTILE_WGMMA(40, 20, 20, 21, 22, 23, 24, 25, 26)
ROOFTILE_WGMMA(48, 24, 24, 25, 26, 27, 28, 29, 30)
ROOFTILE_WGMMA(56, 28, 28, 29, 30, 31, 32, 33, 34)
ROOFTILE_WGMMA(64, 32, 32, 33, 34, 35, 36, 37, 38)
ROOFTILE_WGMMA(72, 36, 36, 37, 38, 39, 40, 41, 42)
ROOFTILE_WGMMA(80, 40, 40, 41, 42, 43, 44, 45, 46)
ROOFTILE_WGMMA(88, 44, 44, 45, 46, 47, 48, 49, 50)
ROOFTILE_WGMMA(96, 48, 48, 49, 50, 51, 52, 53, 54)
ROOFTILE_WGMMA(104, 52, 52, 53, 54, 55, 56, 57, 58)
ROOFTILE_WGMMA(112, 56, 56, 57, 58, 59, 60, 61, 62)
ROOFTILE_WGMMA(120, 60, 60, 61, 62, 63, 64, 65, 66)
ROOFTILE_WGMMA(128, 64, 64, 65, 66, 67, 68, 69, 70)
ROOFTILE_WGMMA(136, 68, 68, 69, 70, 71, 72, 73, 74)
ROOFTILE_WGMMA(144, 72, 72, 73, 74, 75, 76, 77, 78)
ROOFTILE_WGMMA(152, 76, 76, 77, 78, 79, 80, 81, 82)
ROOFTILE_WGMMA(160, 80, 80, 81, 82, 83, 84, 85, 86)
ROOFTILE_WGMMA(168, 84, 84, 85, 86, 87, 88, 89, 90)
ROOFTILE_WGMMA(176, 88, 88, 89, 90, 91, 92, 93, 94)
ROOFTILE_WGMMA(184, 92, 92, 93, 94, 95, 96, 97, 98)
ROOFTILE_WGMMA(192, 96, 96, 97, 98, 99, 100, 101, 102)
ROOFTILE_WGMMA(200, 100, 100, 101, 102, 103, 104, 105, 106)
ROOFTILE_WGMMA(208, 104, 104, 105, 106, 107, 108, 109, 110)
ROOFTILE_WGMMA(216, 108, 108, 109, 110, 111, 112, 113, 114)
ROOFTILE_WGMMA(224, 112, 112, 113, 114, 115, 116, 117, 118)
ROOFTILE_WGMMA(232, 116, 116, 117, 118, 119, 120, 121, 122)
ROOFTILE_WGMMA(240, 120, 120, 121, 122, 123, 124, 125, 126)
ROOFTILE_WGMMA(248, 124, 124, 125, 126, 127, 128, 129, 130)
ROOFTILE_WGMMA(256, 128, 128, 129, 130, 131, 132, 133, 134)

// Codes of two formats of 8 bits.
template <int N>
struct WgmmaF8;
template <>
struct WgmmaF8<128> {
  template <bool kLargeA, bool kLargeB>
  static __device__ __forceinline__ void multiply(float (&d)[64], std::uint64_t a, std::uint64_t b, int add) {
    if constexpr (kLargeA && kLargeB)
      ROOFTILE_WGMMA_K_MAJOR(128, "k32.f32.e5m2.e5m2", ", 1, 1", 64, 65, 66, R64, S64);
    else if constexpr (kLargeA)
      ROOFTILE_WGMMA_K_MAJOR(128, "k32.f32.e5m2.e4m3", ", 1, 1", 64, 65, 66, R64, S64);
    else if constexpr (kLargeB)
      ROOFTILE_WGMMA_K_MAJOR(128, "k32.f32.e4m3.e5m2", ", 1, 1", 64, 65, 66, R64, S64);
    else
      ROOFTILE_WGMMA_K_MAJOR(128, "k32.f32.e4m3.e4m3", ", 1, 1", 64, 65, 66, R64, S64);
  }
};
#undef C

// Bytes, whose sums are integers.
#define ROOFTILE_WGMMA_I8(n, r, i0, i1, i2)                                                        \
  template <>                                                                                      \
  struct WgmmaI8<n> {                                                                              \
    static __device__ __forceinline__ void multiply(int (&d)[r], std::uint64_t a, std::uint64_t b, \
                                                    int add) {                                     \
      ROOFTILE_WGMMA_K_MAJOR(n, "k32.s32.s8.s8", "", i0, i1, i2, R##r, S##r);                      \
    }                                                                                              \
  };
template <int N>
struct WgmmaI8;
#define C(x) "+r"(x)
ROOFTILE_WGMMA_I8(8, 4, 4, 5, 6)
ROOFTILE_WGMMA_I8(16, 8, 8, 9, 10)
ROOFTILE_WGMMA_I8(24, 12, 12, 13, 14)
ROOFTILE_WGMMA_I8(32, 16, 16, 17, 18)
ROOFTILE_WGMMA_I8(48, 24, 24, 25, 26)
ROOFTILE_WGMMA_I8(64, 32, 32, 33, 34)
ROOFTILE_WGMMA_I8(80, 40, 40, 41, 42)
ROOFTILE_WGMMA_I8(96, 48, 48, 49, 50)
ROOFTILE_WGMMA_I8(112, 56, 56, 57, 58)
ROOFTILE_WGMMA_I8(128, 64, 64, 65, 66)
ROOFTILE_WGMMA_I8(144, 72, 72, 73, 74)
ROOFTILE_WGMMA_I8(160, 80, 80, 81, 82)
ROOFTILE_WGMMA_I8(176, 88, 88, 89, 90)
ROOFTILE_WGMMA_I8(192, 96, 96, 97, 98)
ROOFTILE_WGMMA_I8(208, 104, 104, 105, 106)
ROOFTILE_WGMMA_I8(224, 112, 112, 113, 114)
ROOFTILE_WGMMA_I8(240, 120, 120, 121, 122)
ROOFTILE_WGMMA_I8(256, 128, 128, 129, 130)
#undef C

#undef ROOFTILE_WGMMA_I8
#undef ROOFTILE_WGMMA
#undef ROOFTILE_WGMMA_K_MAJOR
#undef ROOFTILE_WGMMA_OF
#undef Q
#undef R4
#undef S4
#undef R8
#undef S8
#undef R12
#undef S12
#undef R16
#undef S16
#undef R20
#undef S20
#undef R24
#undef S24
#undef R28
#undef S28
#undef R32
#undef S32
#undef R36
#undef S36
#undef R40
#undef S40
#undef R44
#undef S44
#undef R48
#undef S48
#undef R52
#undef S52
#undef R56
#undef S56
#undef R60
#undef S60
#undef R64
#undef S64
#undef R68
#undef S68
#undef R72
#undef S72
#undef R76
#undef S76
#undef R80
#undef S80
#undef R84
#undef S84
#undef R88
#undef S88
#undef R92
#undef S92
#undef R96
#undef S96
#undef R100
#undef S100
#undef R104
#undef S104
#undef R108
#undef S108
#undef R112
#undef S112
#undef R116
#undef S116
#undef R120
#undef S120
#undef R124
#undef S124
#undef R128
#undef S128

}  // namespace rooftile::cuda::detail
