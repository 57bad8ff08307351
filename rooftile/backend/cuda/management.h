#pragma once
// The driver's management library (NVML), if it is there: its functions by name, and a device's handle.
// Loaded once, never given back.
#include <dlfcn.h>

#include <type_traits>

namespace rooftile::cuda {

/// Null where there is none.
inline void* management_library() {
  static void* const library = [] {
    void* loaded = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    const auto init = loaded ? reinterpret_cast<int (*)()>(dlsym(loaded, "nvmlInit_v2")) : nullptr;
    return init && init() == 0 ? loaded : nullptr;
  }();
  return library;
}

/// False where the library or the function is missing; `function` is null then.
template <class F>
bool find_management(F*& function, const char* name) {
  void* const library = management_library();
  function = library ? reinterpret_cast<F*>(dlsym(library, name)) : nullptr;
  return function != nullptr;
}

/// The library's handle of a CUDA device; null where it has none. In device.cpp.
void* management_handle(int device);

}  // namespace rooftile::cuda
