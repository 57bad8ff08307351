#pragma once
// One machine vector, for the three instruction sets: what GNU vector extensions express is written with
// them, the rest lies in avx512.h, avx2.h and baseline.h, the only files with intrinsics.
#include <cstdint>
#include <cstring>

#include "rooftile/core/dtype.h"

#define ROOFTILE_TILE inline __attribute__((always_inline))
#define ROOFTILE_INLINE __attribute__((always_inline))  // behind a lambda's parameters
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROOFTILE_FLATTEN  // instrumented, one flat function takes minutes to compile
#else
#define ROOFTILE_FLATTEN __attribute__((flatten))
#endif

#if defined(__AVX512F__)
#define ROOFTILE_ISA avx512
#elif defined(__AVX2__)
#define ROOFTILE_ISA avx2
#else
#define ROOFTILE_ISA baseline
#endif

// Each instruction set has its own namespace: one program may hold several without the linker merging them.
namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

template <class S, int kBytes>
struct VectorOf {
  typedef S type __attribute__((vector_size(kBytes)));
  typedef S unaligned __attribute__((vector_size(kBytes), aligned(alignof(S)), may_alias));
};
template <class S>
using Vec = typename VectorOf<S, kVectorBytes>::type;
/// As many elements of type T as a vector of S has lanes.
template <class T, class S>
using Narrow = typename VectorOf<T, kVectorBytes / int(sizeof(S)) * int(sizeof(T))>::type;
template <class S>
inline constexpr int kVecLanes = kVectorBytes / int(sizeof(S));

/// The signed integer of a lane's width: what comparisons and indices are made of.
template <class S>
using IntegerOf = std::conditional_t<sizeof(S) == 8, std::int64_t, std::int32_t>;

template <class S>
ROOFTILE_TILE Vec<S> splat(S value) {
  return value - Vec<S>{};  // "- {}" keeps the sign of zero; "+ {}" would turn -0 into +0
}
template <class V>
ROOFTILE_TILE V load_unaligned(const void* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class V>
ROOFTILE_TILE void store_unaligned(void* p, V v) {
  std::memcpy(p, &v, sizeof v);
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile

#if defined(__AVX512F__)
#include "rooftile/tile/cpu/avx512.h"
#elif defined(__AVX2__)
#include "rooftile/tile/cpu/avx2.h"
#else
#include "rooftile/tile/cpu/baseline.h"
#endif
