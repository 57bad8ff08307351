#pragma once
// Kernels that treat each element by itself, written once for all machines: a lane function, which takes a
// tile of each input and gives a tile (or a Pair of tiles) of the outputs, is run over whole tensors.
#include "rooftile/core/elements.h"
#include "rooftile/tile/kernels.h"
#include "rooftile/tile/tile.h"
#if defined(__CUDACC__) || defined(ROOFTILE_EMULATED)
#include "rooftile/tile/cuda/lanes.h"
#else
#include "rooftile/tile/cpu/lanes.h"
#endif

/// A lane function as an object that is named as the C++ function: of x, of x and y, … it gives the
/// expression, in which `option` is the call's first. Structs: nvcc takes no lambda of a template from host
/// code.
#define ROOFTILE_LANES_1(name, x, ...) ROOFTILE_LANES_OF(name, 1, (const X& x), __VA_ARGS__)
#define ROOFTILE_LANES_2(name, x, y, ...) ROOFTILE_LANES_OF(name, 2, (const X& x, const X& y), __VA_ARGS__)
#define ROOFTILE_LANES_3(name, x, y, z, ...) \
  ROOFTILE_LANES_OF(name, 3, (const X& x, const X& y, const X& z), __VA_ARGS__)
#define ROOFTILE_LANES_OF(name, inputs, parameters, ...) \
  struct name {                                          \
    static constexpr int kInputs = inputs;               \
    static constexpr const char* kFunction = #name;      \
    LaneOption option = 0;                               \
    template <Lanes X>                                   \
    ROOFTILE_TILE auto operator() parameters const {     \
      return __VA_ARGS__;                                \
    }                                                    \
  }

namespace rooftile::tile {
#if defined(__CUDACC__) || defined(ROOFTILE_EMULATED)
inline namespace cuda {
/// What a lane function's option is: only CPUs take f64, to which f32 would be too coarse.
using LaneOption = float;
#else
inline namespace ROOFTILE_ISA {
using LaneOption = double;
#endif

/// Of f64, too, on CPUs: rooftile/core/elements.h's functions that take it.
template <class F, int kOperands>
Status for_lanes_or_doubles(const Launch& launch, const ElementsProblem<kOperands>& p, const F& f) {
#if !defined(__CUDACC__) && !defined(ROOFTILE_EMULATED)
  if (p.dtype == DType::f64) return for_lanes<F::kInputs, double>(launch, F::kFunction, p, f);
#endif
  return for_lanes<F::kInputs>(launch, F::kFunction, p, f);
}
template <class F, class WhereSet, int kOutputs>
Status launch_lanes(const Launch& launch, const ElementsProblem<F::kInputs + kOutputs>& p) {
  if constexpr (!std::is_same_v<F, WhereSet>)
    if (p.flag(0)) return for_lanes_or_doubles(launch, p, WhereSet{});
  return for_lanes_or_doubles(launch, p, F{static_cast<LaneOption>(p.options[0])});
}
/// The entry of such an F, by the name "tile"; where the call's first option is a flag, WhereSet runs if it
/// is set.
template <class F, class WhereSet = F, int kOutputs = 1>
inline constexpr PluginEntry kLaneEntry = entry<launch_lanes<F, WhereSet, kOutputs>>(F::kFunction, "tile");

}  // namespace cuda or ROOFTILE_ISA
}  // namespace rooftile::tile
