#pragma once
// Lane functions over whole tensors, on a GPU: rooftile/tile/elements.h tells what they are.
#include "rooftile/core/elements.h"
#include "rooftile/tile/cuda/elements.h"
#include "rooftile/tile/cuda/tuning.h"
#include "rooftile/tile/indexed.h"
#include "rooftile/tile/pair.h"

namespace rooftile::tile {
inline namespace cuda {

/// f over parts of rows of T. `kInputs`: how many tiles f takes, the operands' last.
template <class T, int kInputs, int kOperands, class F>
struct LanesProgram {
  static constexpr int kOutputs = kOperands - kInputs;
  static_assert(kOutputs == 1 || kOutputs == 2, "rooftile::tile: a lane function has one or two outputs");
  Rows<kOperands> rows;
  const void* data[kOperands];
  F f;

  template <class Team, class Part>
  ROOFTILE_TILE void operator()(const Team& team, const Part& part) const {
    run(team, part, std::make_integer_sequence<int, kInputs>());
  }

 private:
  template <class Team, class Part, int... I>
  ROOFTILE_TILE void run(const Team& team, const Part& part, std::integer_sequence<int, I...>) const {
    store(team, part, team.hold(input(part, kOutputs + I), 0)...);
  }
  template <class Team, class Part, class... Held>
  ROOFTILE_TILE void store(const Team& team, const Part& part, const Held&... held) const {
    const auto y = part_of<T>(rows, 0, data[0], part);
    const auto run = started(f);
    const std::int64_t index = part.row * rows.columns + part.first;
    if constexpr (kOutputs == 1) {
      team.each(part.size, [&](const auto& chunk) {
        team.store(y, chunk, lanes_of(run, index + chunk.first, held[chunk]...));
      });
    } else {
      const auto second = part_of<T>(rows, 1, data[1], part);
      team.each(part.size, [&](const auto& chunk) {
        const auto result = lanes_of(run, index + chunk.first, held[chunk]...);
        team.store(y, chunk, result.first);
        team.store(second, chunk, result.second);
      });
    }
  }
  template <class Part>
  ROOFTILE_TILE Row<const T> input(const Part& part, int o) const {
    bool written = data[o] == data[0];
    if constexpr (kOutputs == 2) written = written || data[o] == data[1];
    return part_of<const T>(rows, o, data[o], part, written);
  }
};

/// y, … = f(x, …) for each element, of one of Types, or of f32, f16 or bf16; `kInputs`: how many tiles f
/// takes, the problem's last.
template <int kInputs, class... Types, int kOperands, class F>
Status for_lanes(const Launch& launch, const char* name, const ElementsProblem<kOperands>& p, const F& f) {
  if constexpr (sizeof...(Types) == 0) {
    return for_lanes<kInputs, float, f16, bf16>(launch, name, p, f);
  } else {
    return with_type<Types...>(p.dtype, [&]<class T>() {
      LanesProgram<T, kInputs, kOperands, F> program{p.rows, {}, f};
      bool aligned = true;
      for (int o = 0; o < kOperands; ++o) {
        program.data[o] = p.data[o];
        aligned = aligned && aligned_rows(p.rows, o, p.data[o], sizeof(T));
      }
      using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
      return for_parts<16 / int(sizeof(T)), lanes_tuning(kOperands).vectors, Real>(
          launch, name, p.rows.rows, p.rows.columns, aligned, program);
    });
  }
}

}  // namespace cuda
}  // namespace rooftile::tile
