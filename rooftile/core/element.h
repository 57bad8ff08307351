#pragma once
#include <concepts>
#include <cstdint>
#include <limits>

#include "rooftile/core/dtype.h"

// CUDA's element types, whose headers are not needed here.
struct __half;
struct __nv_bfloat16;
struct __nv_fp8_e4m3;
struct __nv_fp8_e5m2;

namespace rooftile {

/// The DType of a C++ element type: dtype_of<float> is DType::f32. To pass elements of a type of your own,
/// which has one of these formats in memory, specialise it:
///   template <> struct rooftile::DTypeOf<my::half> { static constexpr auto value = rooftile::DType::f16; };
template <class T>
struct DTypeOf;
// clang-format off
template <> struct DTypeOf<tf32> { static constexpr DType value = DType::tf32; };
template <> struct DTypeOf<f16> { static constexpr DType value = DType::f16; };
template <> struct DTypeOf<bf16> { static constexpr DType value = DType::bf16; };
template <> struct DTypeOf<f8e4m3> { static constexpr DType value = DType::f8e4m3; };
template <> struct DTypeOf<f8e5m2> { static constexpr DType value = DType::f8e5m2; };
template <> struct DTypeOf<std::int64_t> { static constexpr DType value = DType::i64; };
template <> struct DTypeOf<std::int32_t> { static constexpr DType value = DType::i32; };
template <> struct DTypeOf<std::int8_t> { static constexpr DType value = DType::i8; };
template <> struct DTypeOf<std::uint8_t> { static constexpr DType value = DType::u8; };
template <> struct DTypeOf<bool> { static constexpr DType value = DType::boolean; };
template <> struct DTypeOf<u4x2> { static constexpr DType value = DType::u4; };
template <> struct DTypeOf<__half> { static constexpr DType value = DType::f16; };
template <> struct DTypeOf<__nv_bfloat16> { static constexpr DType value = DType::bf16; };
template <> struct DTypeOf<__nv_fp8_e4m3> { static constexpr DType value = DType::f8e4m3; };
template <> struct DTypeOf<__nv_fp8_e5m2> { static constexpr DType value = DType::f8e5m2; };
// clang-format on

namespace detail {
/// Significand bits of a floating-point type of the compiler's; 0 of others. The standard library need not
/// know _Float16 and __bf16.
template <class T>
inline constexpr int kDigits = std::numeric_limits<T>::is_iec559 ? std::numeric_limits<T>::digits : 0;
#if defined(__FLT16_MANT_DIG__) && (!defined(__clang__) || __clang_major__ >= 15) && \
    (defined(__SSE2__) || defined(__aarch64__))
template <>
inline constexpr int kDigits<_Float16> = 11;
#endif
#if defined(__STDCPP_BFLOAT16_T__)
template <>
inline constexpr int kDigits<decltype(0.0bf16)> = 8;
#endif
}  // namespace detail

/// float, double, std::float16_t, std::bfloat16_t, _Float16 …: by size and significand.
template <class T>
requires(detail::kDigits<T> == 53 || detail::kDigits<T> == 24 || detail::kDigits<T> == 11 ||
         detail::kDigits<T> == 8) struct DTypeOf<T> {
  static constexpr DType value = detail::kDigits<T> == 53   ? DType::f64
                                 : detail::kDigits<T> == 24 ? DType::f32
                                 : detail::kDigits<T> == 11 ? DType::f16
                                                            : DType::bf16;
};

template <class T>
concept Element = requires {
  DTypeOf<T>::value;
};
template <Element T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace rooftile
