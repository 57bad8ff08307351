#include "rooftile/backend/emulated/controls.h"

namespace rooftile::emulated {

const char* name(FindingKind kind) noexcept {
  constexpr const char* kNames[] = {"race",         "out of bounds",     "unwritten memory",
                                    "missing wait", "divergent barrier", "deadlock",
                                    "trap",         "misaligned address"};
  return kNames[static_cast<int>(kind)];
}
const char* name(TraceKind kind) noexcept {
  constexpr const char* kNames[] = {"global load", "global store", "shared load", "shared store", "atomic"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace rooftile::emulated
