#pragma once
// Lane functions over whole tensors, on a CPU: rooftile/tile/elements.h tells what they are.
#include "rooftile/core/elements.h"
#include "rooftile/tile/cpu/elements.h"
#include "rooftile/tile/indexed.h"
#include "rooftile/tile/pair.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// One part of a tensor. `held`: the inputs, each to be taken by chunk. f is a copy: what the kernel stores
/// cannot change it, so that its numbers stay in registers (axpby of bf16 in L2: 10.9 µs by reference, 9.8).
template <class T, class F, class Team, int kOperands, class... Held>
ROOFTILE_TILE void run_lanes(const Team& team, const F f, const Part<kOperands>& part, const Held&... held) {
  constexpr int kOutputs = kOperands - int(sizeof...(Held));
  static_assert(kOutputs == 1 || kOutputs == 2, "rooftile::tile: a lane function has one or two outputs");
  const auto run = started(f);
  team.each(part.size, [&](auto chunk) ROOFTILE_INLINE {
    const auto result = lanes_of(run, part.index + chunk.first, held[chunk]...);
    if constexpr (kOutputs == 1) {
      team.store(part.template row<T>(0), chunk, result);
    } else {
      team.store(part.template row<T>(0), chunk, result.first);
      team.store(part.template row<T>(1), chunk, result.second);
    }
  });
}

/// y, … = f(x, …) for each element, of one of Types, or of f32, f16 or bf16; `kInputs`: how many tiles f
/// takes, the problem's last.
template <int kInputs, class... Types, int kOperands, class F>
Status for_lanes(const Launch& launch, const char*, const ElementsProblem<kOperands>& p, const F& f) {
  if constexpr (sizeof...(Types) == 0) {
    return for_lanes<kInputs, float, f16, bf16>(launch, "", p, f);
  } else {
    Operands<kOperands> operands{p.rows, {}, kOperands - kInputs};
    std::copy_n(p.data, kOperands, operands.data);
    for_elements<Types...>(
        launch, operands, p.dtype, [&]<class T>(auto team, const Part<kOperands>& part) ROOFTILE_INLINE {
          [&]<int... I>(std::integer_sequence<int, I...>) ROOFTILE_INLINE {
            run_lanes<T>(team, f, part, team.hold(part.template row<const T>(kOperands - kInputs + I), 0)...);
          }
          (std::make_integer_sequence<int, kInputs>());
        });
    return {};
  }
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
