#pragma once
// Source lines of addresses in kernels.

#include <map>
#include <vector>

#include "rooftile/backend/emulated/controls.h"

namespace rooftile::emulated {

/// The lines of all these return addresses, from the debug information by addr2line: one call for each
/// module. Where there is none, the module and the address within it. `in_ops`: of a function that was
/// inlined into an op's kernel, the kernel's line.
std::map<const void*, Place> find_places(std::vector<const void*> pcs, bool in_ops = false);
Place make_place(const char* file, int line);

}  // namespace rooftile::emulated
