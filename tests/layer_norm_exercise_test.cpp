// Judges the exercise of rooftile/ops/layer_norm/README.md by the op's own oracle and tolerance; and shows
// that the same judge rejects the mistakes that the exercise invites.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "rooftile/ops/layer_norm/cases.h"
#include "rooftile/ops/layer_norm/exercise/welford.tile.h"

namespace rooftile::harness {
namespace {
using namespace rooftile::tile;

using Team = CpuTeam<float, Access::cached>;

std::vector<float> inputs(std::int64_t rows, std::int64_t columns, Fill fill) {
  std::vector<float> x(static_cast<std::size_t>(rows * columns));
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = normal(random);
    if (fill == Fill::large_offset) x[i] += 1000;
    if (fill == Fill::constant_rows)
      x[i] = x[i / static_cast<std::size_t>(columns) * static_cast<std::size_t>(columns)];
    // What drifts along the row: lanes of different means.
    if (fill == Fill::wide) x[i] += static_cast<float>(i % static_cast<std::size_t>(columns) % 64);
  }
  return x;
}

/// "" where every element is right, else a sentence about the first wrong one.
template <class Kernel>
std::string judge(std::int64_t columns, Fill fill, Kernel kernel) {
  constexpr std::int64_t kRows = 3;
  const Case c{{kRows, columns}, DType::f32, {{"weight", 0}, {"bias", 0}, {"mean", 0}, {"rstd", 0}}};
  const std::vector<float> x = inputs(kRows, columns, fill);
  constexpr float kGuard = 12345;
  std::vector<float> y(x.size() + 1, kGuard);
  for (std::int64_t row = 0; row < kRows; ++row)
    kernel(Team(nullptr), Row<const float>{x.data() + row * columns, columns},
           Row<float>{y.data() + row * columns, columns}, 1e-5f);
  if (y.back() != kGuard) return "the last row was written past its end";

  Arrays<double> exact;
  exact["x"] = Array<double>(std::vector<double>(x.begin(), x.end()));
  exact["y"] = Array<double>(std::vector<double>(x.size()));
  LayerNormOracle::run<double>(c, exact);
  const Tolerance& rule = find_spec("layer_norm")->tolerance;
  const double unit = std::ldexp(1.0, -significand_bits(DType::f32));
  const double chain = std::sqrt(rule.chain(c, "tile"));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = exact["y"].values()[i], got = static_cast<double>(y[i]);
    const double tolerance = unit * std::fabs(want) + rule.c * chain * unit * exact["y"].magnitudes()[i];
    if (!(std::fabs(got - want) <= tolerance))
      return "columns " + std::to_string(columns) + ", fill " + std::to_string(int(fill)) + ": element " +
             std::to_string(i) + " is " + std::to_string(got) + ", should be " + std::to_string(want) +
             " within " + std::to_string(tolerance);
  }
  return "";
}

template <class Kernel>
std::string judge_all(Kernel kernel) {
  for (std::int64_t columns : {1, 2, 3, 15, 16, 17, 30, 63, 64, 65, 100, 1000, 4097})
    for (Fill fill : {Fill::normal, Fill::large_offset, Fill::constant_rows, Fill::wide})
      if (std::string complaint = judge(columns, fill, kernel); !complaint.empty()) return complaint;
  return "";
}

TEST(LayerNormExercise, TheSolutionIsRight) {
  EXPECT_EQ(judge_all([](auto... a) { exercise::layer_norm_welford(a...); }), "");
}

/// The solution with one thing left out.
enum class Mistake { none, tail_joins, lanes_apart, no_shift };

template <Mistake kMistake>
void mistaken(Team team, Row<const float> x, Row<float> y, float eps) {
  using Tile = Team::Tile;
  const auto only = [&](auto chunk, Tile value) {
    return kMistake == Mistake::tail_joins ? value : team.only(chunk, value, 0);
  };
  Tile counts = team.fill(0), means = team.fill(0), squares = team.fill(0);
  team.each(x.size, [&](auto chunk) {
    const Tile in = team.load(x, chunk);
    const Tile more = counts + only(chunk, team.fill(1));
    const Tile before = only(chunk, in - means);
    means = means + before / max(more, 1);
    squares = fma(before, only(chunk, in - means), squares);
    counts = more;
  });
  const float each_one = 1 / static_cast<float>(x.size);
  const float pivot = team.max(means), mean = pivot + team.sum(counts * (means - pivot)) * each_one;
  const Tile between = kMistake == Mistake::lanes_apart ? team.fill(0) : means - mean;
  float variance = team.sum(fma(counts * between, between, squares)) * each_one;
  if (kMistake == Mistake::no_shift) {  // E[x²] - E[x]²
    Tile raw = team.fill(0);
    team.each(x.size, [&](auto chunk) { raw = fma(team.load(x, chunk), team.load(x, chunk), raw); });
    variance = team.sum(raw) * each_one - mean * mean;
  }
  const float rstd = 1 / std::sqrt(variance + eps);
  team.each(x.size, [&](auto chunk) { team.store(y, chunk, (team.load(x, chunk) - mean) * rstd); });
}

TEST(LayerNormExercise, TheJudgeRejectsEachMistake) {
  EXPECT_EQ(judge_all(mistaken<Mistake::none>), "");
  EXPECT_NE(judge_all(mistaken<Mistake::tail_joins>), "");
  EXPECT_NE(judge_all(mistaken<Mistake::lanes_apart>), "");
  EXPECT_NE(judge_all(mistaken<Mistake::no_shift>), "");
}

}  // namespace
}  // namespace rooftile::harness
