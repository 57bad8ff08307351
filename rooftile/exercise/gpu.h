#pragma once
// For exercises in CUDA: judged on the checked emulated device.
#include "rooftile/backend/cuda/launch.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/backend/emulated/controls.h"
#include "rooftile/backend/emulated/state.h"
#include "rooftile/exercise/function.h"
#include "rooftile/exercise/plugin.h"

namespace rooftile::exercise {

/// Shared memory's declarations tell how many bytes they take: each site once, when the plug-in is loaded.
template <class Site, long long kBytes>
inline const bool counted = (counts.shared_bytes += kBytes, true);

}  // namespace rooftile::exercise

#undef ROOFTILE_SHARED
#define ROOFTILE_SHARED(name, ...)                                                                 \
  static constinit ::rooftile::emulated::SharedSite rooftile_site_of_##name{                       \
      #name, __FILE__, __LINE__, sizeof(std::type_identity_t<__VA_ARGS__>),                        \
      alignof(std::type_identity_t<__VA_ARGS__>)};                                                 \
  static_cast<void>(                                                                               \
      &::rooftile::exercise::counted<decltype([] {}), sizeof(std::type_identity_t<__VA_ARGS__>)>); \
  auto& name = *static_cast<std::type_identity_t<__VA_ARGS__>*>(                                   \
      ::rooftile::emulated::device::shared_array(rooftile_site_of_##name))

namespace rooftile::cuda {
extern const DeviceFunctions device_functions;
}

/// What the judge calls beside kernels. Findings are taken by it: it wants to know their kind.
#define ROOFTILE_EXERCISE_DEVICE(count, table)                                                              \
  ROOFTILE_EXERCISE_COUNTS                                                                                  \
  extern "C" __attribute__((visibility("default"))) const rooftile::emulated::Controls*                     \
  rooftile_exercise_controls() {                                                                            \
    return &rooftile::emulated::controls();                                                                 \
  }                                                                                                         \
  /* What this process does from now on is no kernel's doing. */                                            \
  extern "C" __attribute__((visibility("default"), no_sanitize("thread"))) void rooftile_exercise_leave() { \
    rooftile::emulated::current = nullptr;                                                                  \
  }                                                                                                         \
  extern "C" __attribute__((visibility("default"))) const rooftile::Plugin* rooftile_plugin() {             \
    using namespace rooftile;                                                                               \
    static const DeviceFunctions device = [] {                                                              \
      DeviceFunctions functions = cuda::device_functions;                                                   \
      functions.findings = [](const CudaLaunch&) { return Status{}; };                                      \
      return functions;                                                                                     \
    }();                                                                                                    \
    static const Plugin plugin{kPluginVersion, "emulated-checked", count, table, &device};                  \
    return &plugin;                                                                                         \
  }

/// The one kernel: launch(const CudaLaunch&, const …Problem&), in place of that function's variant.
#define ROOFTILE_EXERCISE_KERNEL(function, variant, launch)        \
  static const rooftile::PluginEntry rooftile_exercise_table[] = { \
      rooftile::entry<launch>(function, variant)};                 \
  ROOFTILE_EXERCISE_DEVICE(1, rooftile_exercise_table)

/// The one kernel of a function that only exercises have: launch(const CudaLaunch&, const FunctionProblem&).
#define ROOFTILE_EXERCISE_FUNCTION(launch)                                                        \
  extern "C" __attribute__((visibility("default"))) rooftile::Kernel rooftile_exercise_kernel() { \
    return rooftile::entry<launch>("", "").kernel;                                                \
  }                                                                                               \
  ROOFTILE_EXERCISE_DEVICE(0, nullptr)
