#pragma once
// The oracle of a function that treats each element by itself, from the equation of one element.
#include <utility>

#include "rooftile/harness/arrays.h"

namespace rooftile::harness {

/// f(case, an element of each input…), in any scalar S, gives the output's, or a std::pair of two outputs'.
/// Operands are in the signature's order, inputs first.
template <int kInputs, auto f>
struct LaneOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    run(c, a, std::make_index_sequence<kInputs>());
  }

 private:
  template <class S, std::size_t... I>
  static void run(const Case& c, Arrays<S>& a, std::index_sequence<I...>) {
    const auto operand = [&](std::size_t o) -> Array<S>& { return a.all()[o].second; };
    for (std::int64_t i = 0; i < operand(kInputs).size(); ++i) {
      const auto result = f(c, operand(I).load(i)...);
      if constexpr (requires { result.second; }) {
        operand(kInputs).store(i, result.first);
        operand(kInputs + 1).store(i, result.second);
      } else {
        operand(kInputs).store(i, result);
      }
    }
  }
};

}  // namespace rooftile::harness
