#pragma once
// Shared memory, for nvcc and for the emulated device, whose blocks hold it in an arena with bounds.
//   ROOFTILE_SHARED(tile, float[32][33]);     an array of the block, named tile
//   ROOFTILE_DYNAMIC_SHARED(bytes);           what the launch gave besides: a std::byte*, aligned to 1024
//   bytes
#include <cstddef>
#include <type_traits>

#if defined(ROOFTILE_EMULATED)
#include "rooftile/backend/emulated/device/calls.h"

// The site is static: its address names this declaration, one for each instantiation of a template around it.
#define ROOFTILE_SHARED(name, ...)                                           \
  static constinit ::rooftile::emulated::SharedSite rooftile_site_of_##name{ \
      #name, __FILE__, __LINE__, sizeof(std::type_identity_t<__VA_ARGS__>),  \
      alignof(std::type_identity_t<__VA_ARGS__>)};                           \
  auto& name = *static_cast<std::type_identity_t<__VA_ARGS__>*>(             \
      ::rooftile::emulated::device::shared_array(rooftile_site_of_##name))
#define ROOFTILE_DYNAMIC_SHARED(name) std::byte* const name = ::rooftile::emulated::device::dynamic_shared()

#else

#define ROOFTILE_SHARED(name, ...) __shared__ std::type_identity_t<__VA_ARGS__> name
// One name for all kernels: nvcc wants every declaration of it to be of one type.
#define ROOFTILE_DYNAMIC_SHARED(name)                                    \
  extern __shared__ __align__(1024) std::byte rooftile_dynamic_shared[]; \
  std::byte* const name = rooftile_dynamic_shared

#endif
