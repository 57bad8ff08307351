#pragma once
#include <cstddef>

namespace rooftile {

/// Memory of the caller's that an op may use while it runs. How much: `<op>_workspace(...)`. Aligned to 64
/// bytes, and all of it apart from every argument of the call; its content before and after means nothing.
struct Workspace {
  void* pointer = nullptr;
  std::size_t bytes = 0;
};

}  // namespace rooftile
