#pragma once
// Lists of tensors element by element, written once for all machines: optimisers. A few launches serve
// hundreds of tensors of any mixture of f32, f16 and bf16. A program is a struct:
//   using Numbers = …;                what a call says beside its lists
//   using Shared = …;                 what all elements share; its member `skips`: nothing is to be done;
//                                     optional, `float* found`: becomes 1 where a value 0 that is read is
//                                     infinite or NaN
//   static Shared begin(Numbers);     once for each call, on the device
//   static constexpr int kValues;     an element's numbers, one of each list
//   static constexpr bool kMaster;    one more list, of f32, optional: value 0 itself. Beside it the first
//                                     list is not read; it receives value 0 rounded
//   static constexpr unsigned kWritten;   bit i: value i is written
//   template <class X>
//   static void element(const Shared&, unsigned has, X (&x)[kValues]);   bit i of has: value i is there
// for_lists<Program>(launch, name, problem) runs it; begin_only<Program>(launch, name, numbers) its begin
// alone.
#include "rooftile/core/lists.h"
#include "rooftile/tile/kernels.h"
#include "rooftile/tile/tile.h"

namespace rooftile::tile {
template <class Program>
inline constexpr int kListsOf = Program::kValues + (Program::kMaster ? 1 : 0);
template <class Program>
using ListsProblemOf = ListsProblem<typename Program::Numbers, kListsOf<Program>>;

/// Whether a launch writes a list's tensors: its master, too.
template <class Program>
constexpr bool writes_list(int operand) {
  return operand == Program::kValues || (Program::kWritten >> operand & 1) != 0;
}

/// Whether it reports what is not finite.
template <class Program>
inline constexpr bool kFinds = requires(const typename Program::Shared& shared) {
  shared.found;
};
}  // namespace rooftile::tile

#if defined(__CUDACC__) || defined(ROOFTILE_EMULATED)
#include "rooftile/tile/cuda/lists.h"
#else
#include "rooftile/tile/cpu/lists.h"
#endif
