#pragma once
// What every op does with its arguments before anything runs: each refusal is one sentence.
#include <initializer_list>
#include <span>

#include "rooftile/core/status.h"
#include "rooftile/core/view.h"
#include "rooftile/core/workspace.h"

namespace rooftile {

/// "2x3 f16"; "64x1024 f32 (strides 2048, 1)" where it is not dense; "absent". Of any bytes: what cannot be a
/// view is told all the same, and what is too long ends in "…".
struct Description {
  char text[192];
};
Description describe(const ConstView& view);

/// Whether its strides are those that view() gives a shape; sizes of 1 have any.
bool is_dense(const ConstView& view);

/// One argument of a call, with the name it has in the sentences.
struct Argument {
  const char* name;
  const ConstView& view;
};

/// Present, no size negative, within 2^62 elements and 2^62 bits of address space, data not null unless
/// empty, aligned to its dtype, the dtype one of `allowed`.
Status check_view(const char* function, Argument argument, std::span<const DType> allowed);
inline Status check_view(const char* function, Argument argument, std::initializer_list<DType> allowed) {
  return check_view(function, argument, std::span(allowed.begin(), allowed.size()));
}

/// An output may not write one element twice (a stride of 0, say). Exact: odd strides that never meet pass.
Status check_output(const char* function, Argument output);

/// An output may be an input (same address and strides) where `in_place`; to overlap in any other way is
/// refused. Exact: views that interleave without sharing an element pass.
Status check_no_overlap(const char* function, Argument output, Argument input, bool in_place);

/// Packed elements have no address of their own: they lie side by side, in row-major order.
Status check_packed(const char* function, Argument argument);

/// Enough bytes, aligned to 64.
Status check_workspace(const char* function, Workspace workspace, std::size_t needed);
/// It shares no byte with an argument, present or absent.
Status check_workspace_apart(const char* function, Workspace workspace, Argument argument);

/// Whether two views share a bit: packed elements in one byte lie apart. Says so, too, where that could not
/// be ruled out in 100,000 steps.
bool overlap(const ConstView& a, const ConstView& b);

/// The bytes from the first to behind the last that a view touches.
struct Range {
  std::uintptr_t begin, end;
};
Range range_of(const ConstView& view);

#define ROOFTILE_TRY(call) \
  if (::rooftile::Status status_ = (call); !status_) return status_

}  // namespace rooftile
