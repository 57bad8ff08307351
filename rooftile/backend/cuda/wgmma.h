#pragma once
// Matrix products by a warpgroup (wgmma; Hopper alone): the 128 threads of four neighbouring warps, the first
// of which has a number divisible by 4, come together to all of these. D, of 64 rows by N columns, in f32 or
// of bytes in i32, is in their registers; A (64 by K) in shared memory or in registers, B (K by N) in shared
// memory; K has 32 bytes.
//
//   wgmma_pin(d); wgmma_fence();
//   for (…) wgmma<bf16, N>(d, a, b, add);     as many as one likes, one after the other into the same D
//   wgmma_commit(); wgmma_pin(d);
//   …                                         D must not be touched, A and B must not be written
//   wgmma_wait<0>(); wgmma_pin(d);
//
// D: thread t's d[4j + 2h + e] is row 16 (t / 32) + t % 32 / 4 + 8h, column 8j + 2 (t % 4) + e. A in
// registers: the same for two 16-bit elements each, of columns 8j + 2 (t % 4) and the next: a[2j + h].
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "rooftile/backend/cuda/ptx.h"
#include "rooftile/backend/cuda/tensor_map.h"
#include "rooftile/core/dtype.h"
#if defined(ROOFTILE_EMULATED)
#include "rooftile/backend/emulated/device/hopper_calls.h"
#else
#include "rooftile/backend/cuda/wgmma_shapes.h"
#endif

namespace rooftile::cuda {
/// What products of T are added up in.
template <class T>
using WgmmaSum = std::conditional_t<std::is_same_v<T, std::int8_t>, int, float>;
}  // namespace rooftile::cuda

