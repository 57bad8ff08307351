// A kernel that asks for more scratch than a thread has is refused with a sentence, and writes nothing: as
// released, without assertions. With them: block_language_test.
#undef ROOFTILE_ASSERTIONS
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "rooftile/core/rows.h"
#include "rooftile/core/view.h"
#include "rooftile/tile/cpu/launch.h"

namespace rooftile::tile {
namespace {

constexpr std::size_t kThreads = 2;
constexpr auto kGuard = std::byte{0x5c};

void serially(void*, int tasks, void (*task)(void*, int), void* context) {
  for (int t = 0; t < tasks; ++t) task(context, t);
}

/// Copies rows by way of scratch, `times` rows of it; what it asked for in vain.
std::int64_t copy_by_scratch(std::int64_t columns, int times, std::vector<float>& y) {
  const std::int64_t rows = 2;
  std::vector<float> x(static_cast<std::size_t>(rows * columns), 3);
  y.assign(x.size(), 7);
  // A kernel that overran would write into the guard behind the last thread's.
  std::vector<std::byte> memory(kThreads * kScratchBytes + (1 << 20), kGuard);
  std::int64_t wanted = 0;
  const CpuLaunch launch{kThreads, std::int64_t{1} << 62, memory.data(), nullptr, serially, &wanted};
  const Rows<2> shape =
      rows_of(view(static_cast<const float*>(x.data()), {rows, columns}), view(y.data(), {rows, columns}));
  for_each_row(launch, shape, DType::f32,
               [&]<class T>(auto team, std::int64_t row, std::int64_t end) ROOFTILE_INLINE {
                 if constexpr (std::is_same_v<T, float>) {
                   const auto from = row_of<const float>(shape, 0, x.data(), row, end);
                   const auto to = row_of<float>(shape, 1, y.data(), row, end);
                   auto held = team.scratch(columns);
                   for (int t = 1; t < times; ++t) held = team.scratch(columns);
                   team.each(columns, [&](auto chunk) { held[chunk] = team.load(from, chunk); });
                   team.each(columns, [&](auto chunk) { team.store(to, chunk, held[chunk] + 0); });
                 }
               });
  EXPECT_TRUE(std::all_of(memory.begin() + kThreads * kScratchBytes, memory.end(),
                          [](std::byte b) { return b == kGuard; }))
      << columns << " columns were written past the scratch";
  return wanted;
}

bool all_are(const std::vector<float>& y, float value) {
  return std::all_of(y.begin(), y.end(), [&](float v) { return v == value; });
}

constexpr std::int64_t kMax = kScratchBytes / sizeof(float);

TEST(Scratch, WhatFitsIsGiven) {
  std::vector<float> y;
  EXPECT_EQ(copy_by_scratch(kMax, 1, y), 0);
  EXPECT_TRUE(all_are(y, 3));
  EXPECT_EQ(copy_by_scratch(kMax / 4, 4, y), 0);
  EXPECT_TRUE(all_are(y, 3));
}

TEST(Scratch, WhatDoesNotFitIsRefusedAndNothingIsWritten) {
  std::vector<float> y;
  EXPECT_GT(copy_by_scratch(kMax + 1, 1, y), 0);
  EXPECT_TRUE(all_are(y, 7));
  EXPECT_EQ(copy_by_scratch(kMax / 2, 3, y), kMax / 2 * 4);
  EXPECT_TRUE(all_are(y, 7));
}

TEST(Scratch, ATeamOfWhatIsLeftAfterARefusalIsRefused) {
  std::vector<std::byte> memory(kScratchBytes);
  std::int64_t wanted = 0;
  CpuTeam<float, Access::cached> first(ThreadScratch(memory.data(), &wanted));
  first.scratch(kMax + 1);
  EXPECT_GT(wanted, 0);
  int steps = 0;
  CpuTeam<float, Access::cached>(first.rest()).each(100, [&](auto) { ++steps; });
  EXPECT_EQ(steps, 0);
}

}  // namespace
}  // namespace rooftile::tile
