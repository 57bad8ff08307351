// Judges the exercise of rooftile/ops/softmax/README.md by the op's own oracle, cases and tolerance; and
// shows that the same judge rejects the three mistakes that the exercise invites.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rooftile/harness/compare.h"
#include "rooftile/harness/standard_cases.h"
#include "rooftile/ops/softmax/exercise/one_pass.tile.h"

namespace rooftile::harness {
namespace {
using namespace rooftile::tile;

using Team = CpuTeam<float, Access::cached>;

/// "" where every element is right, else a sentence about the first wrong one.
template <class Kernel>
std::string judge(const Spec& spec, const Case& c, std::uint64_t seed, Kernel kernel) {
  const Problem problem(spec, c, seed);
  const std::size_t x_index = problem.index_of("x"), y_index = problem.index_of("y");
  const std::vector<double>& values = problem.values(x_index);
  const std::vector<float> x(values.begin(), values.end());
  const SplitScale scale(static_cast<float>(c.parameter("scale", 1)));
  const std::int64_t columns = c.shape.back(), rows = columns ? count_of(c.shape) / columns : 0;
  constexpr float kGuard = 12345;
  std::vector<float> y(x.size() + 1, kGuard);
  for (std::int64_t row = 0; row < rows; ++row)
    kernel(Team(nullptr), Row<const float>{x.data() + row * columns, columns},
           Row<float>{y.data() + row * columns, columns}, scale);
  if (y.back() != kGuard) return describe(c) + ": the last row was written past its end";
  const Bytes got = encode(DType::f32, std::vector<double>(y.begin(), y.end() - 1));
  const Limits limits = limits_of(spec, c, "tile");
  const std::string failure =
      compare(limits, problem.operands()[y_index], problem.answer(y_index), got).failure;
  return failure.empty() ? "" : describe(c) + ": " + failure;
}

/// The judge's first complaint over all cases that `rooftile check softmax` has for dense f32.
template <class Kernel>
std::string judge_all(Kernel kernel) {
  const Spec& spec = *find_spec("softmax");
  int judged = 0;
  for (const Case& c : all_cases(spec, DType::f32, false)) {
    if (c.parameter("log") != 0 || c.layout != Layout::contiguous || c.in_place) continue;
    ++judged;
    if (std::string complaint = judge(spec, c, static_cast<std::uint64_t>(judged), kernel);
        !complaint.empty())
      return complaint;
  }
  return judged >= 30 ? "" : "only " + std::to_string(judged) + " cases were judged";
}

TEST(SoftmaxExercise, TheSolutionIsRight) {
  EXPECT_EQ(judge_all([](auto... a) { exercise::softmax_one_pass(a...); }), "");
}

/// The solution with one thing left out.
enum class Mistake { none, tail_joins, infinities_meet, peaks_mixed };

template <Mistake kMistake>
void mistaken(Team team, Row<const float> x, Row<float> y, const SplitScale& s) {
  using Tile = Team::Tile;
  const auto only = [&](auto chunk, Tile value, float other) {
    return kMistake == Mistake::tail_joins ? value : team.only(chunk, value, other);
  };
  Tile peaks = team.fill(-kInfinity), sums = team.fill(0);
  team.each(x.size, [&](auto chunk) {
    const Tile in = team.load(x, chunk);
    const Tile peak = max(peaks, only(chunk, in * s.unit, -kInfinity));
    Tile shift = peak;
    if (kMistake != Mistake::infinities_meet) shift = select(peak == -kInfinity, team.fill(0), peak);
    sums = fma(sums, exp((peaks - shift) * s.rest), only(chunk, exp(fma(in, s.unit, -shift) * s.rest), 0));
    peaks = peak;
  });
  const float peak = team.max(peaks), shift = peak == -kInfinity ? 0 : peak;
  if (kMistake != Mistake::peaks_mixed) sums = sums * exp((peaks - shift) * s.rest);
  const float inverse = 1 / team.sum(sums);
  team.each(x.size, [&](auto chunk) {
    team.store(y, chunk, exp(fma(team.load(x, chunk), s.unit, -peak) * s.rest) * inverse);
  });
}

TEST(SoftmaxExercise, TheJudgeRejectsEachMistake) {
  EXPECT_EQ(judge_all(mistaken<Mistake::none>), "");
  EXPECT_NE(judge_all(mistaken<Mistake::tail_joins>), "");
  EXPECT_NE(judge_all(mistaken<Mistake::infinities_meet>), "");
  EXPECT_NE(judge_all(mistaken<Mistake::peaks_mixed>), "");
}

}  // namespace
}  // namespace rooftile::harness