#if defined(ROOFTILE_HAS_HOPPER)
namespace rooftile::cuda {

/// Along which dimension an operand's neighbours lie.
enum class Major { kK, kMn };

/// How an operand lies in shared memory, as a box with this swizzle does (128 bytes are best):
///   K-major   rows of K, one for each m (or n), row_bytes(swizzle) each; groups of eight rows are `stride`
///             bytes apart (8 * row_bytes where they follow one another); `leading` does not count, except
///             without a swizzle: there it lies between the first and the second 16 bytes of K. The next 32
///             bytes of K within a row: advance_descriptor(d, 32).
///   MN-major  16-bit elements alone. Rows of m (or n), one for each k, row_bytes each; groups of eight k are
///             `stride` bytes apart, the next row_bytes of m are `leading` bytes further (without a swizzle,
///             the other way round). The next 16 of K: two groups further, advance_descriptor(d, 2 * stride).
/// The pattern starts at a multiple of 8 * row_bytes; all are multiples of 16 below 2^18.
ROOFTILE_PTX std::uint64_t wgmma_descriptor(const void* shared, unsigned leading, unsigned stride,
                                            Swizzle swizzle ROOFTILE_PTX_HERE) {
#if defined(ROOFTILE_EMULATED)
  const std::uint32_t address = emulated::device::shared_address(shared, where);
#else
  const std::uint32_t address = detail::shared_address(shared);
#endif
  // In a cluster, a block's rank stands above the address's 18 bits.
  return std::uint64_t{(address & 0x3ffff) >> 4} | std::uint64_t{leading >> 4} << 16 |
         std::uint64_t{stride >> 4} << 32 |
         static_cast<std::uint64_t>((4 - static_cast<int>(swizzle)) & 3) << 62;
}
/// An operand that starts so many bytes (a multiple of 16) further.
ROOFTILE_PTX std::uint64_t advance_descriptor(std::uint64_t descriptor, unsigned bytes) {
  return descriptor + (bytes >> 4);
}

/// Between other instructions on the registers of D (and A) and the first wgmma that uses them.
ROOFTILE_PTX void wgmma_fence() {
#if defined(ROOFTILE_EMULATED)
  emulated::device::wgmma_fence();
#else
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
/// Closes a group: the products since the last one.
ROOFTILE_PTX void wgmma_commit() {
#if defined(ROOFTILE_EMULATED)
  emulated::device::wgmma_commit();
#else
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
/// Waits for the groups but the last `N`.
template <int N>
ROOFTILE_PTX void wgmma_wait(ROOFTILE_PTX_HERE_ONLY) {
#if defined(ROOFTILE_EMULATED)
  emulated::device::wgmma_wait(N, where);
#else
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
#endif
}
/// Nothing that reads or writes these registers moves across: the compiler does not know that wgmma writes
/// them later.
template <class T, int kCount>
ROOFTILE_PTX void wgmma_pin([[maybe_unused]] T (&registers)[kCount]) {
  static_assert(sizeof(T) == 4);
#if !defined(ROOFTILE_EMULATED)
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if constexpr (std::is_same_v<T, float>)
      asm volatile("" : "+f"(registers[i])::"memory");
    else
      asm volatile("" : "+r"(registers[i])::"memory");
  }
#endif
}

#if defined(ROOFTILE_EMULATED)
namespace detail {
template <class T>
constexpr auto matrix_type = std::is_same_v<T, bf16>          ? emulated::device::MatrixType::kBf16
                             : std::is_same_v<T, f16>         ? emulated::device::MatrixType::kF16
                             : std::is_same_v<T, std::int8_t> ? emulated::device::MatrixType::kI8
                             : std::is_same_v<T, f8e4m3>      ? emulated::device::MatrixType::kE4m3
                             : std::is_same_v<T, f8e5m2>      ? emulated::device::MatrixType::kE5m2
                                                              : emulated::device::MatrixType::kTf32;
}  // namespace detail
#endif

/// d = a·b + (add ? d : 0); a, b: descriptors. T: bf16 or f16, 16 of K; tf32, 8; std::int8_t, 32, of which
/// sums wrap. N: a multiple of 8 from 8 to 256; of bytes beyond 24 of 16.
template <class T, int N, Major kA = Major::kK, Major kB = Major::kK>
ROOFTILE_PTX void wgmma(WgmmaSum<T> (&d)[N / 2], std::uint64_t a, std::uint64_t b,
                        bool add ROOFTILE_PTX_HERE) {
  constexpr bool kBytes = std::is_same_v<T, std::int8_t>;
  static_assert(N % 8 == 0 && N >= 8 && N <= 256 && (!kBytes || N <= 24 || N % 16 == 0));
  static_assert(std::is_same_v<T, bf16> || std::is_same_v<T, f16> || std::is_same_v<T, tf32> || kBytes);
  static_assert(sizeof(T) == 2 || (kA == Major::kK && kB == Major::kK));
#if defined(ROOFTILE_EMULATED)
  emulated::device::wgmma({detail::matrix_type<T>, a, b, nullptr, reinterpret_cast<float*>(d), N,
                           kA == Major::kMn, kB == Major::kMn, add},
                          where);
#else
  if constexpr (kBytes)
    detail::WgmmaI8<N>::multiply(d, a, b, add);
  else
    detail::Wgmma<N>::template multiply<T, detail::Left::kShared, kA == Major::kMn, kB == Major::kMn>(
        d, nullptr, a, b, add);
#endif
}
/// The same of codes, A and B f8e4m3 or f8e5m2, 32 of K. Products and sum keep 13 bits below the largest
/// one's exponent, and so does the result: sums of many are promoted, by adding them to others. N: 128.
template <class A, class B, int N>
ROOFTILE_PTX void wgmma_f8(float (&d)[N / 2], std::uint64_t a, std::uint64_t b, bool add ROOFTILE_PTX_HERE) {
  constexpr bool kLargeA = std::is_same_v<A, f8e5m2>, kLargeB = std::is_same_v<B, f8e5m2>;
  static_assert(N == 128);
  static_assert((kLargeA || std::is_same_v<A, f8e4m3>)&&(kLargeB || std::is_same_v<B, f8e4m3>));
#if defined(ROOFTILE_EMULATED)
  emulated::device::wgmma(
      {detail::matrix_type<A>, a, b, nullptr, d, N, false, false, add, detail::matrix_type<B>}, where);
#else
  detail::WgmmaF8<N>::multiply<kLargeA, kLargeB>(d, a, b, add);
#endif
}
/// The same of 16 bits with A in registers, which must stay as they are until it is waited for; bf16 or f16.
template <class T, int N, Major kB = Major::kK>
ROOFTILE_PTX void wgmma(float (&d)[N / 2], const unsigned (&a)[4], std::uint64_t b,
                        bool add ROOFTILE_PTX_HERE) {
  static_assert(N % 8 == 0 && N >= 8 && N <= 256);
  static_assert(std::is_same_v<T, bf16> || std::is_same_v<T, f16>);
#if defined(ROOFTILE_EMULATED)
  emulated::device::wgmma({detail::matrix_type<T>, 0, b, a, d, N, false, kB == Major::kMn, add}, where);
#else
  detail::Wgmma<N>::template multiply<T, detail::Left::kRegisters, 0, kB == Major::kMn>(d, a, 0, b, add);
#endif
}

}  // namespace rooftile::cuda
#endif  // ROOFTILE_HAS_HOPPER
