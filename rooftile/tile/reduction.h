#pragma once
// Whole tensors to one number, written once for all machines. The elements in row-major order are cut into
// chunks that follow from the length alone; a program computes one chunk's partial result, and partials are
// joined pairwise in the chunks' order. So the result has the same bits for any strides, alignment and
// threads. A reduction is a struct:
//   using Partial = …;                                 what a chunk gives; Partial{} is that of no elements
//   template <class Team, class... X>
//   static Partial chunk(Team, const X&... inputs);    of one chunk; empty lanes are to read as nothing
//   static Partial nothing();                          joined with any partial it changes no bit
//   static Partial join(const Partial& left, const Partial& right);
//   static double finish(const Partial& all);
#include "rooftile/core/reduction.h"
#include "rooftile/tile/elements.h"

namespace rooftile::tile {

/// Elements of a chunk: long enough that its own cost vanishes (64 KiB of f32), short enough that no lane
/// adds more than 2^14 / 64 = 256 terms in f32 on AVX-512 (2^14 / 16 = 1024 on the baseline).
inline constexpr std::int64_t kReductionChunk = std::int64_t{1} << 14;

#if defined(__CUDACC__) || defined(ROOFTILE_EMULATED)
inline namespace cuda {
#else
inline namespace ROOFTILE_ISA {
#endif

/// A sum of partial sums, in f64. -0 changes no sum, not even -0.
struct Sum {
  using Partial = double;
  ROOFTILE_TILE static double nothing() { return -0.0; }
  ROOFTILE_TILE static double join(double left, double right) { return left + right; }
  ROOFTILE_TILE static double finish(double sum) { return sum; }
};

/// Joins partials pairwise in the order they come: ((0 + 1) + (2 + 3)) + ((4 + 5) + 6). Like a binary
/// counter: level l holds 2^l neighbours joined, and two of one level are joined and carried. The tree
/// follows from the count alone, and 2^l neighbours that begin at a multiple of 2^l are a node of it: threads
/// may join these apart.
template <class Reduction>
class Pairwise {
 public:
  using Partial = typename Reduction::Partial;
  ROOFTILE_TILE
  void add(Partial value) {
    int l = 0;
    for (std::int64_t carry = count_++; carry & 1; carry >>= 1) value = Reduction::join(level_[l++], value);
    level_[l] = value;
  }
  /// Of none: Partial{}.
  ROOFTILE_TILE
  Partial total() const {
    if (count_ == 0) return {};
    int l = 0;
    while (!(count_ >> l & 1)) ++l;
    Partial all = level_[l];
    for (++l; count_ >> l; ++l)
      if (count_ >> l & 1) all = Reduction::join(level_[l], all);
    return all;
  }

 private:
  std::int64_t count_ = 0;
  Partial level_[50];  // 2^50 chunks are 2^64 elements
};

}  // namespace
}  // namespace rooftile::tile

#if defined(__CUDACC__) || defined(ROOFTILE_EMULATED)
#include "rooftile/tile/cuda/reduction.h"
#else
#include "rooftile/tile/cpu/reduction.h"
#endif
