#pragma once
// For exercises that write a lane function of one tensor, Tile f(Tile): judged on this CPU.
#include "rooftile/core/elements.h"
#include "rooftile/exercise/cpu.h"

namespace rooftile::exercise {

/// y = lane(x), row by row.
template <class Lane>
Status map(const ElementsProblem<2>& p, Lane lane) {
  const auto* x = static_cast<const float*>(p.data[1]);
  auto* y = static_cast<float*>(const_cast<void*>(p.data[0]));
  for (std::int64_t row = 0; row < p.rows.rows; ++row) {
    Team team;
    const tile::Row<const float> in{x + p.rows.offset(1, row), p.rows.columns};
    const tile::Row<float> out{y + p.rows.offset(0, row), p.rows.columns};
    team.each(in.size, [&](auto chunk) { team.store(out, chunk, lane(team.load(in, chunk))); });
  }
  return {};
}

}  // namespace rooftile::exercise
