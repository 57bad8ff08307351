#include "rooftile/harness/guarded_memory.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "rooftile/harness/tensor.h"

namespace rooftile::harness {
namespace {

void touch(std::byte* place) { *static_cast<volatile std::byte*>(place) = std::byte{1}; }

TEST(GuardedMemory, IsWholePagesThatMayBeAccessed) {
  for (std::size_t bytes : {0, 1, 4096, 70'000, 5'000'000}) {
    GuardedMemory memory(bytes);
    EXPECT_GE(memory.size(), bytes);
    EXPECT_LT(memory.size(), bytes + 2 * 65536);  // the largest page of a Linux machine
    for (std::byte* begin : {memory.data(), memory.before()}) {
      touch(begin);
      touch(begin + memory.size() - 1);
    }
  }
}

TEST(GuardedMemoryDeathTest, EndsWhatGoesAstray) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  // Also where pages are used again, fewer of them than before.
  { GuardedMemory large(60'000); }
  GuardedMemory memory(100);
  EXPECT_DEATH(touch(memory.data() - 1), "");
  EXPECT_DEATH(touch(memory.data() + memory.size()), "");
  EXPECT_DEATH(touch(memory.data() + memory.size() + 50'000), "");
  EXPECT_DEATH(touch(memory.data() - (std::ptrdiff_t{60} << 20)), "");
  EXPECT_DEATH(touch(memory.before() + memory.size() + (std::ptrdiff_t{60} << 20)), "");
}

TEST(GuardedMemoryDeathTest, EndsWhatComesTooLate) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  std::byte* data = nullptr;
  {
    GuardedMemory memory(100);
    data = memory.data();
  }
  EXPECT_DEATH(touch(data), "");
}

// All that may be written is compared: also behind the guards, up to the page's end.
TEST(GuardedMemory, TellsOfEachByteThatATensorMayNotLose) {
  const Placement placement{{1}, 0};
  Tensor tensor(DType::f32, {10}, placement);
  const std::size_t first =
      static_cast<std::size_t>(static_cast<const std::byte*>(tensor.view().data) - tensor.memory());
  for (std::size_t at = 0; at < tensor.bytes(); ++at) {
    const bool element = at >= first && at < first + 40;
#if defined(__SANITIZE_ADDRESS__)
    if (!element) continue;  // a write there ends the process
#endif
    tensor.memory()[at] = std::byte{0x11};
    const std::string told = tensor.restore(true);
    const char* where = element      ? "at byte"
                        : at < first ? "before its first element"
                                     : "past its last element";
    EXPECT_NE(told.find(where), told.npos) << at << ": " << told;
    EXPECT_EQ(tensor.restore(true), "") << at;
  }
}

}  // namespace
}  // namespace rooftile::harness
